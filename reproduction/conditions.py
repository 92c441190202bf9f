"""What the headline numbers used: rules, checker, revealed cells, listed solutions, steps, starts and budget."""

from __future__ import annotations

from oneofmany.evaluation.record import Evaluation, Record
from oneofmany.report.cells import commands
from oneofmany.report.grid import TASKS, Grid, name_of
from oneofmany.report.table import Cell, Table, columns
from reproduction.experiments import LISTED
from reproduction.ours import MAIN_OBJECTIVE, TESTS, TITLES, headline_test, on
from reproduction.runs import CHECKER_VARIANT, OUR_VARIANT, ours, train_name


def conditions(grid: Grid) -> Table:
    """One column per task and one for the variant with the checker: the conditions of the main table, from records."""
    names = {(task, OUR_VARIANT): name_of(task) for task in TASKS}
    names["sudoku", CHECKER_VARIANT] = "Sudoku, with the checker"
    found, made = {}, {}
    for (task, variant), name in names.items():
        records = ours(grid).at(task, MAIN_OBJECTIVE, variant)
        test = headline_test(records, TITLES[task])
        if runs := on(records, test):
            found[name] = _conditions(*runs[0], TESTS[test].sample)
            made[name] = commands(runs)
    return Table(
        "conditions",
        "What the headline numbers used",
        columns(("",), (("", tuple(found)),)),
        tuple(
            (Cell(what), *(Cell(found[name][what], commands=made[name]) for name in found))
            for what in next(iter(found.values()), {})
        ),
        "The runs of the main table with MinLoss; all seeds have the same settings.",
    )


def _conditions(record: Record, evaluation: Evaluation, sample: str) -> dict[str, str]:
    """Name of a condition -> what a run used."""
    listed = LISTED.get(train_name(record) or "")
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
