"""N-Queens: one queen in every row and column, none attacks another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby

import numpy as np

from oneofmany.problems.givens import Conflict, describe
from oneofmany.problems.problem import Problem
from oneofmany.problems.rules import lines
from oneofmany.problems.tasks.grids import Grid, Row, cells_of, grids_of, rows_of, without_dashes
from oneofmany.problems.tasks.lines import BARS, Line, TextError
from oneofmany.problems.tasks.spaces import spaces_as_blanks
from oneofmany.problems.tasks.task import (
    BLANKS,
    NO_RELATIONS,
    SYMBOLS,
    Found,
    Paint,
    Query,
    Task,
    only_query,
    plain,
    whole,
)

QUEENS = "Qq♛♕"
MOST = 255


def nqueens(size: int) -> Problem:
    """N-Queens on a board of ``size`` rows and columns: variables are rows, values are columns.

    Every row and column holds exactly one queen (kind ``line``). Every diagonal and anti-diagonal of two or more cells
    holds at most one (kind ``diagonal``).
    """
    return _nqueens(whole(size, MOST, f"size: expected 1 to {MOST} queens"))


@lru_cache(maxsize=64)
def _nqueens(n: int) -> Problem:
    cell = np.arange(n * n).reshape(n, n)
    diagonals = [cell.diagonal(k) for k in range(2 - n, n - 1)] + [
        cell[:, ::-1].diagonal(k) for k in range(2 - n, n - 1)
    ]
    rules = lines("line", cell) + lines("line", cell.T) + lines("diagonal", diagonals, exact=False)
    return Problem("nqueens", n, n, n, tuple(rules))


def parse(text: str) -> Query:
    """Read one query: the 1-based column of each row's queen, or a board with a Q for each queen.

    Columns are separated by spaces or commas, ``3 . . . . . 2 .``. Up to 25 queens they can also be one word,
    ``3.5...2.``, in which A is column 10.
    """
    return only_query(boards, text)


def boards(text_lines: list[Line], size: int | None) -> Iterator[Found]:
    """Find the queries in lines, see ``parse``; lines in a paragraph with a Q or with bars are rows of a board."""
    text_lines = spaces_as_blanks(text_lines, QUEENS)
    rows = rows_of(text_lines, _split)
    drawn = {row.paragraph for row in rows if not {*QUEENS, *BARS}.isdisjoint(row.line.text)}
    on_boards = without_dashes(row for row in rows if row.paragraph in drawn)
    rows = [row for row in rows if row.paragraph not in drawn] + [row._replace(rest="board") for row in on_boards]
    rows.sort(key=lambda row: row.at)
    for number, grid in grids_of(text_lines, rows, lambda own, alone: _is_line(own)):
        try:
            yield number, grid if isinstance(grid, TextError) else _query(grid, size)
        except TextError as error:
            yield number, error


def _split(line: Line) -> tuple[Sequence[str], Sequence[int], str, bool] | None:
    cells, places = cells_of(line.text, grouped=False)
    return (cells, places, "", False) if cells else None


def _is_line(rows: list[Row]) -> bool:
    if rows[0].rest:
        return False
    n = len(rows[0].cells)
    for _, group in groupby(rows, lambda row: row.paragraph):
        own = [*group]
        used = [cell for row in own for cell in row.cells]
        if len(own) % n == 0 and n > 1 and {*used} == {"0", "1"} and all([*row.cells].count("1") < 2 for row in own):
            raise own[0].line.error("a board of 0 and 1 can also be lines of columns: write Q for a queen and . for 0")
    return True


def _query(grid: Grid, size: int | None) -> Query:
    first = grid.rows[0]
    n = len(first.cells)
    if n != (size or n) or n > MOST:
        raise first.line.error(f"the board has {n} columns, expected {size or f'1 to {MOST}'}", first.places[0])
    if first.rest:
        values = [_queen(row) for row in grid.rows]
    else:
        values = [_column(first, at, n) for at in range(n)]
        if len(used := {*first.cells} & {*BLANKS, "x"}) > 1:
            raise first.line.error(
                f"the line has the blanks {' and '.join(sorted(used))}: use one of them, and Q for queens"
            )
    return Query(nqueens(n), np.array(values, np.uint8), NO_RELATIONS)


def _queen(row: Row) -> int:
    """The column of the queen in a row of a board, 0 if there is none."""
    found = 0
    for column, (cell, place) in enumerate(zip(row.cells, row.places, strict=True), 1):
        if cell in QUEENS and not found:
            found = column
        elif cell.upper() not in BLANKS:
            why = "the row has two queens" if cell in QUEENS else f"{cell!r} is not a cell: expected Q or . in a board"
            raise row.line.error(why, place)
    return found


def _column(row: Row, at: int, n: int) -> int:
    """The column in one field of a line, 0 if it is blank."""
    cell = row.cells[at]
    column = -1
    if len(cell) == 1 and cell.upper() in BLANKS:
        column = 0
    elif isinstance(row.cells, str):  # one word
        column = SYMBOLS.find(cell.upper() if cell.isascii() else "?") + 1 or -1
    elif cell.isascii() and cell.isdigit() and len(cell) < 10:
        column = int(cell) or -1
    if not 0 <= column <= n:
        raise row.line.error(f"row {at + 1} of {n} is {cell!r}: expected . or a column from 1 to {n}", row.places[at])
    return column


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


def explain(problem: Problem, conflict: Conflict) -> str:
    """Say which queens attack each other."""
    if conflict.rule is None or not conflict.taken:
        return describe(problem, conflict)
    cells = [divmod(choice, problem.size) for choice in conflict.taken]
    *most, last = [str(row + 1) for row, _ in cells]
    line = "on a diagonal" if conflict.rule.kind == "diagonal" else f"in column {cells[0][1] + 1}"
    return f"the queens of rows {', '.join(most)} and {last} attack each other {line}"


TASK = Task("nqueens", nqueens, parse, format_line, draw, boards, explain)
