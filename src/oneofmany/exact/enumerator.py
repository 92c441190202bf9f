"""Exact enumeration and counting of the solutions of queries."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from oneofmany.exact.kernel import Structure, search
from oneofmany.problems import Problem

LIMIT = 1_000_000
"""How many solutions of a query are searched for by default."""
CHUNK = 256


@dataclass(frozen=True)
class Solutions:
    """The solutions of Q queries.

    Args:
        total: int64 [Q], how many solutions were found; ``limit`` means that there may be more.
        offsets: int64 [Q+1], the listed solutions of query q are rows offsets[q] to offsets[q+1].
        solutions: uint8 [S, R], values 1..V.
    """

    total: np.ndarray
    offsets: np.ndarray
    solutions: np.ndarray

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

    Args:
        problem: the problem of all queries.
        queries: uint8 [Q, R], 0 = blank, 1..V = given.
        relations: int16 [Q, M, 2] pairs a < b, -1 for padding.
        limit: stop counting at this number.
        threads: the number of threads; by default one per core.

    Returns:
        int64 [Q].
    """
    work = _Work(problem, queries, relations, limit, threads)
    return work.run(np.zeros(len(work.queries) + 1, np.int64), None)[0]


def solve(
    problem: Problem,
    queries: np.ndarray,
    relations: np.ndarray | None = None,
    *,
    limit: int = LIMIT,
    keep: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
) -> Solutions:
    """Find all solutions of every query, up to ``limit``.

    With ``seed`` the search and the listed solutions are in a random order, which depends only on the seed and on the
    query's index. With ``keep`` at most that many solutions are listed: a fair sample of all solutions if there are
    at most ``limit``, otherwise of those found.

    Args:
        problem: the problem of all queries.
        queries: uint8 [Q, R], 0 = blank, 1..V = given.
        relations: int16 [Q, M, 2] pairs a < b, -1 for padding.
        limit: stop the search of a query after this many solutions.
        keep: list at most this many solutions of a query; None lists all that are found.
        seed: the seed of the random order; required with ``keep``.
        threads: the number of threads; by default one per core.
    """
    if keep is not None and (keep < 1 or seed is None):
        raise ValueError(f"keep: expected at least 1 solution to list, and a seed to draw them, got {keep} and {seed}")
    work = _Work(problem, queries, relations, limit, threads)
    total = work.run(np.zeros(len(work.queries) + 1, np.int64), None)[0]
    listed = total if keep is None else np.minimum(total, keep)
    offsets = np.concatenate([[0], np.cumsum(listed)])
    _, solutions = work.run(offsets, seed)
    if seed is not None:
        # The search finds similar solutions in a row, and the sample keeps early ones in early places.
        order = np.lexsort(
            (np.random.default_rng(seed).random(len(solutions)), np.repeat(np.arange(len(total)), listed))
        )
        solutions = solutions[order]
    return Solutions(total, offsets, solutions)


class _Work:
    """The checked arguments of a search, which runs in chunks on threads (the kernel releases the interpreter lock)."""

    def __init__(
        self, problem: Problem, queries: np.ndarray, relations: np.ndarray | None, limit: int, threads: int | None
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
        if relations.size and not (relations.min() >= -1 and relations.max() < R):
            raise ValueError(f"relations: expected variables 0 to {R - 1}, or -1 for padding")
        if limit < 1:
            raise ValueError(f"limit: expected at least 1, got {limit}")
        self.problem, self.limit = problem, limit
        self.queries = np.ascontiguousarray(queries, np.uint8)
        self.relations = np.ascontiguousarray(relations, np.int16)
        self.threads = threads or os.cpu_count() or 1

    def run(self, offsets: np.ndarray, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Search every query; returns int64 [Q] totals and uint8 [S, R] solutions."""
        structure, full_words = _structure(self.problem)
        Q = len(self.queries)
        total = np.zeros(Q, np.int64)
        solutions = np.zeros((int(offsets[-1]), self.problem.variables), np.uint8)
        seeds = _seeds(seed or 0, Q)

        def part(start: int) -> None:
            chunk = slice(start, start + CHUNK)
            search(
                structure,
                full_words,
                self.queries[chunk],
                self.relations[chunk],
                self.limit,
                seed is not None,
                seeds[chunk],
                total[chunk],
                offsets[start : start + CHUNK + 1],
                solutions,
            )

        starts = range(0, Q, CHUNK)
        if self.threads == 1 or len(starts) <= 1:
            for start in starts:
                part(start)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(part, starts))
        return total, solutions


def _seeds(seed: int, n: int) -> np.ndarray:
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
def _structure(problem: Problem) -> tuple[Structure, np.ndarray]:
    """Return a problem's rules as arrays, and the words of the state in which every choice is open."""
    narrow = [rule for rule in problem.rules if len(rule.choices) <= 64]
    narrow.sort(key=lambda rule: not rule.exact)
    wide = [rule for rule in problem.rules if len(rule.choices) > 64]
    words_of_rule = len(narrow) + np.concatenate([[0], np.cumsum([-(-len(rule.choices) // 64) for rule in wide])])
    words_of_rule = words_of_rule.astype(np.uint32)
    members = np.zeros((words_of_rule[-1], 64), np.uint32)
    full = np.zeros(words_of_rule[-1], np.uint64)
    places: list[list[int]] = [[] for _ in range(problem.choices)]
    for rule, start in zip([*narrow, *wide], [*range(len(narrow)), *words_of_rule[:-1].tolist()], strict=True):
        for i, choice in enumerate(rule.choices):
            word, bit = start + i // 64, i % 64
            members[word, bit] = choice
            full[word] |= np.uint64(1 << bit)
            places[choice].append(64 * word + bit)
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
    )
    return structure, full
