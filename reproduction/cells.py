"""Cells that several tables of the pages share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oneofmany.evaluation.record import SUBSETS, Record, Subset
from oneofmany.report.cells import Runs, commands, count_cell, mean_and_best, number_cell, test_commands, with_interval
from oneofmany.report.grid import commands_of, over_dev, over_runs, summary_of, test_evaluation
from oneofmany.report.table import Cell


def accuracy_cell(records: Sequence[Record], subset: Subset, top: bool = False) -> Cell:
    """Mean and best of the runs' test evaluations."""
    return mean_and_best(over_runs(records, subset), test_commands(records), top)


def accuracy_cells(runs: Runs) -> list[Cell]:
    """OS, MS and overall accuracy over seeds."""
    return [with_interval(summary_of(runs, subset), commands(runs)) for subset in SUBSETS]


def dev_cells(records: Sequence[Record]) -> list[Cell]:
    """The same on dev, for the kept weights, as training measured it."""
    return [with_interval(over_dev(records, subset), commands_of(records)) for subset in SUBSETS]


def seeds_cell(records: Sequence[Record]) -> Cell:
    """The number of seeds with a test evaluation."""
    return count_cell(sum(test_evaluation(record) is not None for record in records))


def with_error(mean: float, error: float, commands: tuple[str, ...] = ()) -> Cell:
    """``77.29 ± 0.38``: a mean and its standard error."""
    return Cell(f"{mean:.2f} ± {error:.2f}", {"mean": mean, "standard error": error}, commands)


def updates_cell(records: Sequence[Record]) -> Cell:
    """``9,000``: the updates that were made, mean over seeds; empty if no record says it."""
    updates = [record.updates for record in records if record.updates is not None]
    return number_cell(float(np.mean(updates)) if updates else None, ",.0f")
