"""How hard a 9x9 Sudoku is for a search: the number of values that it has to try."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from oneofmany.compiled import njit
from oneofmany.exact.boards import DEPTH, STATE, search, start
from oneofmany.exact.cores import usable_cores

SEARCHES = 8
MOST_VALUES = 1_000_000
"""A search gives up after this many values, half a second. Puzzles with a solution are far below."""
CHUNK = 64


@dataclass(frozen=True)
class Ratings:
    """The ratings of Q puzzles.

    Args:
        rating: float64 [Q], the mean number of values tried.
        solutions: int64 [Q], the solutions found: 0, 1, or 2 for two or more.
    """

    rating: np.ndarray
    solutions: np.ndarray


def rate(puzzles: np.ndarray, *, searches: int = SEARCHES, seed: int = 0, threads: int | None = None) -> Ratings:
    """Rate 9x9 Sudokus: the mean number of values that a search to exhaustion tries, 0 if singles are enough.

    A search puts naked and hidden singles until there are none. Then it draws a cell among those with the fewest
    candidates and tries its values in random order; every value tried counts one. It ends when everything is searched,
    a second solution is found, or a million values were tried, which only puzzles without a solution have been seen to
    need. A rating depends on the seed and on the puzzle, not on the other puzzles.

    Args:
        puzzles: uint8 [Q, 81], 0 = blank, 1..9 = given.
        searches: the number of searches per puzzle.
        seed: random seed of the searches.
        threads: the number of threads; by default one per core.
    """
    puzzles = np.asarray(puzzles)
    if puzzles.ndim != 2 or puzzles.shape[1] != 81 or not np.issubdtype(puzzles.dtype, np.integer):
        raise ValueError(f"puzzles: expected integers [Q, 81], got {puzzles.dtype} {list(puzzles.shape)}")
    if puzzles.size and not (puzzles.min() >= 0 and puzzles.max() <= 9):
        raise ValueError(f"puzzles: expected values 0 to 9, got {puzzles.min()} to {puzzles.max()}")
    if searches < 1:
        raise ValueError(f"searches: expected at least 1, got {searches}")
    puzzles = np.ascontiguousarray(puzzles, np.uint8)
    tried, solutions = (np.zeros(len(puzzles), np.int64) for _ in range(2))

    def part(first: int) -> None:
        rows = slice(first, first + CHUNK)
        _rate(puzzles[rows], searches, np.uint64(seed % 2**63), tried[rows], solutions[rows])

    with ThreadPoolExecutor(threads or usable_cores()) as pool:
        list(pool.map(part, range(0, len(puzzles), CHUNK)))
    return Ratings(tried / searches, solutions)


@njit(cache=True, nogil=True)
def mixed(state, value):
    """Mix an integer into a state uint64; returns the new state, which is not 0 (splitmix64)."""
    z = state + np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return max(z ^ (z >> np.uint64(31)), np.uint64(1))


@njit(cache=True, nogil=True)
def _rate(puzzles, searches, seed, tried, solutions):
    """Fill in int64 [Q]: the values tried in all searches, and the solutions found in the last."""
    stack = np.empty((DEPTH, STATE), np.uint32)
    none = np.empty((0, 81), np.uint8)
    random = np.empty(1, np.uint64)
    for q in range(len(puzzles)):
        random[0] = mixed(seed, 0)
        for cell in range(81):
            random[0] = mixed(random[0], puzzles[q, cell])
        for _ in range(searches):
            if start(puzzles[q], stack[0]):
                values, solutions[q] = search(stack, 2, MOST_VALUES, random, none)
                tried[q] += values
