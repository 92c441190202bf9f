"""``oneofmany demo``: a few minutes on a laptop that show one-of-many training work and naive training fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from oneofmany.cli.terminal import draw_boards, results, say
from oneofmany.evaluation import Record, Score
from oneofmany.evaluation.record import SUBSETS

TRAINED = {
    "naive": "every listed solution is a target at once (Eq. 1)",
    "minloss": "only the listed solution that is closest to the prediction",
    "selectr": "a second network learns which listed solution to train on",
}
SHOWN_STEPS = (1, 4, 8)


def demo(out: Path = Path("demo"), jobs: int = 3) -> int:
    """Train on 8 queens with Naive, MinLoss and SelectR, compare them, solve a board and write a report.

    Example: oneofmany demo --out demo

    Args:
        out: the folder for data, runs and report; the same command continues a demo that was stopped.
        jobs: number of trainings at a time.
    """
    from oneofmany.cli.sweep import sweep
    from oneofmany.data import Dataset
    from oneofmany.data.benchmark import find_benchmark
    from oneofmany.extras import missing
    from oneofmany.playground import write_playground
    from oneofmany.report import read_records, trace_runs, write_report

    console = results()
    say("1. data: 8 queens, two of them given (the first time, the enumerator is compiled: about half a minute)")
    files = {part: find_benchmark(f"nqueens-tiny-{part}", out / "data") for part in ("train", "dev", "test")}
    test = Dataset.load(files["test"])
    row = int(np.flatnonzero(test.total == 3)[0])
    console.print(f"\nA query of the test set and all of its {test.total[row]} solutions", style="bold")
    _draw(console, test, row, test.solutions_of(row))

    say("2. training the same small network with three objectives and equally many updates (about two minutes):")
    for objective, what in TRAINED.items():
        say(f"   {objective:8} {what}")
    names = [f"nqueens/{objective}/tiny" for objective in TRAINED]
    options = ["--seeds", "42", "--jobs", str(jobs), "--out", str(out / "runs"), "--data", str(out / "data")]
    code = sweep([*names, *options, "--evaluate", str(files["test"])])
    if code:
        return code
    runs = {objective: out / "runs" / name / "42" for objective, name in zip(TRAINED, names, strict=True)}
    records = read_records(list(runs.values()))
    console.print(_table(records, len(test), int(test.multiple.sum())))

    say("3. two networks on one board, step by step; the report shows more boards")
    row = _telling_row(test, runs)
    for objective in ("naive", "minloss"):
        _solve(console, test, row, runs[objective], objective)

    console.print("Next: oneofmany train --recipes, oneofmany solve --help, oneofmany doctor")
    if lacking := missing("jinja2"):
        say(f"no report is written: {lacking}")
    else:
        report = out / "report.html"
        write_report(records, report, force=True, viewers=trace_runs(runs.values(), test), tell=say)
        console.print(f"\nThe report, with a viewer that steps through such boards: {report.resolve()}")
    page = out / "playground.html"
    write_playground(page, force=True)
    console.print(f"The playground, in which networks answer your own boards: {page.resolve()}")
    return 0


def _table(records: list[Record], queries: int, several: int) -> Table:
    title = f"\n{queries} test queries, {several} of them with several solutions (MS): valid answers, 95 % interval"
    table = Table(title=title, title_justify="left")
    for column in ("objective", "one solution (OS)", "several (MS)", "all"):
        table.add_column(column, justify="left" if column == "objective" else "right", no_wrap=True)
    by_objective = {record.objective: record for record in records}
    for objective in TRAINED:
        found = next(iter(by_objective[objective].evaluations.values()))
        table.add_row(objective, *(_score(found.scores.of(part)) for part in SUBSETS))
    return table


def _telling_row(test: Any, runs: dict[str, Path]) -> int:
    """A query that MinLoss solves and Naive does not, with several solutions if possible."""
    from oneofmany.evaluation.predictions import load_predictions

    valid = {}
    for objective in ("naive", "minloss"):
        file = next((runs[objective] / "predictions").glob("*.safetensors"))
        valid[objective] = load_predictions(file)[0].valid
    telling = valid["minloss"] & ~valid["naive"]
    rows = np.flatnonzero(telling & test.multiple)
    return int(rows[0] if len(rows) else np.argmax(telling))


def _score(score: Score) -> str:
    if score.accuracy is None or score.low is None or score.high is None:
        return "-"
    return f"{100 * score.accuracy:.1f} % ({100 * score.low:.0f} to {100 * score.high:.0f})"


def _solve(console: Any, data: Any, row: int, run: Path, objective: str) -> None:
    """Print the network's answers after some of its steps, and whether the last one is valid."""
    import torch

    import oneofmany
    from oneofmany.data import DeviceData
    from oneofmany.networks import draw_noise

    saved = oneofmany.load(run)
    network: Any = saved.network
    everything = DeviceData(data).batch(torch.arange(len(data)))
    batch = everything[row : row + 1]
    steps = saved.settings.test_steps or saved.settings.steps
    # The same noise as in the evaluation of this query.
    noise = draw_noise(network, everything, torch.Generator().manual_seed(0))[row : row + 1]
    with torch.no_grad():
        logits = network(batch, steps=steps, noise=noise)
    shown = [*(step for step in SHOWN_STEPS if step < steps), steps]
    answers = logits[:, 0].argmax(-1)
    valid = bool(data.problem.check(answers[-1:], batch.query, batch.relations))
    titles = [f"step {step}" for step in shown]
    console.print(f"{objective}: {'a valid answer' if valid else 'no valid answer'}", style="green" if valid else "red")
    _draw(console, data, row, (answers[[step - 1 for step in shown]] + 1).numpy().astype(np.uint8), titles)


def _draw(console: Any, data: Any, row: int, boards: np.ndarray, titles: list[str] | None = None) -> None:
    from oneofmany.problems import TASKS

    task = TASKS[data.problem.task]
    console.print(draw_boards(task, data.problem, data.query[row], data.relations[row], boards, console.width, titles))
