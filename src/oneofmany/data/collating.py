"""Make batches of items whose answers differ in number and length, for any ``torch.utils.data.DataLoader``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor


def collate(items: Sequence[Mapping[str, Any]], *, fill: int = -100, pad: int = 0) -> dict[str, Tensor]:
    """Pad items to one batch, as objectives take it; pass it as ``collate_fn``.

    Items of a ``Dataset`` or ``SequenceData``, and your own with the same two fields::

        {"query": [S], "solutions": K answers of L values each, or K single values}

    Args:
        items: queries of any lengths, each with at least one answer of any length; lists, arrays or tensors. Real
            numbers are allowed if all answers have one length. ``relations`` [M, 2] are padded with -1.
        fill: the value behind the end of an answer; the objectives' ``ignore_index``.
        pad: the value behind the end of a query.

    Returns:
        ``query`` [B, S], ``lengths`` int64 [B] of the queries, ``solutions`` [B, K, L], ``mask`` bool [B, K]: which
        answers are real; and ``relations`` [B, M, 2], if the items have them.
    """
    if not items:
        raise ValueError("items: expected at least one, got none")
    for place, item in enumerate(items):
        if missing := {"query", "solutions"} - {*item}:
            raise ValueError(f"items: item {place} has no field {' and '.join(sorted(missing))}")
        if not len(item["solutions"]):
            raise ValueError(f"items: item {place} has no answer in solutions")
    queries = _alike([torch.as_tensor(item["query"]) for item in items])
    counts = [len(item["solutions"]) for item in items]
    flat = _alike([torch.as_tensor(answer) for item in items for answer in item["solutions"]])
    if any(answer.dim() > 1 for answer in flat):
        raise ValueError("items: expected answers of one axis, such as [L], or single values")
    most, longest = max(counts), max(1, *map(len, flat))
    if flat[0].is_floating_point() and any(len(answer) != longest for answer in flat):
        raise ValueError("items: answers of real numbers need one length, because nothing marks their padding")
    mask = torch.arange(most) < torch.tensor(counts)[:, None]
    solutions = flat[0].new_full((len(items), most, longest), fill)
    for row, place, answer in zip(*mask.nonzero(as_tuple=True), flat, strict=True):
        solutions[row, place, : len(answer)] = answer
    batch = {
        "query": _padded(queries, pad),
        "lengths": torch.tensor([len(query) for query in queries]),
        "solutions": solutions,
        "mask": mask,
    }
    if "relations" in items[0]:
        batch["relations"] = _padded([torch.as_tensor(item["relations"]) for item in items], -1)
    return batch


def _alike(values: Sequence[Tensor]) -> list[Tensor]:
    """Values of one type, int64 or a floating-point type; an empty one has no type of its own. Numbers get an axis."""
    floats = [value.dtype for value in values if value.is_floating_point() and value.numel()]
    common = reduce(torch.promote_types, floats) if floats else torch.int64
    return [torch.atleast_1d(value).to(common) for value in values]


def _padded(rows: Sequence[Tensor], fill: int) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=fill)
