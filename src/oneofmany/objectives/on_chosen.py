"""Training on the chosen solutions only, for models that need a pass for every listed solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .base import Objective
from .reducing import heaviest, without_padding
from .selectr import SelectR
from .validation import as_mask, expect, expect_axes, expect_device, expect_tensor

LossesOf = Callable[[Tensor, Tensor], Tensor]
"""Pair losses `[N]` or `[T,N]` of N pairs: the rows of their queries `[N]` and the solutions `[N,..]`."""


class OnChosen(NamedTuple):
    """What `train_on_chosen` returns."""

    loss: Tensor
    """The loss, with the gradient of the chosen solutions."""
    chosen: Tensor
    """Which listed solution each query is trained on, `[B]` or per step `[T,B]`; -1 if it is left out."""
    pair_losses: Tensor
    """The pair losses of all listed solutions, `[B,K]` or `[T,B,K]`, without a gradient; 0 at padding."""


def train_on_chosen(
    objective: Objective | SelectR,
    losses_of: LossesOf,
    solutions: Tensor,
    mask: Tensor | None = None,
    scores: Tensor | None = None,
    *,
    at_once: int | None = None,
    normaliser: Tensor | float | None = None,
    generator: torch.Generator | None = None,
    noise: Tensor | None = None,
) -> OnChosen:
    """Score all listed solutions without gradients, then compute the loss with gradients on the chosen ones only.

    Its gradient is that of `objective.reduce` on all pair losses, if the model gives the same numbers twice (dropout
    does not). The memory for gradients is that of the solutions of non-zero weight: one per query for `MinLoss`,
    `Random` and the objectives that draw one; all of them for the others.

    Args:
        objective: any objective; its pair loss is not used.
        losses_of: a function of rows `[N]` int64 and solutions `[N,..]` that returns the pair losses `[N]` or `[T,N]`
            of solution n for query rows[n]: the pass through your model.
        solutions: `[B,K,..]` of any type, anything where the mask is False.
        mask: `[B,K]` of bool or any integer type, False for padding; None: all are listed. Padding is not scored.
        scores: `[B,K]`, of the selector, for `SelectR`.
        at_once: pairs that are scored together; None: B.
        normaliser: as in the objective's call.
        generator: as in the objective's call.
        noise: as in the objective's call.
    """
    needed = isinstance(objective, SelectR) or scores is None
    expect(needed, "scores", f"None, since {type(objective).__name__} has no selector", "a tensor")
    mask = as_mask(mask, solutions, "solutions", validate=objective.validate)
    clean = without_padding(solutions, mask)
    expect_device(mask, "mask", solutions.device)
    at_once = len(mask) if at_once is None else at_once
    expect(at_once > 0, "at_once", "1 or more", at_once)
    rows, places = mask.nonzero(as_tuple=True)
    with torch.no_grad():
        parts = [
            _losses(losses_of, row, clean[row, place])
            for row, place in zip(rows.split(at_once), places.split(at_once), strict=True)
            if len(row)
        ]
        pair_losses = _place(torch.cat(parts, -1), rows, places, mask) if parts else mask.to(torch.float32) * 0
        if isinstance(objective, SelectR):
            weights = objective.weights(pair_losses, mask, scores, generator=generator, noise=noise)
        else:
            weights = objective.weights(pair_losses, mask, generator=generator, noise=noise)
    used = (weights != 0).any(0) if weights.dim() == 3 else weights != 0
    if not used.any():  # a zero that still back-propagates
        used = torch.zeros_like(mask)
        used[0, 0] = True
    rows, places = used.nonzero(as_tuple=True)
    losses = _losses(losses_of, rows, clean[rows, places])
    everywhere = _place(losses, rows, places, mask, pair_losses)
    loss = objective.reduce_weighted(everywhere, weights, mask, normaliser=normaliser)
    return OnChosen(loss, heaviest(weights), pair_losses)


def _losses(losses_of: LossesOf, rows: Tensor, solutions: Tensor) -> Tensor:
    """Call the user's function and check what it returns."""
    losses = losses_of(rows, solutions)
    expect_tensor(losses, "losses_of")
    right = losses.dim() in (1, 2) and losses.shape[-1] == len(rows)
    expect_axes(right, losses, "losses_of", f"shape [N] or [T,N] with N = {len(rows)}")
    expect_device(losses, "losses_of", rows.device)
    return losses


def _place(losses: Tensor, rows: Tensor, places: Tensor, mask: Tensor, into: Tensor | None = None) -> Tensor:
    """Put losses `[N]` or `[T,N]` at their rows and places of `[B,K]` or `[T,B,K]`, or of a copy of `into`."""
    shape = (*losses.shape[:-1], *mask.shape)
    into = losses.new_zeros(shape) if into is None else into.expand(shape).to(losses.dtype)
    index = (rows * mask.shape[1] + places).expand(losses.shape)
    return into.flatten(-2).scatter(-1, index, losses).view(shape)
