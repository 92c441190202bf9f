"""Kakuro: the runs of a board hold different digits with a given sum. Every query brings its own board."""

import re

import numpy as np

from oneofmany.data import Dataset
from oneofmany.data.listing import list_solutions
from oneofmany.data.splits import texts_in_split
from oneofmany.exact import solve_each
from oneofmany.problems import OwnRules, Problem, Query, Task, all_different, cage
from oneofmany.problems.tasks.task import NO_RELATIONS, Paint, plain

RUN = re.compile(r"(r\d+c\d+(?:\+r\d+c\d+)*)=(\d+)")


def kakuro(size: int = 6) -> Problem:
    """Return what boards of n x n cells share. Cells in no run are black, and given: they take the value 1."""
    own = {"own_kinds": ("run-different",), "own_sums": ("run",)}
    return Problem("kakuro", size, size * size, 9, (), **own)  # pyright: ignore


def parse(text: str) -> Query:
    """Read ``x..x..x.. r1c2+r1c3=3 ...``: n x n cells row by row, ``x`` for black, then the runs and their sums."""
    cells, *words = text.split()
    size, rules, runs = round(len(cells) ** 0.5), [], []
    if size * size != len(cells) or not set(cells) <= set(".x123456789"):
        raise ValueError(f"expected n x n cells, x, . or 1 to 9, and then runs, got {cells!r}")
    for word in words:
        if not (found := RUN.fullmatch(word)):
            raise ValueError(f"{word!r}: expected a run like r1c1+r1c2=3")
        named = [(int(r) - 1, int(c) - 1) for r, c in (cell[1:].split("c") for cell in found[1].split("+"))]
        (row, column), many = named[0], len(named)
        lines = [[(row, column + k) for k in range(many)], [(row + k, column) for k in range(many)]]
        if named not in lines or many > 9 or not all(0 <= k < size for cell in named for k in cell):
            raise ValueError(f"{word!r}: expected up to nine cells of the board, one beside or below the other")
        if named in runs:
            raise ValueError(f"{word!r}: a run is given twice")
        runs.append(named)
        rules += cage("run", [r * size + c for r, c in named], 9, int(found[2]))
    white = {cell for run in runs for cell in run}
    for at, cell in enumerate(cells):
        if (cell == "x") == (divmod(at, size) in white):
            where = f"r{at // size + 1}c{at % size + 1}"
            raise ValueError(f"{where}: cells in no run are black, x, and no others, got {cell!r}")
    for word, run in zip(words, runs, strict=True):
        (row, column), (bottom, right) = run[0], run[-1]
        down, across = bottom > row, bottom == row
        if white & {(row - down, column - across), (bottom + down, right + across)}:
            raise ValueError(f"{word!r}: expected a whole run, up to a black cell or the border")
    values = np.array(["x123456789".find(c) if c not in ".x" else c == "x" for c in cells], np.uint8)
    return Query(kakuro(size).with_rules(rules), values, NO_RELATIONS)


def runs_of(problem: Problem) -> list[tuple[list[int], int]]:
    """The cells and the sum of every run."""
    return [(sorted({c // 9 for c in rule.choices}), rule.bounds[0]) for rule in problem.rules if rule.kind == "run"]


def write(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
    runs, n = runs_of(problem), problem.size
    white = {cell for run, _ in runs for cell in run}
    cells = "".join(str(v or ".") if at in white else "x" for at, v in enumerate(map(int, values)))
    return " ".join([cells, *("+".join(f"r{c // n + 1}c{c % n + 1}" for c in run) + f"={each}" for run, each in runs)])


def draw(
    problem: Problem,
    values: np.ndarray,
    relations: np.ndarray = NO_RELATIONS,
    given: np.ndarray | None = None,
    paint: Paint = plain,
) -> str:
    """Draw the board as it is printed: before a run, its sum, as ``down\\across``."""
    n, runs, clues = problem.size, runs_of(problem), {}
    for run, each in runs:
        row, column = divmod(run[0], n)
        across = len(run) == 1 or run[1] == run[0] + 1
        clues.setdefault((row, column - 1) if across else (row - 1, column), ["", ""])[across] = str(each)
    white, lines = {cell for run, _ in runs for cell in run}, []
    for row in range(-1, n):
        words = []
        for column in range(-1, n):
            at, (down, across) = row * n + column, clues.get((row, column), ("", ""))
            inside = row >= 0 and column >= 0
            if inside and at in white:
                word = str(values[at] or "·")
                words.append(f"  {paint(word, given is None or bool(given[at])) if values[at] else word}  ")
            else:
                words.append(f"{down:>2}\\{across:<2}" if down or across else "  ■  " if inside else " " * 5)
        lines.append(" ".join(words).rstrip())
    return "\n".join(lines)


def draw_boards(rng: np.random.Generator, n: int, number: int) -> list[list[list[int]]]:
    """The runs of random boards, 2 to 9 cells each."""
    boards = []
    for white in rng.random((number, n, n)) < 0.72:
        cells = np.where(white, np.arange(n * n).reshape(n, n), -1)
        parts = [part for line in [*cells, *cells.T] for part in np.split(line, np.flatnonzero(line < 0))]
        boards.append([run.tolist() for run in (part[part >= 0] for part in parts) if 1 < len(run) < 10])
    return boards


def build(problem: Problem, queries: int, split, seed: int) -> Dataset:
    """Fill random boards, and give up to half of their digits; those with more than 50 solutions are left out."""
    rng, cells, kept, seen, fruitless = np.random.default_rng(seed), problem.variables, [], set(), 0
    while len(kept) < queries:
        boards, made = draw_boards(rng, problem.size, 64), []
        black = np.array([[not any(at in run for run in runs) for at in range(cells)] for runs in boards], np.uint8)
        free = [problem.with_rules([r for run in runs for r in all_different("run", run, 9)]) for runs in boards]
        filled = solve_each(free, black, limit=1, seed=int(rng.integers(2**62)), branches=20_000)
        for at, runs in enumerate(boards):
            for full in filled.of(at):
                rules = [rule for run in runs for rule in cage("run", run, 9, int(full[run].sum()))]
                made.append((rules, np.where(rng.random(cells) < rng.random() / 2, full, black[at])))
        texts = [write(problem.with_rules(rules), values) for rules, values in made]
        mine = zip(texts, made, texts_in_split(texts, split), strict=True)
        made = list({text: one for text, one, own in mine if own and text not in seen}.values())
        seen.update(texts)
        if (fruitless := 0 if made else fruitless + 1) == 50:
            raise ValueError(f"queries: asked for {queries:,}, but only {len(kept):,} different ones were found")
        own = [problem.with_rules(rules) for rules, _ in made]
        found = solve_each(own, np.array([values for _, values in made]), limit=51, branches=20_000)
        few = found.finished & (found.total <= 50)
        kept += [one for one, ok in zip(made, few, strict=True) if ok]
    about = {"builder": "kakuro", "size": problem.size, "queries": queries, "split": split, "seed": seed}
    rules, values = zip(*kept[:queries], strict=True)
    return list_solutions(problem, np.array(values), None, about, seed=seed, own=OwnRules.of(rules))


TASK = Task("kakuro", kakuro, parse, write, draw, build=build)

if __name__ == "__main__":
    from oneofmany.exact import solve
    from oneofmany.testing import check_task

    check_task(TASK, sizes=[2, 3], limit=100)
    query = parse(".... r1c1+r1c2=3 r2c1+r2c2=5 r1c1+r2c1=3 r1c2+r2c2=5")
    print(draw(query.problem, solve(query.problem, query.values[None], limit=1).solutions[0]))
