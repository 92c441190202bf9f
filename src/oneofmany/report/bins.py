"""Test queries binned by how many solutions exist."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oneofmany.report.records import Evaluation, givens_of, totals_of, valid_of

FIRST = (1, 2, 3, 4, 5, 6, 11, 21, 31, 41, 51, 101, 1001)
"""Where bins begin; each ends before the next."""
FEWEST = 30
"""A bin of fewer MS queries is joined with its neighbour, so that its interval says something."""


@dataclass(frozen=True)
class Bin:
    """Queries with ``first`` to ``last`` solutions: how many, how many are right, how many givens on average."""

    first: int
    last: int
    correct: int
    total: int
    givens: float

    @property
    def label(self) -> str:
        """``3`` or ``6–10``."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"

    @property
    def accuracy(self) -> float:
        """In percent."""
        return 100 * self.correct / self.total


def bins_of(evaluation: Evaluation) -> list[Bin]:
    """The bins that hold queries; queries with an unknown number of solutions are in none."""
    totals, valid, givens = totals_of(evaluation), valid_of(evaluation), givens_of(evaluation)
    members = [
        rows
        for first, end in zip(FIRST, (*FIRST[1:], np.iinfo(np.int32).max), strict=True)
        if len(rows := np.flatnonzero((totals >= first) & (totals < end)))
    ]
    # From the right: few queries have many solutions. OS queries stay by themselves.
    i = len(members) - 1
    while i > 0:
        if len(members[i]) < FEWEST and totals[members[i - 1]].min() > 1:
            members[i - 1 : i + 1] = [np.concatenate(members[i - 1 : i + 1])]
        i -= 1
    return [
        Bin(
            int(totals[rows].min()),
            int(totals[rows].max()),
            int(valid[rows].sum()),
            len(rows),
            float(givens[rows].mean()),
        )
        for rows in members
    ]
