"""Futoshiki: a Latin square with inequalities between some neighbouring cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import isqrt
from operator import index

import numpy as np

from oneofmany.problems.givens import Conflict, describe, number_word
from oneofmany.problems.problem import Problem
from oneofmany.problems.rules import lines
from oneofmany.problems.tasks.grids import (
    NO_BARS,
    Grid,
    Row,
    cells_of,
    grids_of,
    lines_or_rows,
    rows_of,
    without_dashes,
)
from oneofmany.problems.tasks.lines import Line, TextError, is_border
from oneofmany.problems.tasks.spaces import spaces_as_blanks
from oneofmany.problems.tasks.task import (
    NO_RELATIONS,
    SYMBOLS,
    Found,
    Paint,
    Query,
    Task,
    only_query,
    plain,
    symbol,
    whole,
)

KIND = "inequality"
SIGNS = "^vV∧∨"
START = re.compile(r"(?:^|(?<=\s))[rR]\d")
RELATION = re.compile(r"r(\d{1,2})c(\d{1,2})\s*([<>])\s*r(\d{1,2})c(\d{1,2})", re.ASCII | re.IGNORECASE)


def futoshiki(size: int, inequalities: Iterable[tuple[int, int]] = ()) -> Problem:
    """Futoshiki with ``size`` rows, columns and values.

    Inequalities that differ from query to query are relations and are passed along with the query. ``inequalities``
    are those that hold for every query: pairs (a, b) meaning cell a < cell b, with cells counted row by row from 0.
    Kinds: ``cell`` (a cell takes one value), ``line`` (a row or column takes a value once), ``inequality``.
    """
    n = whole(size, len(SYMBOLS), f"size: expected a Futoshiki of 1 to {len(SYMBOLS)} values")
    try:
        pairs = tuple((index(a), index(b)) for a, b in inequalities)
    except (TypeError, ValueError):
        raise ValueError(f"inequalities: expected pairs of cells like (0, 1), got {inequalities!r}") from None
    return _futoshiki(n, pairs)


@lru_cache(maxsize=64)
def _futoshiki(n: int, inequalities: tuple[tuple[int, int], ...]) -> Problem:
    choice = np.arange(n**3).reshape(n, n, n)  # row, column, value
    rules = (
        lines("cell", choice.reshape(-1, n))
        + lines("line", choice.transpose(0, 2, 1).reshape(-1, n))
        + lines("line", choice.transpose(1, 2, 0).reshape(-1, n))
    )
    bare = Problem("futoshiki", n, n * n, n, tuple(rules), relation_kind=KIND)
    if not inequalities:
        return bare
    if not all(0 <= cell < n * n for pair in inequalities for cell in pair) or any(a == b for a, b in inequalities):
        raise ValueError(f"inequalities: expected pairs of different cells from 0 to {n * n - 1}, got {inequalities}")
    static = bare.relation_members(np.array([inequalities])).reshape(-1, n + 1).tolist()
    rules += lines(KIND, static, exact=False)
    return Problem("futoshiki", n, n * n, n, tuple(rules), {"inequalities": inequalities}, relation_kind=KIND)


def parse(text: str) -> Query:
    """Read one query: a line, or a grid with one line for each row.

    A line has n*n cells as in Sudoku, then relations such as ``r1c1<r1c2``. A grid has ``<`` and ``>`` between cells. A
    line between two rows is optional and has ``^`` (the upper cell is smaller) or ``v`` (the lower cell is smaller)
    under a cell. Other relations follow in lines below the grid, written as above.
    """
    return only_query(boards, text)


def boards(text_lines: list[Line], size: int | None) -> Iterator[Found]:
    """Find the queries in lines, see ``parse``."""
    text_lines = spaces_as_blanks(text_lines, SYMBOLS)
    rows = without_dashes(rows_of(text_lines, _split))
    for line in text_lines[: rows[0].at if rows else None]:
        if line.text.strip() and not is_border(line.text):
            yield line.number, line.error("the line has relations but no cells, and there is no row above it")
    for number, grid in grids_of(text_lines, rows, lambda own, alone: _is_line(own, alone, size)):
        try:
            yield number, grid if isinstance(grid, TextError) else _query(grid)
        except TextError as error:
            yield number, error


def _split(line: Line) -> tuple[Sequence[str], Sequence[int], str, bool] | None:
    if {*line.text} <= {*SIGNS, " ", "\t"}:
        return None
    named = START.search(line.text)
    own = line.text[: named.start()] if named else line.text
    words = own.replace("<", " ").replace(">", " ").translate(NO_BARS)
    cells, places = cells_of(words)
    rest = line.text[len(own) :]
    return (cells, places, rest, not rest and len(words.split()) > 1) if cells else None


def _is_line(rows: list[Row], alone: bool, size: int | None) -> bool:
    cells = len(rows[0].cells)
    n = isqrt(cells)
    if rows[0].rest and (n * n != cells or n > len(SYMBOLS) or n != (size or n)):
        raise rows[0].line.error(
            f"a Futoshiki line starts with n*n cells (16, 25 or 36, for example), got {cells} cells before relations"
        )
    if rows[0].rest or (rows[0].drawn and cells <= len(SYMBOLS) and cells == (size or cells)):
        return bool(rows[0].rest)
    return lines_or_rows(rows, alone, size, (2, 3, 4, 5))


def _query(grid: Grid) -> Query:
    n = grid.size
    values = grid.values()
    relations: list[tuple[int, int]] = []
    drawn = len(grid.rows) == n > 1
    for r, (row, below) in enumerate(zip(grid.rows, grid.below, strict=True)):
        if row.rest:
            relations += _named(row.line, len(row.line.text) - len(row.rest), n)
        if drawn:
            if list(row.places) != list(grid.rows[0].places):
                raise row.line.error(
                    f"the cells of row {r + 1} of the grid are not aligned with those of the row above"
                )
            relations += _beside(row, r, n)
        for line in below:
            if START.match(line.text.strip()):
                relations += _named(line, 0, n)
            elif not is_border(line.text):
                relations += _under(line, row, r, n, drawn)
    return Query(futoshiki(n), values, _distinct(relations))


def _beside(row: Row, r: int, n: int) -> Iterator[tuple[int, int]]:
    """The relations in a row of a drawing."""
    text = row.line.text.translate(NO_BARS)
    for place in (*range(row.places[0]), *range(row.places[-1] + 1, len(text))):
        if text[place] in "<>":
            raise row.line.error(f"row {r + 1} of the grid has an inequality without a cell on each side", place)
    for c, (left, right) in enumerate(pairwise(row.places)):
        sign = text[left + 1 : right].strip()
        a, b = r * n + c, r * n + c + 1
        if sign not in ("", "<", ">"):
            raise row.line.error(f"row {r + 1} of the grid has {sign!r} between two cells, expected < or >", left + 1)
        if sign:
            yield (a, b) if sign == "<" else (b, a)


def _under(line: Line, row: Row, r: int, n: int, drawn: bool) -> Iterator[tuple[int, int]]:
    """The relations in a line between two rows of a drawing."""
    for place, sign in enumerate(line.text):
        if sign.isspace():
            continue
        if not drawn or place not in row.places or r == n - 1:
            raise line.error(f"the {sign!r} below row {r + 1} of the grid is not between two cells", place)
        a = r * n + row.places.index(place)
        yield (a, a + n) if sign in "^∧" else (a + n, a)


def _named(line: Line, start: int, n: int) -> Iterator[tuple[int, int]]:
    """The relations that are written with rows and columns in a line, from a place on."""
    for word in re.finditer(r"[^\s,;<>]+\s*[<>]\s*[^\s,;<>]+|[^\s,;]+", line.text[start:]):
        match = RELATION.fullmatch(word[0])
        if not match:
            raise line.error(f"relation {word[0]!r}: expected a form like r1c1<r1c2", start + word.start())
        r1, c1, r2, c2 = (int(match[i]) for i in (1, 2, 4, 5))
        if not all(1 <= i <= n for i in (r1, c1, r2, c2)) or (r1, c1) == (r2, c2):
            why = f"relation {word[0]!r}: expected two different cells with rows and columns from 1 to {n}"
            raise line.error(why, start + word.start())
        a, b = (r1 - 1) * n + c1 - 1, (r2 - 1) * n + c2 - 1
        yield (a, b) if match[3] == "<" else (b, a)


def _distinct(relations: list[tuple[int, int]]) -> np.ndarray:
    return np.array(list(dict.fromkeys(relations)), np.int16).reshape(-1, 2)


def format_line(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
    """Write values uint8 [R] and relations int16 [M, 2] (padding is left out) in the form that ``parse`` reads."""
    pairs = [_name(a, b, problem.size) for a, b in relations.tolist() if a >= 0]
    return " ".join(["".join(symbol(int(v)) for v in values), *pairs])


def _name(a: int, b: int, n: int) -> str:
    return f"r{a // n + 1}c{a % n + 1}<r{b // n + 1}c{b % n + 1}"


def draw(
    problem: Problem,
    values: np.ndarray,
    relations: np.ndarray = NO_RELATIONS,
    given: np.ndarray | None = None,
    paint: Paint = plain,
) -> str:
    """Draw the grid with its inequalities, in the form that ``parse`` reads; blank cells are dots.

    Relations between cells that are not neighbours are listed below the grid.
    """
    n = problem.size
    known = np.ones(n * n, bool) if given is None else given
    cells = [paint(symbol(int(v)), bool(k)) if v else "." for v, k in zip(values, known, strict=True)]
    pairs = dict.fromkeys((a, b) for a, b in relations.tolist() if a >= 0)

    def sign(first: int, second: int, smaller: str, larger: str) -> str:
        for pair, drawn in (((first, second), smaller), ((second, first), larger)):
            if pair in pairs:
                del pairs[pair]
                return drawn
        return " "

    picture = []
    for row in range(n):
        line = cells[row * n]
        for c in range(1, n):
            line += f" {sign(row * n + c - 1, row * n + c, '<', '>')} {cells[row * n + c]}"
        picture.append(line)
        if row < n - 1:
            picture.append("   ".join(sign(row * n + c, (row + 1) * n + c, "^", "v") for c in range(n)))
    each = max(1, (4 * n - 3 + 1) // len(_name(n * n - 1, n * n - 1, n) + " "))
    others = [_name(a, b, n) for a, b in pairs]
    return "\n".join([*picture, *(" ".join(others[at : at + each]) for at in range(0, len(others), each))])


def explain(problem: Problem, conflict: Conflict) -> str:
    """Say which row or column has a value twice, or which inequality cannot hold."""
    n = problem.size
    relation = conflict.relation
    if conflict.rule is not None and conflict.rule.kind == KIND:
        relation = conflict.rule.choices[0] // n, conflict.rule.choices[-1] // n
    if relation is not None:
        a, b = (f"r{cell // n + 1}c{cell % n + 1}" for cell in relation)
        return f"the givens break the inequality {a}<{b}"
    if conflict.rule is None or not conflict.taken:
        return describe(problem, conflict)
    cells = [choice // n for choice in conflict.rule.choices]
    where = f"row {cells[0] // n + 1}" if cells[0] // n == cells[-1] // n else f"column {cells[0] % n + 1}"
    return f"{where} has {number_word(len(conflict.taken))} {symbol(conflict.taken[0] % n + 1)}s"


TASK = Task("futoshiki", futoshiki, parse, format_line, draw, boards, explain)
