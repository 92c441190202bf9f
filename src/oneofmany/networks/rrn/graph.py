"""The message graph of a Sudoku as a dense table."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np


class Slots(NamedTuple):
    """The neighbours of each cell, in slots.

    A slot is one cyclic shift (of bands, rows in a band, stacks, columns in a stack), so each slot is a permutation of
    the cells. All cells have the same number of neighbours, and the transpose of a gather over a slot is a gather.

    Args:
        neighbours: int64 [R, D], the sender of slot d of a cell.
        doubles: the first ``doubles`` slots are senders that share both a box and a line with the receiver. A graph
            with separate row, column and box edges has these edges twice.
    """

    neighbours: np.ndarray
    doubles: int


def sudoku_slots(box_rows: int, box_columns: int) -> Slots:
    """Return the distinct neighbours of each cell of a Sudoku: 8 + 8 + 4 with 3 x 3 boxes."""
    shape = (box_columns, box_rows, box_rows, box_columns)  # bands, rows in a band, stacks, columns in a stack
    shared: list[list[tuple[int, ...]]] = [[], []]
    for shift in product(*map(range, shape)):
        band, row, stack, column = shift
        units = (band == row == 0) + (stack == column == 0) + (band == stack == 0)
        if any(shift) and units:
            shared[units == 2].append(shift)
    cells = np.arange(np.prod(shape)).reshape(shape)
    slots = [np.roll(cells, [-s for s in shift], range(4)).ravel() for shift in shared[1] + shared[0]]
    return Slots(np.array(slots, np.int64).reshape(len(slots), cells.size).T.copy(), len(shared[1]))


def returning(neighbours: np.ndarray) -> np.ndarray:
    """Return int64 [R, D]: entry (j, d) is the flat index i * D + d of the edge with neighbours[i, d] == j."""
    D = neighbours.shape[1]
    return np.argsort(neighbours, axis=0) * D + np.arange(D)
