"""An answer to a query, and queries grouped by problem."""

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
        values: uint8 [R], 1..V; 0 for a variable to which a network gives no value or several; the query itself if
            there is no solution.
        valid: whether it keeps the givens and satisfies every rule.
        source: who answered. An invalid answer from the enumerator means that there is no solution.
        log_probability: the network's log-probability of the answer; None without a network. Networks that choose a
            value for every variable sum the log-softmax of the last step over variables; networks that threshold every
            choice separately (NLM) sum over choices.
        share: the answer's share of the probability of all solutions given to ``Solver.weigh``; None elsewhere.
        seconds: the query's share of the time of its batch.
    """

    values: np.ndarray
    valid: bool
    source: Literal["network", "exact"]
    log_probability: float | None = None
    share: float | None = None
    seconds: float = 0.0

    @property
    def confidence(self) -> float | None:
        """The network's probability of the whole answer, 0..1. It is not calibrated to how often answers are valid."""
        return None if self.log_probability is None else math.exp(self.log_probability)


def by_problem(queries: Sequence[Query]) -> dict[Problem, list[int]]:
    """Group the queries' rows by problem."""
    rows: dict[Problem, list[int]] = {}
    for row, query in enumerate(queries):
        rows.setdefault(query.problem, []).append(row)
    return rows


def stacked(queries: Sequence[Query]) -> tuple[np.ndarray, np.ndarray]:
    """Stack queries of one problem: values uint8 [Q, R] and relations int16 [Q, M, 2], -1 for padding."""
    relations = np.full((len(queries), max(len(query.relations) for query in queries), 2), -1, np.int16)
    for row, query in zip(relations, queries, strict=True):
        row[: len(query.relations)] = query.relations
    return np.stack([query.values for query in queries]), relations
