"""N-Queens queries: boards of non-attacking queens with some rows blanked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.data.listing import Distinct, Drawn, Seed, build
from oneofmany.data.splits import Split, in_split, stable_hash
from oneofmany.exact import count, solve
from oneofmany.problems import Problem, nqueens

COMPLETE_UP_TO = 12
"""The largest size at which all boards are enumerated."""


def build_nqueens(
    size: int, blanks: int, queries: int | None = None, split: Split | None = None, seed: int = 0
) -> Dataset:
    """Build all distinct queries with ``blanks`` blank rows, or ``queries`` of them; all solutions are listed.

    Up to 12 queens the distinct queries are enumerated, and a sample of them is uniform. Above, boards come from a
    randomised search and are masked. A masked board is kept with probability 1 / number of completions, because a query
    with twice the completions is reached from twice the boards. The header states which was done.
    """
    if size > COMPLETE_UP_TO:
        return build(QueensSource(size, blanks, queries, split, seed), seed)
    built = _about(size, blanks, queries, split, seed)
    return _enumerated(size, blanks, queries, split, seed, built | {"drawn": "uniformly from all distinct queries"})


def _about(size: int, blanks: int, queries: int | None, split: Split | None, seed: int) -> dict[str, Any]:
    """The arguments of a build, which are checked."""
    if not 0 <= blanks <= size:
        raise ValueError(f"blanks: expected 0 to {size} rows of {size} queens, got {blanks}")
    if queries is not None and queries < 1:
        raise ValueError(f"queries: expected at least 1, got {queries}")
    return {"builder": "nqueens", "size": size, "blanks": blanks, "queries": queries, "split": split, "seed": seed}


def build_completions(
    size: int, blanks: Sequence[int], split: Split, *, by_class: bool = False, seed: int = 0
) -> Dataset:
    """Build all distinct queries with one of several numbers of blank rows; all solutions are listed.

    A hash decides the split of a query: 80 % train, 5 % dev, 15 % test. With ``by_class``, the eight rotations and
    reflections of a query are in the same split, so no test query is the mirror image of a training query.
    """
    built = {"builder": "nqueens-completion", "size": size, "blanks": [*blanks], "split": split}
    built["split_by"] = "class" if by_class else "query"
    rng = np.random.default_rng(seed)
    query, solutions, offsets = zip(*(_all_queries(size, count, rng) for count in blanks), strict=True)
    ends = np.cumsum([0, *map(len, solutions)])
    offset = np.concatenate([own[:-1] + end for own, end in zip(offsets, ends, strict=False)] + [ends[-1:]])
    everything = _dataset(
        nqueens(size), np.concatenate(query), np.concatenate(solutions), offset, built | {"seed": seed}
    )
    key = symmetry_class(everything.query) if by_class else everything.query
    hundredth = stable_hash(key) % np.uint64(100)
    first, end = {"train": (0, 80), "dev": (80, 85), "test": (85, 100)}[split]
    return everything.take(np.flatnonzero((hundredth >= first) & (hundredth < end)))


def symmetry_class(query: np.ndarray) -> np.ndarray:
    """Return the smallest of the eight rotations and reflections of every query: uint8 [Q, n] -> int64 [Q, n].

    A query is a set of queens, so its rotation is the query with the rotated queens.
    """
    count, size = query.shape
    board = np.zeros((count, size, size + 1), bool)
    np.put_along_axis(board, query[..., None].astype(np.int64), True, axis=2)
    board = board[..., 1:]  # a blank row has no queen
    images = []
    for turns in range(4):
        turned = np.rot90(board, turns, (1, 2))
        images += [turned, turned[:, ::-1]]
    values = np.arange(1, size + 1)
    rows = np.stack([(image * values).sum(2) for image in images])
    weights = (size + 1) ** np.arange(size, dtype=np.int64)
    return rows[(rows @ weights).argmin(0), np.arange(count)]


def _enumerated(
    size: int, blanks: int, queries: int | None, split: Split | None, seed: int, built: dict[str, Any]
) -> Dataset:
    rng = np.random.default_rng(seed)
    everything = _dataset(nqueens(size), *_all_queries(size, blanks, rng), built)
    rows = np.flatnonzero(in_split(everything.query, split))
    if queries is not None:
        if queries > len(rows):
            raise ValueError(
                f"queries: asked for {queries:,}, but only {len(rows):,} distinct ones exist in this split"
            )
        rows = rng.permutation(rows)[:queries]
    elif split is None:
        return everything
    return everything.take(rows)


def _all_queries(size: int, blanks: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All distinct queries [Q, n], their solutions [S, n] and where each query's solutions start [Q + 1]."""
    boards = solve(nqueens(size), np.zeros((1, size), np.uint8)).solutions
    if not len(boards):
        raise ValueError(f"size: there is no board of {size} non-attacking queens")
    # One integer per query: four bits hold a row's column, 0 for blank.
    shifts = 4 * np.arange(size, dtype=np.int64)
    codes = (boards.astype(np.int64) << shifts)[None, :, :]
    masks = np.ones((comb(size, blanks), size), np.int64)
    for mask, rows in zip(masks, combinations(range(size), blanks), strict=True):
        mask[list(rows)] = 0
    code = (codes * masks[:, None, :]).sum(2).ravel()
    board = np.tile(np.arange(len(boards)), len(masks))
    # Sorted by query. The boards of equal queries are its solutions; they are in random order.
    order = np.lexsort((rng.permutation(len(code)), code))
    code, board = code[order], board[order]
    first = np.flatnonzero(np.diff(code, prepend=-1))
    query = ((code[first, None] >> shifts) & 15).astype(np.uint8)
    return query, boards[board], np.append(first, len(code))


def _dataset(
    problem: Problem, query: np.ndarray, solutions: np.ndarray, offsets: np.ndarray, built: dict[str, Any]
) -> Dataset:
    """All solutions are listed, and every query is its own source."""
    no_relations = np.zeros((len(query), 0, 2), np.int16)
    return Dataset(problem, query, solutions, offsets, np.diff(offsets), no_relations, np.arange(len(query)), built)


class QueensSource:
    """Draws queries of boards that are too large to be enumerated; arguments as in ``build_nqueens``."""

    listed = most_of_a_group = None

    def __init__(
        self, size: int, blanks: int, queries: int | None = None, split: Split | None = None, seed: int = 0
    ) -> None:
        about = _about(size, blanks, queries, split, seed)
        if size <= COMPLETE_UP_TO:
            raise ValueError(
                f"shards: boards of up to {COMPLETE_UP_TO} queens are enumerated in one go, got {size} queens: leave "
                "out the shards"
            )
        if queries is None:
            raise ValueError(
                f"queries: expected a number, since boards are enumerated up to {COMPLETE_UP_TO} queens only, got None"
            )
        self.problem, self.blanks, self.quotas = nqueens(size), blanks, [queries]
        self.split: Split | None = split
        drawn = "boards from a randomised search, masked, kept with probability 1 / completions"
        self.built = about | {"drawn": drawn}

    def draw(self, quotas: Sequence[int], seed: Seed, distinct: Distinct) -> Drawn:
        """Draw queries until the quota is full."""
        (queries,) = quotas
        rng = np.random.default_rng(seed)
        problem, size = self.problem, self.problem.variables
        kept: list[np.ndarray] = []
        fruitless = 0
        while sum(map(len, kept)) < queries:
            boards = solve(problem, np.zeros((512, size), np.uint8), limit=1, seed=int(rng.integers(2**62))).solutions
            masked = np.argsort(rng.random(boards.shape), axis=1) < self.blanks
            candidates = np.where(masked, 0, boards).astype(np.uint8)
            candidates = candidates[in_split(candidates, self.split)]
            keep = rng.random(len(candidates)) < 1 / np.maximum(1, count(problem, candidates))
            candidates = candidates[keep]
            kept.append(candidates[distinct(candidates)])
            fruitless = 0 if len(kept[-1]) else fruitless + 1
            if fruitless == 200:
                raise ValueError(
                    f"queries: asked for {queries:,}, but only {sum(map(len, kept)):,} distinct ones were found"
                )
        return Drawn(np.concatenate(kept)[:queries])

    def kind(self, data: Dataset) -> np.ndarray:
        """All queries are of one kind."""
        return np.zeros(len(data), np.int64)
