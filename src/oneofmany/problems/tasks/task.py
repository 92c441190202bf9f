"""A task: how its problems are built, and how its queries are read, written and drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from oneofmany.problems.problem import Problem

BLANKS = ".0"
SYMBOLS = "123456789ABCDEFGHIJKLMNOP"

Paint = Callable[[str, bool], str]
"""Takes the text of a cell and whether the cell is given; returns the text to show, with colours for example."""


@dataclass(frozen=True, eq=False)
class Query:
    """One query as read from text.

    Args:
        problem: the problem, of the size found in the text.
        values: uint8 [R], 0 = blank, 1..V = given.
        relations: int16 [M, 2], pairs (a, b) meaning variable a < variable b; [0, 2] if there are none.
    """

    problem: Problem
    values: np.ndarray
    relations: np.ndarray


class Drawing(Protocol):
    """Draws a board as lines of text."""

    def __call__(
        self, problem: Problem, values: np.ndarray, relations: np.ndarray, given: np.ndarray, paint: Paint
    ) -> str:
        """Draw ``values`` uint8 [R] (0 = blank); ``given`` bool [R] marks the given ones."""
        ...


@dataclass(frozen=True)
class Task:
    """A task: its name and the same four functions for every puzzle.

    Args:
        name: the name in file headers and on the command line.
        problem: builds the problem of a size; keyword arguments are the problem's ``options``.
        parse: reads one query from text; raises ValueError in one sentence if it cannot.
        format: writes values [R] and relations [M, 2] in the one-line text form that ``parse`` reads.
        draw: draws a board as text for people.
    """

    name: str
    problem: Callable[..., Problem]
    parse: Callable[[str], Query]
    format: Callable[[Problem, np.ndarray, np.ndarray], str]
    draw: Drawing


NO_RELATIONS = np.zeros((0, 2), np.int16)
NO_RELATIONS.setflags(write=False)


def plain(text: str, given: bool) -> str:
    """Return the text of a cell unchanged."""
    return text


def symbol(value: int) -> str:
    """Return the character of a value 1..25, ``.`` for 0."""
    return SYMBOLS[value - 1] if value else "."


def parse_cells(text: str, size: int) -> np.ndarray:
    """Read characters as values: ``.`` or ``0`` is blank, ``1``-``9``, then ``A``-``P``; returns uint8 [len(text)]."""
    if size > len(SYMBOLS):
        raise ValueError(f"size {size} is larger than {len(SYMBOLS)}, the largest that has a symbol for every value")
    known = dict.fromkeys(BLANKS, 0) | {s: i + 1 for i, s in enumerate(SYMBOLS[:size])}
    for c in text:
        if not c.isascii() or c.upper() not in known:
            break
    else:
        return np.array([known[c.upper()] for c in text], np.uint8)
    raise ValueError(
        f"character {c!r} is not a value of size {size}: expected . or 0 for blank, "
        f"or {SYMBOLS[0]} to {SYMBOLS[size - 1]}"
    )
