"""Our network: accuracy on the test sets, every run, and the seven objectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

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
)
from oneofmany.report.grid import OBJECTIVES, TASKS, Grid, commands_of, name_of, variant_of
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction import paper
from reproduction.blind import without_inequalities
from reproduction.cells import accuracy_cells, updates_cell
from reproduction.paper import TEST_SIZES
from reproduction.runs import CHECKER_VARIANT, OUR_VARIANT, ours, table_2

MAIN_OBJECTIVE = "minloss"


class TestSet(NamedTuple):
    """A test set.

    Args:
        task: of its queries.
        title: for readers.
        sample: ``fresh`` if it was read once for each run; ``first`` if it was read while results were added.
    """

    __test__ = False  # pytest: not a class of tests

    task: str
    title: str
    sample: str


TESTS = {
    "nqueens-fresh-test": TestSet("nqueens", "N-Queens 11", "fresh"),
    "nqueens-test": TestSet("nqueens", "N-Queens 11", "first"),
    "futoshiki-fresh-test": TestSet("futoshiki", "Futoshiki 6, 18 blanks", "fresh"),
    "futoshiki-test": TestSet("futoshiki", "Futoshiki 6, 18 blanks", "first"),
    "futoshiki-20-blanks-test": TestSet("futoshiki", "Futoshiki 6, 20 blanks", "first"),
    "sudoku-fresh-test": TestSet("sudoku", "Sudoku 9", "fresh"),
    "sudoku-test": TestSet("sudoku", "Sudoku 9", "first"),
}
"""Name -> test set."""
TITLES = {task: TESTS[f"{task}-test"].title for task in TASKS}
"""Task -> the title of its test sets."""
SAMPLES = (
    "Fresh: a second sample of the test split, read once for each run. First: the samples that were read while results "
    "were added."
)
INTERVALS = f"Mean over seeds, with Student's t interval (95 %) over seeds, cut at 0 and 100. {SAME_ACCURACY}"

SOLUTIONS = ((1, 1), (2, 5), (6, 15), (16, 50))
"""Bins of the number of solutions, both ends included."""
GIVENS = 3
"""Width of a band of givens."""


def method_of(record: Record) -> str:
    """The objective and the rest of the recipe's variant: ``MinLoss``, ``MinLoss, with the checker``."""
    variant = variant_of(record)
    more = "with the checker" if variant == CHECKER_VARIANT else variant.removeprefix(OUR_VARIANT).strip("-")
    return name_of(record.objective) + (f", {more}" if more else "")


def on(records: Iterable[Record], name: str) -> Runs:
    """The runs with an evaluation of this name; a test set must have its usual size."""
    found = [(record, record.evaluations[name]) for record in records if name in record.evaluations]
    if name not in TESTS:
        return found
    task = TESTS[name].task
    return [(r, e) for r, e in found if r.task == task and e.data.size == TEST_SIZES[task]]


def headline_test(records: Sequence[Record], title: str) -> str:
    """The test set of this title on which most runs of a recipe were tested; the fresh one if both have as many."""
    names = [name for name, test in TESTS.items() if test.title == title]
    return max(names, key=lambda name: len(on(records, name)))


def headline(records: Sequence[Record], task: str) -> Runs:
    """The runs of a recipe on the task's ``headline_test``."""
    return on(records, headline_test(records, TITLES[task]))


def main_table(grid: Grid) -> Table:
    """Accuracy of MinLoss, and of every objective with all of the paper's seeds, on the fresh tests where possible."""
    rows = []
    for title in dict.fromkeys(test.title for test in TESTS.values()):
        found = []
        for records in ours(grid).by_recipe():
            name = headline_test(records, title)
            runs = on(records, name)
            seeds = {record.seed for record, _ in runs}
            if runs and (records[0].objective == MAIN_OBJECTIVE or seeds >= set(paper.SEEDS)):
                found.append(_own_row(title, runs, TESTS[name].sample))
        # The recipes were made with MinLoss; the others follow in the paper's order.
        rows += sorted(found, key=lambda row: not row[1].text.startswith(name_of(MAIN_OBJECTIVE)))
    return Table(
        "ours",
        "Our network on the test sets, accuracy in %",
        _columns(),
        tuple(rows),
        f"{INTERVALS} {SAMPLES} One trajectory, no checker at test time. {training_with_checker(ours(grid).runs)} "
        "The network sees the rules of a task; with “flags” it sees Futoshiki's inequalities as flags of cells.",
        labels=2,
    )


def same_queries(grid: Grid) -> Table:
    """Our network and the paper's, trained by us with SelectR, on the same queries, with the published numbers."""
    rows = []
    for task, title in TITLES.items():
        name = f"{task}-test"
        own = [runs for r in ours(grid).by_recipe() if r[0].objective == MAIN_OBJECTIVE and (runs := on(r, name))]
        rows += [_own_row(title, runs, "first") for runs in own]
        rows += _others(grid, task) if own else []
    return Table(
        "same-queries",
        "Our network and the paper's networks on the same queries, accuracy in %",
        _columns(),
        tuple(rows),
        f"{INTERVALS} All on the first test sets, except for the published numbers, which are on the paper's own "
        "queries of the same kind. Our network sees the structure of a task as rules, the paper's networks see it as "
        "relations. Futoshiki's inequalities are rules too, which is more than the paper's "
        "network is shown; with “flags” ours is shown no more than that. “Without the inequalities” is the expected "
        "accuracy of the best answer that ignores them.",
        labels=2,
    )


def _columns() -> tuple[Column, ...]:
    accuracies = columns(("data", "trained with"), (("", tuple(map(name_of, SUBSETS))),))
    return (*accuracies, *map(Column, ("test", "seeds", "training")))


def _own_row(title: str, runs: Runs, sample: str) -> tuple[Cell, ...]:
    records = [record for record, _ in runs]
    row = (Cell(title), Cell(method_of(records[0])), *accuracy_cells(runs), Cell(sample))
    return (*row, count_cell(len(runs)), training_cell(records))


def reproduced(grid: Grid, task: str) -> Runs:
    """The paper's network with SelectR, trained by us for Table 2, on the first test set of a task."""
    return on(table_2(grid, task, "selectr"), f"{task}-test")


def training_with_checker(records: Iterable[Record]) -> str:
    """A sentence that says which runs used the rules checker in training (``discover``)."""
    used = [f"{name_of(r.task)} “{method_of(r)}”" for r in records if r.setting("discover")]
    if not used:
        return "No checker in training."
    return f"In training, only {' and '.join(dict.fromkeys(used))} used the rules checker (`discover`)."


def _others(grid: Grid, task: str) -> list[tuple[Cell, ...]]:
    """Rows of others: the paper's network trained by us, its published numbers, and the level without inequalities."""
    title, network = Cell(TITLES[task]), name_of("rrn" if task == "sudoku" else "nlm")
    rows = []
    if runs := reproduced(grid, task):
        cells = (*accuracy_cells(runs), Cell("first"), count_cell(len(runs)), training_cell([r for r, _ in runs]))
        rows.append((title, Cell(f"the paper's {network} with SelectR, trained by us"), *cells))
    published = [number_cell(paper.TABLE_2[task, "selectr", subset].mean) for subset in SUBSETS]
    rows.append(
        (
            title,
            Cell(f"{network} with SelectR, published"),
            *published,
            Cell("the paper's"),
            count_cell(len(paper.SEEDS)),
            Cell(),
        )
    )
    if task == "futoshiki":
        level = [number_cell(without_inequalities()[subset]) for subset in SUBSETS]
        rows.append((title, Cell("without the inequalities"), *level, Cell("first"), Cell(), Cell()))
    return rows


def each_run(grid: Grid) -> Table:
    """Every run on every test set, with Wilson intervals."""
    rows = []
    for name, test in TESTS.items():
        for record, evaluation in on(ours(grid).runs, name):
            made = commands_of([record], [evaluation])
            row = [
                Cell(f"{test.title}, {test.sample}"),
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
        f"In brackets Wilson's 95 % interval over the queries. Dev: all dev queries, the kept weights. {SAMPLES}",
        labels=2,
    )


def objectives(grid: Grid) -> Table:
    """The seven objectives with the same network and number of updates; tasks with at least two of them."""
    rows = []
    for task, label in TITLES.items():
        of = {o: runs for o in OBJECTIVES if (runs := on(ours(grid).at(task, o, OUR_VARIANT), f"{task}-test"))}
        for objective, runs in of.items() if len(of) > 1 else ():
            row = [Cell(label), Cell(name_of(objective)), *accuracy_cells(runs)]
            row += [against(runs, of.get(MAIN_OBJECTIVE, ())), count_cell(len(runs))]
            records = [record for record, _ in runs]
            rows.append((*row, updates_cell(records), training_cell(records)))
    return Table(
        "our-objectives",
        "Our network with each objective, the same number of updates, accuracy in %",
        (
            *columns(("data", "objective"), (("", (*map(name_of, SUBSETS), "p")),)),
            *map(Column, ("seeds", "updates", "training")),
        ),
        tuple(rows),
        f"{INTERVALS} The first test sets. p: exact McNemar test against MinLoss on all queries, with the first seed "
        "that both have; it compares two trained networks, not two objectives. "
        "I-ExplR and SelectR divide their updates among two pre-trainings and a second phase. Updates: those made.",
        labels=2,
    )


def fixed_givens(grid: Grid) -> Table:
    """Sudoku accuracy by number of givens and number of solutions, to separate their effects."""
    records = ours(grid).at("sudoku", MAIN_OBJECTIVE, OUR_VARIANT)
    name = headline_test(records, TITLES["sudoku"])
    runs = on(records, name)
    if runs:  # seeds share one test set: average over them, but count its queries once
        ((data, _),) = Counter(evaluation.data.checksum for _, evaluation in runs).most_common(1)
        runs = [(record, evaluation) for record, evaluation in runs if evaluation.data.checksum == data]
    return Table(
        "our-givens",
        "Our network on Sudoku by givens and number of solutions, accuracy in %",
        columns(("givens",), (("number of solutions", [_span(*ends) for ends in SOLUTIONS]),)),
        tuple(_bands(runs)) if runs else (),
        f"MinLoss on the {TESTS[name].sample} test set, mean over {_runs(len(runs))}; in parentheses the number of "
        "queries. Along a row the number of givens is fixed and the number of solutions grows.",
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
