"""Cells that several tables share."""

from __future__ import annotations

from collections.abc import Sequence

from oneofmany.evaluation.statistics import SeedSummary
from oneofmany.report.records import Record, Score, commands_of, over_runs, percent, test_evaluation
from oneofmany.report.table import Cell


def mean_and_best(summary: SeedSummary | None, commands: tuple[str, ...], top: bool = False) -> Cell:
    """``79.73 (80.12)``, the mean over seeds and the run that dev picks; with one seed its value alone."""
    if summary is None:
        return Cell()
    text = f"{summary.mean:.2f}" + ("" if summary.standard_error is None else f" ({summary.best:.2f})")
    return Cell(text, {"mean": summary.mean, "best": summary.best}, commands, best=top)


def with_interval(summary: SeedSummary | None, commands: tuple[str, ...], top: bool = False) -> Cell:
    """``99.87 [99.70, 100.00]``: the mean over seeds and Student's t interval, cut at 0 and 100; one seed has none."""
    if summary is None:
        return Cell()
    text, numbers = f"{summary.mean:.2f}", {"mean": summary.mean}
    if summary.low is not None and summary.high is not None:
        text += f" [{max(summary.low, 0):.2f}, {min(summary.high, 100):.2f}]"
        numbers |= {"low": summary.low, "high": summary.high}
    return Cell(text, numbers, commands, best=top)


def wilson_cell(score: Score | None, commands: tuple[str, ...]) -> Cell:
    """``99.87 [99.7, 99.9]``: one run's accuracy and Wilson's interval over the queries."""
    value, low, high = (percent(score, key) for key in ("accuracy", "low", "high"))
    if value is None or low is None or high is None:
        return Cell()
    numbers = {"accuracy": value, "low": low, "high": high}
    return Cell(f"{value:.2f} [{low:.1f}, {high:.1f}]", numbers, commands)


def accuracy_cell(records: Sequence[Record], subset: str, top: bool = False) -> Cell:
    """Mean and best of the runs' test evaluations."""
    return mean_and_best(over_runs(records, subset), test_commands(records), top)


def test_commands(records: Sequence[Record]) -> tuple[str, ...]:
    """The commands that trained these runs and evaluated them on the test set."""
    return commands_of(records, map(test_evaluation, records))


def interval_cell(records: Sequence[Record], subset: str) -> Cell:
    """``78.9 – 80.5``: Student's t over seeds; with one seed Wilson's over the queries."""
    summary = over_runs(records, subset)
    if summary is None:
        return Cell()
    ends = {"low": summary.low, "high": summary.high}
    if summary.low is None:
        (score,) = (e[subset] for r in records if (e := test_evaluation(r)) is not None and e[subset]["total"])
        ends = {end: percent(score, end) for end in ends}
    known = {end: value for end, value in ends.items() if value is not None}
    return Cell(" – ".join(f"{value:.1f}" for value in known.values()), known)


def seeds_cell(records: Sequence[Record]) -> Cell:
    """How many seeds have a test evaluation."""
    return count_cell(sum(test_evaluation(record) is not None for record in records))


def count_cell(count: int) -> Cell:
    """A number of things, empty for none."""
    return Cell(f"{count:,}", {"": count}) if count else Cell()


def with_error(mean: float, error: float, commands: tuple[str, ...] = ()) -> Cell:
    """``77.29 ± 0.38``: a mean and its standard error."""
    return Cell(f"{mean:.2f} ± {error:.2f}", {"mean": mean, "standard error": error}, commands)


def number_cell(value: float | None, form: str = ".2f") -> Cell:
    """A number by itself, empty for None."""
    return Cell() if value is None else Cell(format(value, form), {"": value})
