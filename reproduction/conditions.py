"""What the headline numbers used: rules, checker, revealed cells, listed solutions, steps, starts and budget."""

from __future__ import annotations

from oneofmany.evaluation.record import Evaluation, Record
from oneofmany.report.cells import commands
from oneofmany.report.grid import TASKS, Grid, name_of
from oneofmany.report.table import Cell, Table, columns
from reproduction.experiments import LISTED
from reproduction.ours import MAIN_OBJECTIVE, on
from reproduction.runs import OUR_VARIANT, ours, train_name


def conditions(grid: Grid) -> Table:
    """One column per task: the conditions of its runs in the main table, from their records."""
    found = {
        task: runs for task in TASKS if (runs := on(ours(grid).at(task, MAIN_OBJECTIVE, OUR_VARIANT), f"{task}-test"))
    }
    made = {task: commands(runs) for task, runs in found.items()}
    of_task = {task: _conditions(*runs[0]) for task, runs in found.items()}
    names = list(next(iter(of_task.values()), {}))
    return Table(
        "conditions",
        "What the headline numbers used",
        columns(("",), (("", tuple(map(name_of, found))),)),
        tuple((Cell(name), *(Cell(of_task[task][name], commands=made[task]) for task in found)) for name in names),
        "The runs of the main table with MinLoss; all seeds have the same settings.",
    )


def _conditions(record: Record, evaluation: Evaluation) -> dict[str, str]:
    """Name of a condition -> what a run used."""
    listed = LISTED.get(train_name(record) or "")
    updates, batch = record.setting("first.updates"), record.setting("first.batch")
    return {
        "rules as input": "yes",
        "rules checker in training": "yes (`discover`)" if record.setting("discover") else "no",
        "rules checker at test time": "no",
        "queries with revealed cells": f"{100 * (record.setting('reveal') or 0):.0f} %",
        "listed solutions per training query": "all"
        if listed is None
        else f"up to {record.setting('listed') or listed}",
        "burn-in steps": ", ".join(map(str, record.setting("burn_in") or ())),
        "steps in training": str(record.setting("network.steps")),
        "steps at test time": str(evaluation.steps),
        "starts": str(evaluation.starts),
        "training": f"{updates:,} updates x {batch:,} queries" if updates and batch else "",
    }
