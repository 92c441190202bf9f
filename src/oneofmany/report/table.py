"""A table as plain data, written as Markdown or CSV here and as HTML by ``page``."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """A cell and the numbers behind it.

    Args:
        text: for readers; may be empty.
        numbers: name -> number in full precision, for CSV; a cell "mean (best)" has two.
        commands: those that made the numbers.
        best: whether it is the best of its column and group.
        tone: ``right`` or ``wrong`` for a verdict, else empty.
        objective: shown in the colour of this objective, if it is one of the paper's.
    """

    text: str = ""
    numbers: dict[str, float] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    best: bool = False
    tone: str = ""
    objective: str = ""


@dataclass(frozen=True)
class Column:
    """A column's name, and the name of its group (``OS`` over ``ours`` and ``paper``)."""

    name: str
    group: str = ""

    @property
    def full_name(self) -> str:
        """The group's name and the column's."""
        return f"{self.group} {self.name}".strip()


@dataclass(frozen=True)
class Table:
    """A table of results.

    Args:
        name: of its exported files.
        title: for readers.
        columns: the first ``labels`` of them label the row.
        rows: one cell for each column.
        note: what a reader must know, in sentences.
        labels: the number of label columns.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    labels: int = 1

    @property
    def filled(self) -> bool:
        """Whether any of its numbers comes from a run."""
        return any(cell.commands for row in self.rows for cell in row)

    def commands(self) -> list[tuple[str, tuple[str, ...]]]:
        """(label of a row, the commands behind its numbers) for every row with commands."""
        found = []
        for row in self.rows:
            made = tuple(dict.fromkeys(command for cell in row for command in cell.commands))
            if made:
                found.append((", ".join(cell.text for cell in row[: self.labels] if cell.text), made))
        return found

    def markdown(self, titled: bool = True) -> str:
        """The table with its note and, if ``titled``, its title; the best are bold."""
        aligned = ["---" if i < self.labels else "---:" for i in range(len(self.columns))]
        lines = [_line(column.full_name for column in self.columns), _line(aligned)]
        lines += [_line(f"**{_plain(c.text)}**" if c.best else _plain(c.text) for c in row) for row in self.rows]
        title = [f"### {self.title}", ""] if titled else []
        return "\n".join([*title, *lines, *(["", self.note] if self.note else []), ""])

    def csv(self) -> str:
        """All numbers in full precision, and the commands behind each row."""
        keys = [
            list(dict.fromkeys(key for row in self.rows for key in row[i].numbers)) for i in range(len(self.columns))
        ]
        head = [
            name
            for column, own in zip(self.columns, keys, strict=True)
            for name in ([f"{column.full_name} {key}".strip() for key in own] or [column.full_name])
        ]
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*head, "commands"])
        for row in self.rows:
            values: list[object] = []
            for cell, own in zip(row, keys, strict=True):
                values += [cell.numbers.get(key, "") for key in own] or [cell.text]
            made = dict.fromkeys(command for cell in row for command in cell.commands)
            writer.writerow([*values, " && ".join(made)])
        return file.getvalue()


def columns(labels: Sequence[str], groups: Iterable[tuple[str, Sequence[str]]]) -> tuple[Column, ...]:
    """The columns of labels, then those of every group."""
    named = [Column(name, group) for group, names in groups for name in names]
    return (*(Column(label) for label in labels), *named)


def slug(*words: str) -> str:
    """Any words as part of a file's name or an element's id."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")


def signed(points: float) -> str:
    """``+1.20`` or ``−1.20``."""
    return f"{points:+.2f}".replace("-", "−")


def _line(words: Iterable[str]) -> str:
    return "| " + " | ".join(words) + " |"


def _plain(text: str) -> str:
    """Text that cannot leave its Markdown cell."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
