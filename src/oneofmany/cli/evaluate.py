"""``oneofmany evaluate``: accuracy by validity of a run on a data file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table

from oneofmany.cli.terminal import progress, say

if TYPE_CHECKING:
    from oneofmany.evaluation import Evaluated

SUBSETS = {"os": "OS", "ms": "MS", "overall": "overall"}
VIEWS = {"chosen": "chosen without rules", "checked": "chosen with the checker"}


def evaluate(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")],
    *,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
    steps: int | None = None,
    starts: int = 1,
    choose: Literal["residual", "confidence"] = "residual",
    seed: int = 0,
    batch: int = 1024,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    precision: Literal["float32", "bfloat16", "float16"] | None = None,
    patience: int | None = None,
    name: str | None = None,
    force: bool = False,
) -> None:
    """Evaluate a network: an answer is right where it keeps the givens and every rule, listed or not.

    Example: oneofmany evaluate runs/nqueens/minloss/42 data/nqueens-test.safetensors

    Example: oneofmany evaluate runs/first data/nqueens-test.safetensors --steps 64 --starts 8

    Brackets hold the 95 % Wilson interval. A run folder keeps the predictions in RUN/predictions, from where they are
    taken the next time; `compare`, `record` and `report` need them.

    Args:
        run: a run folder, a weights file, or the name of a bundled network.
        data: the data file.
        as_json: print JSON.
        steps: how many steps the network runs; its own number for test time by default.
        starts: how many noisy starts are tried for every query. Results are then told apart: of the first one, of the
            one that is chosen without knowing the rules, and of any valid one, for users who have a checker.
        choose: which start is chosen without the rules: whose belief moved least in the last step, or the surest.
        seed: of the noise; the same seed and batch give the same answers.
        batch: how many queries are answered at once.
        device: auto takes a GPU where there is one.
        precision: of the network's activations. By default float32 on a CPU; on a GPU float16 for the NLM, bfloat16 for
            the others.
        patience: stop a query once its answer has not changed for so many steps: with 8, several times quicker and
            hardly ever another answer. Off by default.
        name: under which a run folder keeps the predictions; the data file's by default, with steps, starts, choose,
            seed and patience where they are unusual, such as nqueens-test-starts8.
        force: evaluate again and overwrite what was kept.
    """
    import torch

    from oneofmany.evaluation import evaluate_run

    with progress() as bar:

        def tell(what: str, done: int, of: int) -> None:
            if of > batch:
                bar(what, done, of)

        try:
            evaluated = evaluate_run(
                run,
                data,
                steps=steps,
                starts=starts,
                choose=choose,
                seed=seed,
                batch_size=batch,
                device=device,
                precision=precision,
                patience=patience,
                name=name,
                force=force,
                tell=tell,
            )
        except torch.OutOfMemoryError:
            raise ValueError(f"--batch: the GPU has not enough memory for {batch} queries at once") from None
    if as_json:
        print(json.dumps(as_dictionary(evaluated), indent=2))
    else:
        print_scores(evaluated)
    if evaluated.reused:
        say(f"these predictions were there already, in {evaluated.file}; --force evaluates again")
    elif evaluated.file is not None:
        about = evaluated.about
        say(f"{about['seconds']:.1f} s on {about['environment']['device']}, predictions kept in {evaluated.file}")
    if evaluated.file is not None and not (Path(run) / "result.json").exists():
        say(f"{run} is not finished: these are its best weights so far")


def as_dictionary(evaluated: Evaluated) -> dict[str, Any]:
    """The scores, then how they came about."""
    about = {key: value for key, value in evaluated.about.items() if key != "summary"}
    file = None if evaluated.file is None else str(evaluated.file)
    return evaluated.summary | about | {"file": file, "reused": evaluated.reused}


def print_scores(evaluated: Evaluated) -> None:
    """A table of the accuracies, one column for each way to choose among starts, and what is told beside them."""
    about, summary = evaluated.about, evaluated.summary
    data = about["data"]
    how = [f"{about['network']} network"]
    how += [] if about["steps"] is None else [f"{about['steps']} steps"]
    how += [f"{about['starts']} starts ({about['choose']})"] if about["starts"] > 1 else []
    title = f"{data['name']}: {data['queries']:,} queries of {data['task']} {data['size']}, {', '.join(how)}"
    views = {text: summary[view] for view, text in VIEWS.items() if summary[view] is not None}
    views = {"one trajectory" if views else "accuracy": summary} | views
    rows = [[text, summary[key]["total"], *(view[key] for view in views.values())] for key, text in SUBSETS.items()]
    rows += [[], *([_solutions(score["solutions"]), score["total"], score] for score in summary["per_solutions"])]
    if total := summary["listed"]["total"]:
        cells = f"{100 * summary['cell_accuracy']:.2f} %"
        rows += [[], ["a listed solution", total, summary["listed"]], ["cells as in the closest one", total, cells]]
    print_table(title, ["", "queries", *views], rows)


def print_table(title: str, names: list[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table in its whole width, also where the terminal is narrow; cells are words, counts and scores."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for place, text in enumerate(names):
        table.add_column(text, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(score_text(c) if isinstance(c, dict) else f"{c:,}" if isinstance(c, int) else c for c in row))
    console = Console(highlight=False, width=max(Console().width, 160))
    console.print(title, markup=False, soft_wrap=True)
    console.print(table)


def score_text(score: dict[str, Any]) -> str:
    """Accuracy with its interval in percent, or a dash where there is no query."""
    if score["accuracy"] is None:
        return "-"
    return f"{100 * score['accuracy']:.2f} % [{100 * score['low']:.2f}, {100 * score['high']:.2f}]"


def _solutions(number: int) -> str:
    return "unknown" if number < 0 else f"{number:,} solution{'s' * (number != 1)}"
