"""Discovering: a valid answer is added to the listed solutions of its query."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from oneofmany.problems import Batch


@torch.no_grad()
def discover(batch: Batch, answers: Tensor, *, valid_only: bool = False) -> Batch:
    """The batch with one more place per list: an answer, if it is a solution that is not listed yet.

    Without it, a network that finds an unlisted solution is trained away from a correct answer. The rules are known, so
    the answer can be checked.

    Args:
        batch: queries with K listed solutions.
        answers: int64 [B, R], those of the network, or what a local search made of them.
        valid_only: do not train on a query whose answer is not valid, by leaving its whole list out.

    Returns:
        The batch with solutions [B, K + 1, R] and their mask.
    """
    valid = batch.check(answers)
    known = ((batch.solutions == answers[:, None]).all(-1) & batch.mask).any(1)
    listed = batch.mask & valid[:, None] if valid_only else batch.mask
    return replace(
        batch,
        solutions=torch.cat([batch.solutions, answers[:, None]], 1),
        mask=torch.cat([listed, (valid & ~known)[:, None]], 1),
    )
