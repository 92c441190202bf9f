"""Differences between two recipes, paired by seed, and what they decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from oneofmany.evaluation.record import Evaluation, Record, Subset
from oneofmany.evaluation.statistics import SeedSummary, over_seeds
from oneofmany.report.cells import Runs, commands
from oneofmany.report.grid import Grid
from oneofmany.report.table import Cell, signed

Measure = Subset | Literal["errors"]
"""The accuracy on a subset of the queries, or the error rate of sequences."""
LEAST_SEEDS = 3
"""Two seeds can agree by chance."""
HIGHER, LOWER, UNDECIDED = "higher", "lower", "undecided"
PAIRED = (
    "Differences are paired by seed, in points, with Student's t interval (95 %); “undecided” if it contains 0. They "
    "are not corrected for their number."
)


def distinct(grid: Grid) -> list[Record]:
    """One run for each recipe and seed, including those that are kept apart; a repeated run is not one."""
    found: dict[tuple[str, int], Record] = {}
    for record in grid.all:
        if not record.apart.endswith("/repeated"):
            found.setdefault((record.recipe, record.seed), record)
    return list(found.values())


def of_recipe(grid: Grid, name: str) -> list[Record]:
    """The distinct runs of a recipe, one for each seed."""
    return [record for record in distinct(grid) if record.recipe == name]


def measured(evaluation: Evaluation, measure: Measure) -> float | None:
    """The share, 0 to 1; None if there are no such queries."""
    return evaluation.error_rate if measure == "errors" else evaluation.scores.of(measure).accuracy


def difference(runs: Runs, others: Runs, measure: Measure = "ms") -> SeedSummary | None:
    """The measure of runs minus that of others on the same queries; None without ``LEAST_SEEDS`` common seeds."""
    return mean_difference([(runs, others)], measure)


def mean_difference(pairs: Sequence[tuple[Runs, Runs]], measure: Measure) -> SeedSummary | None:
    """The mean over several pairs of what ``difference`` gives for one, by seeds that all of the pairs have.

    With the pairs of a factorial design that differ in one factor, this is the main effect of the factor.
    """
    by_pair = [_by_seed(*pair, measure) for pair in pairs]
    seeds = set.intersection(*map(set, by_pair)) if by_pair else set()
    points = [sum(one[seed] for one in by_pair) / len(by_pair) for seed in sorted(seeds)]
    return over_seeds(points, [0.0] * len(points)) if len(points) >= LEAST_SEEDS else None


def _by_seed(runs: Runs, others: Runs, measure: Measure) -> dict[int, float]:
    theirs = {record.seed: evaluation for record, evaluation in others}
    found = {}
    for record, evaluation in runs:
        other = theirs.get(record.seed)
        if other is None or other.data.checksum != evaluation.data.checksum:
            continue
        here, there = measured(evaluation, measure), measured(other, measure)
        if here is not None and there is not None:
            found[record.seed] = 100 * (here - there)
    return found


def verdict(found: SeedSummary | None) -> str:
    """``higher``, ``lower`` or ``undecided``: whether the interval of a difference is on one side of 0."""
    if found is None or found.low is None or found.high is None or found.low <= 0 <= found.high:
        return UNDECIDED
    return HIGHER if found.low > 0 else LOWER


def in_points(found: SeedSummary) -> str:
    """``+1.47 [+0.30, +2.64]``."""
    interval = "" if found.low is None or found.high is None else f" [{signed(found.low)}, {signed(found.high)}]"
    return f"{signed(found.mean)}{interval}"


def paired_cells(found: SeedSummary | None, *runs: Runs) -> tuple[Cell, Cell]:
    """A difference and its verdict; empty if there is none."""
    if found is None:
        return Cell(), Cell()
    numbers = {"points": found.mean} | ({} if found.low is None else {"low": found.low, "high": found.high or 0.0})
    made = tuple(dict.fromkeys(command for own in runs for command in commands(own)))
    return Cell(in_points(found), numbers, made), Cell(verdict(found))
