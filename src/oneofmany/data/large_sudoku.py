"""Large Sudokus (16x16, 25x25) with few givens: cells are removed from a random grid while one solution is proven.

Random cells of a grid, as ``build_sudoku`` shows them, rarely have one solution if less than half of them are given.
The proof is a search with a limit on its branches, so a puzzle whose proof takes longer is not made. That limits how
few givens are reached, and leaves out the puzzles that are hardest for the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.data.listing import Distinct, Drawn, Seed, build
from oneofmany.data.splits import SPLITS, Split, in_split
from oneofmany.data.sudoku import LISTED_IN_TRAINING, MOST_SOLUTIONS, spread
from oneofmany.exact import solve
from oneofmany.problems import Problem, sudoku
from oneofmany.progress import Progress

BRANCHES = 20_000
"""Branches of the search that proves that a solution is the only one, or counts solutions."""
GRID_BRANCHES = 200_000
"""Branches of the search for a random grid; it is drawn again if they are not enough."""
TOGETHER = 8
"""Cells that are removed at once while most of them are given."""
AT_ONCE = 128
"""Puzzles that are made together."""
AT_LEAST = 16
"""If fewer queries are missing, several puzzles are made for each, and the first that fits is taken."""
TRIES = 8
"""Givens that are tried to make an MS query of a puzzle."""
FRUITLESS = 10
"""The builder ends with an error after this many rounds without a query."""


def build_large_sudoku(
    size: int,
    queries: int,
    split: Split,
    givens: tuple[int, int],
    seed: int = 0,
    *,
    ms_queries: int | None = None,
    listed: int | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Build a split of Sudokus with few givens, spread evenly over them; half of the queries have one solution.

    Every query is made from a random grid of its own. An OS query is left when cells are removed in random order, each
    as long as the solution stays unique. An MS query is such a puzzle without one more given, with 2 to 50 solutions.

    Args:
        size: rows and columns: 16, 25, ...
        queries: the number of queries.
        split: train, dev or test. The solution grid decides; grids that differ by a symmetry count as different.
        givens: lowest and highest number of givens. Of a 16x16 grid about 95 of 256 givens are left when every cell has
            been tried, of a 25x25 grid about 280 of 625, so fewer take long or are not found.
        seed: the same seed gives the same bytes.
        ms_queries: how many queries have several solutions; half by default.
        listed: list a fair sample of at most this many solutions; by default 5 in training, otherwise all.
        progress: called with the name of the current stage, how much of it is done, and how much there is in all.
    """
    source = LargeSource(size, queries, split, givens, seed, ms_queries=ms_queries, listed=listed, progress=progress)
    return build(source, seed)


class LargeSource:
    """Draws queries; arguments as in ``build_large_sudoku``. There are two kinds per number of givens: OS and MS."""

    most_of_a_group = None

    def __init__(
        self,
        size: int,
        queries: int,
        split: Split,
        givens: tuple[int, int],
        seed: int = 0,
        *,
        ms_queries: int | None = None,
        listed: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        multiple = queries // 2 if ms_queries is None else ms_queries
        if queries < 1 or not 0 <= multiple <= queries:
            raise ValueError(f"expected at least 1 query, 0 to all of them MS, got {queries} and {multiple}")
        if split not in SPLITS:
            raise ValueError(f"split: expected one of {', '.join(SPLITS)}, got {split!r}")
        low, high = givens
        if not 0 < low <= high < size * size:
            raise ValueError(f"givens: expected 1 <= lowest <= highest < {size * size}, got {low} and {high}")
        self.problem, self.low = sudoku(size), low
        self.split: Split = split
        self.listed = LISTED_IN_TRAINING if listed is None and split == "train" else listed
        self.quotas = [quota for pair in spread(queries - multiple, multiple, high - low + 1) for quota in pair]
        self.tell = progress or (lambda what, done, of: None)
        self.built: dict[str, Any] = {
            "builder": "large_sudoku",
            "queries": queries,
            "ms_queries": multiple,
            "split": split,
            "split_by": "grid",
            "givens": [low, high],
            "listed": self.listed,
            "source": f"random grids without the cells that {BRANCHES} branches prove superfluous",
            "seed": seed,
        }

    def draw(self, quotas: Sequence[int], seed: Seed, distinct: Distinct) -> Drawn:
        """Draw queries until every quota is full."""
        rng = np.random.default_rng(seed)
        missing = rng.permutation(np.repeat(np.arange(len(quotas)), quotas))
        parts, made, fruitless, wanted = [], 0, 0, len(missing)
        while len(missing):
            wants, rest = missing[:AT_ONCE], missing[AT_ONCE:]
            kinds = np.resize(wants, max(len(wants), AT_LEAST))
            several, givens = kinds % 2 == 1, self.low + kinds // 2
            grids = self._grids(len(kinds), rng)
            query = remove_givens(self.problem, grids, givens + several, rng)
            fits = (query > 0).sum(1) == givens + several
            rows = np.flatnonzero(fits & several)
            query[rows], fits[rows] = _without_a_given(self.problem, query[rows], rng)
            fits[fits] = distinct(query[fits])
            filled, first = np.unique(np.flatnonzero(fits) % len(wants), return_index=True)
            taken = np.flatnonzero(fits)[first]
            parts.append((query[taken], grids[taken]))
            made, missing = made + len(taken), np.concatenate([rest, np.delete(wants, filled)])
            self.tell("queries", made, wanted)
            fruitless = 0 if len(taken) else fruitless + 1
            if fruitless == FRUITLESS:
                raise ValueError(
                    f"givens: only {made:,} of {wanted:,} queries of size {self.problem.size} were found, the next "
                    f"with {givens.min()} givens: ask for more givens"
                )
        query, key = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = rng.permutation(len(query))
        return Drawn(query[order], None, key[order])

    def kind(self, data: Dataset) -> np.ndarray:
        """Twice the number of givens above the lowest, plus one for MS queries."""
        return 2 * ((data.query > 0).sum(1) - self.low) + data.multiple

    def _grids(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Random grids of the split: uint8 [number, R]."""
        parts: list[np.ndarray] = []
        while sum(map(len, parts)) < number:
            empty = np.zeros((number, self.problem.variables), np.uint8)
            seed = int(rng.integers(2**62))
            grids = solve(self.problem, empty, limit=1, seed=seed, branches=GRID_BRANCHES).solutions
            parts.append(grids[in_split(grids, self.split)])
        return np.concatenate(parts)[:number]


def remove_givens(
    problem: Problem, grids: np.ndarray, givens: np.ndarray, rng: np.random.Generator, branches: int = BRANCHES
) -> np.ndarray:
    """Remove givens of grids uint8 [N, R] in random order while ``branches`` branches prove one solution.

    Removing ends at ``givens`` int [N]; a puzzle with more givens than that cannot lose another one of its own.
    """
    puzzle, order = grids.copy(), np.argsort(rng.random(grids.shape), axis=1)
    place, variables = 0, problem.variables
    while place < variables:
        spare = (puzzle > 0).sum(1) - givens
        rows = np.flatnonzero(spare > 0)
        if not len(rows):
            break
        # While most cells are given, a solution hardly ever hangs on one of them.
        many = place < 0.4 * variables and spare[rows].min() >= TOGETHER
        cells = order[rows, place : place + (TOGETHER if many else 1)]
        fewer = puzzle[rows]
        np.put_along_axis(fewer, cells, 0, axis=1)
        found = solve(problem, fewer, limit=2, keep=0, branches=branches)
        unique = (found.total == 1) & found.finished
        puzzle[rows[unique]] = fewer[unique]
        place += cells.shape[1]
    return puzzle


def _without_a_given(problem: Problem, puzzle: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Remove a random given of puzzles uint8 [N, R] so that 2 to 50 solutions are left; bool [N] says where it did."""
    query, done = puzzle.copy(), np.zeros(len(puzzle), bool)
    order = np.argsort(np.where(puzzle > 0, rng.random(puzzle.shape), 2), axis=1)
    for attempt in range(TRIES):
        rows = np.flatnonzero(~done)
        if not len(rows):
            break
        fewer = puzzle[rows]
        fewer[np.arange(len(rows)), order[rows, attempt]] = 0
        found = solve(problem, fewer, limit=MOST_SOLUTIONS + 1, keep=0, branches=BRANCHES)
        fits = (found.total > 1) & (found.total <= MOST_SOLUTIONS) & found.finished
        query[rows[fits]], done[rows[fits]] = fewer[fits], True
    return query, done
