"""Several far-apart solutions of queries that have too many solutions to list, from independent random searches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oneofmany.exact.enumerator import Work, seeds_of
from oneofmany.problems import Problem

POOL = 4
"""A sample is chosen from this many times as many solutions."""
BRANCHES = 2_000
TRIES = 32


@dataclass(frozen=True)
class Samples:
    """Some solutions of Q queries.

    Args:
        offsets: int64 [Q+1], the solutions of query q are rows offsets[q] to offsets[q+1].
        solutions: uint8 [S, R], values 1..V, those of a query different from each other.
        solvable: int8 [Q], 1 if a solution was found, 0 if a search has shown that there is none, -1 if neither
            happened within the limits.
    """

    offsets: np.ndarray
    solutions: np.ndarray
    solvable: np.ndarray

    def of(self, query: int) -> np.ndarray:
        """Return the solutions of one query: uint8 [K, R]."""
        return self.solutions[self.offsets[query] : self.offsets[query + 1]]


def sample(
    problem: Problem,
    queries: np.ndarray,
    relations: np.ndarray | None = None,
    *,
    number: int = 1,
    seed: int = 0,
    tries: int = TRIES,
    branches: int = BRANCHES,
    threads: int | None = None,
) -> Samples:
    """Find up to ``number`` solutions of every query that are far apart, without listing all of them.

    Every search starts anew with its own random order of rules and values, and ends at its first solution or after a
    number of branches: ``branches`` times Luby's sequence 1, 1, 2, 1, 1, 2, 4, ... A query is searched until it has
    four solutions for each that is wanted, has been shown to have none, or ``tries`` searches are done. The result
    depends on the seed and the query's index only, on every machine. For example::

        from oneofmany.exact import sample
        from oneofmany.problems import read_queries

        (query,) = read_queries("nqueens", ". . . . . . . .")
        sample(query.problem, query.values[None], number=3).solutions

    Args:
        problem: the problem of all queries.
        queries: uint8 [Q, R], 0 = blank, 1..V = given.
        relations: int16 [Q, M, 2] pairs (a, b), -1 for padding.
        number: of solutions to return of a query; fewer if fewer were found.
        seed: of the searches.
        tries: the largest number of searches of a query.
        branches: of the first search.
        threads: the number of threads; by default one per core that this process may use.
    """
    for name, value in (("number", number), ("tries", tries), ("branches", branches)):
        if value < 1:
            raise ValueError(f"{name}: expected at least 1, got {value}")
    work = Work(problem, queries, relations, 1, None, branches, threads, any_rule=True)
    Q = len(work.queries)
    found: list[list[np.ndarray]] = [[] for _ in range(Q)]
    solvable = np.full(Q, -1, np.int8)
    wanted = 1 if number == 1 else POOL * number
    rows = np.arange(Q)
    for attempt, search_seed in enumerate(seeds_of(seed, tries).tolist()):
        if not len(rows):
            break
        work.branches = branches * luby(attempt + 1)
        total, finished, owner, solutions = work.run(rows, np.ones(len(rows), np.int64), search_seed >> 1)
        for query, solution in zip(owner.tolist(), solutions, strict=True):
            found[query].append(solution)
        solvable[rows] = np.where(total > 0, 1, np.where(finished, 0, solvable[rows]))
        rows = rows[(solvable[rows] != 0) & np.array([len(found[query]) < wanted for query in rows.tolist()])]
    return together([far_apart(np.array(own, np.uint8), number) for own in found], solvable, problem.variables)


def together(solutions: list[np.ndarray], solvable: np.ndarray, variables: int) -> Samples:
    """Put the solutions uint8 [K, R] of every query one after the other."""
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in solutions])]).astype(np.int64)
    every = np.concatenate([np.zeros((0, variables), np.uint8), *(own for own in solutions if len(own))])
    return Samples(offsets, every, solvable)


def far_apart(solutions: np.ndarray, number: int) -> np.ndarray:
    """Choose up to ``number`` different rows of uint8 [N, R] that differ in many places.

    The first row is kept, and then again and again the row with the largest Hamming distance to its nearest kept one.
    """
    if not len(solutions):
        return solutions
    kept = [0]
    nearest = (solutions != solutions[0]).sum(1)
    while len(kept) < number and nearest.max() > 0:
        kept.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, (solutions != solutions[kept[-1]]).sum(1))
    return solutions[kept]


def luby(place: int) -> int:
    """Return the number at a place, from 1, of Luby's sequence 1, 1, 2, 1, 1, 2, 4, 1, ..."""
    power = 1
    while power - 1 < place:
        power *= 2
    return power // 2 if power - 1 == place else luby(place - power // 2 + 1)
