"""Uniformly random Latin squares."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from oneofmany.compiled import njit
from oneofmany.exact import solve
from oneofmany.exact.random import below
from oneofmany.problems import futoshiki

EXACT_UP_TO = 6
"""The largest order whose reduced squares are enumerated (there are 9,408 of order 6 and 16,942,080 of order 7)."""


def latin_squares(order: int, number: int, rng: np.random.Generator) -> np.ndarray:
    """Draw random Latin squares: uint8 [number, order * order], values 1..order.

    Up to order 6 they are exactly uniform: a random reduced square with its rows and columns permuted. Above, each is
    the end of an independent Jacobson-Matthews chain of 4 * order**3 squares, whose stationary distribution is uniform.
    """
    rows = np.argsort(rng.random((number, order)), axis=1)
    columns = np.argsort(rng.random((number, order)), axis=1)
    if order <= EXACT_UP_TO:
        reduced = _reduced_squares(order)
        squares = reduced[rng.integers(len(reduced), size=number)]
    else:
        cyclic = (np.arange(order)[:, None] + np.arange(order)) % order + 1
        squares = np.broadcast_to(cyclic, (number, order, order))
    squares = np.take_along_axis(squares, rows[:, :, None], 1)
    squares = np.take_along_axis(squares, columns[:, None, :], 2).astype(np.int64)
    if order > EXACT_UP_TO:
        for square, seed in zip(squares, rng.integers(1, 2**63, size=number), strict=True):
            _jacobson_matthews(square, 4 * order**3, np.array([seed], np.uint64))
    return squares.astype(np.uint8).reshape(number, order * order)


@lru_cache(maxsize=8)
def _reduced_squares(order: int) -> np.ndarray:
    """Return all squares whose first row and column are 1..n: uint8 [N, n, n]."""
    query = np.zeros((1, order, order), np.uint8)
    query[0, 0] = query[0, :, 0] = np.arange(1, order + 1)
    return solve(futoshiki(order), query.reshape(1, -1)).solutions.reshape(-1, order, order)


@njit(cache=True)
def _jacobson_matthews(square, squares, random):
    """Walk on the incidence cube of ``square`` int64 [n, n] (values 1..n) in place (Jacobson and Matthews, 1996)."""
    n = len(square)
    cube = np.zeros((n, n, n), np.int64)
    for r in range(n):
        for c in range(n):
            cube[r, c, square[r, c] - 1] = 1
    proper = True
    x = y = z = 0
    seen = 0
    while seen < squares:
        if proper:
            while True:
                x, y, z = below(random, n), below(random, n), below(random, n)
                if cube[x, y, z] == 0:
                    break
        # The other corners: the one in each line through (x, y, z). An improper cell has two ones: one is drawn.
        x1 = _pick(cube[:, y, z], proper, random)
        y1 = _pick(cube[x, :, z], proper, random)
        z1 = _pick(cube[x, y, :], proper, random)
        cube[x, y, z] += 1
        cube[x, y1, z1] += 1
        cube[x1, y, z1] += 1
        cube[x1, y1, z] += 1
        cube[x1, y, z] -= 1
        cube[x, y1, z] -= 1
        cube[x, y, z1] -= 1
        cube[x1, y1, z1] -= 1
        proper = cube[x1, y1, z1] >= 0
        if not proper:
            x, y, z = x1, y1, z1
        # Only proper squares count: the chain is uniform over them, but the first proper one after n moves is not.
        seen += proper
    for r in range(n):
        for c in range(n):
            for v in range(n):
                if cube[r, c, v] == 1:
                    square[r, c] = v + 1


@njit(cache=True)
def _pick(line, proper, random):
    """Return the index of the one in a line, or of one of its two ones."""
    skip = 0 if proper else below(random, 2)
    for i in range(len(line)):
        if line[i] == 1:
            if skip == 0:
                return i
            skip -= 1
    return -1
