"""Answers and counts from the exact enumerator."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from oneofmany.exact import LIMIT, count, solve
from oneofmany.problems import Problem, Query, nqueens
from oneofmany.progress import Progress
from oneofmany.solving.answers import Answer, by_problem, stacked

AT_ONCE = 4096
"""Queries between two reports of progress."""


def solve_exactly(
    queries: Sequence[Query], limit: int = 1, *, seed: int | None = None, tell: Progress | None = None
) -> list[list[Answer]]:
    """Return up to ``limit`` solutions of every query from the enumerator; a seed randomises the search order.

    A query without a solution gets one invalid answer: the query itself.
    """
    if queries:
        prepare()
    answers: dict[int, list[Answer]] = {}
    for problem, rows in _parts(queries):
        start = time.perf_counter()
        found = solve(problem, *stacked([queries[row] for row in rows]), limit=limit, seed=seed)
        spent = (time.perf_counter() - start) / len(rows)
        for i, row in enumerate(rows):
            listed = [Answer(values, True, "exact", seconds=spent) for values in found.of(i)]
            answers[row] = listed or [Answer(queries[row].values, False, "exact", seconds=spent)]
        if tell:
            tell("queries answered", len(answers), len(queries))
    return [answers[row] for row in range(len(queries))]


def count_solutions(queries: Sequence[Query], limit: int = LIMIT, *, tell: Progress | None = None) -> np.ndarray:
    """Count the solutions of every query, int64 [Q]; the count of a query stops at ``limit``."""
    totals = np.zeros(len(queries), np.int64)
    done = 0
    for problem, rows in _parts(queries):
        totals[rows] = count(problem, *stacked([queries[row] for row in rows]), limit=limit)
        done += len(rows)
        if tell:
            tell("queries counted", done, len(queries))
    return totals


def fall_back(queries: Sequence[Query], found: Sequence[Sequence[Answer]], number: int = 1) -> list[list[Answer]]:
    """Keep the valid answers and let the enumerator add different ones, up to ``number`` in all.

    A query without a solution gets the enumerator's invalid answer.
    """
    kept = [[answer for answer in answers if answer.valid][:number] for answers in found]
    short = [row for row, answers in enumerate(kept) if len(answers) < number]
    for row, exact in zip(short, solve_exactly([queries[row] for row in short], number), strict=True):
        asked = sum(answer.seconds for answer in found[row])  # the network's time counts too
        known = {answer.values.tobytes() for answer in kept[row]}
        new = [replace(answer, seconds=answer.seconds + asked) for answer in exact]
        kept[row] += [answer for answer in new if answer.values.tobytes() not in known][: number - len(kept[row])]
    return kept


@cache
def prepare() -> None:
    """Load or compile the enumerator (seconds, the first time), so that no query's time includes it."""
    solve(nqueens(1), np.zeros((1, 1), np.uint8), limit=1)


def _parts(queries: Sequence[Query]) -> Iterator[tuple[Problem, list[int]]]:
    """Yield the rows of up to ``AT_ONCE`` queries of one problem at a time."""
    for problem, rows in by_problem(queries).items():
        for first in range(0, len(rows), AT_ONCE):
            yield problem, rows[first : first + AT_ONCE]
