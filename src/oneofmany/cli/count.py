"""``oneofmany count``: count the solutions of queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from oneofmany.cli.reading import find_task, read_queries
from oneofmany.cli.terminal import progress, say

AT_ONCE = 4096
"""Up to this many queries are counted without showing progress."""


def count(
    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")],
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")],
    limit: int = 1_000_000,
) -> int:
    """Count the solutions of every query in a file and print one number per line.

    Example: oneofmany count sudoku puzzles.txt --limit 1000

    Args:
        task: nqueens, futoshiki or sudoku.
        file: a text file with one query per line; - reads standard input.
        limit: stop counting a query at this number; a line on stderr names every query that reaches it.
    """
    read = read_queries(find_task(task), file)
    from oneofmany.solving import count_solutions

    with progress() as bar:

        def tell(what: str, done: int, of: int) -> None:
            if of > AT_ONCE:
                bar(what, done, of)

        totals = count_solutions([query for _, query in read.queries], limit, tell=tell)
    for total in totals:
        print(total)
    for (number, _), total in zip(read.queries, totals, strict=True):
        if total >= limit:
            say(f"oneofmany: line {number} has {limit} solutions or more: counting stopped at the limit")
    for complaint in read.complaints:
        say(f"oneofmany: {complaint}")
    return 2 if read.complaints else 0
