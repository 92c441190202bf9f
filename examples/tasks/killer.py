"""Killer Sudoku: a Sudoku whose cages hold different digits with a given sum. Every query brings its own cages."""

import re

import numpy as np

from oneofmany.problems import Problem, Query, Task, cage, sudoku
from oneofmany.problems.tasks.sudoku import draw
from oneofmany.problems.tasks.task import NO_RELATIONS

CAGE = re.compile(r"(r[1-9]c[1-9](?:\+r[1-9]c[1-9])*)=(\d+)")


def killer(size: int = 9, **boxes: int) -> Problem:
    """Return what all queries share: the rules of Sudoku, and the kinds of the rules that cages make."""
    plain = sudoku(size, **boxes)
    own = {"own_kinds": ("cage-different",), "own_sums": ("cage",)}
    return Problem("killer", size, plain.variables, plain.values, plain.rules, plain.options, **own)  # pyright: ignore


def parse(text: str) -> Query:
    """Read ``.....(81 cells) r1c1+r1c2=7 r1c3+r2c3+r3c3=20``: cells as in a Sudoku, then the cages and their sums."""
    cells, *words = text.split()
    if len(cells) != 81 or not set(cells) <= set(".0123456789"):
        raise ValueError(f"expected 81 cells, . or 1 to 9, and then cages, got {cells!r}")
    rules = []
    for word in words:
        if not (found := CAGE.fullmatch(word)):
            raise ValueError(f"{word!r}: expected a cage like r1c1+r1c2=7")
        named = [int(cell[1]) * 9 + int(cell[3]) - 10 for cell in found[1].split("+")]
        if len(set(named)) < len(named) or len(named) > 9:
            raise ValueError(f"{word!r}: expected at most nine different cells")
        rules += cage("cage", named, 9, int(found[2]))
    return Query(
        killer().with_rules(rules), np.array([0 if c == "." else int(c) for c in cells], np.uint8), NO_RELATIONS
    )


def write(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
    words = ["".join(str(value) if value else "." for value in values)]
    for rule in (rule for rule in problem.rules if rule.kind == "cage"):
        cells = dict.fromkeys(choice // 9 for choice in rule.choices)
        words.append("+".join(f"r{cell // 9 + 1}c{cell % 9 + 1}" for cell in cells) + f"={rule.low}")
    return " ".join(words)


TASK = Task("killer", killer, parse, write, draw)

if __name__ == "__main__":
    from oneofmany.exact import count
    from oneofmany.testing import check_task

    check_task(TASK, sizes=[9], limit=20)
    query = parse("." * 81 + " r1c1+r1c2=3 r1c3+r1c4=7 r2c1+r3c1+r4c1=24")
    print(
        "Killer Sudokus with three cages, counted up to 1,000:", count(query.problem, query.values[None], limit=1000)[0]
    )
