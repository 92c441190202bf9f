"""``oneofmany count``: how many solutions queries have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tyro

from oneofmany.cli.reading import find_task, read_queries
from oneofmany.cli.terminal import progress, say

AT_ONCE = 4096
"""Queries between two signs of progress."""


def count(task: tyro.conf.Positional[str], file: tyro.conf.Positional[Path], limit: int = 1_000_000) -> int:
    """Count the solutions of every query of a file, one number a line, in the order of the input.

    Example: oneofmany count sudoku puzzles.txt --limit 1000

    Args:
        task: nqueens, futoshiki or sudoku.
        file: one query a line; - is standard input.
        limit: stop counting a query there; the number printed is then the limit, and a line on stderr says so.
    """
    read = read_queries(find_task(task), file)
    from oneofmany.exact import count as count_solutions

    totals = np.zeros(len(read.queries), np.int64)
    done = 0
    with progress() as tell:
        for problem in {id(query.problem): query.problem for _, query in read.queries}.values():
            rows = [i for i, (_, query) in enumerate(read.queries) if query.problem is problem]
            for start in range(0, len(rows), AT_ONCE):
                part = rows[start : start + AT_ONCE]
                queries = [read.queries[i][1] for i in part]
                relations = np.full((len(part), max(len(query.relations) for query in queries), 2), -1, np.int16)
                for row, query in zip(relations, queries, strict=True):
                    row[: len(query.relations)] = query.relations
                values = np.stack([query.values for query in queries])
                totals[part] = count_solutions(problem, values, relations, limit=limit)
                done += len(part)
                if len(read.queries) > AT_ONCE:
                    tell("queries counted", done, len(read.queries))
    for total in totals:
        print(total)
    for (number, _), total in zip(read.queries, totals, strict=True):
        if total >= limit:
            say(f"oneofmany: line {number} has {limit} solutions or more: counting stopped at the limit")
    for complaint in read.complaints:
        say(f"oneofmany: {complaint}")
    return 2 if read.complaints else 0
