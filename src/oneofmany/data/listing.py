"""Make a dataset from queries by listing their solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.data.splits import stable_hash
from oneofmany.exact import LIMIT, solve, solve_each
from oneofmany.problems import OwnRules, Problem


def list_solutions(
    problem: Problem,
    query: np.ndarray,
    relations: np.ndarray | None,
    built: dict[str, Any],
    *,
    seed: int,
    keep: int | None = None,
    group: np.ndarray | None = None,
    own: OwnRules | None = None,
) -> Dataset:
    """Return the dataset of queries uint8 [Q, R] and relations int16 [Q, M, 2]; ``seed`` sets the order of solutions.

    ``own`` are the rules that the queries bring of their own.

    With ``keep`` a fair sample of at most that many solutions is listed, otherwise all. A query with ``LIMIT``
    solutions or more is an error.
    """
    if own is None:
        found = solve(problem, query, relations, keep=keep, seed=seed)
    else:
        found = solve_each(own.problems(problem), query, relations, keep=keep, seed=seed)
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
        own,
    )


class Distinct:
    """Keeps the first of equal rows, over several calls; a row with one of the hashes uint64 ``before`` is not new."""

    def __init__(self, before: np.ndarray | None = None) -> None:
        self.seen: set[bytes] = set()
        self.before = before

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return bool [N]: which rows [N, W] are new."""
        fresh = np.zeros(len(rows), bool)
        for i, key in enumerate(row.tobytes() for row in np.ascontiguousarray(rows)):
            if key not in self.seen:
                self.seen.add(key)
                fresh[i] = True
        return fresh if self.before is None else fresh & ~np.isin(stable_hash(rows), self.before)


Seed = int | tuple[int, ...]


@dataclass(frozen=True)
class Drawn:
    """Queries before their solutions are listed.

    Args:
        query: uint8 [Q, R].
        relations: int16 [Q, M, 2], or None.
        key: uint8 [Q, W], equal for queries of one group; None if every query is its own.
    """

    query: np.ndarray
    relations: np.ndarray | None = None
    key: np.ndarray | None = None


class Source(Protocol):
    """Draws the queries of a build: ``quotas[k]`` of kind k."""

    @property
    def problem(self) -> Problem:
        """The problem of all queries."""
        ...

    @property
    def built(self) -> dict[str, Any]:
        """How the queries are made, for the header."""
        ...

    @property
    def listed(self) -> int | None:
        """List at most this many solutions per query; None lists all."""
        ...

    @property
    def quotas(self) -> Sequence[int]:
        """The number of queries of every kind."""
        ...

    @property
    def most_of_a_group(self) -> int | None:
        """The largest number of queries of one group, if there is one."""
        ...

    def draw(self, quotas: Sequence[int], seed: Seed, distinct: Distinct) -> Drawn:
        """Draw queries that are new to ``distinct``, in the order of the file."""
        ...

    def kind(self, data: Dataset) -> np.ndarray:
        """The kind of every query: int64 [Q]."""
        ...


def build(source: Source, seed: int) -> Dataset:
    """Build all queries of a source in one go."""
    drawn = source.draw(source.quotas, seed, Distinct())
    return list_drawn(source, drawn, seed)


def list_drawn(source: Source, drawn: Drawn, seed: int) -> Dataset:
    """List the solutions of queries that a source has drawn."""
    group = None if drawn.key is None else groups_of(drawn.key)
    return list_solutions(
        source.problem, drawn.query, drawn.relations, source.built, seed=seed, keep=source.listed, group=group
    )


def groups_of(key: np.ndarray) -> np.ndarray:
    """Number the different rows of uint8 [Q, W]: int64 [Q]."""
    return np.unique(key, axis=0, return_inverse=True)[1].ravel()
