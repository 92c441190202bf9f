"""The ratings of the queries of a dataset."""

from __future__ import annotations

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.problems import Problem

SEARCHES = 2
"""Searches per query: enough to sort queries."""


def has_ratings(problem: Problem) -> bool:
    """Return whether queries of a problem have ratings: those of 9x9 Sudoku do."""
    return (problem.task, problem.size) == ("sudoku", 9)


def ratings_of(data: Dataset) -> np.ndarray:
    """Return float64 [Q]: ratings by searches with locked candidates and pairs (see ``oneofmany.exact.rate``).

    These tell apart what is hard for a network. The rating of an MS query ends at its second solution.
    """
    from oneofmany.exact import rate  # numba: evaluation does without it

    if not has_ratings(data.problem):
        raise ValueError(f"only 9x9 Sudokus have a rating, got {data.problem}")
    return rate(data.query, searches=SEARCHES, pairs=True).rating
