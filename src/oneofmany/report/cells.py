"""Cells that several tables share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oneofmany.evaluation.record import Evaluation, Record, Subset
from oneofmany.evaluation.scores import Score
from oneofmany.evaluation.statistics import SeedSummary, mcnemar, p_text
from oneofmany.report.grid import commands_of, summary_of, test_evaluation
from oneofmany.report.table import Cell, signed

SAME_ACCURACY = "(queries): all seeds have the same accuracy, so the interval is Wilson's over the queries of one run."
"""The note of a table that shows ``with_interval``."""
Runs = Sequence[tuple[Record, Evaluation]]
"""Runs with one evaluation each."""


def mean_and_best(summary: SeedSummary | None, commands: tuple[str, ...], top: bool = False) -> Cell:
    """``79.73 (80.12)``: the mean over seeds and the run that dev picks; with one seed only its value."""
    if summary is None:
        return Cell()
    text = f"{summary.mean:.2f}" + ("" if summary.standard_error is None else f" ({summary.best:.2f})")
    return Cell(text, {"mean": summary.mean, "best": summary.best}, commands, best=top)


def with_interval(summary: SeedSummary | None, commands: tuple[str, ...], top: bool = False) -> Cell:
    """``99.87 [99.70, 100.00]``: the mean over seeds and its interval, cut at 0 and 100; none for one seed.

    An interval over queries, because the seeds do not differ, is marked ``(queries)``.
    """
    if summary is None:
        return Cell()
    text, numbers = f"{summary.mean:.2f}", {"mean": summary.mean}
    if summary.low is not None and summary.high is not None:
        low, high = max(summary.low, 0.0), min(summary.high, 100.0)
        text += f" [{low:.2f}, {high:.2f}]" + (" (queries)" if summary.over == "queries" else "")
        numbers |= {"low": low, "high": high}
    return Cell(text, numbers, commands, best=top)


def wilson_cell(score: Score | None, commands: tuple[str, ...]) -> Cell:
    """``99.87 [99.7, 99.9]``: the accuracy of one run and Wilson's interval over the queries."""
    if score is None or score.accuracy is None or score.low is None or score.high is None:
        return Cell()
    numbers = {"accuracy": 100 * score.accuracy, "low": 100 * score.low, "high": 100 * score.high}
    text = "{accuracy:.2f} [{low:.1f}, {high:.1f}]".format(**numbers)
    return Cell(text, numbers, commands)


def accuracy_cell(runs: Runs, subset: Subset) -> Cell:
    """The accuracy of runs that differ in the seed; the interval of a single one is over the queries."""
    if len(runs) == 1:
        return wilson_cell(runs[0][1].scores.of(subset), commands(runs))
    return with_interval(summary_of(runs, subset), commands(runs))


def test_commands(records: Sequence[Record]) -> tuple[str, ...]:
    """The commands that trained these runs and evaluated them on the test set."""
    return commands_of(records, map(test_evaluation, records))


def commands(runs: Runs) -> tuple[str, ...]:
    """The commands that trained and evaluated."""
    return commands_of((record for record, _ in runs), (evaluation for _, evaluation in runs))


def training_cell(records: Sequence[Record]) -> Cell:
    """``93 s, NVIDIA H200``: mean seconds of training over seeds, and the devices."""
    seconds = [record.seconds for record in records if record.seconds is not None]
    if not seconds:
        return Cell()
    mean = float(np.mean(seconds))
    return Cell(", ".join([f"{mean:,.0f} s", *sorted({r.device for r in records} - {""})]), {"seconds": mean})


def against(runs: Runs, others: Runs) -> Cell:
    """McNemar's p between the first two runs with the same seed and data."""
    by_seed = {record.seed: (record, evaluation) for record, evaluation in others}
    for record, evaluation in runs:
        other, theirs = by_seed.get(record.seed, (record, evaluation))
        if other is not record and theirs.data.checksum == evaluation.data.checksum:
            found = mcnemar(evaluation.valid, theirs.valid)
            return Cell(p_text(found.p), {"p": found.p}, commands([(record, evaluation), (other, theirs)]))
    return Cell()


def difference(one: float, other: float) -> Cell:
    """The first minus the second, in points."""
    return Cell(signed(one - other), {"points": one - other})


def count_cell(count: int) -> Cell:
    """A count, empty for 0."""
    return Cell(f"{count:,}", {"": count}) if count else Cell()


def number_cell(value: float | None, form: str = ".2f") -> Cell:
    """A number, empty for None."""
    return Cell() if value is None else Cell(format(value, form), {"": value})
