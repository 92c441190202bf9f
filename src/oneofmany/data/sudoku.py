"""Sudoku queries with one solution and with several, spread evenly over the number of givens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.data.listing import Distinct, Drawn, Seed, build
from oneofmany.data.splits import SPLITS, Split, in_split
from oneofmany.exact import count, solve
from oneofmany.exact.symmetry import canonical_sudoku
from oneofmany.files import FileError
from oneofmany.problems import Problem
from oneofmany.problems.tasks.lines import TextError
from oneofmany.problems.tasks.sudoku import TASK, sudoku
from oneofmany.progress import Progress

MOST_SOLUTIONS = 50
LISTED_IN_TRAINING = 5
CLUE_GIVENS = (17, 34)
OWN_GIVENS = (22, 34)

SplitBy = Literal["grid-class", "puzzle"]


@dataclass(frozen=True)
class Puzzles:
    """Puzzles with exactly one solution, from which queries are made.

    Args:
        puzzle: uint8 [P, R].
        solution: uint8 [P, R].
        key: uint8 [P, R], the row that decides the split: the solution grid's canonical form, or the puzzle.
    """

    puzzle: np.ndarray
    solution: np.ndarray
    key: np.ndarray

    def of_split(self, split: Split | None) -> Puzzles:
        """Return those of one split."""
        rows = in_split(self.key, split)
        return Puzzles(self.puzzle[rows], self.solution[rows], self.key[rows])


def build_sudoku(
    queries: int,
    split: Split,
    clues: str | Path | None = None,
    seed: int = 0,
    *,
    size: int = 9,
    ms_queries: int | None = None,
    listed: int | None = None,
    givens: tuple[int, int] | None = None,
    split_by: SplitBy = "grid-class",
    progress: Progress | None = None,
) -> Dataset:
    """Build a split: half of the queries with one solution, half with 2 to 50, spread evenly over the givens.

    Args:
        queries: the number of queries.
        split: train, dev or test.
        clues: file of puzzles with one solution (the 17-clue list, for example), in any format of Sudoku. An OS query
            is a puzzle plus random cells of its solution. For an MS query one given is removed and random other cells
            are added; it is kept if it has 2 to 50 solutions. Without a file, queries are made from our own minimal
            puzzles (9x9) or from random grids with random cells shown (other sizes). The header states the source.
        seed: the same seed gives the same bytes.
        size: 9, or another size without ``clues``.
        ms_queries: how many queries have several solutions; half by default.
        listed: list a fair sample of at most this many solutions; by default 5 in training, otherwise all.
        givens: lowest and highest number of givens; 17 to 34 with ``clues``, 22 to 34 for our own puzzles.
        split_by: the symmetry class of the solution grid, or the puzzle, for comparison (other sizes: the query).
        progress: called with the name of the current stage, how much of it is done, and how much there is in all.
    """
    source = SudokuSource(
        queries,
        split,
        clues,
        seed,
        size=size,
        ms_queries=ms_queries,
        listed=listed,
        givens=givens,
        split_by=split_by,
        progress=progress,
    )
    return build(source, seed)


class SudokuSource:
    """Draws queries; arguments as in ``build_sudoku``. There are two kinds for every number of givens: OS and MS."""

    most_of_a_group = None

    def __init__(
        self,
        queries: int,
        split: Split,
        clues: str | Path | None = None,
        seed: int = 0,
        *,
        size: int = 9,
        ms_queries: int | None = None,
        listed: int | None = None,
        givens: tuple[int, int] | None = None,
        split_by: SplitBy = "grid-class",
        progress: Progress | None = None,
    ) -> None:
        self.tell = progress or (lambda what, done, of: None)
        self.problem = sudoku(size)
        multiple = queries // 2 if ms_queries is None else ms_queries
        if queries < 1 or not 0 <= multiple <= queries:
            raise ValueError(f"expected at least 1 query, 0 to all of them MS, got {queries} and {multiple}")
        if split not in SPLITS:
            raise ValueError(f"split: expected one of {', '.join(SPLITS)}, got {split!r}")
        if split_by not in ("grid-class", "puzzle"):
            raise ValueError(f"split_by: expected grid-class or puzzle, got {split_by!r}")
        if clues is not None and size != 9:
            raise ValueError(f"clues: a list of puzzles is read at size 9 only, got size {size}")
        low, high = givens or _default_givens(size, clues is not None)
        if not 0 <= low <= high <= size * size:
            raise ValueError(f"givens: expected 0 <= lowest <= highest <= {size * size}, got {low} and {high}")
        self.split: Split = split
        self.split_by: SplitBy = split_by
        self.clues, self.low = clues, low
        self.listed = LISTED_IN_TRAINING if listed is None and split == "train" else listed
        self.quotas = [quota for pair in spread(queries - multiple, multiple, high - low + 1) for quota in pair]
        if clues is not None:
            source = "puzzles of a list"
        elif size == 9:
            source = "minimal puzzles of our own, another distribution than the 17-clue list"
        else:
            source = "random grids with random cells shown"
        self.built: dict[str, Any] = {
            "builder": "sudoku",
            "queries": queries,
            "ms_queries": multiple,
            "split": split,
            "split_by": split_by if size == 9 else "query",
            "givens": [low, high],
            "listed": self.listed,
            "source": source,
            "seed": seed,
        }

    def draw(self, quotas: Sequence[int], seed: Seed, distinct: Distinct) -> Drawn:
        """Draw queries until every quota is full."""
        rng = np.random.default_rng(seed)
        levels = list(zip(quotas[::2], quotas[1::2], strict=True))
        problem, split, split_by, tell = self.problem, self.split, self.split_by, self.tell
        if self.clues is not None:
            maker = _FromPuzzles(_read_puzzles(Path(self.clues), problem, split_by, tell).of_split(split), rng)
        elif problem.size == 9:
            few, enough = levels[0][0], max(map(sum, levels))
            maker = _FromPuzzles(_minimal_puzzles(problem, split, split_by, self.low, few, enough, rng, tell), rng)
        else:
            maker = _FromGrids(problem, split, rng)
        return Drawn(*_fill(problem, maker, levels, self.low, rng, tell, distinct))

    def kind(self, data: Dataset) -> np.ndarray:
        """Twice the number of givens above the lowest, plus one for MS queries."""
        return 2 * ((data.query > 0).sum(1) - self.low) + data.multiple


def _default_givens(size: int, from_list: bool) -> tuple[int, int]:
    if size == 9:
        return CLUE_GIVENS if from_list else OWN_GIVENS
    cells = size * size
    return (round(0.3 * cells), cells // 2) if size < 9 else (round(0.6 * cells), round(0.6 * cells))


def spread(single: int, multiple: int, levels: int) -> list[tuple[int, int]]:
    """Return (OS, MS) quotas of every level. OS, MS and their sum each differ by at most one between levels."""
    quotas = [[single // levels, multiple // levels] for _ in range(levels)]
    for i in range(single % levels):
        quotas[i][0] += 1
    for i in range(multiple % levels):
        quotas[(single + i) % levels][1] += 1
    return [(one, several) for one, several in quotas]


def _fill(
    problem: Problem,
    maker: _FromPuzzles | _FromGrids,
    quotas: list[tuple[int, int]],
    low: int,
    rng: np.random.Generator,
    tell: Progress,
    distinct: Distinct,
) -> tuple[np.ndarray, None, np.ndarray]:
    """Draw until every quota is full; returns queries and their split keys, uint8 [Q, R] each, in random order."""
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    queries = sum(map(sum, quotas))
    for level, pair in enumerate(quotas):
        for multiple, quota in zip((False, True), pair, strict=True):
            missing, rate, fruitless = quota, 0.5, 0
            while missing:
                number = min(50_000, int(1.2 * missing / rate) + 64)
                query, key = maker.draw(number, low + level, multiple)
                total = count(problem, query, limit=MOST_SOLUTIONS + 1)
                fits = (total > 1) & (total <= MOST_SOLUTIONS) if multiple else total == 1
                rate = max(fits.mean(), 0.01) if len(fits) else 0.01
                fits[fits] = distinct(query[fits])
                rows = np.flatnonzero(fits)[:missing]
                kept.append((query[rows], key[rows]))
                missing -= len(rows)
                fruitless = 0 if len(rows) else fruitless + 1
                if fruitless == 100:
                    raise ValueError(
                        f"only {quota - missing} of {quota} distinct queries with {low + level} givens and "
                        f"{'several solutions' if multiple else 'one solution'} were found: ask for fewer queries, "
                        "other givens, or use a longer list"
                    )
            tell("queries", sum(len(query) for query, _ in kept), queries)
    query, key = (np.concatenate(part) for part in zip(*kept, strict=True))
    order = rng.permutation(len(query))
    return query[order], None, key[order]


class _FromPuzzles:
    """Makes queries from puzzles with one solution: it adds cells, and for MS queries first removes a given."""

    def __init__(self, puzzles: Puzzles, rng: np.random.Generator) -> None:
        if not len(puzzles.puzzle):
            raise ValueError("no puzzle of the list belongs to this split: use a longer list")
        self.puzzles, self.rng = puzzles, rng
        self.givens = (puzzles.puzzle > 0).sum(1)

    def draw(self, number: int, givens: int, multiple: bool) -> tuple[np.ndarray, np.ndarray]:
        eligible = np.flatnonzero(self.givens <= givens)
        if not len(eligible):
            raise ValueError(f"givens: no puzzle has {givens} givens or fewer")
        rows = eligible[self.rng.integers(len(eligible), size=number)]
        puzzle, solution = self.puzzles.puzzle[rows], self.puzzles.solution[rows]
        given = puzzle > 0
        place = self.rng.random(puzzle.shape)
        # Ranks: the puzzle's own givens first, in random order, then the other cells in random order.
        rank = np.argsort(np.argsort(np.where(given, place, 1 + place), axis=1), axis=1)
        shown = (rank >= 1) & (rank <= givens) if multiple else rank < givens
        return np.where(shown, solution, 0).astype(np.uint8), self.puzzles.key[rows]


class _FromGrids:
    """Makes queries from random grids with random cells shown; the query itself decides the split."""

    def __init__(self, problem: Problem, split: Split, rng: np.random.Generator) -> None:
        self.problem, self.rng = problem, rng
        self.split: Split = split

    def draw(self, number: int, givens: int, multiple: bool) -> tuple[np.ndarray, np.ndarray]:
        grids = random_grids(self.problem, min(number, 4096), self.rng)
        shown = np.argsort(self.rng.random(grids.shape), axis=1) < givens
        query = np.where(shown, grids, 0).astype(np.uint8)
        query = query[in_split(query, self.split)]
        return query, query


def random_grids(problem: Problem, number: int, rng: np.random.Generator) -> np.ndarray:
    """Return grids of a search in random order: uint8 [number, R]. Every grid is possible, but not equally likely."""
    empty = np.zeros((number, problem.variables), np.uint8)
    return solve(problem, empty, limit=1, seed=int(rng.integers(2**62))).solutions


def _minimal_puzzles(
    problem: Problem,
    split: Split,
    split_by: SplitBy,
    low: int,
    needed: int,
    enough: int,
    rng: np.random.Generator,
    tell: Progress,
) -> Puzzles:
    """Make minimal puzzles of random grids: at least ``enough``, ``needed`` of them with at most ``low`` givens."""
    parts: list[Puzzles] = []
    few = total = 0
    needed = max(needed + needed // 20, 8)  # some more distinct puzzles than the lowest level needs
    while few < needed or total < enough:
        grids = random_grids(problem, 2048, rng)
        key = canonical_sudoku(grids)
        if split_by == "grid-class":
            rows = in_split(key, split)
            grids, key = grids[rows], key[rows]
        puzzle = make_minimal(problem, grids, rng)
        part = Puzzles(puzzle, grids, key if split_by == "grid-class" else puzzle)
        parts.append(part if split_by == "grid-class" else part.of_split(split))
        few += int(((parts[-1].puzzle > 0).sum(1) <= low).sum())
        total += len(parts[-1].puzzle)
        tell("minimal puzzles", min(few, needed), needed)
    return Puzzles(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("puzzle", "solution", "key")))


def make_minimal(problem: Problem, grids: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Remove givens of grids uint8 [N, R] in random order while the solution stays unique; returns uint8 [N, R]."""
    puzzle = grids.copy()
    order = np.argsort(rng.random(grids.shape), axis=1)
    rows = np.arange(len(grids))
    for cell in order.T:
        fewer = puzzle.copy()
        fewer[rows, cell] = 0
        puzzle = np.where((count(problem, fewer, limit=2) == 1)[:, None], fewer, puzzle)
    return puzzle


def _read_puzzles(path: Path, problem: Problem, split_by: SplitBy, tell: Progress) -> Puzzles:
    """Read and solve a list of puzzles, in any format of Sudoku."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read as a list of puzzles: {error}") from None
    puzzles = []
    for _, query in TASK.read(text, problem.size):
        if isinstance(query, TextError):
            raise FileError(f"{path}: {query}")
        puzzles.append(query.values)
    if not puzzles:
        raise FileError(f"{path} has no puzzles")
    puzzle = np.unique(np.stack(puzzles), axis=0)
    tell("puzzles of the list", 0, len(puzzle))
    solved = solve(problem, puzzle, limit=2)
    if (solved.total != 1).any():
        worst = int(np.flatnonzero(solved.total != 1)[0])
        text = "".join(map(str, puzzle[worst]))
        has = "no solution" if solved.total[worst] == 0 else "several solutions"
        raise FileError(f"{path} lists {text}, which has {has}: expected puzzles with exactly one")
    key = canonical_sudoku(solved.solutions) if split_by == "grid-class" else puzzle
    tell("puzzles of the list", len(puzzle), len(puzzle))
    return Puzzles(puzzle, solved.solutions, key)
