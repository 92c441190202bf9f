"""N-Queens queries: boards of non-attacking queens with some rows blanked."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.data.listing import Distinct, list_solutions
from oneofmany.data.splits import Split, in_split
from oneofmany.exact import count, solve
from oneofmany.problems import nqueens

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
    if not 0 <= blanks <= size:
        raise ValueError(f"blanks: expected 0 to {size} rows of {size} queens, got {blanks}")
    if queries is not None and queries < 1:
        raise ValueError(f"queries: expected at least 1, got {queries}")
    built = {"builder": "nqueens", "size": size, "blanks": blanks, "queries": queries, "split": split, "seed": seed}
    if size <= COMPLETE_UP_TO:
        return _enumerated(size, blanks, queries, split, seed, built | {"drawn": "uniformly from all distinct queries"})
    if queries is None:
        raise ValueError(
            f"queries: expected a number, since boards are enumerated up to {COMPLETE_UP_TO} queens only, got None"
        )
    drawn = "boards from a randomised search, masked, kept with probability 1 / completions"
    return _sampled(size, blanks, queries, split, seed, built | {"drawn": drawn})


def _enumerated(
    size: int, blanks: int, queries: int | None, split: Split | None, seed: int, built: dict[str, Any]
) -> Dataset:
    rng = np.random.default_rng(seed)
    problem = nqueens(size)
    boards = solve(problem, np.zeros((1, size), np.uint8)).solutions
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
    offsets = np.append(first, len(code))
    query = ((code[first, None] >> shifts) & 15).astype(np.uint8)
    everything = Dataset(
        problem,
        query,
        boards[board],
        offsets,
        np.diff(offsets),
        np.zeros((len(query), 0, 2), np.int16),
        np.arange(len(query)),
        built,
    )
    rows = np.flatnonzero(in_split(query, split))
    if queries is not None:
        if queries > len(rows):
            raise ValueError(
                f"queries: asked for {queries:,}, but only {len(rows):,} distinct ones exist in this split"
            )
        rows = rng.permutation(rows)[:queries]
    elif split is None:
        return everything
    return everything.take(rows)


def _sampled(size: int, blanks: int, queries: int, split: Split | None, seed: int, built: dict[str, Any]) -> Dataset:
    rng = np.random.default_rng(seed)
    problem = nqueens(size)
    distinct = Distinct()
    kept: list[np.ndarray] = []
    fruitless = 0
    while sum(map(len, kept)) < queries:
        boards = solve(problem, np.zeros((512, size), np.uint8), limit=1, seed=int(rng.integers(2**62))).solutions
        masked = np.argsort(rng.random(boards.shape), axis=1) < blanks
        candidates = np.where(masked, 0, boards).astype(np.uint8)
        candidates = candidates[in_split(candidates, split)]
        keep = rng.random(len(candidates)) < 1 / np.maximum(1, count(problem, candidates))
        candidates = candidates[keep]
        kept.append(candidates[distinct(candidates)])
        fruitless = 0 if len(kept[-1]) else fruitless + 1
        if fruitless == 200:
            raise ValueError(
                f"queries: asked for {queries:,}, but only {sum(map(len, kept)):,} distinct ones were found"
            )
    return list_solutions(problem, np.concatenate(kept)[:queries], None, built, seed=seed)
