"""Killer Sudoku: a Sudoku whose cages hold different digits with a given sum. Every query brings its own cages."""

import re
from math import isqrt

import numpy as np

from oneofmany.data import Dataset
from oneofmany.data.listing import list_solutions
from oneofmany.data.splits import texts_in_split
from oneofmany.exact import solve, solve_each
from oneofmany.problems import OwnRules, Problem, Query, Task, cage, sudoku
from oneofmany.problems.tasks.task import NO_RELATIONS, Paint, plain

SIZES = (4, 6, 9)
CAGE = re.compile(r"(r[1-9]c[1-9](?:\+r[1-9]c[1-9])*)=(\d+)")


def killer(size: int = 9, **boxes: int) -> Problem:
    """Return what all queries share: the rules of Sudoku, and the kinds of the rules that cages make."""
    if size not in SIZES:
        raise ValueError(f"size: expected a Killer Sudoku of 4 x 4, 6 x 6 or 9 x 9 cells, got {size}")
    plain = sudoku(size, **boxes)
    own = {"own_kinds": ("cage-different",), "own_sums": ("cage",)}
    return Problem("killer", size, plain.variables, plain.values, plain.rules, plain.options, **own)  # pyright: ignore


def parse(text: str) -> Query:
    """Read ``.....(81 cells) r1c1+r1c2=7 r1c3+r2c3+r3c3=20``: cells as in a Sudoku, then the cages and their sums."""
    cells, *words = text.split()
    n = isqrt(len(cells))
    if n * n != len(cells) or n not in SIZES or not set(cells) <= set(".0123456789"[: n + 2]):
        raise ValueError(f"expected 81 cells, . or 1 to 9, and then cages (or 16 or 36 cells), got {cells!r}")
    rules, caged = [], set()
    for word in words:
        if not (found := CAGE.fullmatch(word)):
            raise ValueError(f"{word!r}: expected a cage like r1c1+r1c2=7")
        places = [(int(cell[1]), int(cell[3])) for cell in found[1].split("+")]
        named = [(row - 1) * n + column - 1 for row, column in places]
        if max(map(max, places)) > n or len(set(named)) < len(named) or len(named) > n:
            raise ValueError(f"{word!r}: expected at most {n} different cells of a board of {n} x {n}")
        if not caged.isdisjoint(named):
            raise ValueError(f"{word!r}: a cell is in two cages")
        caged.update(named)
        rules += cage("cage", named, n, int(found[2]))
    return Query(
        killer(n).with_rules(rules), np.array([0 if c == "." else int(c) for c in cells], np.uint8), NO_RELATIONS
    )


def write(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
    n, words = problem.size, ["".join(str(value) if value else "." for value in values)]
    for rule in (rule for rule in problem.rules if rule.kind == "cage"):
        cells = dict.fromkeys(choice // n for choice in rule.choices)
        words.append("+".join(f"r{cell // n + 1}c{cell % n + 1}" for cell in cells) + f"={rule.low}")
    return " ".join(words)


def draw(
    problem: Problem,
    values: np.ndarray,
    relations: np.ndarray = NO_RELATIONS,
    given: np.ndarray | None = None,
    paint: Paint = plain,
) -> str:
    """Draw lines around the cages, with the sum in their first cells; where boxes meet, lines are thick or dotted."""
    n, cages = problem.size, [rule for rule in problem.rules if rule.kind == "cage"]
    of_box = problem.options["box_rows"], problem.options["box_columns"]
    cage_of = {choice // n: number for number, rule in enumerate(cages) for choice in rule.choices}
    sums = {min(rule.choices) // n: rule.bounds[0] for rule in cages}

    def line(between: int, box: int, here: int, there: int, signs: str) -> str:
        wall = between in (0, n) or cage_of.get(here) != cage_of.get(there)
        return signs[2 * (between % box == 0) + wall]

    lines = []
    for row in range(n + 1):
        edges = [line(row, of_box[0], cell - n, cell, " ─┄━") * 5 for cell in range(n * row, n * row + n)]
        lines.append("+" + "+".join(edges) + "+")
        for cell in range(n * row, n * row + n) if row < n else ():
            digit = str(values[cell] or "·")
            shown = paint(digit, given is None or bool(given[cell])) if values[cell] else digit
            side = line(cell % n, of_box[1], cell - 1, cell, " │┆┃")
            lines[-1] += f"{side if cell % n else chr(10) + side}{sums.get(cell, ''):>2} {shown} "
        lines[-1] += "┃" if row < n else ""
    return "\n".join(lines)


def cut(rng: np.random.Generator, grid: np.ndarray) -> list[list[int]]:
    """Cut a grid into cages of up to five neighbouring cells with different digits, of up to four if it is 4 x 4."""
    free, n, cages = set(range(len(grid))), isqrt(len(grid)), []
    for first in rng.permutation(len(grid)).tolist():
        own, size = [first], int(rng.integers(2, min(6, n + 1)))
        while first in free and len(own) < size:
            beside = {c + d for c in own for d in (-n, n, -1, 1) if abs(d) == n or c // n == (c + d) // n}
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
    n, rng, kept = problem.size, np.random.default_rng(seed), []
    plain, blank = sudoku(n, **problem.options), np.zeros((1, n * n), np.uint8)
    while len(kept) < queries:
        grids = solve(plain, blank.repeat(64, 0), limit=1, seed=int(rng.integers(2**62))).solutions
        made = [[r for c in cut(rng, g) for r in cage("cage", c, n, int(g[c].sum()))] for g in grids]
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

    check_task(TASK, sizes=[4, 9], limit=20)
    query = parse("." * 81 + " r1c1+r1c2=3 r1c3+r1c4=7 r2c1+r3c1+r4c1=24")
    print(
        "Killer Sudokus with three cages, counted up to 1,000:", count(query.problem, query.values[None], limit=1000)[0]
    )
