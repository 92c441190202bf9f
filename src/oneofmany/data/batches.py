"""A dataset on a device, where batches are drawn and indexed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor

from oneofmany.data.dataset import Dataset
from oneofmany.problems import Batch

Sampling = Literal["uniform", "pairs", "pairs-padded", "os", "ms"] | float
"""How queries are drawn, always with replacement. ``uniform``: uniformly over queries. ``pairs``: uniformly over
(query, solution) pairs, with that one solution listed. ``os``, ``ms``: only OS or only MS queries. A number: MS with
this probability, else OS, and uniformly within each.

``pairs-padded`` reproduces a mistake of the authors' N-Queens code: queries are drawn as with ``pairs``, but the
solution is drawn from a list that is padded by repeating its last entry, so the last solution is drawn too often."""


class DeviceData:
    """All tensors of a dataset on one device.

    Args:
        dataset: the dataset to copy.
        device: the device to copy it to.
        listed: use at most this many listed solutions of a query, the first ones; all by default.
    """

    def __init__(self, dataset: Dataset, device: torch.device | str = "cpu", listed: int | None = None) -> None:
        if not len(dataset):
            raise ValueError("dataset: it has no queries")
        if listed is not None and listed < 1:
            raise ValueError(f"listed: expected at least 1 solution, got {listed}")
        self.problem = dataset.problem
        self.device = torch.device(device)

        def place(array) -> Tensor:
            return torch.as_tensor(array).to(self.device)

        self.query = place(dataset.query)
        self.solutions = place(dataset.solutions)
        self.first = place(dataset.offsets[:-1])
        self.listed = place(dataset.listed).clamp_max(listed or int(max(dataset.listed.max(), 1)))
        self.total = place(dataset.total)
        self.relations = place(dataset.relations) if dataset.relations.shape[1] else None
        multiple = place(dataset.multiple)
        self.rows = {"os": torch.nonzero(~multiple)[:, 0], "ms": torch.nonzero(multiple)[:, 0]}
        # The query of every (query, solution) pair, and the pair's row in ``solutions``.
        self.pair_query = torch.repeat_interleave(torch.arange(len(self.query), device=self.device), self.listed)
        self.first_pair = torch.cumsum(self.listed, 0) - self.listed
        self.pair_solution = (
            torch.arange(len(self.pair_query), device=self.device) + (self.first - self.first_pair)[self.pair_query]
        )
        self.most_listed = int(self.listed.max())

    def __len__(self) -> int:
        return len(self.query)

    def draw_rows(self, size: int, generator: torch.Generator, sampling: Sampling = "uniform") -> Tensor:
        """Draw rows int64 [size] of queries, or of pairs with ``pairs...``; the generator is on the same device."""
        if size < 1:
            raise ValueError(f"size: expected at least 1 query, got {size}")
        if sampling == "uniform":
            return self._draw(len(self.query), size, generator)
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
            return self.draw_rows(size, generator, "ms" if sampling else "os")
        single, several = self.draw_rows(size, generator, "os"), self.draw_rows(size, generator, "ms")
        multiple = torch.rand(size, generator=generator, device=self.device) < sampling
        return torch.where(multiple, several, single)

    def batch(self, rows: Tensor, sampling: Sampling = "uniform") -> Batch:
        """Return the batch of drawn rows int64 [B], by indexing only: nothing is drawn and the host does not wait."""
        if sampling in ("pairs", "pairs-padded"):
            query = self.pair_query[rows]
            picked = self.pair_solution[rows][:, None]
            mask = torch.ones_like(picked, dtype=torch.bool)
        else:
            query = rows
            place = torch.arange(self.most_listed, device=self.device)
            mask = place < self.listed[query][:, None]
            picked = torch.where(mask, self.first[query][:, None] + place, self.first[query][:, None])
            # If the last query has no listed solutions, its index is past the end.
            picked = picked.clamp_max(max(len(self.solutions) - 1, 0))
        if len(self.solutions):
            solutions = self.solutions[picked].long() - 1
        else:
            solutions = torch.zeros(*picked.shape, self.problem.variables, dtype=torch.int64, device=self.device)
        return Batch(
            self.query[query].long(),
            solutions,
            mask,
            self.total[query].long(),
            self.problem,
            None if self.relations is None else self.relations[query].long(),
        )

    def draw(self, size: int, generator: torch.Generator, sampling: Sampling = "uniform") -> Batch:
        """Draw a batch with replacement."""
        return self.batch(self.draw_rows(size, generator, sampling), sampling)

    def in_order(self, size: int) -> Iterator[Batch]:
        """Yield all queries once, in order, in batches of ``size``; the last one may be smaller."""
        for rows in torch.arange(len(self.query), device=self.device).split(size):
            yield self.batch(rows)

    def _draw(self, number: int, size: int, generator: torch.Generator) -> Tensor:
        return torch.randint(number, (size,), generator=generator, device=self.device)

    def _available(self, kind: str, number: int) -> int:
        if not number:
            what = {"pairs": "listed solution", "os": "OS query", "ms": "MS query"}[kind]
            raise ValueError(f"sampling: the data has no {what} to draw, so {kind!r} is impossible")
        return number
