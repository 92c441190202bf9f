"""``oneofmany count``: count the solutions of queries."""

from __future__ import annotations

from typing import Annotated

import tyro

from oneofmany.cli.options import TaskFile, option, use_task
from oneofmany.cli.reading import SIZE, read_queries
from oneofmany.cli.terminal import compiling, progress, say
from oneofmany.problems import task_named

AT_ONCE = 4096
"""Up to this many queries are counted without showing progress."""


def count(
    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")],
    query: Annotated[str | None, tyro.conf.Positional, option("[QUERY|FILE]", "-")] = None,
    *,
    limit: int = 1_000_000,
    size: Annotated[int | None, SIZE] = None,
    seconds: Annotated[float | None, option("S", "no limit")] = None,
    task_file: TaskFile = None,
) -> int:
    """Count the solutions of queries and print one number per line.

    Example: oneofmany count sudoku puzzles.txt --limit 1000

    Example: oneofmany count nqueens "3 . . . . . 2 ."

    Args:
        task: nqueens, futoshiki, sudoku, colouring, or a task of your own.
        query: a query as text, a file of queries (docs/reading.md lists the formats), or - for standard input.
        limit: stop counting a query at this number; a line on stderr names every query that reaches it.
        size: number of rows and columns, if a text can be read in two sizes.
        seconds: count at most this long, for all queries together; a line on stderr names every query that may have
            more solutions than printed. The exit code is 1 then.
    """
    use_task(task_file)
    read = read_queries(task_named(task), query, size)
    from oneofmany.solving import count_solutions

    with compiling(), progress() as bar:

        def tell(what: str, done: int, of: int) -> None:
            if of > AT_ONCE:
                bar(what, done, of)

        counts = count_solutions([one for _, one in read.queries], limit, seconds=seconds, tell=tell)
    for total in counts.total:
        print(total)
    for (number, _), total, finished in zip(read.queries, counts.total, counts.finished, strict=True):
        if not finished:
            say(f"oneofmany: line {number} has at least {total:,} solutions: the time was up")
        elif total >= limit:
            say(f"oneofmany: line {number} has {limit} solutions or more: counting stopped at the limit")
    for complaint in read.complaints:
        say(f"oneofmany: {complaint}")
    return 2 if read.complaints else int(not counts.finished.all())
