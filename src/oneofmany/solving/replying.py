"""Answer queries with a network, the exact enumerator or both, and count their solutions."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Literal

import numpy as np

from oneofmany.problems import Query, Task, rules_kept
from oneofmany.progress import Progress
from oneofmany.solving.answers import Answer, Reply, by_problem, stacked
from oneofmany.solving.exactly import count_solutions, fall_back, solve_exactly
from oneofmany.solving.solver import Solver

AnswerBy = Literal["network", "exact", "both"]
"""Who answers: the network, the enumerator, or the network and, if its answer is not valid, the enumerator."""

COUNTING = 100_000
"""Branches of the search that counts the solutions of an answered query: about a second at most."""
SOLUTIONS = 1000
"""Solutions are counted up to this number by default."""


def solve_queries(
    task: Task,
    queries: Sequence[Query],
    solver: Solver | None,
    *,
    answer: AnswerBy = "both",
    number: int = 1,
    every: bool = False,
    tries: int | None = None,
    limit: int = SOLUTIONS,
    seconds: float | None = None,
    seed: int | None = None,
    tell: Progress | None = None,
) -> list[Reply]:
    """Return the reply to every query. Contradictory givens are found first; nothing is run on such a query.

    Args:
        task: the task of all queries.
        queries: the queries, of any sizes.
        solver: the network; None if the enumerator alone answers.
        answer: who answers.
        number: find up to this many different answers per query.
        every: list all solutions, up to ``limit``; with a solver, the most probable for the network first.
        tries: noisy starts per query to find different answers.
        limit: count solutions up to this number; 0 does not count. The network alone does not count.
        seconds: search at most this long, for all queries together; with ``both`` the network has half of it. The
            network alone spends the time on more starts of the queries whose answer is not valid (``Solver.search``).
        seed: randomises the enumerator's order.
        tell: called with the name of the work, the number of queries so far and the total.
    """
    _check(solver, answer, number, every, limit, seconds)
    deadline = math.inf if seconds is None else time.monotonic() + seconds

    def left(share: float = 1) -> float | None:
        return None if seconds is None else max(1e-3, share * (deadline - time.monotonic()))

    contradictory = _contradictory(queries)
    rows = np.flatnonzero(~contradictory).tolist()
    kept = [queries[row] for row in rows]
    network = _Network(None if answer == "exact" else solver, kept, tell)
    if every:
        found = network.weigh(solve_exactly(kept, limit, seed=seed, seconds=left(), tell=tell), left())
    elif answer == "exact":
        found = solve_exactly(kept, number, seed=seed, seconds=left(), tell=tell)
    else:
        # The network may need all of the time for a few hard queries, so half of it is the enumerator's.
        own_time = left(0.5 if answer == "both" else 1)
        found = network.answer(number, tries, own_time, searches=answer == "network" and seconds is not None)
        found = fall_back(kept, found, number, seconds=left(), tell=tell) if answer == "both" else found
    valid = [i for i, answers in enumerate(found) if answers[0].valid and limit and answer != "network"]
    counts = count_solutions([kept[i] for i in valid], limit + 1, branches=COUNTING, seconds=left(), tell=tell)
    counted = dict(zip(valid, zip(counts.total.tolist(), counts.finished.tolist(), strict=True), strict=True))
    replies = {}
    for i, (row, answers) in enumerate(zip(rows, found, strict=True)):
        listed = sum(one.valid for one in answers)
        total, finished = counted.get(i, (0, False))
        if answers[0].state == "no solution" or (every and seconds is None and listed < limit):
            total, finished = listed, True  # the enumerator has listed all solutions
        elif i not in counted:
            replies[row] = Reply(task, queries[row], tuple(answers))
            continue
        complete = False if total > limit else finished or None
        replies[row] = Reply(task, queries[row], tuple(answers), min(limit, max(total, listed)), complete)
    for row in np.flatnonzero(contradictory).tolist():
        nothing = Answer(queries[row].values, False, "exact")
        replies[row] = Reply(task, queries[row], (nothing,), 0, True, task.contradiction(queries[row]))
    return [replies[row] for row in range(len(queries))]


class _Network:
    """The queries that a network can answer; the others are left to the enumerator."""

    def __init__(self, solver: Solver | None, queries: list[Query], tell: Progress | None) -> None:
        self.solver, self.queries, self.tell = solver, queries, tell
        self.rows = [row for row, query in enumerate(queries) if solver is not None and not solver.refusal(query)]

    def answer(self, number: int, tries: int | None, seconds: float | None, searches: bool) -> list[list[Answer]]:
        """Return answers to every query; a query that the network cannot answer gets none.

        ``searches`` spends the time on more starts of the queries without a valid answer.
        """
        found: list[list[Answer]] = [[] for _ in self.queries]
        if self.solver is not None and self.rows:
            able = [self.queries[row] for row in self.rows]
            if number > 1:
                each = self.solver.distinct(able, number, tries=tries, tell=self.tell, seconds=seconds)
            else:
                own = self.solver.search if searches and self.solver.starts == 1 else self.solver.answer
                each = [[one] for one in own(able, self.tell, seconds=seconds)]
            for row, answers in zip(self.rows, each, strict=True):
                found[row] = answers
        return found

    def weigh(self, found: list[list[Answer]], seconds: float | None) -> list[list[Answer]]:
        """Return solutions with the network's probability of each, if it can answer their query."""
        if self.solver is not None and self.rows:
            able = [self.queries[row] for row in self.rows]
            weighed = self.solver.weigh(able, [found[row] for row in self.rows], self.tell, seconds=seconds)
            for row, answers in zip(self.rows, weighed, strict=True):
                found[row] = answers
        return found


def _contradictory(queries: Sequence[Query]) -> np.ndarray:
    """bool [Q]: the queries whose givens break a rule or a relation."""
    broken = np.zeros(len(queries), bool)
    for problem, rows in by_problem(queries).items():
        broken[rows] = ~rules_kept(problem, *stacked([queries[row] for row in rows]))
    return broken


def _check(solver: Solver | None, answer: str, number: int, every: bool, limit: int, seconds: float | None) -> None:
    if answer not in ("network", "exact", "both"):
        raise ValueError(f"answer: expected network, exact or both, got {answer!r}")
    if answer == "network" and (solver is None or every):
        raise ValueError("answer: a network alone cannot list all solutions, and needs a solver")
    if number < 1:
        raise ValueError(f"number: expected at least 1 answer, got {number}")
    if limit < (1 if every else 0):
        raise ValueError(f"limit: expected at least {1 if every else 0}, got {limit}")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds: expected more than 0, got {seconds}")
