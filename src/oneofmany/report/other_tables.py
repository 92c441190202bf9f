"""Tables beyond the paper's: other networks and settings, several starts, other data, every run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from oneofmany.report import paper
from oneofmany.report.cells import (
    accuracy_cell,
    count_cell,
    interval_cell,
    mean_and_best,
    number_cell,
    seeds_cell,
    wilson_cell,
)
from oneofmany.report.paper import SUBSETS, name_of, order_of
from oneofmany.report.records import (
    Evaluation,
    Grid,
    Record,
    Score,
    commands_of,
    dev_score,
    over_runs,
    percent,
    summarise,
    test_evaluation,
    titled,
    variant_of,
)
from oneofmany.report.table import Cell, Column, Table, columns, difference, slug


def own_results(grid: Grid, variant: str) -> Table:
    """Accuracy of one variant of the recipes, the equivariant network for example, with intervals.

    Where the test set is the paper's, its result with the same objective stands beside it.
    """
    records = [record for record in grid.runs if variant_of(record) == variant]
    cells = sorted({(r["task"], r["objective"]) for r in records}, key=lambda cell: order_of(*cell))
    comparable = all(_on_papers_test(record) for record in records)
    rows = []
    for task, objective in cells:
        found = grid.at(task, objective, variant)
        row = [Cell(name_of(task)), Cell(name_of(objective))]
        for subset in SUBSETS:
            row += [accuracy_cell(found, subset), interval_cell(found, subset)]
        if comparable:
            published, overall = paper.TABLE_2[task, objective, "overall"].mean, over_runs(found, "overall")
            row += [number_cell(published), Cell() if overall is None else difference(overall.mean, published)]
        rows.append((*row, seeds_cell(found)))
    groups = [(name_of(subset), ["accuracy", "95 % interval"]) for subset in SUBSETS]
    groups[-1][1].extend(("paper", "difference") if comparable else ())
    shape = (*columns(("task", "objective"), groups), Column("seeds"))
    network = " and ".join(sorted({name_of(record["network"]) for record in records}))
    return Table(
        slug("own", variant),
        f"Recipes …/{variant}: accuracy of the {network} network, %",
        shape,
        tuple(rows),
        "Mean over seeds and, in parentheses, the run that the dev set picks. Intervals: Student's t over seeds; with "
        "one seed Wilson's over the queries."
        + (" The paper's numbers are those of its own network with the same objective." if comparable else ""),
        labels=2,
    )


def _on_papers_test(record: Record) -> bool:
    about, task = (test_evaluation(record) or {}).get("data", {}), record["task"]
    in_paper = (task, record["objective"], "overall") in paper.TABLE_2
    return in_paper and about.get("name") == f"{task}-test" and about.get("size") == paper.TEST_SIZES[task]


def _by_evaluation(grid: Grid) -> list[tuple[str, str, list[tuple[Record, Evaluation]]]]:
    """(recipe, name of the evaluation, its runs), in the order of the grid."""
    found: dict[tuple[str, str], list[tuple[Record, Evaluation]]] = defaultdict(list)
    for record in grid.runs:
        for name, evaluation in record["evaluations"].items():
            found[record["recipe"], name].append((record, evaluation))
    return [(recipe, name, runs) for (recipe, name), runs in found.items()]


def _cell(runs: Sequence[tuple[Record, Evaluation]], scores: Sequence[Score | None]) -> Cell:
    summary = summarise([(record, score) for (record, _), score in zip(runs, scores, strict=True)])
    return mean_and_best(summary, commands_of((record for record, _ in runs), (evaluation for _, evaluation in runs)))


WAYS = {None: "one trajectory", "chosen": "chosen without the rules", "checked": "chosen with the checker"}
"""How the answer of a query comes about; never mixed."""


def several_starts(grid: Grid) -> Table:
    """Several noisy starts: one trajectory, the start chosen without the rules, the start chosen with the checker."""
    rows = []
    for recipe, name, runs in _by_evaluation(grid):
        if not all(evaluation.get("chosen") for _, evaluation in runs):
            continue
        about = runs[0][1]
        how = [f"{about['steps']} steps"] if about.get("steps") else []
        how += [f"{about.get('starts')} starts", f"by {about.get('choose')}"]
        row = [Cell(recipe), Cell(name), Cell(", ".join(how))]
        for way in WAYS:
            parts = [evaluation if way is None else evaluation[way] for _, evaluation in runs]
            row += [_cell(runs, [part[subset] for part in parts]) for subset in SUBSETS]
        rows.append((*row, count_cell(len(runs))))
    return Table(
        "starts",
        "Several noisy starts, accuracy in %",
        (
            *columns(
                ("recipe", "data", "how"),
                ((way, tuple(map(name_of, SUBSETS))) for way in WAYS.values()),
            ),
            Column("seeds"),
        ),
        tuple(rows),
        "One trajectory is the first start. Chosen without the rules: the start whose belief moved least or that is "
        "surest. Chosen with the checker: right where any start is a solution, which needs the rules at test time. "
        "Mean over seeds (the run that dev picks).",
        labels=3,
    )


def other_data(grid: Grid, shown: Callable[[Record, str], bool] = lambda record, name: False) -> Table:
    """Evaluations on data other than the task's test set: other sizes, other numbers of blanks or of steps.

    Args:
        grid: the runs.
        shown: whether an evaluation, by its name, is in another table already.
    """
    rows = []
    for recipe, name, runs in _by_evaluation(grid):
        others = [
            (record, evaluation)
            for record, evaluation in runs
            if evaluation is not test_evaluation(record) and not shown(record, name)
        ]
        if not others:
            continue
        about = others[0][1]
        words = (recipe, name, about["data"].get("size"), about["data"]["queries"], about.get("steps"))
        row = [Cell("" if word is None else f"{word:,}" if isinstance(word, int) else word) for word in words]
        row += [_cell(others, [evaluation[subset] for _, evaluation in others]) for subset in SUBSETS]
        rows.append((*row, count_cell(len(others))))
    return Table(
        "other-data",
        "Other data and numbers of steps, accuracy in %",
        (
            *columns(("recipe", "data", "size", "queries", "steps"), (("", tuple(map(name_of, SUBSETS))),)),
            Column("seeds"),
        ),
        tuple(rows),
        "One trajectory. Mean over seeds (the run that dev picks).",
        labels=5,
    )


def every_run(grid: Grid) -> Table:
    """One row a run: dev, test with Wilson intervals, cell accuracy, agreement with a listed solution, cost."""
    rows = []
    for record in grid.all:
        evaluation, dev = test_evaluation(record), dev_score(record)
        row = [Cell(titled(record, "name")), number_cell(None if dev < 0 else 100 * dev)]
        commands = commands_of([record], [evaluation])
        for subset in SUBSETS:
            row.append(wilson_cell(None if evaluation is None else evaluation[subset], commands))
        share = (evaluation or {}).get("cell_accuracy")
        row += [number_cell(None if share is None else 100 * share)]
        row += [number_cell(percent((evaluation or {}).get("listed")))]
        row += [number_cell(record.get(key), ",.0f") for key in ("updates", "seconds")]
        rows.append((*row, Cell((record.get("environment") or {}).get("device") or "")))
    test = (*map(name_of, SUBSETS), "cells right", "listed")
    return Table(
        "runs",
        "Every run",
        columns(("run",), (("", ("dev",)), ("test, %", test), ("training", ("updates", "seconds", "device")))),
        tuple(rows),
        "In brackets Wilson's 95 % interval over the queries. Cells right: agreement with the closest listed solution, "
        "givens included. Listed: the answer is one of the listed solutions.",
    )
