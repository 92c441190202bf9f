"""Sparing: a query with an incomplete list is left out of an update if the network has settled on another answer."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from oneofmany.problems import Batch

SETTLED = 8
"""Steps over which an answer must not change to count as settled."""


@torch.no_grad()
def spare_settled(batch: Batch, logits: Tensor) -> Batch:
    """The batch without the listed solutions of queries that are left out of this update.

    If not all solutions of a query are listed, an unlisted answer may be correct. Training towards a listed solution
    would then drive the network away from a correct answer. This needs no checker: a query is left out if its list is
    incomplete, the answer has not changed in the last ``SETTLED`` steps, and the answer is not listed.

    Args:
        batch: queries with their listed solutions. ``batch.total`` tells whether a list is complete.
        logits: [T, B, R, V], the network's answers at every step.
    """
    answers = logits[-SETTLED:].argmax(-1)
    settled = (answers == answers[-1]).all(-1).all(0)
    listed = ((batch.solutions == answers[-1][:, None]).all(-1) & batch.mask).any(1)
    complete = batch.mask.sum(1) == batch.total
    return replace(batch, mask=batch.mask & (complete | listed | ~settled)[:, None])
