"""Kakuro: the runs of a board hold different digits with a given sum. Every query brings its own board."""

import re

import numpy as np

from oneofmany.problems import Problem, Query, Task, cage
from oneofmany.problems.tasks.task import NO_RELATIONS, Paint, plain

RUN = re.compile(r"(r\d+c\d+(?:\+r\d+c\d+)*)=(\d+)")


def kakuro(size: int = 4, cells: tuple[tuple[int, int], ...] = ()) -> Problem:
    """Return what queries of ``size`` white cells share; ``cells`` are the rows and columns of the white cells."""
    cells = tuple((row, column) for row, column in cells) or tuple((1, column) for column in range(1, size + 1))
    own = {"own_kinds": ("run-different",), "own_sums": ("run",)}
    return Problem("kakuro", size, size, 9, (), {"cells": cells}, **own)  # pyright: ignore


def parse(text: str) -> Query:
    """Read ``.... r1c1+r1c2=3 r1c1+r2c1=4 ...``: the white cells row by row, then the runs and their sums."""
    values, *words = text.split()
    runs = []
    for word in words:
        if not (found := RUN.fullmatch(word)):
            raise ValueError(f"{word!r}: expected a run like r1c1+r1c2=3")
        named = [(int(r), int(c)) for r, c in (cell[1:].split("c") for cell in found[1].split("+"))]
        if len(set(named)) < len(named) or len(named) > 9:
            raise ValueError(f"{word!r}: expected at most nine different cells")
        runs.append((named, int(found[2])))
    cells = sorted({cell for run, _ in runs for cell in run}) or [(1, c + 1) for c in range(len(values))]
    if len(values) != len(cells) or not set(values) <= set(".123456789"):
        raise ValueError(f"expected {len(cells)} cells, . or 1 to 9, and then runs, got {values!r}")
    rules = [rule for run, each in runs for rule in cage("run", [cells.index(cell) for cell in run], 9, each)]
    problem = kakuro(len(cells), tuple(cells)).with_rules(rules)
    return Query(problem, np.array([0 if v == "." else int(v) for v in values], np.uint8), NO_RELATIONS)


def write(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
    words = ["".join(str(value) if value else "." for value in values)]
    for rule in (rule for rule in problem.rules if rule.kind == "run"):
        named = [problem.options["cells"][v] for v in dict.fromkeys(choice // 9 for choice in rule.choices)]
        words.append("+".join(f"r{row}c{column}" for row, column in named) + f"={rule.low}")
    return " ".join(words)


def draw(
    problem: Problem,
    values: np.ndarray,
    relations: np.ndarray = NO_RELATIONS,
    given: np.ndarray | None = None,
    paint: Paint = plain,
) -> str:
    cells = problem.options["cells"]
    board = [["■"] * max(column for _, column in cells) for _ in range(max(row for row, _ in cells))]
    for at, (row, column) in enumerate(cells):
        board[row - 1][column - 1] = paint(str(values[at]), given is None or bool(given[at])) if values[at] else "·"
    return "\n".join(" ".join(row) for row in board)


TASK = Task("kakuro", kakuro, parse, write, draw)

if __name__ == "__main__":
    from oneofmany.exact import solve
    from oneofmany.testing import check_task

    check_task(TASK, sizes=[1, 2], limit=100)
    query = parse(".... r1c1+r1c2=3 r2c1+r2c2=5 r1c1+r2c1=3 r1c2+r2c2=5")
    print(draw(query.problem, solve(query.problem, query.values[None], limit=1).solutions[0]))
