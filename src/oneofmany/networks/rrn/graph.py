"""The message graph of a Sudoku: who sends to whom, as a dense table."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np


class Slots(NamedTuple):
    """The neighbours of every cell, in slots.

    A slot is one cyclic shift (of bands, rows in a band, stacks, columns in a stack), so every slot is a permutation
    of the cells: all cells have the same number of neighbours, and a gather over a slot has a gather as its transpose.

    Args:
        neighbours: int64 [R, D], the cell that slot d of a cell listens to.
        doubles: the first ``doubles`` slots are cells that share a box and a line with the listener: the message graph
            that adds row, column and box edges separately holds their edges twice.
    """

    neighbours: np.ndarray
    doubles: int


def sudoku_slots(box_rows: int, box_columns: int) -> Slots:
    """The distinct neighbours of every cell of a Sudoku: 8 + 8 + 4 of them with 3 x 3 boxes."""
    shape = (box_columns, box_rows, box_rows, box_columns)  # bands, rows in one, stacks, columns in one
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
    """int64 [R, D]: entry (j, d) is the flat index i * D + d of the edge with neighbours[i, d] == j."""
    D = neighbours.shape[1]
    return np.argsort(neighbours, axis=0) * D + np.arange(D)
