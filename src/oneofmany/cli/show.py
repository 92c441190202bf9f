"""``oneofmany show``: draw queries and their solutions as boards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from oneofmany.cli.options import Flag, option
from oneofmany.cli.reading import read_queries
from oneofmany.cli.terminal import draw_boards, results, say
from oneofmany.data.dataset import Dataset
from oneofmany.problems import TASKS, Query


def show(
    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATA|TASK")],
    query: Annotated[
        str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[QUERY|FILE]", help_behavior_hint="")
    ] = None,
    *,
    rows: Annotated[tuple[int, ...], option("ROW ...", "the first ones")] = (),
    number: int = 3,
    solutions: int = 4,
    ms: Flag = False,
) -> int:
    """Draw queries with their solutions as boards.

    Example: oneofmany show train.safetensors --ms --number 2

    Example: oneofmany show nqueens "3 . 5 . . . 2 ."

    Args:
        source: a data file, or a task (nqueens, futoshiki, sudoku) followed by a query.
        query: with a task: a query in its text form, or a text file of queries.
        rows: with a data file: the numbers of the queries to draw, counted from 0.
        number: with a data file and without --rows: the number of queries to draw.
        solutions: draw at most this many solutions per query.
        ms: with a data file: draw only queries with several solutions.
    """
    if solutions < 0 or number < 1:
        raise ValueError(f"expected --solutions of at least 0 and --number of at least 1, got {solutions} and {number}")
    if source in TASKS:
        if query is None:
            raise ValueError(f"name the query of {source} to show, as text or as a file")
        return _show_text(source, query, solutions)
    if query is not None:
        raise ValueError(f"{source!r} is not a task (expected one of {', '.join(TASKS)}), so a query cannot follow it")
    dataset = Dataset.load(source)
    picked = list(rows) or np.flatnonzero(dataset.multiple if ms else np.ones(len(dataset), bool))[:number].tolist()
    for row in picked:
        if not 0 <= row < len(dataset):
            raise ValueError(f"--rows: expected 0 to {len(dataset) - 1}, got {row}")
        listed = dataset.solutions_of(row)
        total = int(dataset.total[row])
        counted = f"{total:,} solutions" if total != 1 else "1 solution"
        header = f"query {row}: {counted if total >= 0 else f'{len(listed):,} listed solutions'}"
        _show_one(header, Query(dataset.problem, dataset.query[row], dataset.relations[row]), listed, solutions)
    return 0


def _show_text(task: str, query: str, solutions: int) -> int:
    from oneofmany.exact import solve

    path = Path(query)
    found: list[tuple[int, Query]]
    complaints: list[str] = []
    if "\n" not in query and len(query) < 256 and path.is_file():
        read = read_queries(TASKS[task], path)
        found, complaints = read.queries, read.complaints
    else:
        found = [(1, TASKS[task].parse(query))]
    for number, one in found:
        limit = max(1000, solutions)
        solved = solve(one.problem, one.values[None], one.relations[None], limit=limit)
        total = int(solved.total[0])
        counted = "1 solution" if total == 1 else f"{total:,} solutions{' or more' if total == limit else ''}"
        _show_one(f"line {number}: {counted}" if len(found) > 1 else counted, one, solved.of(0), solutions)
    for complaint in complaints:
        say(f"oneofmany: {complaint}")
    return 2 if complaints else 0


def _show_one(header: str, query: Query, listed: np.ndarray, most: int) -> None:
    console = results()
    task = TASKS.get(query.problem.task)
    console.print(header, style="bold")
    if task is None:
        console.print("  query     " + " ".join(str(v) if v else "." for v in query.values))
        for solution in listed[:most]:
            console.print("  solution  " + " ".join(map(str, solution)))
    else:
        width = console.width if console.is_terminal else 100
        console.print(draw_boards(task, query.problem, query.values, query.relations, listed[:most], width), end="")
    if len(listed) > most:
        console.print(f"... and {len(listed) - most:,} more")
    console.print()
