"""Futoshiki: a Latin square with inequalities between some neighbouring cells."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from math import isqrt

import numpy as np
import torch

from oneofmany.problems.problem import Problem, lines
from oneofmany.problems.tasks.task import NO_RELATIONS, SYMBOLS, Paint, Query, Task, parse_cells, plain, symbol

KIND = "inequality"
RELATION = re.compile(r"r(\d{1,2})c(\d{1,2})([<>])r(\d{1,2})c(\d{1,2})", re.ASCII | re.IGNORECASE)


def futoshiki(n: int, inequalities: Iterable[tuple[int, int]] = ()) -> Problem:
    """Futoshiki on an n x n grid.

    Inequalities that differ from query to query are relations and are passed along with the query. ``inequalities``
    are those that hold for every query: pairs (a, b) meaning cell a < cell b, with cells counted row by row from 0.
    Kinds: ``cell`` (a cell takes one value), ``line`` (a row or column takes a value once), ``inequality``.
    """
    return _futoshiki(n, tuple((int(a), int(b)) for a, b in inequalities))


@lru_cache(maxsize=64)
def _futoshiki(n: int, inequalities: tuple[tuple[int, int], ...]) -> Problem:
    if not 1 <= n <= len(SYMBOLS):
        raise ValueError(f"n: expected a Futoshiki of 1 to {len(SYMBOLS)} values, got {n}")
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
    static = bare.relation_members(torch.tensor([inequalities])).reshape(-1, n + 1).tolist()
    rules += lines(KIND, static, exact=False)
    return Problem("futoshiki", n, n * n, n, tuple(rules), {"inequalities": inequalities}, relation_kind=KIND)


def parse(text: str) -> Query:
    """Read the one-line form or a drawn grid.

    One line: n*n cells as in Sudoku, then relations such as ``r1c1<r1c2`` separated by spaces. Drawn: a line for each
    row, with ``<`` and ``>`` between cells. A line between two rows is optional and has ``^`` (the upper cell is
    smaller) or ``v`` (the lower cell is smaller) under a cell.
    """
    rows = [line for line in text.split("\n") if line.strip()]
    if not rows:
        raise ValueError("a Futoshiki query needs at least one line, got an empty text")
    return _parse_line(rows[0]) if len(rows) == 1 else _parse_grid(rows)


def _parse_line(line: str) -> Query:
    cells, *pairs = line.split()
    n = isqrt(len(cells))
    if n * n != len(cells) or n > len(SYMBOLS):
        raise ValueError(
            f"a Futoshiki line starts with n*n cells (16, 25 or 36, for example), got {len(cells)} characters"
        )
    values = parse_cells(cells, n)
    relations = []
    for pair in pairs:
        match = RELATION.fullmatch(pair)
        if not match:
            raise ValueError(f"relation {pair!r}: expected a form like r1c1<r1c2")
        r1, c1, r2, c2 = (int(match[i]) for i in (1, 2, 4, 5))
        if not all(1 <= i <= n for i in (r1, c1, r2, c2)) or (r1, c1) == (r2, c2):
            raise ValueError(f"relation {pair!r}: expected two different cells with rows and columns from 1 to {n}")
        a, b = (r1 - 1) * n + c1 - 1, (r2 - 1) * n + c2 - 1
        relations.append((a, b) if match[3] == "<" else (b, a))
    return Query(futoshiki(n), values, _distinct(relations))


def _parse_grid(rows: list[str]) -> Query:
    def is_row(line: str) -> bool:
        return not set(line.lower()) <= set(" \t^v")

    cell_rows = [line for line in rows if is_row(line)]
    n = len(cell_rows)
    values, relations = [], []
    columns: list[int] = []  # the positions of the cells in the row above
    row = -1
    for line in rows:
        if is_row(line):
            row += 1
            above, columns = columns, [i for i, c in enumerate(line) if c not in " \t<>"]
            if len(columns) != n:
                raise ValueError(
                    f"row {row + 1} of the grid has {len(columns)} cells, expected {n}, as many as there are rows"
                )
            if above and above != columns:
                raise ValueError(f"the cells of row {row + 1} of the grid are not aligned with those of the row above")
            values.append(parse_cells("".join(line[i] for i in columns), n))
            for c, between in enumerate(line[i + 1 : j].strip() for i, j in pairwise(columns)):
                a, b = row * n + c, row * n + c + 1
                if between in ("<", ">"):
                    relations.append((a, b) if between == "<" else (b, a))
                elif between:
                    raise ValueError(f"row {row + 1} of the grid has {between!r} between two cells, expected < or >")
            if line[: columns[0]].strip() or line[columns[-1] + 1 :].strip():
                raise ValueError(f"row {row + 1} of the grid has an inequality without a cell on each side")
        else:
            for i, sign in enumerate(line.lower()):
                if sign.isspace():
                    continue
                if i not in columns or row == n - 1:
                    raise ValueError(f"the {sign!r} below row {row + 1} of the grid is not between two cells")
                a = row * n + columns.index(i)
                relations.append((a, a + n) if sign == "^" else (a + n, a))
    return Query(futoshiki(n), np.concatenate(values), _distinct(relations))


def _distinct(relations: list[tuple[int, int]]) -> np.ndarray:
    return np.array(list(dict.fromkeys(relations)), np.int16).reshape(-1, 2)


def format_line(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
    """Write values uint8 [R] and relations int16 [M, 2] (padding is left out) in the form that ``parse`` reads."""
    n = problem.size
    pairs = [f"r{a // n + 1}c{a % n + 1}<r{b // n + 1}c{b % n + 1}" for a, b in relations.tolist() if a >= 0]
    return " ".join(["".join(symbol(int(v)) for v in values), *pairs])


def draw(
    problem: Problem,
    values: np.ndarray,
    relations: np.ndarray = NO_RELATIONS,
    given: np.ndarray | None = None,
    paint: Paint = plain,
) -> str:
    """Draw the grid with its inequalities, in the form that ``parse`` reads; blank cells are dots.

    Relations between cells that are not neighbours are left out.
    """
    n = problem.size
    known = np.ones(n * n, bool) if given is None else given
    cells = [paint(symbol(int(v)), bool(k)) if v else "." for v, k in zip(values, known, strict=True)]
    pairs = {(a, b) for a, b in relations.tolist() if a >= 0}

    def sign(first: int, second: int, smaller: str, larger: str) -> str:
        if (first, second) in pairs:
            return smaller
        return larger if (second, first) in pairs else " "

    picture = []
    for row in range(n):
        line = cells[row * n]
        for c in range(1, n):
            line += f" {sign(row * n + c - 1, row * n + c, '<', '>')} {cells[row * n + c]}"
        picture.append(line)
        if row < n - 1:
            picture.append("   ".join(sign(row * n + c, (row + 1) * n + c, "^", "v") for c in range(n)))
    return "\n".join(picture)


TASK = Task("futoshiki", futoshiki, parse, format_line, draw)
