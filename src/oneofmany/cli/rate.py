"""``oneofmany rate``: how hard puzzles are."""

from __future__ import annotations

import json
from typing import Annotated

import numpy as np
import tyro

from oneofmany.cli.options import Json, option
from oneofmany.cli.reading import read_queries
from oneofmany.cli.terminal import say
from oneofmany.problems import TASKS


def rate(
    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")],
    query: Annotated[str | None, tyro.conf.Positional, option("[QUERY|FILE]", "-")] = None,
    *,
    searches: int = 8,
    seed: int = 0,
    as_json: Json = False,
) -> int:
    """Rate 9x9 Sudokus: the number of values that a search has to try, 0 if singles are enough.

    Prints one line per puzzle: rating, givens, solutions (0, 1, or 2+ for two or more). A search fills in naked and
    hidden singles, then branches on a random cell with the fewest candidates, until everything is searched or a second
    solution is found; it gives up after a million values.

    Example: oneofmany rate sudoku puzzles.txt

    Args:
        task: sudoku, the only task that has a rating.
        query: a puzzle as text, a file of puzzles (docs/reading.md lists the formats), or - for standard input.
        searches: a rating is the mean over this many random searches.
        seed: random seed; the same seed gives the same ratings.
        as_json: print one JSON object per puzzle, with its line.
    """
    if task != "sudoku":
        raise ValueError(f"task: only sudoku has a rating, got {task!r}")
    read = read_queries(TASKS[task], query)
    complaints = list(read.complaints)
    puzzles = []
    for line, one in read.queries:
        if one.problem.size == 9:
            puzzles.append((line, one.values))
        else:
            size = one.problem.size
            complaints.append(f"line {line}: only 9x9 Sudokus have a rating, got {size}x{size}")
    from oneofmany.exact import rate as rate_puzzles

    rows = np.stack([values for _, values in puzzles]) if puzzles else np.zeros((0, 81), np.uint8)
    rated = rate_puzzles(rows, searches=searches, seed=seed)
    for (line, values), rating, solutions in zip(puzzles, rated.rating, rated.solutions, strict=True):
        givens = int((values > 0).sum())
        if as_json:
            # "solutions" of a puzzle with more than one is 2: the search does not count further.
            print(json.dumps({"line": line, "rating": float(rating), "givens": givens, "solutions": int(solutions)}))
        else:
            print(f"{rating:8.2f}  {givens:2}  {'2+' if solutions > 1 else solutions}")
    for complaint in complaints:
        say(f"oneofmany: {complaint}")
    return 2 if complaints else 0
