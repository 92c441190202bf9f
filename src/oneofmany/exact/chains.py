"""A local search over minimal 9x9 Sudokus that steers their rating towards a target, compiled with numba.

A step removes a given, lists all solutions of the rest, adds a given that leaves exactly one of them, makes the puzzle
minimal and accepts it by its rating. Each given that could be added is tried with one search, and the one that comes
nearest to the target is followed up. A puzzle of few givens has too many solutions without one of them, so a step first
adds a random given if there are few. Steps that remove two givens did not help.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from oneofmany.compiled import njit
from oneofmany.exact.boards import BAND, BIT, DEPTH, ENDLESS, STATE, search, start
from oneofmany.exact.random import below, uniform

LISTED = 50
"""A step gives up if more solutions than this are left without the removed givens."""
TRIED = 30
"""How many of the givens that leave one solution are tried in a step."""
ENOUGH_GIVENS = 27
"""With fewer givens a step may add a random one first: with three fewer it always does."""
TEMPERATURE = 0.3
"""How much the logarithm of the rating may move away from the target, as in simulated annealing."""
SEARCHES = 4
"""Searches behind the rating that accepts a puzzle. What is kept is rated again."""

Scratch = namedtuple("Scratch", "random stack listed drawn none order pairs counts holder")
"""Arrays of a chain: random uint64 [1]; stack uint32 [DEPTH, STATE]; listed uint8 [LISTED, 81]; drawn uint8 [1, 81];
none uint8 [0, 81]; order int64 [81]; pairs int64 [729]; counts and holder int64 [81, 10]."""


@njit(cache=True, nogil=True)
def _scratch(seed):
    return Scratch(
        np.array([seed], np.uint64),
        np.empty((DEPTH, STATE), np.uint32),
        np.empty((LISTED, 81), np.uint8),
        np.empty((1, 81), np.uint8),
        np.empty((0, 81), np.uint8),
        np.empty(81, np.int64),
        np.empty(729, np.int64),
        np.empty((81, 10), np.int64),
        np.empty((81, 10), np.int64),
    )


@njit(cache=True, nogil=True)
def _shuffle(items, number, random):
    for i in range(number - 1, 0, -1):
        j = below(random, i + 1)
        items[i], items[j] = items[j], items[i]


@njit(cache=True, nogil=True)
def _givens_in_random_order(puzzle, s):
    """Write the given cells to ``s.order`` and return their number."""
    number = 0
    for cell in range(81):
        if puzzle[cell]:
            s.order[number] = cell
            number += 1
    _shuffle(s.order, number, s.random)
    return number


@njit(cache=True, nogil=True)
def _make_minimal(puzzle, s):
    """Remove givens of a puzzle uint8 [81] with one solution in random order while the solution stays unique."""
    for i in range(_givens_in_random_order(puzzle, s)):
        cell, value = s.order[i], puzzle[s.order[i]]
        puzzle[cell] = 0
        start(puzzle, s.stack[0])
        # The given is needed if there is a solution with another value in its cell.
        s.stack[0, 16 * BAND[cell] + np.int64(value) - 1] &= ~BIT[cell]
        if search(s.stack, 1, ENDLESS, s.random, s.none, False)[1]:
            puzzle[cell] = value


@njit(cache=True, nogil=True)
def _rate(puzzle, searches, pairs, s):
    tried = 0
    for _ in range(searches):
        start(puzzle, s.stack[0])
        tried += search(s.stack, 2, ENDLESS, s.random, s.none, pairs)[0]
    return tried / searches


@njit(cache=True, nogil=True)
def _score(rating, target):
    return -abs(np.log1p(rating) - target)


@njit(cache=True, nogil=True)
def _exchange(puzzle, proposal, s):
    """Write ``puzzle`` without a given to ``proposal`` and list its solutions; returns how many there are."""
    proposal[:] = puzzle
    number = _givens_in_random_order(puzzle, s)
    proposal[s.order[0]] = 0
    if uniform(s.random) * 3 < ENOUGH_GIVENS - number:
        start(proposal, s.stack[0])
        search(s.stack, 1, ENDLESS, s.random, s.drawn, False)
        cell = below(s.random, 81)
        while proposal[cell]:
            cell = below(s.random, 81)
        proposal[cell] = s.drawn[0, cell]
    start(proposal, s.stack[0])
    return search(s.stack, LISTED + 1, ENDLESS, s.random, s.listed, False)[1]


@njit(cache=True, nogil=True)
def _single_out(puzzle, proposal, solutions, s):
    """Write 10 * cell + value of all new givens that only one listed solution has to ``s.pairs``; returns how many."""
    s.counts[:] = 0
    for solution in range(solutions):
        for cell in range(81):
            value = s.listed[solution, cell]
            s.counts[cell, value] += 1
            s.holder[cell, value] = solution
    number = 0
    for cell in range(81):
        for value in range(1, 10):
            if not proposal[cell] and s.counts[cell, value] == 1 and puzzle[cell] != value:
                s.pairs[number] = 10 * cell + value
                number += 1
    _shuffle(s.pairs, number, s.random)
    return number


@njit(cache=True, nogil=True)
def _accepts(change, s):
    return change >= 0 or uniform(s.random) < np.exp(change / TEMPERATURE)


@njit(cache=True, nogil=True)
def climb(seed, steps, target, pairs, puzzles, grids, ratings):
    """Walk from a random minimal puzzle towards log(1 + rating) = ``target``; returns the number of accepted puzzles.

    seed: uint64, not 0. pairs: whether the searches that rate use locked candidates and pairs. puzzles, grids:
    uint8 [N, 81] and ratings: float64 [N], N >= steps; filled with the accepted puzzles, their solutions and
    estimates of their ratings.
    """
    s = _scratch(seed)
    puzzle, proposal = np.zeros(81, np.uint8), np.empty(81, np.uint8)
    start(puzzle, s.stack[0])
    search(s.stack, 1, ENDLESS, s.random, s.drawn, False)
    puzzle[:] = s.drawn[0]
    _make_minimal(puzzle, s)
    score = _score(_rate(puzzle, SEARCHES, pairs, s), target)
    accepted = 0
    for _ in range(steps):
        solutions = _exchange(puzzle, proposal, s)
        if solutions > LISTED:
            continue
        best, picked = -np.inf, np.int64(-1)
        for i in range(min(TRIED, _single_out(puzzle, proposal, solutions, s))):
            cell, value = s.pairs[i] // 10, s.pairs[i] % 10
            proposal[cell] = value
            promise = _score(_rate(proposal, 1, pairs, s), target)
            proposal[cell] = 0
            if promise > best:
                best, picked = promise, s.pairs[i]
        if picked < 0 or not _accepts(best - score, s):
            continue
        cell, value = picked // 10, picked % 10
        proposal[cell] = value
        _make_minimal(proposal, s)
        rating = _rate(proposal, SEARCHES, pairs, s)
        if _accepts(_score(rating, target) - score, s):
            puzzle[:] = proposal
            score = _score(rating, target)
            puzzles[accepted], grids[accepted], ratings[accepted] = puzzle, s.listed[s.holder[cell, value]], rating
            accepted += 1
    return accepted
