"""One answer to a query, and queries of many problems sorted by problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from oneofmany.problems import Problem, Query


@dataclass(frozen=True, eq=False)
class Answer:
    """One answer to a query.

    Args:
        values: uint8 [R], 1..V, and 0 where a network gives no or several values; the query itself where there is no
            solution.
        valid: whether it keeps the givens and every rule.
        source: who answered. An answer of the enumerator that is not valid says that there is no solution.
        log_probability: the network's log-probability of the answer; None where no network was asked. For networks
            that choose a value for every variable it is the sum over variables of the softmax at the last step, for
            those that threshold every choice on its own (NLM) the sum over choices.
        share: of the probability of all listed solutions, those of ``Solver.weigh``; None elsewhere.
        seconds: the query's part of the time that its batch took.
    """

    values: np.ndarray
    valid: bool
    source: Literal["network", "exact"]
    log_probability: float | None = None
    share: float | None = None
    seconds: float = 0.0

    @property
    def confidence(self) -> float | None:
        """The network's probability of the whole answer, 0..1: how sure it is, which is not how often it is right."""
        return None if self.log_probability is None else math.exp(self.log_probability)


def by_problem(queries: Sequence[Query]) -> dict[Problem, list[int]]:
    """The rows of the queries of every problem."""
    rows: dict[Problem, list[int]] = {}
    for row, query in enumerate(queries):
        rows.setdefault(query.problem, []).append(row)
    return rows


def stacked(queries: Sequence[Query]) -> tuple[np.ndarray, np.ndarray]:
    """Queries of one problem as uint8 [Q, R] and relations int16 [Q, M, 2], -1 for padding."""
    relations = np.full((len(queries), max(len(query.relations) for query in queries), 2), -1, np.int16)
    for row, query in zip(relations, queries, strict=True):
        row[: len(query.relations)] = query.relations
    return np.stack([query.values for query in queries]), relations
