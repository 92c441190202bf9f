"""Make batches of items whose answers differ in number and length, for any ``torch.utils.data.DataLoader``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


def collate(items: Sequence[Mapping[str, Any]], *, fill: int = -100, pad: int = 0) -> dict[str, Tensor]:
    """Pad items to one batch, as objectives take it; pass it as ``collate_fn``.

    Items of a ``Dataset`` or ``SequenceData``, and your own with the same two fields::

        {"query": [S], "solutions": K answers of L values each}

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
    queries = [torch.as_tensor(item["query"]) for item in items]
    answers = [[torch.as_tensor(answer) for answer in item["solutions"]] for item in items]
    for place, each in enumerate(answers):
        if not each:
            raise ValueError(f"items: item {place} has no answer in solutions")
    flat = [answer for each in answers for answer in each]
    most, longest = max(map(len, answers)), max(map(len, flat))
    if flat[0].is_floating_point() and any(len(answer) != longest for answer in flat):
        raise ValueError("items: answers of real numbers need one length, because nothing marks their padding")
    solutions = flat[0].new_full((len(items), most, longest), fill)
    for row, each in enumerate(answers):
        for place, answer in enumerate(each):
            solutions[row, place, : len(answer)] = answer
    listed = torch.tensor([len(each) for each in answers])
    batch = {
        "query": _padded(queries, pad),
        "lengths": torch.tensor([len(query) for query in queries]),
        "solutions": solutions,
        "mask": torch.arange(most) < listed[:, None],
    }
    if "relations" in items[0]:
        batch["relations"] = _padded([torch.as_tensor(item["relations"]) for item in items], -1)
    return batch


def _padded(rows: Sequence[Tensor], fill: int) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=fill)
