"""N-Queens: one queen in every row and column, none attacks another."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from oneofmany.problems.problem import Problem, lines
from oneofmany.problems.tasks.task import NO_RELATIONS, Paint, Query, Task, plain


@lru_cache(maxsize=64)
def nqueens(n: int) -> Problem:
    """N-Queens on an n x n board: variables are rows, values are columns.

    Every row and column holds exactly one queen (kind ``line``). Every diagonal and anti-diagonal of two or more cells
    holds at most one (kind ``diagonal``).
    """
    if not 1 <= n <= 255:
        raise ValueError(f"n: expected 1 to 255 queens, got {n}")
    cell = np.arange(n * n).reshape(n, n)
    diagonals = [cell.diagonal(k) for k in range(2 - n, n - 1)] + [
        cell[:, ::-1].diagonal(k) for k in range(2 - n, n - 1)
    ]
    rules = lines("line", cell) + lines("line", cell.T) + lines("diagonal", diagonals, exact=False)
    return Problem("nqueens", n, n, n, tuple(rules))


def parse(text: str) -> Query:
    """Read ``3 . 5 . . . 2 .``: the 1-based column of each row's queen, ``.`` for a blank row."""
    fields = text.split()
    n = len(fields)
    if n == 0:
        raise ValueError("an N-Queens query needs at least one field, got an empty line")
    values = np.zeros(n, np.uint8)
    for row, text_of_row in enumerate(fields):
        if text_of_row == ".":
            continue
        if not (text_of_row.isascii() and text_of_row.isdigit()) or not 1 <= int(text_of_row) <= n:
            raise ValueError(f"row {row + 1} of {n} is {text_of_row!r}: expected . or a column from 1 to {n}")
        values[row] = int(text_of_row)
    return Query(nqueens(n), values, NO_RELATIONS)


def format_line(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
    """Write values uint8 [R] in the form that ``parse`` reads."""
    return " ".join(str(v) if v else "." for v in values)


def draw(
    problem: Problem,
    values: np.ndarray,
    relations: np.ndarray = NO_RELATIONS,
    given: np.ndarray | None = None,
    paint: Paint = plain,
) -> str:
    """Draw the board, one line per row; blank rows are dots."""
    n = problem.size
    known = np.ones(n, bool) if given is None else given
    rows = [" ".join(paint("Q", bool(known[r])) if values[r] == c + 1 else "·" for c in range(n)) for r in range(n)]
    edge = "─" * (2 * n + 1)
    return "\n".join([f"┌{edge}┐", *(f"│ {row} │" for row in rows), f"└{edge}┘"])


TASK = Task("nqueens", nqueens, parse, format_line, draw)
