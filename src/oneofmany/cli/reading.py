"""Read queries from text files; bad lines are reported and skipped."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from oneofmany.files import FileError
from oneofmany.problems import TASKS, Query, Task


@dataclass(frozen=True)
class Read:
    """The content of a file: queries with the number of their first line, and one sentence for every bad line."""

    queries: list[tuple[int, Query]]
    complaints: list[str]


def find_task(name: str) -> Task:
    """The task with this name; ValueError if there is none."""
    if name not in TASKS:
        raise ValueError(f"task: expected one of {', '.join(TASKS)}, got {name!r}")
    return TASKS[name]


def read_queries(task: Task, file: Path) -> Read:
    """Read one query per line (``-`` is standard input); drawn Futoshiki grids are separated by empty lines."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise FileError(f"{file} cannot be read: {why}") from None
    queries, complaints = [], []
    for number, block in _blocks(task, text):
        try:
            queries.append((number, task.parse(block)))
        except ValueError as error:
            complaints.append(f"line {number}: {error}")
    if not queries and not complaints:
        raise FileError(f"{file} contains no query")
    return Read(queries, complaints)


def _blocks(task: Task, text: str) -> list[tuple[int, str]]:
    """The text of every query, with the number of its first line."""
    blocks: list[tuple[int, str]] = []
    drawn = False
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            drawn = False
        elif drawn:
            blocks[-1] = (blocks[-1][0], f"{blocks[-1][1]}\n{line}")
        else:
            blocks.append((number, line.rstrip("\r")))
            # A drawn grid starts with a single cell, the one-line form with all of them.
            drawn = task.name == "futoshiki" and len(line.split()[0]) == 1 and len(line.split()) > 1
    return blocks
