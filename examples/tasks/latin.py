"""Latin squares with given cells (quasigroup completion): every row and every column holds every value once."""

import numpy as np

from oneofmany.data import Dataset
from oneofmany.data.latin import latin_squares
from oneofmany.data.listing import Distinct, list_solutions
from oneofmany.data.splits import in_split
from oneofmany.exact import count
from oneofmany.problems import Problem, Rule, grid_task

MOST = 50
"""Queries with more solutions are left out of the data."""


def latin(size: int = 6) -> Problem:
    """Return the problem of n x n cells."""
    choice = np.arange(size**3).reshape(size, size, size)  # row, column, value
    lines = [*choice.transpose(0, 2, 1).reshape(-1, size), *choice.transpose(1, 2, 0).reshape(-1, size)]
    return Problem("latin", size, size * size, size, tuple(Rule("line", tuple(line.tolist())) for line in lines))


def build(problem: Problem, queries: int, split, seed: int) -> Dataset:
    """Blank 40 to 70 % of the cells of uniformly random squares, also of orders that a search would draw unevenly."""
    rng, distinct, cells = np.random.default_rng(seed), Distinct(), problem.variables
    query, fruitless = np.zeros((0, cells), np.uint8), 0
    while len(query) < queries:
        squares = latin_squares(problem.size, 512, rng)
        order = np.argsort(np.argsort(rng.random(squares.shape), axis=1), axis=1)
        blanks = rng.integers(2 * cells // 5, 7 * cells // 10 + 1, size=(len(squares), 1))
        drawn = np.where(order < blanks, 0, squares).astype(np.uint8)
        drawn = drawn[in_split(drawn, split)]
        drawn = drawn[distinct(drawn)]
        drawn = drawn[count(problem, drawn, limit=MOST + 1) <= MOST]
        query, fruitless = np.concatenate([query, drawn]), 0 if len(drawn) else fruitless + 1
        if fruitless == 50:
            raise ValueError(f"queries: asked for {queries:,}, but only {len(query):,} different ones were found")
    about = {"builder": "latin", "size": problem.size, "queries": queries, "split": split, "seed": seed}
    return list_solutions(problem, query[:queries], None, about, seed=seed)


TASK = grid_task("latin", latin, build)

if __name__ == "__main__":
    from oneofmany.testing import check_task

    check_task(TASK, sizes=[1, 2, 3, 4])
    print("Latin squares of orders 1 to 5:", *(count(latin(n), np.zeros((1, n * n), np.uint8))[0] for n in range(1, 6)))
