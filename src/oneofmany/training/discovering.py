"""Discovering: a valid answer of the network's own joins the listed solutions of its query."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from oneofmany.problems import Batch


@torch.no_grad()
def discover(batch: Batch, logits: Tensor) -> Batch:
    """The batch with one more place in its list, taken where the answer is a solution that is not listed.

    Where not all solutions are listed, a network that found another one would be led away from it; the rules, which
    are known, say that it was right.

    Args:
        batch: queries with K listed solutions.
        logits: [B, R, V], what the network answers.

    Returns:
        The batch with solutions [B, K + 1, R] and their mask.
    """
    answers = logits.argmax(-1)
    valid = batch.problem.check(answers, batch.query, batch.relations)
    known = ((batch.solutions == answers[:, None]).all(-1) & batch.mask).any(1)
    return replace(
        batch,
        solutions=torch.cat([batch.solutions, answers[:, None]], 1),
        mask=torch.cat([batch.mask, (valid & ~known)[:, None]], 1),
    )
