"""Boards as pictures: givens, answers and broken rules are told apart, by form as well as by colour.

Example::

    from oneofmany.pictures import Board, save_boards
    from oneofmany.problems import read_queries

    (query,) = read_queries("nqueens", "3 . . . . . 2 .")
    save_boards("board.svg", [[Board(query.problem, query.values)]])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from oneofmany.pictures.cages import cages_of, space_before
from oneofmany.pictures.graphs import node_places
from oneofmany.pictures.shapes import Outline, Shape, Words, png_of, rectangle, svg_of
from oneofmany.pictures.themes import DARK, LIGHT, save_picture
from oneofmany.problems import Problem, find_task
from oneofmany.problems.givens import conflicts
from oneofmany.problems.tasks.task import NO_RELATIONS, SYMBOLS, Names

CELL = 40.0
GAP = 20.0
"""Between the cells of a Futoshiki, for its signs."""
APART = 28.0
"""Between two boards."""
TITLE = 24.0
COLOURS = ("ink", "muted", "line", "right", "wrong")
CROWN = ((3, 22), (1, 7), (7.5, 13), (12.5, 3), (17.5, 13), (24, 7), (22, 22))
"""A queen in a box of 25 by 25."""
NODE, EDGE = 13.0, 62.0
"""The radius of a node of a graph, and about the length of its edges."""
HUES = ("minloss", "unique", "iexplr", "ccloss", "selectr", "random", "naive")
"""Colours of the theme for the colours of nodes, which also have numbers; further ones are muted."""


@dataclass(frozen=True, eq=False)
class Board:
    """A query or an answer as a picture.

    Args:
        problem: of its choices and rules.
        values: uint8 [R], 0 = blank, 1..V.
        relations: int16 [M, 2], pairs (a, b) meaning variable a < variable b; -1 for padding.
        given: bool [R], the values that are givens; all of them if None.
        title: a few words above the board.
    """

    problem: Problem
    values: np.ndarray
    relations: np.ndarray = field(default_factory=lambda: NO_RELATIONS)
    given: np.ndarray | None = None
    title: str = ""

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The relations without padding."""
        return [(int(a), int(b)) for a, b in self.relations if a >= 0]

    @cached_property
    def broken(self) -> tuple[set[int], set[tuple[int, int]]]:
        """The variables that take part in a broken rule, and the broken relations."""
        real = np.array(self.pairs, np.int16).reshape(-1, 2)
        found = conflicts(self.problem, np.asarray(self.values), real)
        pairs = {one.relation for one in found if one.relation is not None}
        cells = {choice // self.problem.values for one in found for choice in one.taken}
        return cells | {cell for pair in pairs for cell in pair}, pairs

    @property
    def solved(self) -> bool:
        """Whether it has no blanks and breaks no rule."""
        return bool(np.all(self.values)) and self.broken == (set(), set())

    def colour(self, variable: int) -> str:
        """Of a value: wrong in a broken rule, ink for givens, right for the answers of a solution, else muted."""
        if variable in self.broken[0]:
            return "wrong"
        if self.is_given(variable):
            return "ink"
        return "right" if self.solved else "muted"

    def is_given(self, variable: int) -> bool:
        """Whether the value of a variable is a given."""
        return bool(self.values[variable]) and (self.given is None or bool(self.given[variable]))

    @cached_property
    def absent(self) -> frozenset[int]:
        """Variables that only other queries of the same data have: they are given, and in none of the rules.

        These are the black cells of a Kakuro, and the last nodes of a graph that is smaller than others.
        """
        problem, given = self.problem, {v for v in range(len(self.values)) if self.is_given(v)}
        if is_graph(problem):
            nodes = len(self.values)
            while nodes > 1 and nodes - 1 in given and not any(nodes - 1 in pair for pair in self.pairs):
                nodes -= 1
            return frozenset(range(nodes, len(self.values)))
        if not problem.own_kinds and not problem.own_sums:
            return frozenset()
        used = {choice // problem.values for r in problem.rules if r.kind != "variable" for choice in r.choices}
        return frozenset(given - used)

    @property
    def words(self) -> str:
        """The board in a few words."""
        count, every = int(np.count_nonzero(self.values)) - len(self.absent), len(self.values) - len(self.absent)
        state = "solved" if self.solved else f"{count} of {every} filled in"
        broken = f", {len(self.broken[0])} of them break a rule" if self.broken[0] else ""
        return f"{self.title or 'board'} ({state}{broken})"


@dataclass(frozen=True)
class Layout:
    """Where the cells of a board are.

    Args:
        wide: of the board.
        high: of the board.
        fields: what is painted below all symbols.
        over: what is painted above them.
    """

    wide: float
    high: float
    fields: list[Shape]
    over: list[Shape]


def is_grid(problem: Problem) -> bool:
    """Whether the variables are the cells of a square; otherwise they are rows, with a column for every value."""
    square = problem.variables == problem.size**2 and (problem.size > 1 or problem.values == 1)
    return square and problem.task != "nqueens" and names_of(problem) is None


def is_graph(problem: Problem) -> bool:
    """Whether the variables are the nodes of a graph: relations a != b are its edges."""
    return problem.relation_kind is not None and problem.relation == "!="


def names_of(problem: Problem) -> Names | None:
    """The names of variables and values, if the task has them."""
    task = find_task(problem.task)
    return None if task is None else task.names


def _columns(problem: Problem) -> tuple[float, float]:
    """Where the columns of values begin, to the right of the variables' names, and how wide each is."""
    names = names_of(problem)
    if names is None:
        return 0.0, CELL
    variable, value = (max(map(len, words)) for words in (names.variables, names.values))
    return 7.6 * variable + 12, max(CELL, 7.6 * value + 12)


def place(problem: Problem, variable: int, value: int) -> tuple[float, float]:
    """The upper left corner of the cell in which a variable's value (from 1) is drawn."""
    if not is_grid(problem):
        left, wide = _columns(problem)
        return left + (value - 1) * wide, variable * CELL
    pitch, before = CELL + (GAP if problem.task == "futoshiki" else 0), space_before(problem)
    return before + variable % problem.size * pitch, before + variable // problem.size * pitch


def text_of(problem: Problem, value: int) -> str:
    """How a value from 1 is written: as one character, or as a number in a grid that has more values than rows."""
    letters = value <= len(SYMBOLS) and not (is_grid(problem) and problem.values > max(9, problem.size))
    return SYMBOLS[value - 1] if letters else str(value)


def symbol_of(problem: Problem, variable: int, value: int, colour: str, bold: bool = False) -> Shape:
    """The symbol of a value in its cell: a queen or a character."""
    x, y = place(problem, variable, value)
    if problem.task == "nqueens":
        scale, edge = CELL * 0.8 / 25, CELL * 0.1
        return Outline(tuple((x + edge + scale * a, y + edge + scale * b) for a, b in CROWN), colour)
    if names := names_of(problem):
        return Words(x + _columns(problem)[1] / 2, y + CELL / 2, 13, names.values[value - 1], colour, bold)
    text = text_of(problem, value)
    return Words(x + CELL / 2, y + CELL / 2, (0.56 if len(text) < 3 else 0.4) * CELL, text, colour, bold)


def layout(board: Board) -> Layout:
    """The empty board: its fields, lines and signs."""
    problem = board.problem
    if is_grid(problem):
        return _futoshiki(board) if problem.task == "futoshiki" else _sudoku(board)
    left, column = _columns(problem)
    wide, high = problem.values * column, problem.variables * CELL
    dark = [(r, c) for r in range(problem.variables) for c in range(problem.values) if (r + c) % 2]
    fields: list[Shape] = [_tint(left + c * column, r * CELL, column) for r, c in dark]
    for r, name in enumerate(() if (names := names_of(problem)) is None else names.variables):
        fields.append(Words(0, (r + 0.5) * CELL, 13, name, "muted", left=True))
    return Layout(left + wide, high, fields, [Outline(rectangle(left, 0, wide, high), stroke="muted", width=1.5)])


def _tint(x: float, y: float, wide: float = CELL) -> Outline:
    return Outline(rectangle(x, y, wide, CELL), "ink", opacity=0.07)


def _sudoku(board: Board) -> Layout:
    problem, n = board.problem, board.problem.size
    high, wide = problem.options.get("box_rows", n), problem.options.get("box_columns", n)
    first = space_before(problem)
    side = first + n * CELL
    fields: list[Shape] = [_tint(*place(problem, v, 1)) for v in range(n * n) if board.is_given(v)]
    for v in sorted(board.absent):
        fields.append(Outline(rectangle(*place(problem, v, 1), CELL, CELL), "muted"))
    over: list[Shape] = []
    for thick in (False, True):  # thick lines above thin ones
        for k in range(n + 1):
            at = first + k * CELL
            look = {"stroke": "ink" if thick else "line", "width": 2.0 if thick else 1.0, "closed": False}
            if (bool(wide) and k % wide == 0) == thick:
                over.append(Outline(((at, first), (at, side)), **look))
            if (bool(high) and k % high == 0) == thick:
                over.append(Outline(((first, at), (side, at)), **look))
    high, signs = _signs(board, side)
    return Layout(side, high, fields + over + cages_of(problem, CELL, board.absent) + signs, [])


def _futoshiki(board: Board) -> Layout:
    problem, n = board.problem, board.problem.size
    side = n * (CELL + GAP) - GAP
    fields: list[Shape] = []
    for v in range(n * n):
        x, y = place(problem, v, 1)
        fields += [_tint(x, y)] if board.is_given(v) else []
        fields.append(Outline(rectangle(x, y, CELL, CELL), stroke="muted", width=1.2))
    high, signs = _signs(board, side)
    return Layout(side, high, fields + signs, [])


def _signs(board: Board, side: float) -> tuple[float, list[Shape]]:
    """Relations a < b as signs between neighbours, all others as words below the grid; and where these end."""
    problem, n = board.problem, board.problem.size
    far, signs = [], []
    for a, b in board.pairs:
        colour = "wrong" if (a, b) in board.broken[1] else "ink"
        (ax, ay), (bx, by) = place(problem, a, 1), place(problem, b, 1)
        if abs(ax - bx) + abs(ay - by) > CELL + GAP + 1:
            far.append((a, b))
            continue
        x, y = (ax + bx + CELL) / 2, (ay + by + CELL) / 2
        dx, dy = np.sign(bx - ax) * 5, np.sign(by - ay) * 5
        # The tip points to the smaller cell.
        points = ((x + dx + dy, y + dy + dx), (x - dx, y - dy), (x + dx - dy, y + dy - dx))
        signs.append(Outline(points, stroke=colour, width=2.4, closed=False))
    high = side
    for a, b in far:
        high += 18
        names = [f"r{v // n + 1}c{v % n + 1}" for v in (a, b)]
        colour = "wrong" if (a, b) in board.broken[1] else "muted"
        signs.append(Words(side / 2, high - 7, 13, " < ".join(names), colour))
    return high, signs


def shapes_of(board: Board) -> tuple[float, float, list[Shape]]:
    """Width and height of a board, and its shapes in the order in which they are painted."""
    if is_graph(board.problem):
        return _graph(board)
    plan = layout(board)
    below: list[Shape] = []
    symbols: list[Shape] = []
    for v, value in enumerate(map(int, board.values)):
        if not value or v in board.absent:
            continue
        colour = board.colour(v)
        if colour == "wrong":
            (x, y), wide = place(board.problem, v, value), _columns(board.problem)[1]
            below.append(Outline(rectangle(x, y, wide, CELL), "wrong", opacity=0.16))
            frame = rectangle(x + 2, y + 2, wide - 4, CELL - 4)
            symbols.append(Outline(frame, stroke="wrong", width=2.2))
        symbols.append(symbol_of(board.problem, v, value, colour, board.is_given(v)))
    return plan.wide, plan.high, plan.fields + below + symbols + plan.over


def _graph(board: Board) -> tuple[float, float, list[Shape]]:
    """Nodes in their colours with the colours' numbers; givens have a thick outline, and broken edges are wrong."""
    nodes = board.problem.variables - len(board.absent)
    at = (EDGE * node_places(nodes, np.array(board.pairs, np.int16).reshape(-1, 2)) + NODE + 2).round(1)
    shapes: list[Shape] = []
    for pair in board.pairs:
        wrong = pair in board.broken[1]
        ends = tuple((float(at[v, 0]), float(at[v, 1])) for v in pair)
        shapes.append(Outline(ends, stroke="wrong" if wrong else "muted", width=3.0 if wrong else 1.2, closed=False))
    for v in range(nodes):
        x, y, value = float(at[v, 0]), float(at[v, 1]), int(board.values[v])
        shapes.append(Outline(_circle(x, y), "paper"))
        hue = HUES[value - 1] if 1 <= value <= len(HUES) else "muted" if value else ""
        outline = "wrong" if v in board.broken[0] else "ink"
        if hue:
            shapes.append(Outline(_circle(x, y), hue, opacity=0.35))
        width = 2.6 if board.is_given(v) or outline == "wrong" else 1.0
        shapes.append(Outline(_circle(x, y), stroke=outline, width=width))
        if value:
            shapes.append(Words(x, y, 13, str(value), "ink", board.is_given(v)))
    wide, high = (float(side) + NODE + 2 for side in at.max(0))
    return wide, high, shapes


def _circle(x: float, y: float) -> tuple[tuple[float, float], ...]:
    """The corners of a polygon that looks like a circle."""
    angles = [2 * math.pi * k / 24 for k in range(24)]
    return tuple((round(x + NODE * math.cos(a), 1), round(y + NODE * math.sin(a), 1)) for a in angles)


def _together(rows: Sequence[Sequence[Board]]) -> tuple[float, float, list[Shape], str]:
    """All boards in one picture, one row below the other."""
    shapes: list[Shape] = []
    wide, y = 0.0, 0.0
    for row in rows:
        x, high, titled = 0.0, 0.0, TITLE * any(board.title for board in row)
        for board in row:
            own_wide, own_high, own = shapes_of(board)
            if board.title:
                shapes.append(Words(x, y + 7, 15, board.title, "ink", bold=True, left=True))
            shapes += [shape.moved(x, y + titled) for shape in own]
            # A short board may have a long title.
            x += max(own_wide, 8.6 * len(board.title)) + APART
            high = max(high, own_high + titled)
        wide, y = max(wide, x - APART), y + high + APART
    return wide, y - APART, shapes, "; ".join(board.words for row in rows for board in row)


def boards_svg(rows: Sequence[Sequence[Board]]) -> str:
    """Boards as an SVG file that follows the reader's light or dark mode; each inner list is a row of the picture."""
    wide, high, shapes, words = _together(rows)
    boards = [board for row in rows for board in row]
    more = (*HUES, "paper") if any(is_graph(board.problem) for board in boards) else ()
    more = more or ("paper",) * any(board.absent for board in boards)
    return svg_of(shapes, wide, high, words, (*COLOURS, *more))


def boards_png(rows: Sequence[Sequence[Board]], dark: bool = False) -> bytes:
    """Boards as a PNG, in light or dark mode."""
    wide, high, shapes, _ = _together(rows)
    return png_of(shapes, wide, high, DARK if dark else LIGHT)


def save_boards(path: str | Path, rows: Sequence[Sequence[Board]], *, dark: bool = False, force: bool = False) -> None:
    """Write boards to a file, whole or not at all: ``.svg`` or ``.png``."""
    save_picture(path, lambda: boards_svg(rows), lambda: boards_png(rows, dark), force)
