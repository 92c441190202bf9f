"""A dataset on a device, where batches are drawn and indexed."""

from __future__ import annotations

import torch
from torch import Tensor

from oneofmany.data.dataset import Dataset
from oneofmany.data.drawing import Drawing, Sampling
from oneofmany.data.rating import ratings_of
from oneofmany.data.sequences import SequenceData
from oneofmany.data.shares import Share
from oneofmany.problems import Batch, SequenceBatch
from oneofmany.problems.batch import most_related

__all__ = ["DeviceData", "Sampling", "SequencesOnDevice", "place"]


class DeviceData(Drawing[Batch]):
    """All tensors of a dataset on one device.

    Args:
        dataset: the dataset to copy.
        device: the device to copy it to.
        listed: use at most this many listed solutions of a query, the first ones; all by default.
    """

    def __init__(self, dataset: Dataset, device: torch.device | str = "cpu", listed: int | None = None) -> None:
        super().__init__(dataset, device, listed)
        self.problem = dataset.problem
        self.query = self.place(dataset.query)
        self.solutions = self.place(dataset.solutions)
        self.total = self.place(dataset.total)
        self.relations = self.place(dataset.relations) if dataset.relations.shape[1] else None
        self.own = None if dataset.own is None else dataset.own.to(self.device)
        self.most_related: int | None = None
        if self.relations is not None and (self.own is not None or self.problem.relation == "!="):
            self.most_related = most_related(self.relations, self.problem.variables)

    def batch(self, rows: Tensor, sampling: Sampling = "uniform") -> Batch:
        """Return the batch of drawn rows int64 [B], by indexing only: nothing is drawn and the host does not wait."""
        query, picked, mask = self.picked(rows, sampling)
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
            self.own,
            None if self.own is None else query,
            self.most_related,
        )


class SequencesOnDevice(Drawing[SequenceBatch]):
    """All tensors of a dataset of sequences on one device.

    Args:
        dataset: the dataset to copy.
        device: the device to copy it to.
        listed: use at most this many listed answers of a query, the first ones; all by default.
    """

    def __init__(self, dataset: SequenceData, device: torch.device | str = "cpu", listed: int | None = None) -> None:
        super().__init__(dataset, device, listed)
        self.problem = dataset.problem
        # One token more, so that the start of an empty sequence at the end is inside.
        self.inputs, self.outputs = (
            torch.cat([self.place(tokens), torch.zeros(1, dtype=torch.int32, device=self.device)])
            for tokens in (dataset.inputs, dataset.outputs)
        )
        self.input_offsets, self.output_offsets = map(self.place, (dataset.input_offsets, dataset.output_offsets))

    def batch(self, rows: Tensor, sampling: Sampling = "uniform") -> SequenceBatch:
        """Return the batch of drawn rows int64 [B], as short as its longest sequences; the host waits for these."""
        query, picked, mask = self.picked(rows, sampling)
        tokens, lengths = _ragged(self.inputs, self.input_offsets, query, 0)
        answers, sizes = _ragged(self.outputs, self.output_offsets, picked, -100)
        longest = int(sizes.masked_fill(~mask, 0).max())
        answers = answers[..., : max(longest, 1)].masked_fill(~mask[..., None], -100)
        return SequenceBatch(tokens, lengths, answers, mask, self.problem)


def _ragged(tokens: Tensor, offsets: Tensor, rows: Tensor, fill: int) -> tuple[Tensor, Tensor]:
    """The sequences of some rows [..], padded with ``fill``: int64 [.., longest], and their lengths [..]."""
    first, lengths = offsets[rows], offsets[rows + 1] - offsets[rows]
    place = torch.arange(max(int(lengths.max()), 1), device=rows.device)
    within = place < lengths[..., None]
    found = tokens[torch.where(within, first[..., None] + place, 0)].long()
    return found.masked_fill(~within, fill), lengths


def place(
    dataset: Dataset | SequenceData | Share,
    device: torch.device | str = "cpu",
    listed: int | None = None,
    rated: bool = False,
) -> DeviceData | SequencesOnDevice:
    """Copy a dataset of either kind, or a share of one, to a device; ``rated`` sorts the queries by their rating."""
    if isinstance(dataset, Share):
        placed, bounds = DeviceData(dataset.data, device, listed), dataset.bounds
        if rated:
            placed.rate(ratings_of(dataset.data))
        # What an update draws for a batch must not depend on the share.
        placed.most_listed = min(dataset.most_listed, listed or dataset.most_listed)
        for shard in dataset.shards:
            placed.shards[shard] = placed.within(
                range(bounds[shard] - dataset.first, bounds[shard + 1] - dataset.first)
            )
        return placed
    if isinstance(dataset, SequenceData):
        return SequencesOnDevice(dataset, device, listed)
    placed = DeviceData(dataset, device, listed)
    if rated:
        placed.rate(ratings_of(dataset))
    return placed
