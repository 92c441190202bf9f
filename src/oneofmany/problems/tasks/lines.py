"""Split a text into the lines in which queries are: comments, headers, captions and CSV columns are taken away."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

BARS = "|│┃║¦"
"""Vertical lines between cells."""
LONGEST = 1_000_000
"""A longer line is refused. The longest query that can be written is far shorter."""
COLUMNS = ("puzzle", "puzzles", "quiz", "quizzes", "question", "questions", "query", "queries")
"""Names of the CSV column that holds the queries; other columns, such as solutions, are not read."""

_LINES = {chr(code) for code in range(0x2500, 0x2580)} - {*BARS}
_TITLE = re.compile(r"query|(?:solution|answer|step) \d+")
_CAPTION = re.compile(r"[a-z]{3}")
_MORE = re.compile(r"\.\.\. and [\d,]+ more")
_COMMENT = re.compile(r"(?:^\s*|\s)#.*|^\s*(?://|%).*")
_REMARK = re.compile(r"\s*c(?:\s|$)")
"""A comment of a DIMACS file, whose task reads it."""
_HEADING = re.compile(r"\s*(?:board|grid|problem|puzzle|sudoku) *(?:no\.|#)? *\d+ *[:.]?\s*", re.IGNORECASE)
_LONGEST_HEADING = 40
_SECTION = re.compile(r"\[([A-Za-z ]{1,40})\]")


class TextError(ValueError):
    """A text that cannot be read: one sentence, with the place of the error.

    Args:
        sentence: what is wrong.
        line: the line in the text, counted from 1.
        column: the character in the line, counted from 1.
    """

    def __init__(self, sentence: str, line: int = 1, column: int = 1) -> None:
        super().__init__(f"line {line}, column {column}: {sentence}")
        self.sentence, self.line, self.column = sentence, line, column


class Line(NamedTuple):
    """A line of a text.

    Args:
        number: its number, counted from 1.
        text: its characters, without the end of the line.
        start: the column of the first character, counted from 0; a CSV field starts later in its line.
    """

    number: int
    text: str
    start: int = 0

    def error(self, sentence: str, place: int = 0) -> TextError:
        """The error that the character at ``place`` of the text is wrong."""
        return TextError(sentence, self.number, self.start + place + 1)


def lines_of(text: str) -> list[list[Line] | TextError]:
    """Return the lines of a text, each list to be read on its own: the whole text, or the CSV fields with queries.

    A byte order mark is skipped, and lines may end in LF, CRLF or CR. Comments and headings such as ``Grid 01`` become
    empty lines, so that lines keep their numbers. A CSV row without a query is an error in its place.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = [Line(number, raw) for number, raw in enumerate(text.split("\n"), 1)]
    for line in lines:
        if len(line.text) > LONGEST:
            raise line.error(f"the line has {len(line.text):,} characters, expected at most {LONGEST:,}")
    lines = [Line(line.number, "") if _HEADING.fullmatch(line.text[:_LONGEST_HEADING]) else line for line in lines]
    if any(sign in text for sign in ("#", "//", "%")):
        lines = [Line(line.number, _COMMENT.sub("", line.text)) for line in lines]
    first = next((at for at, line in enumerate(lines) if line.text.strip() and not _REMARK.match(line.text)), None)
    if first is None:
        return [lines]
    names, delimiter = _names(lines[first].text)
    column = next((at for at, name in enumerate(names) if name in COLUMNS), None)
    if column is not None and len(names) > 1:
        return list(_fields(lines[first + 1 :], column, names[column], delimiter))
    if column is not None and names[0] != "query":
        lines[first] = Line(lines[first].number, "")  # a CSV file with one column is a list of queries
    elif len(names) > 1 and all(re.fullmatch(r"(?!x+$)[a-z_ ]{3,}", name) for name in names):
        raise lines[first].error(
            f"the CSV header has the columns {', '.join(names[:8])}: expected one of puzzle, quizzes or question"
        )
    return [_only_queries(_only_puzzles(lines) if "[" in text else lines)]


def _names(header: str) -> tuple[list[str], str]:
    """The names in a line if it is a CSV header, and its delimiter."""
    header = header[:10_000]
    delimiter = max(",;\t", key=header.count)
    return [name.strip().strip("\"'").strip().lower() for name in header.split(delimiter)], delimiter


def _fields(lines: Sequence[Line], column: int, name: str, delimiter: str) -> Iterator[list[Line] | TextError]:
    rows = csv.reader((line.text for line in lines), delimiter=delimiter)
    before = 0
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise lines[before].error(f"this is not a row of a CSV file ({error})") from None
        if row is None:
            return
        line, before = lines[before], rows.line_num
        if not any(field.strip() for field in row):
            continue
        if len(row) <= column:
            yield line.error(f"the row has {len(row)} fields, expected {column + 1} or more: the {name} is missing")
            continue
        place = sum(map(len, row[:column])) + column  # where the field is if no field is quoted
        if not line.text.startswith(row[column], place):
            place = max(line.text.find(row[column].split("\n")[0]), 0)
        parts = row[column].split("\n")
        yield [Line(line.number + at, part, 0 if at else place) for at, part in enumerate(parts)]


def _only_puzzles(lines: list[Line]) -> list[Line]:
    """Keep the sections [Puzzle] of a file with sections (.sdk); [State] and others are the state of a game."""
    kept, keep = [], True
    sections = [(line, found[1].strip().lower()) for line in lines if (found := _SECTION.fullmatch(line.text.strip()))]
    if sections and all(name != "puzzle" for _, name in sections):
        raise sections[0][0].error(f"the section {sections[0][0].text.strip()} is not known: expected [Puzzle]")
    of_line = {line.number: name for line, name in sections}
    for line in lines:
        name = of_line.get(line.number)
        keep = keep if name is None else name == "puzzle"
        kept.append(line if keep and name is None else Line(line.number, ""))
    return kept


def _only_queries(lines: list[Line]) -> list[Line]:
    """Keep the boards titled "query" of what commands print; captions, solutions and answers become empty lines."""
    titles = [at for at, line in enumerate(lines) if _is_title(line.text)]
    if not titles:
        return lines
    kept = [Line(line.number, "") if _MORE.fullmatch(line.text.strip()) else line for line in lines]
    height = last = 0
    for at, following in zip(titles, [*titles[1:], len(lines)], strict=True):
        if lines[at].text.startswith("query"):
            above = at - 1
            while above >= last and _CAPTION.search(lines[above].text):
                kept[above] = Line(lines[above].number, "")
                above -= 1
            height = following - at - 1
            if second := re.search(r"\S {3,}(?=\S)", lines[at].text):
                for below in range(at + 1, following):
                    text = kept[below].text
                    # Boards beside each other have three spaces between them; another line is not part of a board.
                    if not text[second.end() - 3 : second.end()].strip():
                        kept[below] = Line(lines[below].number, text[: second.end()])
        elif not height:
            raise lines[at].error("there is no query before this solution: give the whole output, or one board")
        else:  # more solutions of the same query, on boards of the same height
            for below in range(at + 1, min(at + 1 + height, len(lines))):
                kept[below] = Line(lines[below].number, "")
        kept[at] = Line(lines[at].number, "")
        last = at
    return kept


def _is_title(text: str) -> bool:
    if not text.startswith(("query", "solution ", "answer ", "step ")):
        return False
    return all(not word.strip() or _TITLE.fullmatch(word.strip()) for word in text.split("   "))


def is_border(text: str) -> bool:
    """Whether a line is only a border of a drawing; a line of dashes and bars may also be a row of blanks."""
    used = {*text} - {" ", "\t"}
    if used <= {*BARS}:
        return True
    if used & (_LINES | {"+", "="}):
        return used <= _LINES | {*BARS, *"+=-*:"}
    text = text.strip()
    corners = {*".:'*"}
    return (
        len(text) > 2
        and {text[0], text[-1]} <= corners
        and used <= corners | {"-"}
        and "-" in used
        and not re.search(r"[.:'*]{2}", text)
    )
