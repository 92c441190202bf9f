"""Futoshiki queries: random Latin squares with some cells blanked and some inequalities shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.data.latin import EXACT_UP_TO, latin_squares
from oneofmany.data.listing import Distinct, Drawn, Seed, build
from oneofmany.data.splits import Split, in_split, relation_rows
from oneofmany.problems import futoshiki

Neighbours = Literal["horizontal", "all"]


def build_futoshiki(
    size: int,
    blanks: int,
    inequalities: int,
    queries: int,
    split: Split | None = None,
    seed: int = 0,
    neighbours: Neighbours = "horizontal",
) -> Dataset:
    """Build distinct queries from uniformly random Latin squares with ``blanks`` blank cells, all solutions listed.

    ``inequalities`` of each direction are drawn with replacement, so a query has up to that many of each,
    between ``horizontal`` neighbours (as in the authors' code) or between ``all`` adjacent cells (as in the paper).
    """
    return build(FutoshikiSource(size, blanks, inequalities, queries, split, seed, neighbours), seed)


class FutoshikiSource:
    """Draws queries; arguments as in ``build_futoshiki``."""

    listed = most_of_a_group = None

    def __init__(
        self,
        size: int,
        blanks: int,
        inequalities: int,
        queries: int,
        split: Split | None = None,
        seed: int = 0,
        neighbours: Neighbours = "horizontal",
    ) -> None:
        if size < 2:
            raise ValueError(f"size: expected at least 2, got {size}")
        if not 0 <= blanks <= size * size:
            raise ValueError(f"blanks: expected 0 to {size * size} cells, got {blanks}")
        if inequalities < 0 or queries < 1:
            raise ValueError(f"expected at least 0 inequalities and 1 query, got {inequalities} and {queries}")
        self.size, self.blanks, self.inequalities = size, blanks, inequalities
        self.split: Split | None = split
        self.pairs = neighbour_pairs(size, neighbours)
        self.problem, self.quotas = futoshiki(size), [queries]
        self.built: dict[str, Any] = {
            "builder": "futoshiki",
            "size": size,
            "blanks": blanks,
            "inequalities": inequalities,
            "neighbours": neighbours,
            "queries": queries,
            "split": split,
            "seed": seed,
            "drawn": "exactly uniform Latin squares"
            if size <= EXACT_UP_TO
            else "Latin squares of Jacobson-Matthews chains",
        }

    def draw(self, quotas: Sequence[int], seed: Seed, distinct: Distinct) -> Drawn:
        """Draw queries until the quota is full."""
        (queries,) = quotas
        rng = np.random.default_rng(seed)
        kept: list[tuple[np.ndarray, np.ndarray]] = []
        found = fruitless = 0
        while found < queries:
            number = min(20_000, max(64, int((queries - found) * {None: 1.02, "train": 1.35}.get(self.split, 11))))
            squares = latin_squares(self.size, number, rng)
            relations = _draw_inequalities(squares, self.pairs, self.inequalities, rng)
            blank = np.argsort(rng.random(squares.shape), axis=1) < self.blanks
            query = np.where(blank, 0, squares).astype(np.uint8)
            rows = relation_rows(query, relations)
            keep = in_split(rows, self.split)
            keep[keep] = distinct(rows[keep])
            kept.append((query[keep], relations[keep]))
            found += int(keep.sum())
            fruitless = 0 if keep.any() else fruitless + 1
            if fruitless == 200:
                raise ValueError(f"queries: asked for {queries:,}, but only {found:,} distinct ones were found")
        query, relations = (np.concatenate(part)[:queries] for part in zip(*kept, strict=True))
        return Drawn(query, relations)

    def kind(self, data: Dataset) -> np.ndarray:
        """All queries are of one kind."""
        return np.zeros(len(data), np.int64)


def neighbour_pairs(size: int, neighbours: Neighbours) -> np.ndarray:
    """Return int64 [P, 2]: pairs of adjacent cells, the left or upper one first."""
    cell = np.arange(size * size).reshape(size, size)
    horizontal = np.stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()], 1)
    if neighbours == "horizontal":
        return horizontal
    if neighbours == "all":
        return np.concatenate([horizontal, np.stack([cell[:-1].ravel(), cell[1:].ravel()], 1)])
    raise ValueError(f"neighbours: expected horizontal or all, got {neighbours!r}")


def _draw_inequalities(
    squares: np.ndarray, pairs: np.ndarray, inequalities: int, rng: np.random.Generator
) -> np.ndarray:
    """Return int16 [N, 2q, 2] relations a < b that hold: q draws from the rising pairs, q from the falling ones."""
    rising = squares[:, pairs[:, 0]] < squares[:, pairs[:, 1]]
    drawn = []
    for direction, ordered in ((rising, pairs), (~rising, pairs[:, ::-1])):
        available = direction.sum(1)
        # The k-th pair of this direction is where the running count reaches k+1.
        which = (rng.random((len(squares), inequalities)) * available[:, None]).astype(np.int64)
        place = (np.cumsum(direction, 1)[:, None, :] <= which[:, :, None]).sum(2)
        chosen = ordered[np.minimum(place, len(pairs) - 1)]
        chosen[available == 0] = -1
        drawn.append(chosen)
    relations = np.concatenate(drawn, 1)
    code = relations[..., 0] * squares.shape[1] + relations[..., 1]
    repeated = (code[:, :, None] == code[:, None, :]) & np.tri(code.shape[1], k=-1, dtype=bool)
    relations[repeated.any(2)] = -1
    # Padding comes last.
    order = np.argsort(relations[..., 0] < 0, axis=1, kind="stable")
    return np.take_along_axis(relations, order[..., None], 1).astype(np.int16)
