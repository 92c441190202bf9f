"""``oneofmany count``: how many solutions queries have."""

from __future__ import annotations

from pathlib import Path

import tyro

from oneofmany.cli.reading import find_task, read_queries
from oneofmany.cli.terminal import progress, say

AT_ONCE = 4096
"""So few queries are counted without a sign of progress."""


def count(task: tyro.conf.Positional[str], file: tyro.conf.Positional[Path], limit: int = 1_000_000) -> int:
    """Count the solutions of every query of a file, one number a line, in the order of the input.

    Example: oneofmany count sudoku puzzles.txt --limit 1000

    Args:
        task: nqueens, futoshiki or sudoku.
        file: one query a line; - is standard input.
        limit: stop counting a query there; the number printed is then the limit, and a line on stderr says so.
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
