"""The canonical form of a completed 9x9 Sudoku grid: equal for two grids exactly when a symmetry maps one to the other.

The symmetries are relabelling of the digits, permutation of bands, of stacks, of the rows in a band and of the columns
in a stack, and transposition. The canonical form is the first of all images in lexicographic order.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import numpy as np

from oneofmany.compiled import njit
from oneofmany.exact.cores import usable_cores

ORDERS = np.array(list(permutations(range(3))))


@njit(cache=True, nogil=True)
def _rest_of_rows(grid, columns, label, first, second, candidate):
    """Fill rows 2 to 8 of ``candidate``: the third row of the band, then the other bands in their least order."""
    band = first // 3
    third = (9 * band + 3) - first - second
    for j in range(9):
        candidate[2, j] = label[grid[third, columns[j]]]
    # The labels of a band's first column differ, so they decide the order of its rows and of the bands.
    lowest = np.empty(2, np.int64)
    for k in range(2):
        other = (band + 1 + k) % 3
        for row in range(3):
            start = label[grid[3 * other + row, columns[0]]]
            place = 0
            for rival in range(3):
                place += label[grid[3 * other + rival, columns[0]]] < start
            for j in range(9):
                candidate[3 + 3 * k + place, j] = label[grid[3 * other + row, columns[j]]]
        lowest[k] = candidate[3 + 3 * k, 0]
    if lowest[1] < lowest[0]:
        for row in range(3, 6):
            for j in range(9):
                candidate[row, j], candidate[row + 3, j] = candidate[row + 3, j], candidate[row, j]


@njit(cache=True, nogil=True)
def _canonical(grids, orders, out):
    columns = np.empty(9, np.int64)
    label = np.empty(9, np.int64)
    stack_of = np.empty(9, np.int64)
    candidate = np.empty((9, 9), np.int64)
    best = np.empty((9, 9), np.int64)
    for index in range(len(grids)):
        # With the first row labelled 0..8, the second row is least (it starts 3,4,5, else 3,4,6) if most digits of its
        # first box are in the second box of the first row: only such arrangements can come first.
        best[:] = 9
        for target in (3, 2):
            for transposed in range(2):
                grid = grids[index].T if transposed else grids[index]
                for first in range(9):
                    for j in range(9):
                        stack_of[grid[first, j]] = j // 3
                    for second in range(first // 3 * 3, first // 3 * 3 + 3):
                        if second == first:
                            continue
                        for stacks in orders:
                            shared = 0
                            for j in range(3):
                                shared += stack_of[grid[second, 3 * stacks[0] + j]] == stacks[1]
                            if shared != target:
                                continue
                            for order0 in orders:
                                for j in range(3):
                                    columns[j] = 3 * stacks[0] + order0[j]
                                    label[grid[first, columns[j]]] = j
                                fits = True
                                for j in range(shared):
                                    fits &= stack_of[grid[second, columns[j]]] == stacks[1]
                                if not fits:
                                    continue
                                for order1 in orders:
                                    for j in range(3):
                                        columns[3 + j] = 3 * stacks[1] + order1[j]
                                        label[grid[first, columns[3 + j]]] = 3 + j
                                    fits = True
                                    for j in range(shared):
                                        fits &= label[grid[second, columns[j]]] == 3 + j
                                    if not fits:
                                        continue
                                    for order2 in orders:
                                        for j in range(3):
                                            columns[6 + j] = 3 * stacks[2] + order2[j]
                                            label[grid[first, columns[6 + j]]] = 6 + j
                                        sign = 0
                                        for j in range(9):
                                            candidate[1, j] = label[grid[second, columns[j]]]
                                            if sign == 0 and candidate[1, j] != best[1, j]:
                                                sign = 1 if candidate[1, j] > best[1, j] else -1
                                        if sign > 0:
                                            continue
                                        _rest_of_rows(grid, columns, label, first, second, candidate)
                                        for row in range(2, 9):
                                            for j in range(9):
                                                if sign == 0 and candidate[row, j] != best[row, j]:
                                                    sign = 1 if candidate[row, j] > best[row, j] else -1
                                        if sign < 0:
                                            best[1:] = candidate[1:]
            if best[1, 0] < 9:
                break
        for j in range(9):
            best[0, j] = j
        for row in range(9):
            for j in range(9):
                out[index, row, j] = best[row, j] + 1


def canonical_sudoku(grids: np.ndarray) -> np.ndarray:
    """Return the canonical form of completed 9x9 Sudoku grids.

    Args:
        grids: uint8 [N, 81], values 1..9.

    Returns:
        uint8 [N, 81], values 1..9; the first row is 1 to 9.
    """
    grids = np.asarray(grids)
    if grids.ndim != 2 or grids.shape[1] != 81:
        raise ValueError(f"grids: expected [N, 81], got {list(grids.shape)}")
    if len(grids) and not (np.sort(grids.reshape(-1, 9, 9), axis=2) == np.arange(1, 10)).all():
        raise ValueError("grids: expected completed Sudoku grids, with every value from 1 to 9 in every row")
    out = np.empty((len(grids), 9, 9), np.uint8)
    squares = np.ascontiguousarray(grids.reshape(-1, 9, 9)).astype(np.int64) - 1
    parts = [slice(i, i + 512) for i in range(0, len(grids), 512)]
    with ThreadPoolExecutor(usable_cores()) as pool:
        list(pool.map(lambda part: _canonical(squares[part], ORDERS, out[part]), parts))
    return out.reshape(-1, 81)
