"""Group lines of cells into boards: one line with all cells, a line for each row, or a drawing with borders."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, groupby, pairwise
from math import isqrt
from typing import NamedTuple

import numpy as np

from oneofmany.problems.tasks.lines import BARS, Line, TextError, is_border
from oneofmany.problems.tasks.task import BLANKS, SYMBOLS

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXY"

NO_BARS = str.maketrans(BARS, " " * len(BARS))
_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_NOTHING = re.compile(rf"(?<=[{BARS}])\s+(?=[{BARS}])")
_WRAPS = {*"[](){}\"'"}
_NO_WRAPS = str.maketrans(dict.fromkeys("[](){}\"'", " "))
_FEWEST_NUMBERS = 10  # a value of two digits needs a board with at least this many cells in a row


class Row(NamedTuple):
    """A line with cells.

    Args:
        line: the line.
        at: its index among the lines.
        paragraph: the number of empty lines above it.
        cells: the text of every cell; a string has one character for each.
        places: the index of every cell in the text of the line.
        rest: what follows the cells.
        drawn: whether the way it is written shows that it is a row of a board.
    """

    line: Line
    at: int
    paragraph: int
    cells: Sequence[str]
    places: Sequence[int]
    rest: str = ""
    drawn: bool = False


Split = Callable[[Line], tuple[Sequence[str], Sequence[int], str, bool] | None]
"""Returns cells, places, rest and drawn of a line; None if the line has no cells."""


class Grid(NamedTuple):
    """A board as text: its rows of cells, or one row with all cells.

    Args:
        size: the number of rows and columns.
        rows: its lines of cells.
        below: for every row, the lines below it that are neither empty nor cells, up to the next row.
    """

    size: int
    rows: list[Row]
    below: list[list[Line]]

    def values(self) -> np.ndarray:
        """Read the cells: uint8 [cells], 0 for blank; the first one that is not a value is an error."""
        if all(isinstance(row.cells, str) for row in self.rows):
            text = "".join(row.cells for row in self.rows if isinstance(row.cells, str)).translate(_UPPER)
            known = self._alphabet(set(text))
            values = [known.get(cell, -1) for cell in text]
        else:
            cells = [cell.translate(_UPPER) for row in self.rows for cell in row.cells]
            known = self._alphabet(set(cells))
            known = known | {
                cell: int(cell) for cell in {*cells} if 1 < len(cell) < 4 and cell.isascii() and cell.isdigit()
            }
            values = [known.get(cell, -1) for cell in cells]
        if min(values) < 0 or max(values) > self.size:
            wrong = next(at for at, value in enumerate(values) if not 0 <= value <= self.size)
            row, column = next(
                (row, wrong - before)
                for row, before in zip(
                    self.rows, accumulate((len(r.cells) for r in self.rows), initial=0), strict=False
                )
                if wrong < before + len(row.cells)
            )
            raise row.line.error(
                f"{row.cells[column]!r} is not a value of size {self.size}: expected . or 0 for blank, or "
                f"{SYMBOLS[0]} to {SYMBOLS[self.size - 1]}",
                row.places[column],
            )
        return np.array(values, np.uint8)

    def _alphabet(self, used: set[str]) -> dict[str, int]:
        """The value of every symbol; boards of 10 and more values have several usual alphabets."""
        n = self.size
        known = _symbols(n)
        if n <= 9:
            return known
        letters = {*LETTERS[:n]}
        if used & (letters - {*SYMBOLS[:n], "X"}) and not used & {*"123456789"}:  # A to P is 1 to 16
            return known | {symbol: value for value, symbol in enumerate(LETTERS[:n], 1)}
        if "X" in used & letters and not used & {*"123456789"}:
            raise self.rows[0].line.error("X can be a blank or the value 24 on this board: use . for blanks")
        blanks = used & {*BLANKS} - {"0"}
        if "0" in used and blanks and SYMBOLS[n - 1] not in used:  # 0 to F is 1 to 16
            return known | {"0": 1} | {symbol: value for value, symbol in enumerate(SYMBOLS[: n - 1], 2)}
        return known


@cache
def _symbols(n: int) -> dict[str, int]:
    return dict.fromkeys(BLANKS, 0) | {symbol: value for value, symbol in enumerate(SYMBOLS[:n], 1)}


def cells_of(text: str, grouped: bool = True) -> tuple[Sequence[str], Sequence[int]]:
    """Return the text of every cell in a line, and its place.

    Cells are separated by commas, semicolons or single tabs (nothing between two of them is a blank), by spaces and
    bars, or by nothing. Brackets and quotes around cells are left out. With ``grouped``, spaces and bars may separate
    groups of cells: words of two digits are numbers only if there are ten words or more, each of them one character or
    a number. Nothing but spaces between two bars is a cell that no task knows.
    """
    if not _WRAPS.isdisjoint(text):
        text = text.translate(_NO_WRAPS).rstrip(" \t,")
    separator = next((one for one in ",;" if one in text), "\t" if _from_a_table(text) else "")
    if separator:
        fields = text.split(separator)
        starts = accumulate((len(field) + 1 for field in fields[:-1]), initial=0)
        places = [start + len(field) - len(field.lstrip()) for start, field in zip(starts, fields, strict=True)]
        return [field.strip() or "." for field in fields], places
    if _NOTHING.search(text):
        parts = [*re.finditer(rf"[^\s{BARS}]|{_NOTHING.pattern}", text)]
        return [part.group()[0] for part in parts], [part.start() for part in parts]
    bare = text.translate(NO_BARS)
    words = bare.split()
    if len(words) == 1:
        start = bare.index(words[0])
        return words[0], range(start, start + len(words[0]))
    found = [(match.start(), match.group()) for match in re.finditer(r"\S+", bare)]
    numbers = len(words) >= _FEWEST_NUMBERS and all(
        len(word) == 1 or (len(word) == 2 and word.isdigit()) for word in words
    )
    if not grouped or (numbers and max(map(len, words)) > 1):
        return words, [start for start, _ in found]
    return "".join(words), [place for start, word in found for place in range(start, start + len(word))]


def _from_a_table(text: str) -> bool:
    """Whether tabs separate cells, of which some are empty, as in what a spreadsheet copies."""
    fields = text.split("\t")
    return len(fields) > 1 and "" in fields and all(len(field) < 3 and field not in {*BLANKS} for field in fields)


def rows_of(lines: Sequence[Line], split: Split) -> list[Row]:
    """Return the lines with cells."""
    rows: list[Row] = []
    paragraph = 0
    for at, line in enumerate(lines):
        if not line.text or line.text.isspace():
            paragraph += 1
        elif not is_border(line.text) and (found := split(line)):
            rows.append(Row(line, at, paragraph, *found))
    return rows


def without_dashes(rows: Iterable[Row]) -> list[Row]:
    """Leave out lines of dashes that are borders; the others are rows of blanks."""
    return [row for _, group in groupby(rows, lambda row: row.paragraph) for row in _without_dashes([*group])]


def _without_dashes(rows: list[Row]) -> list[Row]:
    # A line of dashes is a border if the other rows are complete boards without it, or have another length.
    dashes = [{*row.line.text} <= {*BARS, *"- \t"} for row in rows]
    others = [row for row, dashed in zip(rows, dashes, strict=True) if not dashed]
    if not others or len(others) == len(rows):
        return rows
    n = len(others[0].cells)
    complete = n <= len(SYMBOLS) and len(others) % n == 0
    return [
        row for row, dashed in zip(rows, dashes, strict=True) if not dashed or (len(row.cells) == n and not complete)
    ]


Choice = Callable[[list[Row], bool], bool]
"""Takes rows with equally many cells, and whether the first is a paragraph of its own; whether each is a query."""


def grids_of(lines: Sequence[Line], rows: list[Row], is_whole: Choice) -> Iterator[tuple[int, Grid | TextError]]:
    """Yield the number of the first line and the grid of every board, or what is wrong with it."""
    if not rows:
        return
    ends = {row.at: following.at for row, following in pairwise(rows)}
    in_paragraph = Counter(row.paragraph for row in rows)

    def grid(size: int, own: list[Row]) -> tuple[int, Grid]:
        below = [lines[row.at + 1 : ends.get(row.at, len(lines))] for row in own]
        return own[0].line.number, Grid(size, own, [[one for one in part if one.text.strip()] for part in below])

    refused = -1  # the paragraph of the last board whose rows have different numbers of cells
    stretches = [[*group] for _, group in groupby(rows, lambda row: (len(row.cells), bool(row.rest), row.drawn))]
    decided = [_decided(own, is_whole, in_paragraph[own[0].paragraph] == 1) for own in stretches]
    following = [*zip(stretches[1:], decided[1:], strict=True), ([], True)]
    for own, whole, (after, after_whole) in zip(stretches, decided, following, strict=True):
        cells = len(own[0].cells)
        if isinstance(whole, TextError):
            yield own[0].line.number, whole
        elif whole:
            yield from (grid(isqrt(cells), [row]) for row in own)
        else:
            for board in _boards([row for row in own if row.paragraph != refused], cells):
                if len(board) == cells:
                    yield grid(cells, board)
                    continue
                number, error = board[0].line.number, _not_a_board(board)
                if after_whole is False and board[-1] is own[-1] and after[0].paragraph == own[-1].paragraph:
                    refused = own[-1].paragraph
                    why = f"the row has {len(after[0].cells)} cells, but the row above has {cells}"
                    error = after[0].line.error(why, after[0].places[0])
                yield number, error


def _decided(rows: list[Row], is_whole: Choice, alone: bool) -> bool | TextError:
    try:
        return is_whole(rows, alone)
    except TextError as error:
        return error


def _not_a_board(rows: list[Row]) -> TextError:
    """What is wrong with rows that are not as many as a board has."""
    n = len(rows[0].cells)
    try:
        if not rows[0].rest:
            Grid(n, rows, []).values()
    except TextError as error:
        return error
    if len(rows) == 1 and not rows[0].rest:
        return rows[0].line.error(_neither(n), rows[0].places[0])
    have = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    return rows[0].line.error(f"the board has {have} of {n} cells, expected {n} rows", rows[0].places[0])


def _neither(cells: int) -> str:
    return f"the line has {cells} cells, expected n*n (16, 36, 81, 256 or 625, for example), or n lines of n cells"


def _boards(rows: list[Row], n: int) -> Iterator[list[Row]]:
    """Yield the rows of every board. Empty lines may be inside a board if all boards then come out even.

    A list that does not have n rows holds the rows that are not a board.
    """
    open_rows: list[Row] = []
    parts = [[*group] for _, group in groupby(rows, lambda row: row.paragraph)]
    for part in [*parts, []]:
        if part and len(part) % n:
            open_rows += part
            continue
        yield from _even(open_rows, n)
        open_rows = []
        yield from (part[first : first + n] for first in range(0, len(part), n))


def _even(rows: list[Row], n: int) -> Iterator[list[Row]]:
    """Yield boards of n rows that start and end with a paragraph, or all rows if they cannot be divided so."""
    boards = [rows[first : first + n] for first in range(0, len(rows), n)]
    split = any(one[-1].paragraph == other[0].paragraph for one, other in pairwise(boards))
    if not rows:
        return
    if split or len(boards[-1]) != n:
        yield rows
    else:
        yield from boards


def lines_or_rows(rows: list[Row], alone: bool, size: int | None, in_lines: Iterable[int]) -> bool:
    """Decide whether each row is a query with all cells, or one row of a board; refuses what can be both.

    ``in_lines`` are the sizes that files list with one query a line, though a line could be the row of a board too.
    """
    cells = len(rows[0].cells)
    n = isqrt(cells)
    first = rows[0].line
    if any(len(cell) > 3 for cell in rows[0].cells):
        raise first.error(
            "a field of the line is longer than a cell: name the columns in the first line (puzzle,solution)"
        )
    if size is not None:
        if cells not in (size, size * size) or size > len(SYMBOLS):
            most = f"for size {size}" if size <= len(SYMBOLS) else f"for a size up to {len(SYMBOLS)}"
            raise first.error(f"the line has {cells} cells, expected {size} or {size * size} {most}")
        return cells == size * size
    if n > len(SYMBOLS) or (n * n != cells and cells > len(SYMBOLS)):
        raise first.error(_neither(cells), rows[0].places[0])
    if n * n != cells or cells > len(SYMBOLS) or cells == 1:
        return n * n == cells
    small = {*BLANKS, "x", *SYMBOLS[:n]}
    large = sum(not small.issuperset(row.cells) for row in rows)
    if n not in in_lines or (rows[0].drawn and len(rows) > 1):
        return alone and not large
    # A list with one query a line may have bad lines; rows of a board have large values in most lines.
    if len(rows) == 1 or (len(rows) % cells and 2 * large <= len(rows)):
        return True
    if not large and len({row.paragraph for row in rows}) == len(rows):
        return True
    if large:
        return False
    raise first.error(
        f"{len(rows)} lines of {cells} cells are {len(rows)} queries of size {n} or rows of size {cells}: say which "
        f"with --size {n} or --size {cells}"
    )
