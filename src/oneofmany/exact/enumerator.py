"""Exact enumeration and counting of the solutions of queries."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import SupportsIndex

import numpy as np

from oneofmany.exact.cores import usable_cores
from oneofmany.exact.kernel import ANY_RULE, IN_ORDER, SHUFFLED, Structure, search
from oneofmany.exact.sums import Sums, sums_of
from oneofmany.exact.threads import on_threads
from oneofmany.problems import Problem

LIMIT = 1_000_000
"""How many solutions of a query are searched for by default."""
CHUNK = 256
SHORT = 2**26
"""Words of state that a short search copies at most: a few tenths of a second."""
ROOM, MEMORY = 1024, 2**25
"""At most this many solutions per query, and bytes in all, are listed while they are counted."""
NO_LIMIT = 2**62
MOST_RELATED = 2**15
"""Relations are between the first variables only, as files keep them in 16 bits."""


@dataclass(frozen=True)
class Solutions:
    """The solutions of Q queries.

    Args:
        total: int64 [Q], how many solutions were found; ``limit`` means that there may be more.
        offsets: int64 [Q+1], the listed solutions of query q are rows offsets[q] to offsets[q+1].
        solutions: uint8 [S, R], values 1..V.
        finished: bool [Q], False if ``seconds`` or ``branches`` ended the search: there may be more solutions.
    """

    total: np.ndarray
    offsets: np.ndarray
    solutions: np.ndarray
    finished: np.ndarray

    def of(self, query: int) -> np.ndarray:
        """Return the listed solutions of one query: uint8 [K, R]."""
        return self.solutions[self.offsets[query] : self.offsets[query + 1]]


def count(
    problem: Problem,
    queries: np.ndarray,
    relations: np.ndarray | None = None,
    *,
    limit: int = LIMIT,
    threads: int | None = None,
) -> np.ndarray:
    """Count the solutions of every query, up to ``limit``; a query with contradictory givens has 0.

    ``solve`` with ``keep=0`` counts with a time limit.

    Args:
        problem: the problem of all queries.
        queries: uint8 [Q, R], 0 = blank, 1..V = given.
        relations: int16 [Q, M, 2] pairs (a, b), -1 for padding.
        limit: stop counting at this number.
        threads: the number of threads; by default one per core that this process may use.

    Returns:
        int64 [Q].
    """
    return solve(problem, queries, relations, limit=limit, keep=0, threads=threads).total


def solve(
    problem: Problem,
    queries: np.ndarray,
    relations: np.ndarray | None = None,
    *,
    limit: int = LIMIT,
    keep: int | None = None,
    seed: int | None = None,
    seconds: float | None = None,
    branches: int | None = None,
    threads: int | None = None,
    any_rule: bool = False,
) -> Solutions:
    """Find all solutions of every query, up to ``limit``.

    With ``seed`` the search and the listed solutions are in a random order, which depends only on the seed and on the
    query's index. With ``keep`` at most that many solutions are listed: a fair sample of all solutions if there are
    at most ``limit``, otherwise of those found. Ctrl-C ends a search at once.

    Args:
        problem: the problem of all queries.
        queries: uint8 [Q, R], 0 = blank, 1..V = given.
        relations: int16 [Q, M, 2] pairs (a, b), -1 for padding.
        limit: stop the search of a query after this many solutions.
        keep: list at most this many solutions of a query; None lists all that are found, 0 only counts.
        seed: the seed of the random order; required to keep a sample.
        seconds: stop all searches after this time; fewer solutions than were found may be listed then.
        branches: stop the search of a query after this many branches (some microseconds each). Unlike ``seconds``, the
            result is the same on every machine.
        threads: the number of threads; by default one per core that this process may use.
        any_rule: with ``seed``, branch on any of the rules with the fewest open choices instead of the first of them,
            so that searches with different seeds differ more.
    """
    if keep is not None and (keep < 0 or (keep and seed is None)):
        raise ValueError(f"keep: expected at least 0 solutions to list, and a seed to draw them, got {keep} and {seed}")
    work = Work(problem, queries, relations, limit, seconds, branches, threads, any_rule)
    Q, most = len(work.queries), limit if keep is None else min(limit, keep)
    # Few solutions are listed while they are counted; queries with more of them are searched again.
    room = np.full(Q, min(most, ROOM, MEMORY // (problem.variables * max(1, Q))))
    total, finished, owner, solutions = work.run(np.arange(Q), room, seed)
    wanted = np.minimum(total, most)
    short = np.flatnonzero(wanted > room)
    if len(short):
        *_, again, more = work.run(short, wanted[short], seed)
        if not work.late:
            first = ~np.isin(owner, short)
            owner = np.concatenate([owner[first], again])
            order = np.argsort(owner, kind="stable")
            owner, solutions = owner[order], np.concatenate([solutions[first], more])[order]
    if seed is not None:
        # The search finds similar solutions in a row, and the sample keeps early ones in early places.
        solutions = solutions[np.lexsort((np.random.default_rng(seed).random(len(solutions)), owner))]
    return Solutions(total, np.searchsorted(owner, np.arange(Q + 1)), solutions, finished)


class Work:
    """The checked arguments of a search, which runs in chunks on threads (the kernel releases the interpreter lock)."""

    def __init__(
        self,
        problem: Problem,
        queries: np.ndarray,
        relations: np.ndarray | None,
        limit: int,
        seconds: float | None,
        branches: int | None,
        threads: int | None,
        any_rule: bool = False,
    ) -> None:
        R, V = problem.variables, problem.values
        queries = np.asarray(queries)
        if queries.ndim != 2 or queries.shape[1] != R or not np.issubdtype(queries.dtype, np.integer):
            raise ValueError(f"queries: expected integers [Q, {R}], got {queries.dtype} {list(queries.shape)}")
        if queries.size and not (queries.min() >= 0 and queries.max() <= V):
            raise ValueError(f"queries: expected values 0 to {V}, got {queries.min()} to {queries.max()}")
        if relations is None:
            relations = np.zeros((len(queries), 0, 2), np.int16)
        relations = np.asarray(relations)
        if relations.ndim != 3 or relations.shape[0] != len(queries) or relations.shape[2] != 2:
            raise ValueError(f"relations: expected [{len(queries)}, M, 2], got {list(relations.shape)}")
        if relations.shape[1] and problem.relation_kind is None:
            raise ValueError(f"relations: {problem.task} has none, got {list(relations.shape)}")
        most = min(R, MOST_RELATED) - 1
        whole = np.issubdtype(relations.dtype, np.integer)
        if relations.size and not (whole and relations.min() >= -1 and relations.max() <= most):
            raise ValueError(f"relations: expected variables 0 to {most}, or -1 for padding")
        if ((relations[..., 0] < 0) != (relations[..., 1] < 0)).any():
            raise ValueError("relations: expected pairs of variables, or of -1 for padding, got half a pair")
        if not isinstance(limit, SupportsIndex) or limit < 1:
            raise ValueError(f"limit: expected at least 1, a whole number, got {limit!r}")
        if seconds is not None and not seconds > 0:
            raise ValueError(f"seconds: expected more than 0, got {seconds}")
        self.problem, self.limit = problem, limit
        self.queries = np.ascontiguousarray(queries, np.uint8)
        self.relations = np.ascontiguousarray(relations, np.int16)
        self.branches = NO_LIMIT if branches is None else branches
        self.deadline = math.inf if seconds is None else time.monotonic() + seconds
        self.threads, self.any_rule = threads or usable_cores(), any_rule

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.deadline

    def run(
        self, rows: np.ndarray, room: np.ndarray, seed: int | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Search the queries ``rows`` int64 [N] and list at most ``room`` int64 [N] solutions of each.

        Returns int64 [N] totals, bool [N] whether a search was finished, int64 [S] the query of every listed solution,
        and uint8 [S, R] the solutions.
        """
        N = len(rows)
        total, finished = np.zeros(N, np.int64), np.zeros(N, np.bool_)
        offsets = np.concatenate([[0], np.cumsum(room)])
        solutions = np.zeros((int(offsets[-1]), self.problem.variables), np.uint8)
        structure, sums, full_words = _structure(self.problem)
        every = len(self.queries) == N
        queries, relations = (x if every else x[rows] for x in (self.queries, self.relations))
        seeds = seeds_of(seed or 0, len(self.queries))[rows]
        stop = np.zeros(1, np.uint8)
        order = IN_ORDER if seed is None else ANY_RULE if self.any_rule else SHUFFLED

        def part(start: int, end: int, branches: int) -> None:
            chunk = slice(start, end)
            search(
                structure,
                sums,
                full_words,
                queries[chunk],
                relations[chunk],
                self.limit,
                branches,
                stop,
                order,
                seeds[chunk],
                total[chunk],
                finished.view(np.uint8)[chunk],
                offsets[start : end + 1],
                solutions,
            )

        chunks = [(start, min(start + CHUNK, N)) for start in range(0, N, CHUNK)]
        if self.threads == 1 or len(chunks) <= 1:
            # Short searches need no other thread. They are so short that Ctrl-C can wait for the kernel to return.
            short = [SHORT // (len(full_words) * (end - start)) for start, end in chunks]
            for chunk, most in zip(chunks, short, strict=True):
                part(*chunk, min(most, self.branches))
                if self.late:
                    break
            chunks = [(row, row + 1) for row in np.flatnonzero(~finished).tolist() if self.branches > min(short)]
        else:
            part(0, 0, 0)  # compile or load the kernel in this thread, where Ctrl-C interrupts it
        on_threads(part, [(*chunk, self.branches) for chunk in chunks], self.threads, stop, self.deadline)
        owner = np.repeat(rows, room)
        if len(owner):
            filled = np.arange(len(owner)) - np.repeat(offsets[:-1], room) < np.repeat(total, room)
            owner, solutions = owner[filled], solutions[filled]
        return total, finished, owner, solutions


def seeds_of(seed: int, n: int) -> np.ndarray:
    """Return one non-zero uint64 for every query, from the seed and the query's index (splitmix64)."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed % 2**63) * np.uint64(0xD1B54A32D192ED03) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return np.maximum(z, np.uint64(1))


@lru_cache(maxsize=64)
def _structure(problem: Problem) -> tuple[Structure, Sums | None, np.ndarray]:
    """Return a problem's rules as arrays, and the words of the state in which every choice is open."""
    ones = [rule for rule in problem.rules if not rule.linear]
    narrow = [rule for rule in ones if len(rule.choices) <= 64]
    narrow.sort(key=lambda rule: not rule.exact)
    wide = [rule for rule in ones if len(rule.choices) > 64]
    words_of_rule = len(narrow) + np.concatenate([[0], np.cumsum([-(-len(rule.choices) // 64) for rule in wide])])
    words_of_rule = words_of_rule.astype(np.uint32)
    members = np.zeros((words_of_rule[-1], 64), np.uint32)
    full = np.zeros(words_of_rule[-1], np.uint64)
    places: list[list[int]] = [[] for _ in range(problem.choices)]
    own: dict[int, range] = {}
    for rule, start in zip([*narrow, *wide], [*range(len(narrow)), *words_of_rule[:-1].tolist()], strict=True):
        for i, choice in enumerate(rule.choices):
            word, bit = start + i // 64, i % 64
            members[word, bit] = choice
            full[word] |= np.uint64(1 << bit)
            places[choice].append(64 * word + bit)
        if rule.exact and len(rule.choices) == problem.values and len({c // problem.values for c in rule.choices}) == 1:
            own[rule.choices[0] // problem.values] = range(start, start - (-len(rule.choices) // 64))
    structure = Structure(
        values=np.int64(problem.values),
        variable_of=np.arange(problem.choices, dtype=np.uint32) // np.uint32(problem.values),
        exact=np.uint32(sum(rule.exact for rule in narrow)),
        single=np.uint32(len(narrow)),
        members=members,
        places_of_choice=np.concatenate([[0], np.cumsum([len(of_choice) for of_choice in places])]).astype(np.uint32),
        places=np.array([place for of_choice in places for place in of_choice], np.uint32),
        words_of_rule=words_of_rule,
        rule_of_word=np.repeat(np.arange(len(wide), dtype=np.uint32), np.diff(words_of_rule)),
        wide_exact=np.array([rule.exact for rule in wide], np.bool_),
        forced=np.array([r.choices[0] for r in problem.rules if r.exact and len(r.choices) == 1], np.uint32),
        unequal=problem.relation == "!=",
    )
    return structure, sums_of(problem, own, members), full
