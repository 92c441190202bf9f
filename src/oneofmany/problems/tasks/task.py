"""A task: how its problems are built, and how its queries are read, written and drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from inspect import signature
from operator import index
from typing import Any, Protocol

import numpy as np

from oneofmany.problems.givens import Conflict, conflicts, describe
from oneofmany.problems.problem import Problem
from oneofmany.problems.tasks.lines import Line, TextError, lines_of

BLANKS = ".0_X*?-·"
"""Symbols of a blank cell in texts; ``x`` too. Written and drawn are ``.`` and ``·``."""
MOST_NAMED = 3
"""At most this many contradictions of a query are named."""
SYMBOLS = "123456789ABCDEFGHIJKLMNOP"
"""Symbols of the values 1 to 25."""

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


Found = tuple[int, Query | TextError]
"""The number of the first line of a query, and the query or what is wrong with it."""
Boards = Callable[[list[Line], int | None], Iterator[Found]]
"""Finds the queries in lines; the size is known or None."""


@dataclass(frozen=True)
class Source:
    """Where the code of a task outside of the package comes from.

    Args:
        path: the file, as an absolute path.
        sha256: of its bytes.
        package: name and version of the installed package that the file belongs to; empty for a task file.
    """

    path: str
    sha256: str
    package: str = ""


@dataclass(frozen=True)
class Names:
    """The words of a task whose variables and values are not numbers.

    Args:
        variables: a name for each of the R variables.
        values: a name for each of the V values.
    """

    variables: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """A task: its name and the same functions for every puzzle.

    ``grid_task`` and ``named_task`` make a task with its text form and its drawing from the problem alone.

    Args:
        name: the name in file headers and on the command line.
        problem: builds the problem of a size; keyword arguments are the problem's ``options``. The default of its first
            argument is the usual size. It may have no arguments, for a task of one size.
        parse: reads one query from text; raises ValueError in one sentence if it cannot.
        format: writes values [R] and relations [M, 2] in the one-line text form that ``parse`` reads.
        draw: draws a board as text for people.
        boards: finds all queries in the lines of a text; None if every line is a query that ``parse`` reads.
        explain: says in the words of the task which rule the givens of a query break ("row 3 has two 5s").
        build: builds data: ``build(problem, queries, split, seed)`` returns a ``Dataset`` of this many queries; None
            for queries made from random solutions (``oneofmany.data.own_task``).
        names: the names of variables and values, for the board viewer; None if they are numbers.
        source: the code of the task, if it is not in the package.
    """

    name: str
    problem: Callable[..., Problem]
    parse: Callable[[str], Query]
    format: Callable[[Problem, np.ndarray, np.ndarray], str]
    draw: Drawing
    boards: Boards | None = None
    explain: Callable[[Problem, Conflict], str] = describe
    build: Callable[..., Any] | None = None
    names: Names | None = None
    source: Source | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "problem", sized(self.problem))

    def read(self, text: str, size: int | None = None) -> Iterator[Found]:
        """Find the queries in a text of any format that the task knows, with the numbers of their first lines.

        A query that cannot be read is a ``TextError``. ``size`` is needed only if a text can be read in two sizes.
        """
        find = self.boards or self._line_by_line
        parts = lines_of(text)
        for lines in parts:
            if isinstance(lines, TextError):
                yield lines.line, lines
                continue
            found = list(find(lines, size)) if len(parts) > 1 else find(lines, size)
            if len(parts) > 1 and isinstance(found, list) and len(found) != 1:
                why = f"the field has {len(found)} queries, expected 1" if found else "the field has no query"
                found = [(lines[0].number, lines[0].error(why))]
            yield from found

    def _line_by_line(self, lines: list[Line], size: int | None) -> Iterator[Found]:
        for line in lines:
            if line.text.strip():
                try:
                    query = self.parse(line.text)
                    if size not in (None, query.problem.size):
                        raise ValueError(f"the query has the size {query.problem.size}, expected {size}")
                    yield line.number, query
                except ValueError as error:
                    yield line.number, line.error(str(error))

    def contradiction(self, query: Query) -> str | None:
        """Say how the givens of a query contradict each other; None if no two of them do."""
        found = conflicts(query.problem, query.values, query.relations)
        direct = [conflict for conflict in found if conflict.taken or conflict.relation]
        said = list(dict.fromkeys(self.explain(query.problem, conflict) for conflict in direct or found))
        more = f"; and {len(said) - MOST_NAMED:,} more" if len(said) > MOST_NAMED else ""
        return "; ".join(said[:MOST_NAMED]) + more or None


def whole(number: object, most: int, expected: str) -> int:
    """Return a size or another whole number from 1 to ``most``; ``expected`` begins the error if it is not one."""
    try:
        found = index(None if isinstance(number, bool) else number)  # type: ignore[arg-type]
    except TypeError:
        found = 0
    if not 1 <= found <= most:
        raise ValueError(f"{expected}, got {number!r}")
    return found


def sized(problem: Callable[..., Problem]) -> Callable[..., Problem]:
    """Return a builder that takes a size, of one that may have no arguments."""
    try:
        parameters = signature(problem).parameters
    except (TypeError, ValueError):
        return problem  # not a function of Python, which the conformance test or its first call says
    if parameters:
        return problem

    def of_size(size: int | None = None) -> Problem:
        built = problem()
        if size not in (None, built.size):
            raise ValueError(f"size: {built.task} has the size {built.size} only, got {size}")
        return built

    return of_size


def only_query(boards: Boards, text: str) -> Query:
    """Return the query that a text holds; ValueError if it holds none or several."""
    parts = [[(1, lines)] if isinstance(lines, TextError) else boards(lines, None) for lines in lines_of(text)]
    return only_found(found for part in parts for found in part)


def only_found(found: Iterable[Found]) -> Query:
    """Return the one query that was found; ValueError if it cannot be read, or if there is none or several."""
    queries = [query for _, query in found]
    for query in queries:
        if isinstance(query, TextError):
            raise query
    if len(queries) != 1 or not isinstance(queries[0], Query):
        raise ValueError(
            f"expected one query, got a text with {len(queries)}" if queries else "expected a query, got an empty text"
        )
    return queries[0]


NO_RELATIONS = np.zeros((0, 2), np.int16)
NO_RELATIONS.setflags(write=False)


def plain(text: str, given: bool) -> str:
    """Return the text of a cell unchanged."""
    return text


def symbol(value: int) -> str:
    """Return the character of a value 1..25, ``.`` for 0."""
    return SYMBOLS[value - 1] if value else "."
