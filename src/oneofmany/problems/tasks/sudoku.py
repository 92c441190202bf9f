"""Sudoku of any box shape: every row, column and box holds every value once."""

from __future__ import annotations

from functools import lru_cache
from math import isqrt

import numpy as np

from oneofmany.problems.problem import Problem, lines
from oneofmany.problems.tasks.task import NO_RELATIONS, SYMBOLS, Paint, Query, Task, parse_cells, plain, symbol


@lru_cache(maxsize=64)
def sudoku(box_rows: int = 3, box_columns: int = 3) -> Problem:
    """Sudoku with boxes of ``box_rows`` x ``box_columns`` cells: (2, 2) is 4x4, (2, 3) is 6x6, (3, 3) is 9x9.

    Kinds: ``cell`` (a cell takes one value), ``line`` (a row or column takes a value once), ``box``.
    """
    n = box_rows * box_columns
    if box_rows < 1 or box_columns < 1 or n > len(SYMBOLS):
        raise ValueError(
            f"box shape: expected at least 1 x 1 and at most {len(SYMBOLS)} cells, got {box_rows} x {box_columns}"
        )
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
    if not 1 <= n <= len(SYMBOLS):
        raise ValueError(f"size: expected a Sudoku of 1 to {len(SYMBOLS)} values, got {n}")
    rows = next(r for r in range(isqrt(n), 0, -1) if n % r == 0)
    return rows, n // rows


def of_size(n: int, box_rows: int | None = None, box_columns: int | None = None) -> Problem:
    """The Sudoku with n values. By default its boxes are as square as possible."""
    if box_rows is None and box_columns is None:
        return sudoku(*box_shape(n))
    rows = box_rows or n // (box_columns or 1)
    columns = box_columns or n // rows
    if rows * columns != n:
        raise ValueError(f"box shape {rows} x {columns} does not hold {n} cells")
    return sudoku(rows, columns)


def parse(text: str) -> Query:
    """Read one line of n*n characters, row by row: ``.`` or ``0`` for blank, ``1``-``9``, then ``A``-``P``."""
    text = text.strip()
    n = isqrt(len(text))
    if n == 0 or n * n != len(text) or n > len(SYMBOLS):
        raise ValueError(
            f"a Sudoku line has n*n characters (16, 36, 81, 256 or 625, for example), got {len(text)} characters"
        )
    return Query(of_size(n), parse_cells(text, n), NO_RELATIONS)


def format_line(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
    """Write values uint8 [R] in the form that ``parse`` reads."""
    return "".join(symbol(int(v)) for v in values)


def draw(
    problem: Problem,
    values: np.ndarray,
    relations: np.ndarray = NO_RELATIONS,
    given: np.ndarray | None = None,
    paint: Paint = plain,
) -> str:
    """Draw the grid with its boxes; blank cells are dots."""
    n = problem.size
    box_rows, box_columns = problem.options["box_rows"], problem.options["box_columns"]
    known = np.ones(n * n, bool) if given is None else given
    cells = [paint(symbol(int(v)), bool(k)) if v else "·" for v, k in zip(values, known, strict=True)]
    span = "─" * (2 * box_columns + 1)

    def edge(left: str, middle: str, right: str) -> str:
        return left + middle.join([span] * (n // box_columns)) + right

    picture = [edge("┌", "┬", "┐")]
    for row in range(n):
        if row and row % box_rows == 0:
            picture.append(edge("├", "┼", "┤"))
        stacks = [" ".join(cells[row * n + c : row * n + c + box_columns]) for c in range(0, n, box_columns)]
        picture.append("│ " + " │ ".join(stacks) + " │")
    return "\n".join([*picture, edge("└", "┴", "┘")])


TASK = Task("sudoku", of_size, parse, format_line, draw)
