"""Read the queries of a command: text on the command line, a file, or standard input; bad ones are reported."""

from __future__ import annotations

import os
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import dataclass
from pathlib import Path

from oneofmany.cli.options import option
from oneofmany.files import FileError
from oneofmany.problems import Query, Task, TextError

MOST_COMPLAINTS = 20
MOST_PIPED = 2**26
"""The largest number of characters from a pipe or device, which may have no end; a file can be larger."""
SIZE = option("N", "as the text says")
"""The option --size of commands that read queries."""


@dataclass(frozen=True)
class Read:
    """Queries with the number of their first line, and one sentence for every bad one."""

    queries: list[tuple[int, Query]]
    complaints: list[str]


def is_source(query: str) -> bool:
    """Whether the text is a file or ``-``, not a query itself."""
    try:
        return query == "-" or (Path(query).exists() and not Path(query).is_dir())
    except (OSError, ValueError):  # too long for a file name, or with characters that file names cannot have
        return False


def read_queries(task: Task, query: str | None, size: int | None = None) -> Read:
    """Read the argument of a command: a query, a file of queries, or ``-`` (also None) for standard input."""
    if size is not None and size < 1:
        raise ValueError(f"--size: expected at least 1, got {size}")
    if query is None and (sys.stdin is None or sys.stdin.isatty()):
        raise ValueError(f"name the query of {task.name}: as text, as a file, or - for standard input")
    if query is None or is_source(query):
        name = "standard input" if query in (None, "-") else query
        return _read(task, _content(query or "-", name), size, f"{name}: ", f"{name} contains no query")
    try:
        read = _read(task, query, size, "", "the text is empty")
    except ValueError as error:
        raise ValueError(f"{_not_a_file(query)} a query: {error}") from None
    if not read.queries:
        raise ValueError(f"{_not_a_file(query)} a query: {read.complaints[0]}")
    return read


def _not_a_file(query: str) -> str:
    what = "a folder, not a file, and not" if os.path.isdir(query) else "neither a file nor"
    return f"{query[:100]!r} is {what}"


def _content(file: str, name: str) -> str:
    try:
        # Bytes, whatever the locale: a file and standard input are the same text, with the line ends that it has.
        if file == "-":
            if sys.stdin is None:
                raise OSError("it is closed")
            content = getattr(sys.stdin, "buffer", sys.stdin).read(MOST_PIPED + 1)
        else:
            with Path(file).open("rb") as source:
                content = source.read(-1 if Path(file).is_file() else MOST_PIPED + 1)
        if len(content) > MOST_PIPED and not Path(file).is_file():
            raise FileError(f"{name} has more than {MOST_PIPED:,} characters: save them as a file first")
        if isinstance(content, str):
            return content
        return content.decode("utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror or error if isinstance(error, OSError) else "it is not text"
        raise FileError(f"{name} cannot be read: {why}") from None


def _read(task: Task, text: str, size: int | None, where: str, empty: str) -> Read:
    queries, complaints = [], []
    try:
        for number, query in task.read(text, size):
            if isinstance(query, TextError):
                complaints.append(f"{where}{query}")
            else:
                queries.append((number, query))
    except TextError as error:  # the text as a whole, for example its CSV header
        raise FileError(f"{where}{error}") from None
    if not queries and not complaints:
        raise FileError(empty)
    if (more := len(complaints) - MOST_COMPLAINTS) > 1:
        complaints[MOST_COMPLAINTS:] = [f"{where}{more:,} more queries cannot be read"]
    return Read(queries, complaints)
