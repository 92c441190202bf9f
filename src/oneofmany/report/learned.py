"""Tables of what our network does beyond its test sets: other sizes, steps, starts, solutions and givens, splits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from oneofmany.report.cells import count_cell
from oneofmany.report.experiments import PUZZLE_TEST, by_puzzle, experiments, listed, repeated
from oneofmany.report.other_tables import WAYS, other_data
from oneofmany.report.ours import (
    INTERVALS,
    MAIN_OBJECTIVE,
    TESTS,
    VARIANT,
    Runs,
    accuracy_cells,
    commands,
    each_run,
    main_table,
    method_of,
    objectives,
    on,
    ours,
    recipes_of,
    summary_of,
)
from oneofmany.report.paper import SUBSETS, name_of
from oneofmany.report.records import Grid, Record, givens_of, totals_of, valid_of
from oneofmany.report.table import Cell, Column, Table, columns

SOLUTIONS = ((1, 1), (2, 5), (6, 15), (16, 50))
"""Bins of the number of solutions, both ends included."""
GIVENS = 3
"""Numbers of givens in a band."""
ACCURACIES = ("", tuple(map(name_of, SUBSETS)))


def our_tables(grid: Grid) -> list[Table]:
    """Every table of our network, in order; those that no run fills as well."""
    own = ours(grid)
    others = other_data(own, _in_a_table)
    return [
        main_table(grid),
        each_run(grid),
        objectives(grid),
        sizes(grid),
        steps(grid),
        starts(grid),
        listed(grid),
        fixed_givens(grid),
        splits(grid),
        experiments(grid),
        repeated(grid),
        replace(others, name="our-other-data", title=f"Our network: {others.title.lower()}"),
    ]


def _in_a_table(record: Record, name: str) -> bool:
    """Whether an evaluation is in a table of its own here, so that the list of all others leaves it out."""
    evaluation = record["evaluations"][name]
    return name in {*TESTS, *steps_of(record)} or size_of(record, name) is not None or bool(evaluation.get("chosen"))


def size_of(record: Record, name: str) -> int | None:
    """The size of the boards of ``TASK-test`` and ``TASKsize-test``; None for other evaluations."""
    size = record["evaluations"][name]["data"].get("size")
    return size if name in (f"{record['task']}-test", f"{record['task']}-size-{size}-test") else None


def size_curves(grid: Grid) -> list[tuple[list[Record], dict[int, str]]]:
    """(runs of a recipe, size -> name of the evaluation) of every recipe that met more than one size."""
    found = []
    for records in recipes_of(ours(grid).runs):
        names = {name: size_of(r, name) for r in records for name in r["evaluations"]}
        by_size = {size: name for name, size in sorted(names.items()) if size is not None}
        if len(by_size) > 1:
            found.append((records, dict(sorted(by_size.items()))))
    return found


def sizes(grid: Grid) -> Table:
    """Boards of other sizes than those that training saw."""
    rows = []
    for records, by_size in size_curves(grid):
        for size, name in by_size.items():
            runs = on(records, name)
            about = runs[0][1]
            givens = float(givens_of(about).mean())
            row = [Cell(_about(records[0])), Cell(str(size)), Cell(f"{givens:.4g}", {"": givens})]
            rows.append((*row, count_cell(about["data"]["queries"]), *accuracy_cells(runs), count_cell(len(runs))))
    return Table(
        "our-sizes",
        "Our network on boards of other sizes, accuracy in %",
        (*columns(("task, trained with", "size"), (("", ("givens", "queries")), ACCURACIES)), Column("seeds")),
        tuple(rows),
        f"{INTERVALS} Trained on 10 queens, on 5x5 Futoshiki and on 9x9 Sudoku; givens is the mean number of givens.",
        labels=2,
    )


def steps_of(record: Record) -> dict[str, int]:
    """Name -> number of steps of the evaluations on dev with one start: ``TASK-dev``, ``TASK-dev-steps64``."""
    found = {}
    for name, evaluation in record["evaluations"].items():
        data, ran = evaluation["data"]["name"], evaluation.get("steps")
        if ran and data.endswith("-dev") and name in (data, f"{data}-steps{ran}") and evaluation.get("starts") == 1:
            found[name] = ran
    return found


def step_curves(grid: Grid) -> list[tuple[list[Record], str, dict[int, str]]]:
    """(runs of a recipe, dev set, steps -> name of the evaluation) wherever more than one number of steps was tried."""
    found = []
    for records in recipes_of(ours(grid).runs):
        tried = {
            (record["evaluations"][name]["data"]["name"], ran): name
            for record in records
            for name, ran in steps_of(record).items()
        }
        for data in sorted({data for data, _ in tried}):
            names = {ran: name for (on_data, ran), name in sorted(tried.items()) if on_data == data}
            if len(names) > 1:
                found.append((records, data, names))
    return found


def steps(grid: Grid) -> Table:
    """More or fewer steps at test time than in training, on dev."""
    rows = []
    for records, data, names in step_curves(grid):
        for ran, name in names.items():
            runs = on(records, name)
            usual = " (the recipe's)" if name == data else ""
            rows.append(
                (Cell(_about(records[0], data)), Cell(f"{ran}{usual}"), *accuracy_cells(runs), count_cell(len(runs)))
            )
    return Table(
        "our-steps",
        "Our network with other numbers of steps at test time, accuracy on dev in %",
        (*columns(("task, trained with", "steps"), (ACCURACIES,)), Column("seeds")),
        tuple(rows),
        INTERVALS,
        labels=2,
    )


def starts(grid: Grid) -> Table:
    """Several noisy starts: the first, the one that the network chooses, and whether any is right."""
    rows = []
    for records in recipes_of(ours(grid).runs):
        names = {name: e for record in records for name, e in record["evaluations"].items() if e.get("chosen")}
        for name, about in sorted(names.items(), key=lambda item: (item[1]["data"]["name"], item[1]["starts"])):
            runs, data = on(records, name), about["data"]["name"]
            how = name.removeprefix(data).strip("-")
            row = [
                Cell(_about(records[0], data)),
                Cell(str(about["starts"]) if how == f"starts{about['starts']}" else how),
            ]
            for way in WAYS:
                parts = [(record, evaluation[way] if way else evaluation) for record, evaluation in runs]
                means = [summary_of(parts, subset) for subset in SUBSETS]
                row += [Cell() if m is None else Cell(f"{m.mean:.2f}", {"mean": m.mean}, commands(runs)) for m in means]
            rows.append((*row, count_cell(len(runs))))
    return Table(
        "our-starts",
        "Our network from several noisy starts, accuracy in %",
        (
            *columns(("task, trained with", "starts"), ((way, ACCURACIES[1]) for way in WAYS.values())),
            Column("seeds"),
        ),
        tuple(rows),
        "Mean over seeds, on dev where no other data is named. One trajectory is the first start. Chosen without the "
        "rules: the start whose belief moved least in its last step. Chosen with the checker: any start is a solution.",
        labels=2,
    )


def fixed_givens(grid: Grid) -> Table:
    """Sudoku: is it the number of solutions or the number of givens that makes a query hard?"""
    runs = on(ours(grid).at("sudoku", MAIN_OBJECTIVE, VARIANT), "sudoku-test")
    if runs:  # seeds share one test set: they are averaged, its queries are counted once
        ((data, _),) = Counter(evaluation["data"]["checksum"] for _, evaluation in runs).most_common(1)
        runs = [(record, evaluation) for record, evaluation in runs if evaluation["data"]["checksum"] == data]
    return Table(
        "our-givens",
        "Our network on Sudoku by givens and number of solutions, accuracy in %",
        columns(("givens",), (("number of solutions", [_span(*ends) for ends in SOLUTIONS]),)),
        tuple(_bands(runs)) if runs else (),
        f"MinLoss on the test set, mean over {_runs(len(runs))}; in parentheses the number of queries. Along a row the "
        "number of givens stays and the number of solutions grows.",
    )


def _bands(runs: Runs) -> list[tuple[Cell, ...]]:
    givens, totals = givens_of(runs[0][1]), totals_of(runs[0][1])
    right = np.mean([valid_of(evaluation) for _, evaluation in runs], 0)
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


def splits(grid: Grid) -> Table:
    """Sudoku split by grid class, as everywhere else, beside a split by puzzle; training and test of each."""
    own = ours(grid)
    of_class = on(own.at("sudoku", MAIN_OBJECTIVE, VARIANT), "sudoku-test")
    of_puzzle = on(by_puzzle(own), PUZZLE_TEST)
    rows = [
        (Cell(label), count_cell(runs[0][1]["data"]["queries"]), *accuracy_cells(runs), count_cell(len(runs)))
        for label, runs in (("by grid class", of_class), ("by puzzle", of_puzzle))
        if runs and of_puzzle
    ]
    return Table(
        "our-split",
        "Our network on Sudoku split by grid class and by puzzle, accuracy in %",
        (*columns(("split",), (("", ("queries",)), ACCURACIES)), Column("seeds")),
        tuple(rows),
        f"{INTERVALS} MinLoss, the same settings; each row is trained and tested on data of its own split. Grids that "
        "turn into each other by symmetries are one class. A split by puzzle lets queries of one class fall into both "
        "training and test; a split by grid class does not.",
    )


def _about(record: Record, data: str = "") -> str:
    """``N-Queens, MinLoss``, with the data where it is not the task's own dev set."""
    more = [] if data in ("", f"{record['task']}-dev") else [data]
    return ", ".join([name_of(record["task"]), method_of(record), *more])
