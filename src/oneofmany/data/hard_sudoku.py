"""Hard Sudokus of our own: minimal puzzles of a wanted rating, from many independent local searches."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import count as numbers
from typing import Any, TypeVar

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.data.listing import Distinct, Drawn, Seed, build
from oneofmany.data.splits import SPLITS, Split, in_split, stable_hash
from oneofmany.data.sudoku import LISTED_IN_TRAINING, MOST_SOLUTIONS
from oneofmany.exact import count, rate
from oneofmany.exact.chains import climb
from oneofmany.exact.cores import usable_cores
from oneofmany.exact.symmetry import canonical_sudoku
from oneofmany.problems import sudoku
from oneofmany.progress import Progress

STEPS = 12_000
"""The steps of a chain, about a second."""
OF_A_CHAIN = 20
"""At most this many puzzles are taken from a chain, so that easy ratings, which chains reach early, do not prevail."""
DIFFERENT = 6
"""Two puzzles of a chain differ in at least this many cells."""
OF_A_CLASS = 20
"""At most this many puzzles have solutions of one grid class."""
FRUITLESS = 200
"""The search ends with an error after this many chains without a puzzle."""

RatingRanges = tuple[float, float] | tuple[tuple[float, float], ...]
"""The lowest and highest rating, or several such ranges, at which the chains aim in turn."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class RatedPuzzles:
    """P minimal puzzles with exactly one solution.

    Args:
        puzzle: uint8 [P, 81].
        key: uint8 [P, 81], the canonical form of the solution grid, which decides the split.
        rating: float64 [P].
    """

    puzzle: np.ndarray
    key: np.ndarray
    rating: np.ndarray

    def take(self, rows: np.ndarray | slice) -> RatedPuzzles:
        """Return some of the puzzles."""
        return RatedPuzzles(self.puzzle[rows], self.key[rows], self.rating[rows])


def build_hard_sudoku(
    queries: int,
    split: Split,
    rating: RatingRanges,
    seed: int = 0,
    *,
    ms_queries: int | None = None,
    listed: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Build a split of minimal puzzles with ratings from lowest to highest; half of the queries have one solution.

    An MS query is such a puzzle without one of its givens, with 2 to 50 solutions. Every query is made from a puzzle of
    its own, and at most 20 puzzles have solution grids of one symmetry class.

    Args:
        queries: the number of queries.
        split: train, dev or test.
        rating: lowest and highest rating (see ``oneofmany.exact.rate``). The searches aim at ratings between them,
            evenly on a logarithmic scale. Very high ratings are reached by some of the searches only. Several ranges
            are taken in turn, search by search.
        seed: the same seed gives the same bytes, with any number of threads.
        ms_queries: how many queries have several solutions; half by default.
        listed: list a fair sample of at most this many solutions; by default 5 in training, otherwise all.
        threads: the number of threads; by default one per core.
        progress: called with the name of the current stage, how much of it is done, and how much there is in all.
    """
    source = HardSource(
        queries, split, rating, seed, ms_queries=ms_queries, listed=listed, threads=threads, progress=progress
    )
    return build(source, seed)


class HardSource:
    """Draws queries of hard puzzles; arguments as in ``build_hard_sudoku``. The kinds are OS and MS."""

    most_of_a_group = OF_A_CLASS

    def __init__(
        self,
        queries: int,
        split: Split,
        rating: RatingRanges,
        seed: int = 0,
        *,
        ms_queries: int | None = None,
        listed: int | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        multiple = queries // 2 if ms_queries is None else ms_queries
        if queries < 1 or not 0 <= multiple <= queries:
            raise ValueError(f"expected at least 1 query, 0 to all of them MS, got {queries} and {multiple}")
        self.problem, self.quotas = sudoku(), [queries - multiple, multiple]
        self.listed = LISTED_IN_TRAINING if listed is None and split == "train" else listed
        self.split: Split = split
        self.rating, self.threads = rating, threads
        self.tell = progress or (lambda what, done, of: None)
        self.built: dict[str, Any] = {
            "builder": "hard_sudoku",
            "queries": queries,
            "ms_queries": multiple,
            "split": split,
            "split_by": "grid-class",
            "rating": _ranges(rating)[0] if len(_ranges(rating)) == 1 else _ranges(rating),
            "listed": self.listed,
            "source": "minimal puzzles from local searches over the rating",
            "seed": seed,
        }

    def draw(self, quotas: Sequence[int], seed: Seed, distinct: Distinct) -> Drawn:
        """Draw queries until both quotas are full."""
        one, multiple = quotas
        wanted = one + multiple
        source = _Source(self.split, self.rating, seed, self.threads, self.tell)
        with closing(source.chains):
            while True:
                puzzles = source.first(wanted)
                if distinct.before is not None:  # queries of other shards
                    puzzles = puzzles.take(~np.isin(stable_hash(puzzles.puzzle), distinct.before))
                rng = np.random.default_rng(seed)
                fewer, found = _without_a_given(puzzles.puzzle, rng, multiple)
                lacking = max(multiple - len(found), one + multiple - len(puzzles.puzzle))
                if not lacking:
                    break
                wanted += lacking
        query = puzzles.puzzle.copy()
        query[found] = fewer
        # The puzzles of a chain are in a row, and chains aim at different ratings.
        single = np.setdiff1d(np.arange(len(query)), found)[:one]
        rows = rng.permutation(np.concatenate([single, found]))
        return Drawn(query[rows], None, puzzles.key[rows])

    def kind(self, data: Dataset) -> np.ndarray:
        """0 for OS queries, 1 for MS queries."""
        return data.multiple.astype(np.int64)


def hard_puzzles(
    number: int,
    split: Split | None,
    rating: RatingRanges,
    seed: int = 0,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> RatedPuzzles:
    """Make minimal 9x9 puzzles with ratings from lowest to highest; arguments as in ``build_hard_sudoku``."""
    if number < 1:
        raise ValueError(f"number: expected at least 1 puzzle, got {number}")
    source = _Source(split, rating, seed, threads, progress or (lambda what, done, of: None))
    with closing(source.chains):
        return source.first(number)


class _Source:
    """Makes puzzles, one chain after the other. Every chain has its own seed, and their puzzles are taken in order."""

    def __init__(
        self, split: Split | None, rating: RatingRanges, seed: Seed, threads: int | None, tell: Progress
    ) -> None:
        if split is not None and split not in SPLITS:
            raise ValueError(f"split: expected one of {', '.join(SPLITS)}, got {split!r}")
        self.ranges = _ranges(rating)
        for low, high in self.ranges:
            if not 0 <= low <= high < np.inf:
                raise ValueError(f"rating: expected 0 <= lowest <= highest, got {low:g} and {high:g}")
        self.split: Split | None = split
        # Splits never share a chain: their puzzles would be of different grid classes but alike.
        first, *rest = (seed,) if isinstance(seed, int) else seed
        self.entropy = (first % 2**63, 0 if split is None else 1 + SPLITS.index(split), *rest)
        self.tell = tell
        self.chains = in_order(self._chain, threads or usable_cores())
        self.parts: list[RatedPuzzles] = []
        self.of_class: Counter[bytes] = Counter()

    def first(self, number: int) -> RatedPuzzles:
        """Return the first puzzles; makes more chains until there are enough."""
        made = sum(len(part.puzzle) for part in self.parts)
        fruitless = 0
        while made < number:
            part = self._of_few_classes(next(self.chains))
            self.parts.append(part)
            made += len(part.puzzle)
            fruitless = 0 if len(part.puzzle) else fruitless + 1
            if fruitless == FRUITLESS:
                ranges = " and ".join(f"{low:g} to {high:g}" for low, high in self.ranges)
                raise ValueError(
                    f"rating: only {made:,} of {number:,} puzzles from {ranges} were found: "
                    "ask for fewer puzzles or a wider range"
                )
            self.tell("puzzles", min(made, number), number)
        parts = zip(*((part.puzzle, part.key, part.rating) for part in self.parts), strict=True)
        return RatedPuzzles(*map(np.concatenate, parts)).take(slice(number))

    def _of_few_classes(self, part: RatedPuzzles) -> RatedPuzzles:
        rows = []
        for i, key in enumerate(map(bytes, part.key)):
            if self.of_class[key] < OF_A_CLASS:
                self.of_class[key] += 1
                rows.append(i)
        return part.take(np.array(rows, np.int64))

    def _chain(self, index: int) -> RatedPuzzles:
        """Return the puzzles of one chain; it depends on the seed, the split and the chain's index only."""
        rng = np.random.default_rng((*self.entropy, index))
        low, high = self.ranges[index % len(self.ranges)]
        target = rng.uniform(np.log1p(low), np.log1p(high))
        puzzle, grid = (np.empty((STEPS, 81), np.uint8) for _ in range(2))
        estimate = np.empty(STEPS)
        rows = np.arange(climb(np.uint64(rng.integers(1, 2**63)), STEPS, target, puzzle, grid, estimate))
        # An estimate is the mean of few searches, so puzzles close to the range are rated too.
        rows = rows[(estimate[rows] >= 0.8 * low) & (estimate[rows] <= 1.2 * high)]
        key = canonical_sudoku(grid[rows])
        inside = in_split(key, self.split)
        rows, key = rows[inside], key[inside]
        exact = rate(puzzle[rows], seed=self.entropy[0], threads=1).rating
        fits = (exact >= low) & (exact <= high)
        # The last puzzles come first: a chain ends closer to its target than it starts.
        found = RatedPuzzles(puzzle[rows[fits]], key[fits], exact[fits]).take(slice(None, None, -1))
        return found.take(_apart(found.puzzle))


def _ranges(rating: RatingRanges) -> list[list[float]]:
    """The ranges of ratings as lists, as a header holds them."""
    if np.ndim(rating) not in (1, 2) or np.shape(rating)[-1] != 2:
        raise ValueError(f"rating: expected lowest and highest, got {rating!r}")
    ranges: Any = [rating] if np.ndim(rating) == 1 else rating
    return [[float(bound) for bound in one] for one in ranges]


def _apart(puzzle: np.ndarray) -> np.ndarray:
    """Return the first rows of puzzles uint8 [N, 81] that differ enough from all earlier ones: int64 [K]."""
    kept: list[int] = []
    for i in range(len(puzzle)):
        if len(kept) < OF_A_CHAIN and ((puzzle[kept] != puzzle[i]).sum(1) >= DIFFERENT).all():
            kept.append(i)
    return np.array(kept, np.int64)


def _without_a_given(puzzle: np.ndarray, rng: np.random.Generator, wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """Remove a random given of up to ``wanted`` puzzles uint8 [P, 81], so that 2 to 50 solutions are left.

    Returns the queries uint8 [W, 81] and the rows of their puzzles int64 [W], in order. A puzzle of which no given can
    be removed that way is left out.
    """
    order = np.argsort(np.where(puzzle > 0, rng.random(puzzle.shape), 2), axis=1)
    givens = (puzzle > 0).sum(1)
    query = puzzle.copy()
    open_rows, found = rng.permutation(len(puzzle)), np.zeros(0, np.int64)
    while len(found) < wanted and len(open_rows):
        # The first puzzles of the random order that are still needed, with all of their givens, one at a time.
        rows, open_rows = np.split(open_rows, [wanted - len(found)])
        for attempt in range(givens.max()):
            rows = rows[attempt < givens[rows]]
            fewer = puzzle[rows]
            fewer[np.arange(len(rows)), order[rows, attempt]] = 0
            total = count(sudoku(), fewer, limit=MOST_SOLUTIONS + 1)
            fits = (total > 1) & (total <= MOST_SOLUTIONS)
            query[rows[fits]] = fewer[fits]
            found, rows = np.append(found, rows[fits]), rows[~fits]
    found = np.sort(found)
    return query[found], found


def in_order(work: Callable[[int], Result], threads: int) -> Generator[Result, None, None]:
    """Yield work(0), work(1), ... without end; threads compute some ahead."""
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Any] = deque()
        try:
            for index in numbers():
                ahead.append(pool.submit(work, index))
                if len(ahead) > threads:
                    yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()
