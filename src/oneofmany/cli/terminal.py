"""Progress, tables and boards: results go to stdout, the rest to stderr; plain text without a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Column
from rich.text import Text

from oneofmany.cli.text import printable
from oneofmany.problems import Problem, Task
from oneofmany.progress import Progress


def results() -> Console:
    """The console for results; square brackets are text."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(sentence: str) -> None:
    """Print a message that is not a result."""
    print(printable(sentence), file=sys.stderr)


@contextmanager
def progress() -> Iterator[Progress]:
    """A function that shows progress: bars on a terminal, otherwise a line every few seconds."""
    if not sys.stderr.isatty():
        last = 0.0

        def line(what: str, done: int, of: int) -> None:
            nonlocal last
            if time.monotonic() - last > 5 or done == of:
                last = time.monotonic()
                say(f"{what}: {done:,} of {of:,}")

        yield line
        return
    name = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, max_width=28))
    columns = (name, BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        known: dict[str, TaskID] = {}

        def bar(what: str, done: int, of: int) -> None:
            if what not in known:
                known[what] = bars.add_task(what, total=of)
            bars.update(known[what], completed=done, total=of)

        yield bar


def draw_boards(
    task: Task,
    problem: Problem,
    query: np.ndarray,
    relations: np.ndarray,
    solutions: np.ndarray,
    width: int,
    titles: list[str] | None = None,
) -> Text:
    """A query and its solutions as boards side by side, as many in a row as ``width`` columns allow.

    query: uint8 [R]; relations: int16 [M, 2]; solutions: uint8 [K, R]. Cells that are blank in the query are coloured.
    Without titles, solutions are numbered.
    """
    given = query > 0

    def board(values: np.ndarray) -> list[str]:
        # Control characters mark filled cells until they are coloured.
        return task.draw(problem, values, relations, given, _mark).split("\n")

    boards = [board(query), *(board(values) for values in solutions)]
    titles = ["query", *(titles or (f"solution {i + 1}" for i in range(len(solutions))))]
    # A title is as wide as its board or narrower, so that boards can be read back from their columns.
    widest = max(len(line.replace("\x01", "").replace("\x02", "")) for lines in (*boards, titles) for line in lines)
    each_row = max(1, (width + 3) // (widest + 3))
    text = Text()
    for start in range(0, len(boards), each_row):
        part = boards[start : start + each_row]
        text.append(
            "   ".join(f"{title:<{widest}}" for title in titles[start : start + each_row]).rstrip() + "\n", "dim"
        )
        for lines in zip(*part, strict=True):
            for i, line in enumerate(lines):
                _append(text, line)
                bare = len(line.replace("\x01", "").replace("\x02", ""))
                text.append("\n" if i == len(part) - 1 else " " * (widest - bare + 3))
    return text


def _mark(cell: str, given: bool) -> str:
    return cell if given else f"\x01{cell}\x02"


def _append(text: Text, line: str) -> None:
    for i, piece in enumerate(line.split("\x01")):
        filled, _, rest = piece.partition("\x02") if i else ("", "", piece)
        text.append(filled, "bold green")
        text.append(rest)


@contextmanager
def compiling() -> Iterator[None]:
    """Say so when functions are compiled in this context; code that numba has kept is not compiled."""
    from oneofmany.compiled import announced, cache_folder

    def announce() -> None:
        kept = "this once" if cache_folder() else "and cannot keep the code (oneofmany doctor says why)"
        say(f"compiling, {kept}: about 20 seconds")

    with announced(announce):
        yield
