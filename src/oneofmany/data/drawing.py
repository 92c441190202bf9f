"""Draw queries with replacement, on a device: which rows of a dataset make a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

import torch
from torch import Tensor

B = TypeVar("B")
Sampling = Literal["uniform", "pairs", "pairs-padded", "os", "ms"] | float
"""How queries are drawn, always with replacement. ``uniform``: uniformly over queries. ``pairs``: uniformly over
(query, solution) pairs, with that one solution listed. ``os``, ``ms``: only OS or only MS queries. A number: MS with
this probability, else OS, and uniformly within each.

``pairs-padded`` reproduces a mistake of the authors' N-Queens code: queries are drawn as with ``pairs``, but the
solution is drawn from a list that is padded by repeating its last entry, so the last solution is drawn too often."""


class Listing(Protocol):
    """A dataset: queries with listed solutions."""

    @property
    def offsets(self) -> Any:
        """int64 [Q+1]: the solutions of query q are rows offsets[q] to offsets[q+1]."""
        ...

    @property
    def listed(self) -> Any:
        """int64 [Q]: the number of listed solutions."""
        ...

    @property
    def multiple(self) -> Any:
        """bool [Q]: MS queries."""
        ...

    def __len__(self) -> int: ...


class Drawing(ABC, Generic[B]):
    """The rows of a dataset on one device, from which batches are drawn.

    Args:
        dataset: the dataset.
        device: the device.
        listed: use at most this many listed solutions of a query, the first ones; all by default.
    """

    def __init__(self, dataset: Listing, device: torch.device | str, listed: int | None) -> None:
        if not len(dataset):
            raise ValueError("dataset: it has no queries")
        if listed is not None and listed < 1:
            raise ValueError(f"listed: expected at least 1 solution, got {listed}")
        self.device = torch.device(device)
        self.first = self.place(dataset.offsets[:-1])
        self.listed = self.place(dataset.listed).clamp_max(listed or int(max(dataset.listed.max(), 1)))
        multiple = self.place(dataset.multiple)
        self.rows = {"os": torch.nonzero(~multiple)[:, 0], "ms": torch.nonzero(multiple)[:, 0]}
        # The query of every (query, solution) pair, and the pair's row in the solutions.
        self.pair_query = torch.repeat_interleave(torch.arange(len(self.listed), device=self.device), self.listed)
        self.first_pair = torch.cumsum(self.listed, 0) - self.listed
        self.pair_solution = (
            torch.arange(len(self.pair_query), device=self.device) + (self.first - self.first_pair)[self.pair_query]
        )
        self.most_listed = int(self.listed.max())
        self.queries = range(len(self.listed))
        self.shards: dict[int, Drawing[B]] = {}
        self.by_rating: dict[str, Tensor] = {}

    def place(self, array: Any) -> Tensor:
        """Copy an array to the device."""
        return torch.as_tensor(array).to(self.device)

    def __len__(self) -> int:
        return len(self.listed)

    def within(self, queries: range) -> Self:
        """Return the same data, of which only these queries are drawn, and no pairs."""
        part = copy(self)
        part.queries = queries
        part.rows, part.by_rating = (
            {k: rows[(rows >= queries.start) & (rows < queries.stop)] for k, rows in every.items() if k != "pairs"}
            for every in (self.rows, self.by_rating)
        )
        return part

    def rate(self, rating: Any) -> None:
        """Sort the queries by their ratings, numbers [Q], so that ``draw_rows`` can draw ``towards`` a place."""
        rank = torch.argsort(torch.argsort(self.place(rating), stable=True))
        self.by_rating = {name: rows[torch.argsort(rank[rows])] for name, rows in self.rows.items()}
        self.by_rating |= {"uniform": torch.argsort(rank), "pairs": torch.argsort(rank[self.pair_query], stable=True)}

    @abstractmethod
    def batch(self, rows: Tensor, sampling: Sampling = "uniform") -> B:
        """Return the batch of drawn rows int64 [B]."""

    def picked(self, rows: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries [B], rows of their solutions [B, K] and which of these are listed [B, K], by indexing only."""
        if sampling in ("pairs", "pairs-padded"):
            picked = self.pair_solution[rows][:, None]
            return self.pair_query[rows], picked, torch.ones_like(picked, dtype=torch.bool)
        place = torch.arange(self.most_listed, device=self.device)
        mask = place < self.listed[rows][:, None]
        return rows, torch.where(mask, self.first[rows][:, None] + place, self.first[rows][:, None]), mask

    def draw_rows(
        self, size: int, generator: torch.Generator, sampling: Sampling = "uniform", towards: float | None = None
    ) -> Tensor:
        """Draw rows int64 [size] of queries, or of pairs with ``pairs...``; the generator is on the same device.

        ``towards`` is the mean place of what is drawn among the rated queries (see ``rate``), from 0, the lowest
        rating, to 1; the place is a power of a uniform number. None and 0.5 are uniform. Not with ``pairs-padded``.
        """
        if size < 1:
            raise ValueError(f"size: expected at least 1 query, got {size}")
        if towards is not None and isinstance(sampling, str):
            if sampling not in self.by_rating:
                raise ValueError(f"towards: expected rated queries and another sampling than {sampling!r}")
            rows = self.by_rating[sampling]
            number = self._available(sampling, len(rows))
            place = torch.rand(size, generator=generator, device=self.device) ** ((1 - towards) / towards)
            return rows[(place * number).long().clamp_max(number - 1)]
        if sampling == "uniform":
            return self.queries.start + self._draw(len(self.queries), size, generator)
        if sampling == "pairs":
            return self._draw(self._available("pairs", len(self.pair_query)), size, generator)
        if sampling == "pairs-padded":
            query = self.pair_query[self.draw_rows(size, generator, "pairs")]
            place = torch.minimum(self._draw(self.most_listed, size, generator), self.listed[query] - 1)
            return self.first_pair[query] + place
        if isinstance(sampling, str) and sampling in self.rows:
            rows = self.rows[sampling]
            return rows[self._draw(self._available(sampling, len(rows)), size, generator)]
        if isinstance(sampling, str) or not 0 <= sampling <= 1:
            raise ValueError(
                f"sampling: expected uniform, pairs, pairs-padded, os, ms or a share of MS from 0 to 1, "
                f"got {sampling!r}"
            )
        if sampling in (0, 1):
            return self.draw_rows(size, generator, "ms" if sampling else "os", towards)
        single, several = (self.draw_rows(size, generator, kind, towards) for kind in ("os", "ms"))
        multiple = torch.rand(size, generator=generator, device=self.device) < sampling
        return torch.where(multiple, several, single)

    def draw(self, size: int, generator: torch.Generator, sampling: Sampling = "uniform") -> B:
        """Draw a batch with replacement."""
        return self.batch(self.draw_rows(size, generator, sampling), sampling)

    def in_order(self, size: int) -> Iterator[B]:
        """Yield all queries once, in order, in batches of ``size``; the last one may be smaller."""
        for rows in torch.arange(len(self), device=self.device).split(size):
            yield self.batch(rows)

    def _draw(self, number: int, size: int, generator: torch.Generator) -> Tensor:
        return torch.randint(number, (size,), generator=generator, device=self.device)

    def _available(self, kind: str, number: int) -> int:
        if not number:
            what = {"pairs": "listed solution", "os": "OS query", "ms": "MS query", "uniform": "query"}[kind]
            raise ValueError(f"sampling: the data has no {what} to draw, so {kind!r} is impossible")
        return number
