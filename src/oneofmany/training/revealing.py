"""Revealing: turn random cells of one listed solution into givens and keep only the solutions that agree."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from oneofmany.problems import Batch


def draw_reveal(batch: int, variables: int, generator: torch.Generator) -> Tensor:
    """Draw the uniform numbers [B, R + 3] for one call of ``reveal``."""
    return torch.rand(batch, variables + 3, generator=generator, device=generator.device)


def reveal(batch: Batch, share: float, uniform: Tensor) -> Batch:
    """The batch with more givens in a ``share`` of its queries.

    Such a query shows a random share of the cells of one listed solution, uniform between none and all. Listed
    solutions that disagree are masked out, so every remaining one solves the new query. A complete list stays complete;
    otherwise the total of a query with new givens becomes unknown.

    Args:
        batch: queries with their listed solutions.
        share: the probability that a query is changed.
        uniform: [B, R + 3], drawn by ``draw_reveal``.
    """
    changed, which, amount, cells = uniform[:, 0], uniform[:, 1], uniform[:, 2], uniform[:, 3:]
    listed = batch.mask.sum(1)
    # The listed solutions come first in the mask.
    picked = (which * listed).long().clamp(max=batch.mask.shape[1] - 1)
    solution = batch.solutions.gather(1, picked[:, None, None].expand(-1, 1, batch.solutions.shape[2]))[:, 0]
    shown = (cells < amount[:, None]) & ((changed < share) & (listed > 0))[:, None]
    query = torch.where(shown & (batch.query == 0), solution + 1, batch.query)
    agrees = ((batch.solutions == solution[:, None]) | ~shown[:, None]).all(-1)
    mask = batch.mask & agrees
    total = torch.where(listed == batch.total, mask.sum(1), torch.where(shown.any(1), -1, batch.total))
    return replace(batch, query=query, mask=mask, total=total)
