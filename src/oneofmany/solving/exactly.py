"""Answers and counts from the exact enumerator."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from oneofmany.exact import LIMIT, solve
from oneofmany.problems import Problem, Query, Rule, nqueens
from oneofmany.progress import Progress
from oneofmany.solving.answers import Answer, by_problem, stacked

AT_ONCE = 4096
"""Queries between two reports of progress."""
ROUNDS = (1000, 100_000, 10_000_000, None)
"""Branches of a search with a time limit, round by round, so that a hard query does not take the time of the others."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of solutions.

    Args:
        total: int64 [Q], the solutions found, up to the limit.
        finished: bool [Q], False if a search was stopped: there may be more solutions.
    """

    total: np.ndarray
    finished: np.ndarray


def solve_exactly(
    queries: Sequence[Query],
    limit: int = 1,
    *,
    seed: int | None = None,
    seconds: float | None = None,
    tell: Progress | None = None,
) -> list[list[Answer]]:
    """Return up to ``limit`` solutions of every query from the enumerator; a seed randomises the search order.

    A query without a solution gets one invalid answer: the query itself. So does a query whose search found nothing
    within ``seconds`` (for all queries together), with an answer that is not ``finished``.
    """
    if queries:
        prepare(queries)
    deadline = _deadline(seconds)
    answers = [[Answer(query.values, False, "exact", finished=False)] for query in queries]
    left, done = list(range(len(queries))), 0
    for branches in ROUNDS if seconds is not None else (None,):
        open_rows = []
        for problem, rows in _parts([queries[row] for row in left]):
            if time.monotonic() >= deadline:
                return answers
            part = [left[row] for row in rows]
            start = time.perf_counter()
            found = solve(
                problem,
                *stacked([queries[row] for row in part]),
                limit=limit,
                seed=seed,
                branches=branches,
                seconds=_left(deadline),
            )
            spent = (time.perf_counter() - start) / len(part)
            for i, row in enumerate(part):
                listed = [Answer(values, True, "exact", seconds=spent) for values in found.of(i)]
                nothing = Answer(queries[row].values, False, "exact", seconds=spent, finished=bool(found.finished[i]))
                answers[row] = listed or [nothing]
            open_rows += [row for i, row in enumerate(part) if not found.finished[i]]
            done += sum(found.finished.tolist())
            if tell:
                tell("queries searched", done, len(queries))
        left = open_rows
    return answers


def count_solutions(
    queries: Sequence[Query],
    limit: int = LIMIT,
    *,
    seconds: float | None = None,
    branches: int | None = None,
    tell: Progress | None = None,
) -> Counts:
    """Count the solutions of every query, each up to ``limit``.

    Counting stops after ``seconds`` for all queries together, and after ``branches`` branches of the search per query.
    """
    counts = Counts(np.zeros(len(queries), np.int64), np.zeros(len(queries), bool))
    deadline = _deadline(seconds)
    left = list(range(len(queries)))
    for most in ROUNDS if seconds is not None and branches is None else (branches,):
        for problem, rows in _parts([queries[row] for row in left]):
            if time.monotonic() >= deadline:
                return counts
            part = [left[row] for row in rows]
            found = solve(
                problem,
                *stacked([queries[row] for row in part]),
                limit=limit,
                keep=0,
                branches=most,
                seconds=_left(deadline),
            )
            counts.total[part] = np.maximum(counts.total[part], found.total)
            counts.finished[part] = found.finished
            if tell:
                tell("queries counted", int(counts.finished.sum()), len(queries))
        left = np.flatnonzero(~counts.finished).tolist()
    return counts


def fall_back(
    queries: Sequence[Query],
    found: Sequence[Sequence[Answer]],
    number: int = 1,
    *,
    seconds: float | None = None,
    tell: Progress | None = None,
) -> list[list[Answer]]:
    """Keep the valid answers and let the enumerator add different ones, up to ``number`` in all.

    A query without a solution gets the enumerator's invalid answer.
    """
    kept = [[answer for answer in answers if answer.valid][:number] for answers in found]
    short = [row for row, answers in enumerate(kept) if len(answers) < number]
    asked = solve_exactly([queries[row] for row in short], number, seconds=seconds, tell=tell)
    for row, exact in zip(short, asked, strict=True):
        spent = sum(answer.seconds for answer in found[row])  # the network's time counts too
        known = {answer.values.tobytes() for answer in kept[row]}
        new = [replace(answer, seconds=answer.seconds + spent) for answer in exact if answer.valid or not known]
        kept[row] += [answer for answer in new if answer.values.tobytes() not in known][: number - len(kept[row])]
    return kept


def prepare(queries: Sequence[Query] = ()) -> None:
    """Load or compile what searches these queries (seconds, the first time), so that no query's time includes it."""
    _compile(sums=any(query.problem.linear is not None for query in queries))


@cache
def _compile(*, sums: bool) -> None:
    rules = [Rule("sum", (0,), weights=(2,), low=0, high=2)] if sums else []
    solve(nqueens(1).with_rules(rules), np.zeros((1, 1), np.uint8), limit=1)


def _deadline(seconds: float | None) -> float:
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds: expected more than 0, got {seconds}")
    return math.inf if seconds is None else time.monotonic() + seconds


def _left(deadline: float) -> float | None:
    """The seconds until the deadline; None if there is none."""
    return None if math.isinf(deadline) else max(1e-3, deadline - time.monotonic())


def _parts(queries: Sequence[Query]) -> Iterator[tuple[Problem, list[int]]]:
    """Yield the rows of up to ``AT_ONCE`` queries of one problem at a time."""
    for problem, rows in by_problem(queries).items():
        for first in range(0, len(rows), AT_ONCE):
            yield problem, rows[first : first + AT_ONCE]
