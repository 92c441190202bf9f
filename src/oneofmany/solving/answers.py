"""Answers to a query, the reply that holds them, and queries grouped by problem."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from oneofmany.problems import Problem, Query, Task
from oneofmany.problems.own_rules import batch_key
from oneofmany.problems.tasks.task import plain

State = Literal["valid", "invalid", "no solution", "no answer"]
"""An answer was checked and is valid; a network's answer is not; there is no solution; the time was up before any."""


@dataclass(frozen=True, eq=False)
class Answer:
    """One answer to a query.

    Args:
        values: uint8 [R], 1..V, with the givens of the query; 0 for a variable to which a network gives no value or
            several; the query itself if there is no solution or no answer.
        valid: whether it satisfies every rule.
        source: who answered. An invalid answer from the enumerator means that there is no solution.
        log_probability: the network's log-probability of the answer; None without a network. Networks that choose a
            value for every variable sum the log-softmax of the last step over variables; networks that threshold every
            choice separately (NLM) sum over choices.
        share: the answer's share of the probability of all solutions given to ``Solver.weigh``; None elsewhere.
        seconds: the query's share of the time of its batch.
        finished: False if the time was up before there was an answer.
        residual: how far the network's belief moved in the last step: total variation, mean over variables; None if
            there were no two steps to compare, and without a network.
    """

    values: np.ndarray
    valid: bool
    source: Literal["network", "exact"]
    log_probability: float | None = None
    share: float | None = None
    seconds: float = 0.0
    finished: bool = True
    residual: float | None = None

    @property
    def confidence(self) -> float | None:
        """The network's probability of the whole answer, 0..1. It is not calibrated to how often answers are valid."""
        return None if self.log_probability is None else math.exp(self.log_probability)

    @property
    def state(self) -> State:
        """What the answer is."""
        if self.valid:
            return "valid"
        if not self.finished:
            return "no answer"
        return "invalid" if self.source == "network" else "no solution"


@dataclass(frozen=True, eq=False)
class Reply:
    """The reply to one query; ``print`` shows it as a board.

    Args:
        task: the task of the query.
        query: the problem, the givens and the relations.
        answers: the best first; at least one. ``answers[0]`` is not valid if there is no valid answer.
        solutions: how many solutions the enumerator has found, up to the limit; None if they were not counted.
        complete: True if these are all solutions, False if there are more, None if that is not known.
        contradiction: how the givens contradict each other, in words of the task; None if no two of them do.
    """

    task: Task
    query: Query
    answers: tuple[Answer, ...]
    solutions: int | None = None
    complete: bool | None = None
    contradiction: str | None = None

    @property
    def state(self) -> State:
        """``valid``, ``invalid``, ``no solution`` or ``no answer`` (the time was up)."""
        return self.answers[0].state

    @property
    def valid(self) -> bool:
        """Whether there is an answer that keeps the givens and satisfies every rule."""
        return self.answers[0].valid

    @property
    def values(self) -> np.ndarray:
        """The first answer, uint8 [R]; the query itself if there is none."""
        return self.answers[0].values

    @property
    def source(self) -> Literal["network", "exact"]:
        """Who gave the first answer: the network, or the exact enumerator."""
        return self.answers[0].source

    @property
    def unique(self) -> bool | None:
        """Whether there is exactly one solution; None if that is not known."""
        if self.solutions is None or (self.solutions < 2 and self.complete is None):
            return None
        return self.solutions == 1 and bool(self.complete)

    @property
    def number(self) -> str:
        """The number of solutions in words."""
        if self.solutions is None:
            return "solutions not counted"
        if self.solutions == 0 and self.complete:
            return "no solution" if self.contradiction is None else f"no solution: {self.contradiction}"
        if self.solutions == 1 and self.complete:
            return "unique solution"
        how = {True: "", False: "more than ", None: "at least "}[self.complete]
        return f"{how}{self.solutions:,} solution{'s' * (self.solutions != 1)}"

    def __str__(self) -> str:
        """The board of a valid answer; words and, if there is one, the board of an answer that is not valid."""
        if self.state == "no solution":
            return self.number
        if self.state == "no answer":
            return "no answer: the time was up"
        q = self.query
        board = self.task.draw(q.problem, self.values, q.relations, q.values > 0, plain)
        return board if self.valid else f"not valid\n{board}"


def by_problem(queries: Sequence[Query]) -> dict[Problem, list[int]]:
    """Group the queries' rows by problem."""
    rows: dict[Problem, list[int]] = {}
    for row, query in enumerate(queries):
        rows.setdefault(query.problem, []).append(row)
    return rows


def in_batches(queries: Sequence[Query], size: int, mixed: bool) -> Iterator[list[int]]:
    """Yield the rows of up to ``size`` queries that a network answers at once; those of one problem are together.

    A batch has one problem or, if ``mixed``, several with the same variables and values, whose queries have no
    relations. Batches of a problem's own queries are the same in both cases.
    """
    waiting: dict[object, list[int]] = {}
    for problem, rows in by_problem(queries).items():
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            if not mixed or any(len(queries[row].relations) for row in part):
                yield part
                continue
            held = waiting.setdefault(batch_key(problem), [])
            if len(held) + len(part) > size:
                yield held.copy()
                held.clear()
            held += part
    yield from (held for held in waiting.values() if held)


def stacked(queries: Sequence[Query]) -> tuple[np.ndarray, np.ndarray]:
    """Stack queries with the same variables: values uint8 [Q, R] and relations int16 [Q, M, 2], -1 for padding."""
    relations = np.full((len(queries), max(len(query.relations) for query in queries), 2), -1, np.int16)
    for row, query in zip(relations, queries, strict=True):
        row[: len(query.relations)] = query.relations
    return np.stack([query.values for query in queries]), relations
