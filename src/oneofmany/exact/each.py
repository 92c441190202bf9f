"""Exact enumeration of queries that have a problem each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oneofmany.exact.enumerator import LIMIT, Solutions, solve
from oneofmany.problems import Problem


def solve_each(
    problems: Sequence[Problem],
    queries: np.ndarray,
    relations: np.ndarray | None = None,
    *,
    limit: int = LIMIT,
    keep: int | None = None,
    seed: int | None = None,
    branches: int | None = None,
    threads: int | None = None,
) -> Solutions:
    """Find all solutions of queries with a problem each, as ``solve`` does for queries of one problem.

    Args:
        problems: the problem of every query, all with the same variables and values (``OwnRules.problems``). Queries
            that share a problem are searched together.
        queries: uint8 [Q, R], 0 = blank, 1..V = given.
        relations: int16 [Q, M, 2] pairs (a, b), -1 for padding.
        limit: as in ``solve``.
        keep: as in ``solve``.
        seed: as in ``solve``; the order of a query's solutions also depends on the other queries of its problem.
        branches: as in ``solve``.
        threads: as in ``solve``.
    """
    if len(problems) != len(queries):
        raise ValueError(f"problems: expected {len(queries)}, one per query, got {len(problems)}")
    rows: dict[Problem, list[int]] = {}
    for row, problem in enumerate(problems):
        rows.setdefault(problem, []).append(row)
    total, finished = np.zeros(len(queries), np.int64), np.zeros(len(queries), bool)
    listed: list[np.ndarray] = [queries[:0]] * len(queries)
    for problem, own in rows.items():
        pairs = None if relations is None else relations[own]
        found = solve(
            problem, queries[own], pairs, limit=limit, keep=keep, seed=seed, branches=branches, threads=threads
        )
        total[own], finished[own] = found.total, found.finished
        for i, row in enumerate(own):
            listed[row] = found.of(i)
    offsets = np.concatenate([[0], np.cumsum([len(solutions) for solutions in listed])])
    return Solutions(total, offsets, np.concatenate([queries[:0], *listed]).astype(np.uint8), finished)
