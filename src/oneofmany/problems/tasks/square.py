"""Tasks on a square grid of n x n cells with values 1..n: their text form and their drawing.

``grid_task`` makes a whole task of a problem on such a grid::

    TASK = grid_task("latin", latin)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from oneofmany.problems.givens import Conflict, describe, number_word
from oneofmany.problems.problem import Problem
from oneofmany.problems.tasks.grids import Grid, cells_of, grids_of, lines_or_rows, rows_of, without_dashes
from oneofmany.problems.tasks.lines import BARS, Line, TextError
from oneofmany.problems.tasks.spaces import spaces_as_blanks
from oneofmany.problems.tasks.task import (
    NO_RELATIONS,
    SYMBOLS,
    Boards,
    Found,
    Paint,
    Query,
    Task,
    only_query,
    plain,
    sized,
    symbol,
)


def grid_task(name: str, problem: Callable[..., Problem], build: Callable[..., object] | None = None) -> Task:
    """Return a task on a square grid of cells, which are read, written and drawn like those of a Sudoku.

    Args:
        name: of the task.
        problem: builds the problem of a size n: n * n variables, row by row, of n values each, n up to 25. If it has
            the options ``box_rows`` and ``box_columns``, boxes of this shape are drawn.
        build: builds data, see ``Task``.
    """
    sizes: dict[int, Problem] = {}
    problem = sized(problem)

    def problem_of(grid: Grid) -> Problem:
        n, first = grid.size, grid.rows[0].line
        if n not in sizes:
            try:
                sizes[n] = problem(n)
            except ValueError as error:
                raise first.error(str(error)) from None
        if (sizes[n].variables, sizes[n].values) != (n * n, n):
            raise first.error(f"{sizes[n]} is not a grid of {n} x {n} cells with {n} values")
        return sizes[n]

    boards = boards_of(problem_of, (2, 3, 4, 5))
    return Task(name, problem, lambda text: only_query(boards, text), format_line, draw, boards, explain, build)


def boards_of(problem_of: Callable[[Grid], Problem], in_lines: Iterable[int]) -> Boards:
    """Return the reader of a task: one line of n*n cells, a line for each row, or a drawing.

    ``in_lines`` are the sizes of which files list one query a line, though a line could also be the row of a board.
    """

    def boards(text_lines: list[Line], size: int | None) -> Iterator[Found]:
        text_lines = spaces_as_blanks(text_lines, SYMBOLS)
        rows = without_dashes(rows_of(text_lines, _split))
        for number, grid in grids_of(text_lines, rows, lambda own, alone: lines_or_rows(own, alone, size, in_lines)):
            try:
                if isinstance(grid, TextError):
                    raise grid
                yield number, Query(problem_of(grid), grid.values(), NO_RELATIONS)
            except TextError as error:
                yield number, error

    return boards


def _split(line: Line) -> tuple[Sequence[str], Sequence[int], str, bool] | None:
    cells, places = cells_of(line.text)
    return (cells, places, "", not {*BARS}.isdisjoint(line.text)) if cells else None


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
    """Draw the grid, with its boxes if it has any; blank cells are dots."""
    n = problem.size
    box_rows, box_columns = problem.options.get("box_rows", n), problem.options.get("box_columns", n)
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


def explain(problem: Problem, conflict: Conflict) -> str:
    """Say which row, column or other part of the grid has a value twice."""
    n = problem.size
    if conflict.rule is None or len({choice % n for choice in conflict.taken}) != 1:
        return describe(problem, conflict)
    cells = [choice // n for choice in conflict.rule.choices]
    rows, columns = {cell // n for cell in cells}, {cell % n for cell in cells}
    where = f"the {conflict.rule.kind} of " + " and ".join(
        f"r{choice // n // n + 1}c{choice // n % n + 1}" for choice in conflict.taken
    )
    if len(rows) == 1:
        where = f"row {rows.pop() + 1}"
    elif len(columns) == 1:
        where = f"column {columns.pop() + 1}"
    return f"{where} has {number_word(len(conflict.taken))} {symbol(conflict.taken[0] % n + 1)}s"
