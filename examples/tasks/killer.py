"""Killer Sudoku: a Sudoku whose cages hold different digits with a given sum. Every query brings its own cages."""

import re

import numpy as np

from oneofmany.data import Dataset
from oneofmany.data.listing import list_solutions
from oneofmany.data.splits import texts_in_split
from oneofmany.exact import solve, solve_each
from oneofmany.problems import OwnRules, Problem, Query, Task, cage, sudoku
from oneofmany.problems.tasks.task import NO_RELATIONS, Paint, plain

CAGE = re.compile(r"(r[1-9]c[1-9](?:\+r[1-9]c[1-9])*)=(\d+)")


def killer(size: int = 9, **boxes: int) -> Problem:
    """Return what all queries share: the rules of Sudoku, and the kinds of the rules that cages make."""
    if size != 9:
        raise ValueError(f"size: expected a Killer Sudoku of 9 x 9 cells, got {size}")
    plain = sudoku(size, **boxes)
    own = {"own_kinds": ("cage-different",), "own_sums": ("cage",)}
    return Problem("killer", size, plain.variables, plain.values, plain.rules, plain.options, **own)  # pyright: ignore


def parse(text: str) -> Query:
    """Read ``.....(81 cells) r1c1+r1c2=7 r1c3+r2c3+r3c3=20``: cells as in a Sudoku, then the cages and their sums."""
    cells, *words = text.split()
    if len(cells) != 81 or not set(cells) <= set(".0123456789"):
        raise ValueError(f"expected 81 cells, . or 1 to 9, and then cages, got {cells!r}")
    rules, caged = [], set()
    for word in words:
        if not (found := CAGE.fullmatch(word)):
            raise ValueError(f"{word!r}: expected a cage like r1c1+r1c2=7")
        named = [int(cell[1]) * 9 + int(cell[3]) - 10 for cell in found[1].split("+")]
        if len(set(named)) < len(named) or len(named) > 9:
            raise ValueError(f"{word!r}: expected at most nine different cells")
        if not caged.isdisjoint(named):
            raise ValueError(f"{word!r}: a cell is in two cages")
        caged.update(named)
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


def draw(
    problem: Problem,
    values: np.ndarray,
    relations: np.ndarray = NO_RELATIONS,
    given: np.ndarray | None = None,
    paint: Paint = plain,
) -> str:
    """Draw lines around the cages, with the sum in their first cells; where boxes meet, lines are thick or dotted."""
    cages = [rule for rule in problem.rules if rule.kind == "cage"]
    cage_of = {choice // 9: number for number, rule in enumerate(cages) for choice in rule.choices}
    sums = {min(rule.choices) // 9: rule.bounds[0] for rule in cages}

    def line(between: int, here: int, there: int, signs: str) -> str:
        wall = between in (0, 9) or cage_of.get(here) != cage_of.get(there)
        return signs[2 * (between % 3 == 0) + wall]

    lines = []
    for row in range(10):
        edges = [line(row, cell - 9, cell, " ─┄━") * 5 for cell in range(9 * row, 9 * row + 9)]
        lines.append("+" + "+".join(edges) + "+")
        for cell in range(9 * row, 9 * row + 9) if row < 9 else ():
            digit = str(values[cell] or "·")
            shown = paint(digit, given is None or bool(given[cell])) if values[cell] else digit
            side = line(cell % 9, cell - 1, cell, " │┆┃")
            lines[-1] += f"{side if cell % 9 else chr(10) + side}{sums.get(cell, ''):>2} {shown} "
        lines[-1] += "┃" if row < 9 else ""
    return "\n".join(lines)


def cut(rng: np.random.Generator, grid: np.ndarray) -> list[list[int]]:
    """Cut a grid into cages of up to five neighbouring cells with different digits."""
    free, cages = set(range(81)), []
    for first in rng.permutation(81).tolist():
        own, size = [first], int(rng.integers(2, 6))
        while first in free and len(own) < size:
            beside = {c + d for c in own for d in (-9, 9, -1, 1) if abs(d) == 9 or c // 9 == (c + d) // 9}
            fits = sorted(c for c in beside & free - set(own) if grid[c] not in grid[own])
            if not fits:
                break
            own.append(int(rng.choice(fits)))
        if first in free:
            cages.append(own)
            free -= set(own)
    return cages


def build(problem: Problem, queries: int, split, seed: int) -> Dataset:
    """Cut random grids into cages, without given digits; puzzles with more than 50 solutions are left out."""
    rng, kept, blank = np.random.default_rng(seed), [], np.zeros((1, 81), np.uint8)
    while len(kept) < queries:
        grids = solve(sudoku(9), blank.repeat(64, 0), limit=1, seed=int(rng.integers(2**62))).solutions
        made = [[r for c in cut(rng, g) for r in cage("cage", c, 9, int(g[c].sum()))] for g in grids]
        texts = [write(problem.with_rules(rules), blank[0]) for rules in made]
        made = [rules for rules, own in zip(made, texts_in_split(texts, split), strict=True) if own]
        few = solve_each([problem.with_rules(r) for r in made], blank.repeat(len(made), 0), limit=51, branches=20_000)
        kept += [rules for rules, n, f in zip(made, few.total, few.finished, strict=True) if f and n <= 50]
    about = {"builder": "killer", "queries": queries, "split": split, "seed": seed}
    own = OwnRules.of(kept[:queries])
    return list_solutions(problem, blank.repeat(queries, 0), None, about, seed=seed, own=own)


TASK = Task("killer", killer, parse, write, draw, build=build)

if __name__ == "__main__":
    from oneofmany.exact import count
    from oneofmany.testing import check_task

    check_task(TASK, sizes=[9], limit=20)
    query = parse("." * 81 + " r1c1+r1c2=3 r1c3+r1c4=7 r2c1+r3c1+r4c1=24")
    print(
        "Killer Sudokus with three cages, counted up to 1,000:", count(query.problem, query.values[None], limit=1000)[0]
    )
