"""Make a dataset from queries by listing their solutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.exact import LIMIT, solve
from oneofmany.problems import Problem


def list_solutions(
    problem: Problem,
    query: np.ndarray,
    relations: np.ndarray | None,
    built: dict[str, Any],
    *,
    seed: int,
    keep: int | None = None,
    group: np.ndarray | None = None,
) -> Dataset:
    """Return the dataset of queries uint8 [Q, R] and relations int16 [Q, M, 2]; ``seed`` sets the order of solutions.

    With ``keep`` a fair sample of at most that many solutions is listed, otherwise all. A query with ``LIMIT``
    solutions or more is an error.
    """
    found = solve(problem, query, relations, keep=keep, seed=seed)
    if (found.total >= LIMIT).any():
        raise ValueError(f"a query has {LIMIT:,} solutions or more: use fewer blanks")
    return Dataset(
        problem,
        query,
        found.solutions,
        found.offsets,
        found.total,
        np.zeros((len(query), 0, 2), np.int16) if relations is None else relations,
        np.arange(len(query)) if group is None else group,
        built,
    )


class Distinct:
    """Keeps the first of equal rows, over several calls."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return bool [N]: which rows [N, W] are new."""
        fresh = np.zeros(len(rows), bool)
        for i, key in enumerate(row.tobytes() for row in np.ascontiguousarray(rows)):
            if key not in self.seen:
                self.seen.add(key)
                fresh[i] = True
        return fresh
