"""Our network: accuracy on the test sets, every run, and the seven objectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from oneofmany.evaluation.record import SUBSETS, Record
from oneofmany.report.cells import (
    SAME_ACCURACY,
    Runs,
    against,
    commands,
    count_cell,
    number_cell,
    training_cell,
    wilson_cell,
    with_interval,
)
from oneofmany.report.grid import OBJECTIVES, Grid, commands_of, name_of, summary_of, variant_of
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction import paper
from reproduction.blind import without_inequalities
from reproduction.cells import accuracy_cells
from reproduction.paper import TEST_SIZES
from reproduction.runs import OUR_VARIANT, ours

MAIN_OBJECTIVE = "minloss"
TESTS = {
    "nqueens-test": ("nqueens", "N-Queens 11"),
    "futoshiki-test": ("futoshiki", "Futoshiki 6, 18 blanks"),
    "futoshiki-20-blanks-test": ("futoshiki", "Futoshiki 6, 20 blanks"),
    "sudoku-test": ("sudoku", "Sudoku 9"),
}
"""Name of a test set -> its task and its title."""
INTERVALS = f"Mean over seeds, with Student's t interval (95 %) over seeds, cut at 0 and 100. {SAME_ACCURACY}"

SOLUTIONS = ((1, 1), (2, 5), (6, 15), (16, 50))
"""Bins of the number of solutions, both ends included."""
GIVENS = 3
"""Width of a band of givens."""


def method_of(record: Record) -> str:
    """The objective and the rest of the recipe's variant: ``MinLoss``, ``MinLoss, flags``."""
    more = variant_of(record).removeprefix(OUR_VARIANT).strip("-")
    return name_of(record.objective) + (f", {more}" if more else "")


def on(records: Iterable[Record], name: str) -> Runs:
    """The runs with an evaluation of this name; a test set must have its usual size."""
    found = [(record, record.evaluations[name]) for record in records if name in record.evaluations]
    if name not in TESTS:
        return found
    task = TESTS[name][0]
    return [(r, e) for r, e in found if r.task == task and e.data.size == TEST_SIZES[task]]


def main_table(grid: Grid) -> Table:
    """Accuracy of MinLoss, and of every objective with all of the paper's seeds, with the paper's best."""
    rows = []
    for name, (task, label) in TESTS.items():
        found = []
        for records in ours(grid).by_recipe():
            runs = on(records, name)
            seeds = {record.seed for record, _ in runs}
            if runs and (records[0].objective == MAIN_OBJECTIVE or seeds >= set(paper.SEEDS)):
                found.append(
                    (
                        Cell(label),
                        Cell(method_of(records[0])),
                        *accuracy_cells(runs),
                        count_cell(len(runs)),
                        training_cell([record for record, _ in runs]),
                    )
                )
        if found:
            # The recipes were made with MinLoss; the others follow in the paper's order.
            rows += sorted(found, key=lambda row: not row[1].text.startswith(name_of(MAIN_OBJECTIVE)))
            rows += _beside(name, task, label)
    return Table(
        "ours",
        "Our network on the test sets, accuracy in %",
        (
            *columns(("data", "trained with"), (("", tuple(map(name_of, SUBSETS))),)),
            Column("seeds"),
            Column("training"),
        ),
        tuple(rows),
        f"{INTERVALS} One trajectory, no checker at test time. {training_with_checker(ours(grid).runs)} "
        "Our network sees the structure of a task as rules, the paper's networks see it as relations. Futoshiki's "
        "inequalities are rules too, which is more than the paper's network is shown; with “flags” ours is shown no "
        "more than that. “Without the inequalities” is the expected accuracy of the best answer that ignores them.",
        labels=2,
    )


def training_with_checker(records: Iterable[Record]) -> str:
    """A sentence that says which runs used the rules checker in training (``discover``)."""
    used = {record.task: bool(record.setting("discover")) for record in records if record.objective == MAIN_OBJECTIVE}
    found = [name_of(task) for task, checked in used.items() if checked]
    if not found:
        return "No checker in training either."
    return f"In training, MinLoss on {' and '.join(found)} used the rules checker (`discover`); the others did not."


def _beside(name: str, task: str, label: str) -> list[tuple[Cell, ...]]:
    """Rows of others: the paper's best on the paper's data, and the best answer without the inequalities."""
    rows = []
    if name == f"{task}-test":
        published = [number_cell(paper.TABLE_2[task, "selectr", subset].mean) for subset in SUBSETS]
        network = name_of("rrn" if task == "sudoku" else "nlm")
        title = Cell(f"the paper's best: {network}, {name_of('selectr')}")
        rows.append((Cell(label), title, *published, count_cell(len(paper.SEEDS)), Cell()))
    if name == "futoshiki-test":
        levels = without_inequalities()
        level = [number_cell(levels[subset]) for subset in SUBSETS]
        rows.append((Cell(label), Cell("without the inequalities"), *level, Cell(), Cell()))
    return rows


def each_run(grid: Grid) -> Table:
    """Every run on every test set, with Wilson intervals."""
    rows = []
    for name, (_, label) in TESTS.items():
        for record, evaluation in on(ours(grid).runs, name):
            made = commands_of([record], [evaluation])
            row = [
                Cell(label),
                Cell(record.name),
                *(wilson_cell(evaluation.scores.of(subset), made) for subset in SUBSETS),
            ]
            row.append(
                number_cell(None if record.dev is None or record.dev.overall is None else 100 * record.dev.overall)
            )
            row.append(number_cell(record.seconds, ",.0f"))
            rows.append((*row, Cell(record.device)))
    test = tuple(map(name_of, SUBSETS))
    return Table(
        "our-runs",
        "Every run of our network",
        columns(("data", "run"), (("test, %", test), ("", ("dev",)), ("training", ("seconds", "device")))),
        tuple(rows),
        "In brackets Wilson's 95 % interval over the queries. Dev: all dev queries, the kept weights.",
        labels=2,
    )


def objectives(grid: Grid) -> Table:
    """The seven objectives with the same network and number of updates; tasks with at least two of them."""
    rows = []
    for name, (task, label) in TESTS.items():
        of = {o: runs for o in OBJECTIVES if (runs := on(ours(grid).at(task, o, OUR_VARIANT), name))}
        if len(of) < 2 or name != f"{task}-test":
            continue
        found = {(o, subset): summary_of(runs, subset) for o, runs in of.items() for subset in SUBSETS}
        top = {s: max((x.mean for o in of if (x := found[o, s]) is not None), default=None) for s in SUBSETS}
        for objective, runs in of.items():
            row = [Cell(label), Cell(name_of(objective))]
            for subset in SUBSETS:
                summary = found[objective, subset]
                best = summary is not None and summary.mean == top[subset]
                row.append(with_interval(summary, commands(runs), best))
            row += [against(runs, of.get(MAIN_OBJECTIVE, ())), count_cell(len(runs))]
            updates = [record.updates for record, _ in runs if record.updates is not None]
            row.append(number_cell(float(np.mean(updates)) if updates else None, ",.0f"))
            rows.append((*row, training_cell([record for record, _ in runs])))
    return Table(
        "our-objectives",
        "Our network with each objective, the same number of updates, accuracy in %",
        (
            *columns(("data", "objective"), (("", (*map(name_of, SUBSETS), "p")),)),
            *map(Column, ("seeds", "updates", "training")),
        ),
        tuple(rows),
        f"{INTERVALS} p: exact McNemar test against MinLoss on all queries, with the first seed that both have. "
        "I-ExplR and SelectR divide their updates among two pre-trainings and a second phase. Updates: those made.",
        labels=2,
    )


def fixed_givens(grid: Grid) -> Table:
    """Sudoku accuracy by number of givens and number of solutions, to separate their effects."""
    runs = on(ours(grid).at("sudoku", MAIN_OBJECTIVE, OUR_VARIANT), "sudoku-test")
    if runs:  # seeds share one test set: average over them, but count its queries once
        ((data, _),) = Counter(evaluation.data.checksum for _, evaluation in runs).most_common(1)
        runs = [(record, evaluation) for record, evaluation in runs if evaluation.data.checksum == data]
    return Table(
        "our-givens",
        "Our network on Sudoku by givens and number of solutions, accuracy in %",
        columns(("givens",), (("number of solutions", [_span(*ends) for ends in SOLUTIONS]),)),
        tuple(_bands(runs)) if runs else (),
        f"MinLoss on the test set, mean over {_runs(len(runs))}; in parentheses the number of queries. Along a row the "
        "number of givens is fixed and the number of solutions grows.",
    )


def _bands(runs: Runs) -> list[tuple[Cell, ...]]:
    givens, totals = runs[0][1].givens, runs[0][1].total
    right = np.mean([evaluation.valid for _, evaluation in runs], 0)
    rows = []
    for first in range(int(givens.min()), int(givens.max()) + 1, GIVENS):
        band = (givens >= first) & (givens < first + GIVENS)
        row = [Cell(_span(first, min(first + GIVENS - 1, int(givens.max()))))]
        for low, high in SOLUTIONS:
            inside = band & (totals >= low) & (totals <= high)
            count, accuracy = int(inside.sum()), 100 * float(right[inside].mean()) if inside.any() else 0.0
            numbers = {"accuracy": accuracy, "queries": count}
            row.append(Cell(f"{accuracy:.2f} ({count:,})", numbers, commands(runs)) if count else Cell())
        rows.append(tuple(row))
    return rows


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def _runs(count: int) -> str:
    return "one run" if count == 1 else f"{count} runs"
