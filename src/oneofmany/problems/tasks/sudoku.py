"""Sudoku of any box shape: every row, column and box holds every value once."""

from __future__ import annotations

from functools import lru_cache
from math import isqrt
from typing import overload

import numpy as np

from oneofmany.problems.givens import Conflict, describe, number_word
from oneofmany.problems.problem import Problem
from oneofmany.problems.rules import lines
from oneofmany.problems.tasks.grids import Grid, Row
from oneofmany.problems.tasks.lines import BARS
from oneofmany.problems.tasks.square import boards_of, draw, format_line
from oneofmany.problems.tasks.task import SYMBOLS, Query, Task, only_query, symbol, whole


@overload
def sudoku(size: int = 9, *, box_rows: int | None = None, box_columns: int | None = None) -> Problem: ...
@overload
def sudoku(box_rows: int, box_columns: int, /) -> Problem: ...
def sudoku(
    size: int | None = None, *columns: int, box_rows: int | None = None, box_columns: int | None = None
) -> Problem:
    """Sudoku with ``size`` rows, columns and values: ``sudoku(9)`` is 9x9.

    By default the boxes are as square as possible and not higher than wide: 2 x 3 cells if the size is 6. Two numbers
    are the rows and columns of a box: ``sudoku(3, 2)`` is the 6x6 Sudoku with boxes of 3 x 2 cells.

    Kinds: ``cell`` (a cell takes one value), ``line`` (a row or column takes a value once), ``box``.
    """
    if columns:
        box, more = [size, columns[0]], [*columns[1:], box_rows, box_columns]
        if more != [None, None]:
            raise ValueError(f"box shape: expected two numbers, the rows and columns of a box, got {box} and {more}")
        size, (box_rows, box_columns) = None, box
    if box_rows is None and box_columns is None:
        return _sudoku(*box_shape(9 if size is None else size))
    for name, number in (("size", size), ("box_rows", box_rows), ("box_columns", box_columns)):
        if number is not None:
            whole(number, len(SYMBOLS), f"{name}: expected 1 to {len(SYMBOLS)}")
    n = (box_rows or 0) * (box_columns or 0) if size is None else size
    rows = n // (box_columns or 1) if box_rows is None else box_rows
    of_box = n // max(rows, 1) if box_columns is None else box_columns
    if min(rows, of_box) < 1 or rows * of_box != n or n > len(SYMBOLS):
        raise ValueError(
            f"box shape: expected boxes of as many cells as the size, which is 1 to {len(SYMBOLS)}, got boxes of "
            f"{rows} x {of_box} cells for size {n}"
        )
    return _sudoku(int(rows), int(of_box))


@lru_cache(maxsize=64)
def _sudoku(box_rows: int, box_columns: int) -> Problem:
    n = box_rows * box_columns
    choice = np.arange(n**3).reshape(n, n, n)  # row, column, value
    # [band, row in band, stack, column in stack, value] -> [band, stack, value, the cells of a box]
    boxes = choice.reshape(n // box_rows, box_rows, n // box_columns, box_columns, n).transpose(0, 2, 4, 1, 3)
    rules = (
        lines("cell", choice.reshape(-1, n))
        + lines("line", choice.transpose(0, 2, 1).reshape(-1, n))
        + lines("line", choice.transpose(1, 2, 0).reshape(-1, n))
        + lines("box", boxes.reshape(-1, n))
    )
    return Problem("sudoku", n, n * n, n, tuple(rules), {"box_rows": box_rows, "box_columns": box_columns})


def box_shape(n: int) -> tuple[int, int]:
    """Return the squarest box (rows, columns) of n cells, at least as wide as high: 6 -> (2, 3)."""
    n = whole(n, len(SYMBOLS), f"size: expected a Sudoku of 1 to {len(SYMBOLS)} values")
    rows = next(r for r in range(isqrt(n), 0, -1) if n % r == 0)
    return rows, n // rows


def parse(text: str) -> Query:
    """Read one query: a line of n*n cells, a line for each row, or a drawing, whose lines show the boxes."""
    return only_query(boards, text)


def _problem(grid: Grid) -> Problem:
    """The Sudoku of a drawing: lines inside of the board are borders of boxes."""
    n, first = grid.size, grid.rows[0]
    if len(grid.rows) < n:
        return sudoku(n)
    bars = [at for at, character in enumerate(first.line.text) if character in BARS]
    columns = _distance(first, [sum(place < bar for place in first.places) for bar in bars], n, "columns")
    rows = _distance(first, [at for at, below in enumerate(grid.below, 1) if below], n, "rows")
    if (rows, columns) in ((n, n), (1, 1)):  # a frame around the board, or lines around every cell
        return sudoku(n)
    if rows * columns != n:
        if n not in (rows, columns):
            raise first.line.error(f"the lines of the board make boxes of {rows} x {columns} cells, expected {n} cells")
        rows, columns = (n // columns, columns) if rows == n else (rows, n // rows)
    # Bars between all cells of a row are usual; boxes of one column are drawn by us, with these bars.
    return sudoku(n) if columns == 1 and "│" not in first.line.text else sudoku(rows, columns)


def _distance(first: Row, borders: list[int], n: int, name: str) -> int:
    """The rows or columns between borders, n if there are none inside of the board."""
    inner = sorted({border for border in borders if 0 < border < n})
    distance = inner[0] if inner else n
    if inner != list(range(distance, n, distance)) or n % distance:
        raise first.line.error(
            f"the lines of the board are after {name} {', '.join(map(str, inner))}: expected boxes of one size"
        )
    return distance


def explain(problem: Problem, conflict: Conflict) -> str:
    """Say which row, column or box has a value twice."""
    if conflict.rule is None or not conflict.taken:
        return describe(problem, conflict)
    n = problem.size
    cells = [choice // n for choice in conflict.rule.choices]
    rows, columns = {cell // n for cell in cells}, {cell % n for cell in cells}
    if len(rows) == 1:
        where = f"row {rows.pop() + 1}"
    elif len(columns) == 1:
        where = f"column {columns.pop() + 1}"
    else:
        high, wide = problem.options["box_rows"], problem.options["box_columns"]
        where = f"box {min(rows) // high * (n // wide) + min(columns) // wide + 1}"
    return f"{where} has {number_word(len(conflict.taken))} {symbol(conflict.taken[0] % n + 1)}s"


boards = boards_of(_problem, (4,))
TASK = Task("sudoku", sudoku, parse, format_line, draw, boards, explain)
