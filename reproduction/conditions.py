"""What the headline numbers used: rules, checker, revealed cells, listed solutions, steps, starts and budget."""

from __future__ import annotations

from oneofmany.data.sudoku import LISTED_IN_TRAINING
from oneofmany.evaluation.record import Evaluation, Record
from oneofmany.report.cells import Runs, commands
from oneofmany.report.grid import TASKS, Grid, name_of
from oneofmany.report.table import Cell, Table, columns
from reproduction.experiments import LISTED
from reproduction.hard import EXTREME, OURS, main_recipe
from reproduction.ours import MAIN_OBJECTIVE, TESTS, TITLES, headline_test, on
from reproduction.paired import of_recipe
from reproduction.runs import CHECKER_VARIANT, OUR_VARIANT, ours, train_name

HARD_TRAIN = "sudoku-hard-train"


def conditions(grid: Grid) -> Table:
    """One column per task and one for the variant with the checker: the conditions of the main table, from records."""
    names = {(task, OUR_VARIANT): name_of(task) for task in TASKS}
    names["sudoku", CHECKER_VARIANT] = "Sudoku, with the checker"
    found = {}
    for (task, variant), name in names.items():
        records = ours(grid).at(task, MAIN_OBJECTIVE, variant)
        test = headline_test(records, TITLES[task])
        found[name] = on(records, test), TESTS[test].sample
    note = "The runs of the main table with MinLoss; all seeds have the same settings."
    return _table("conditions", "What the headline numbers used", found, note)


def hard_conditions(grid: Grid) -> Table:
    """The conditions of the main recipe for hard Sudokus on the extreme test set, from records."""
    recipe = main_recipe(grid) or ""
    found = {recipe: (on(of_recipe(grid, recipe), EXTREME), OURS[EXTREME])}
    note = "All seeds have the same settings."
    return _table("hard-conditions", "What the numbers on hard Sudokus used", found, note)


def _table(name: str, title: str, found: dict[str, tuple[Runs, str]], note: str) -> Table:
    """A column for every name with runs, which were tested on a sample."""
    used, made = {}, {}
    for column, (runs, sample) in found.items():
        for record, evaluation in runs[:1]:
            used[column], made[column] = _conditions(record, evaluation, sample), commands(runs)
    return Table(
        name,
        title,
        columns(("",), (("", tuple(used)),)),
        tuple(
            (Cell(what), *(Cell(used[column][what], commands=made[column]) for column in used))
            for what in next(iter(used.values()), {})
        ),
        note,
    )


def _conditions(record: Record, evaluation: Evaluation, sample: str) -> dict[str, str]:
    """Name of a condition -> what a run used."""
    listed = (LISTED | {HARD_TRAIN: LISTED_IN_TRAINING}).get(train_name(record) or "")
    updates, batch = record.setting("first.updates"), record.setting("first.batch")
    return {
        "rules as input": "yes",
        "rules checker in training": "yes (`discover`)" if record.setting("discover") else "no",
        "rules checker at test time": "no",
        "settled queries are left out": "yes (`spare_settled`)" if record.setting("spare_settled") else "no",
        "queries with revealed cells": f"{100 * (record.setting('reveal') or 0):.0f} %",
        "listed solutions per training query": "all"
        if listed is None
        else f"up to {record.setting('listed') or listed}",
        "burn-in steps": ", ".join(map(str, record.setting("burn_in") or ())),
        "steps in training": str(record.setting("network.steps")),
        "steps at test time": str(evaluation.steps),
        "starts": str(evaluation.starts),
        "test set": sample,
        "training": f"{updates:,} updates x {batch:,} queries" if updates and batch else "",
    }
