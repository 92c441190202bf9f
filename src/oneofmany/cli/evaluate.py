"""``oneofmany evaluate``: the share of correct answers of a run on a data file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table

from oneofmany.cli.options import Flag, Json, TaskFile, option, use_task
from oneofmany.cli.terminal import progress, say
from oneofmany.cli.text import printable
from oneofmany.evaluation.scores import judged

if TYPE_CHECKING:
    from oneofmany.evaluation import Evaluated

SUBSETS = {"os": "OS", "ms": "MS", "overall": "overall"}
VIEWS = {"chosen": "chosen without rules", "checked": "chosen with the checker"}


def evaluate(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")],
    *,
    as_json: Json = False,
    steps: Annotated[int | None, option("N", "the network's number of test steps")] = None,
    starts: Annotated[int, tyro.conf.arg(aliases=["--samples"])] = 1,
    choose: Literal["residual", "confidence"] = "residual",
    seed: int = 0,
    batch: int = 1024,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    precision: Annotated[
        Literal["float32", "bfloat16", "float16"] | None,
        option("{float32,bfloat16,float16}", "float32 on a CPU; on a GPU float16 for the NLM, bfloat16 for the others"),
    ] = None,
    patience: Annotated[int | None, option("N", "0")] = None,
    by: Annotated[Literal["nodes", "degree"] | None, option("{nodes,degree}", "one table for all queries")] = None,
    name: Annotated[str | None, option("NAME", "the name of the data file")] = None,
    force: Flag = False,
    task_file: TaskFile = None,
) -> None:
    """Evaluate a network: the share of right answers, valid by the rules or, without rules, among the listed ones.

    An answer is valid if it keeps the givens and satisfies every rule, listed or not. The table says which it is.

    Example: oneofmany evaluate runs/nqueens/minloss/42 data/nqueens-test.safetensors

    Example: oneofmany evaluate runs/first data/nqueens-test.safetensors --steps 64 --starts 8

    Example: oneofmany evaluate runs/first data/nqueens-test.safetensors --samples 20

    Brackets show the 95 % Wilson interval. If RUN is a run folder, the predictions are saved in RUN/predictions and
    reused the next time; `compare`, `record` and `report` need them.

    Args:
        run: a run folder, a weights file, or the name of a bundled network.
        data: the data file.
        as_json: print JSON.
        steps: run at most this many network steps.
        starts: number of noisy starts per query. With several, the table has three columns:
            the first start, the start chosen without the rules, and any valid start (for users with a checker).
            A last line has the coverage: different valid answers over the number of solutions, mean over queries.
        choose: how to choose a start without the rules: the smallest change in the last step, or highest confidence.
        seed: random seed of the noise; the same seed and batch give the same answers.
        batch: number of queries per batch.
        device: where the network runs; auto is a GPU if there is one.
        precision: precision of the network's activations.
        patience: stop a query when its answer has not changed for this many steps; 0 never stops early.
            With 8, this is several times faster and almost never changes the answer.
        by: of graphs: a table by number of nodes, or by nodes and mean degree, of those that can be coloured.
        name: name of the saved predictions. Unusual options are added to the default, as in nqueens-test-starts8.
        force: evaluate again and overwrite the saved predictions.
    """
    import torch

    from oneofmany.evaluation import evaluate_run

    use_task(task_file)

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
            raise ValueError(f"--batch: the GPU does not have enough memory for {batch} queries at once") from None
    rows = None if by is None else _by_graph(data, evaluated, by)
    if as_json:
        more = {} if rows is None else {"by": rows}
        print(json.dumps(as_dictionary(evaluated) | more, indent=2))
    elif rows is not None:
        print_graphs(evaluated, rows)
    else:
        print_scores(evaluated)
    if evaluated.changed:
        say(f"note: {evaluated.changed}")
    if evaluated.reused:
        say(f"reused the predictions in {evaluated.file}; --force evaluates again")
    elif evaluated.file is not None:
        about = evaluated.about
        say(f"{about['seconds']:.1f} s on {about['environment']['device']}, predictions saved in {evaluated.file}")
    if evaluated.file is not None and not (Path(run) / "result.json").exists():
        say(f"{run} is not finished: these are its best weights so far")


def as_dictionary(evaluated: Evaluated) -> dict[str, Any]:
    """The scores, followed by how they were computed."""
    about = {key: value for key, value in evaluated.about.items() if key != "summary"}
    file = None if evaluated.file is None else str(evaluated.file)
    return evaluated.summary | about | {"file": file, "reused": evaluated.reused}


def print_scores(evaluated: Evaluated) -> None:
    """Print a table of accuracies, with one column for each way to choose among starts."""
    about, summary = evaluated.about, evaluated.summary
    data = about["data"]
    how = [f"{about['network']} network"]
    how += [] if about["steps"] is None else [f"{about['steps']} steps"]
    how += [f"{about['starts']} starts ({about['choose']})"] if about["starts"] > 1 else []
    title = f"{data['name']}: {data['queries']:,} queries of {data['task']} {data['size']}, {', '.join(how)}"
    title += f"; correct: {judged(summary.get('judged_by'))}"
    views = {text: summary[view] for view, text in VIEWS.items() if summary[view] is not None}
    views = {"one trajectory" if views else "accuracy": summary} | views
    rows = [[text, summary[key]["total"], *(view[key] for view in views.values())] for key, text in SUBSETS.items()]
    rows += [[], *([_solutions(score["solutions"]), score["total"], score] for score in summary["per_solutions"])]
    if total := summary["listed"]["total"]:
        cells = f"{100 * summary['cell_accuracy']:.2f} %"
        rows += [[], ["a listed solution", total, summary["listed"]], ["cells as in the closest one", total, cells]]
    if summary.get("error_rate") is not None:
        error = f"{100 * summary['error_rate']:.2f} %"
        rows += [[], ["error rate to the nearest listed answer", summary["overall"]["total"], error]]
    print_table(title, ["", "queries", *views], rows)
    outcomes = evaluated.outcomes
    unknown = int(((outcomes.total < 0) & ~outcomes.multiple).sum())
    if unknown and outcomes.judged_by == "rules":  # without rules, OS means one listed answer
        print(f"OS includes {unknown:,} queries whose number of solutions is unknown, with at most one of them listed")
    if summary["coverage"] is not None:
        print(f"coverage: {about['starts']} answers contain {100 * summary['coverage']:.2f} % of a query's solutions")


def _by_graph(data: Path, evaluated: Evaluated, by: Literal["nodes", "degree"]) -> list[dict[str, Any]]:
    from oneofmany.data import Dataset
    from oneofmany.evaluation.by_graph import by_graph

    return by_graph(Dataset.load(data), evaluated.outcomes, by)


def print_graphs(evaluated: Evaluated, rows: Sequence[dict[str, Any]]) -> None:
    """Print a table of accuracies by the number of nodes of graphs, and by their mean degree."""
    about, first = evaluated.about, rows[0]
    views = {name: text for name, text in {"one": "one trajectory", **VIEWS}.items() if first[name] is not None}
    names = ["nodes", *(["degree"] if "degree" in first else []), "graphs", "solvable", *views.values()]
    table = []
    for row in rows:
        keys = [f"{row[name]:g}" if row[name] is not None else "all" for name in ("nodes", "degree") if name in row]
        table.append([*keys, row["graphs"], row["one"]["total"], *(row[view] for view in views)])
    data, steps = about["data"], about["steps"]
    how = [f"{about['network']} network", f"{steps} steps", f"{about['starts']} start{'s' * (about['starts'] > 1)}"]
    what = f"{data['queries']:,} graphs, {', '.join(how)}; % of the graphs known to be solvable"
    print_table(f"{data['name']}: {what}", names, table)


def print_table(title: str, names: list[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table without cutting it on narrow terminals; cells are words, counts and scores."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for place, text in enumerate(names):
        table.add_column(text, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        cells = (
            score_text(c) if isinstance(c, dict) else f"{c:,}" if isinstance(c, int) else printable(c) for c in row
        )
        table.add_row(*cells)
    console = Console(highlight=False, markup=False, emoji=False, width=max(Console().width, 160))
    console.print(printable(title), soft_wrap=True)
    console.print(table)


def score_text(score: dict[str, Any]) -> str:
    """Accuracy with its interval in percent, or a dash if there are no queries."""
    if score["accuracy"] is None:
        return "-"
    return f"{100 * score['accuracy']:.2f} % [{100 * score['low']:.2f}, {100 * score['high']:.2f}]"


def _solutions(number: int) -> str:
    return "unknown" if number < 0 else f"{number:,} solution{'s' * (number != 1)}"
