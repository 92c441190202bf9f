"""Weights over the listed solutions, shared by the objectives.

Tensors are `[B,K]` or, per step, `[T,B,K]`; the mask `[B,K]` marks the listed solutions. Padding and all-masked rows
get weight 0 without a NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor


def uniform(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return `[B,K]` equal weights over the listed solutions of each query."""
    listed = mask.to(dtype)
    return listed / listed.sum(-1, keepdim=True).clamp(min=1)


def one_hot(index: Tensor, like: Tensor) -> Tensor:
    """Return weight 1 for the solution at `index` `[..,B]`, in the shape and type of `like` `[..,B,K]`."""
    return torch.zeros_like(like).scatter_(-1, index.unsqueeze(-1), 1.0)


def first_minimum(losses: Tensor, mask: Tensor) -> Tensor:
    """Return weight 1 for the listed solution of least loss; ties take the first (Eq. 4)."""
    # An impossible listed solution (loss inf) must still win against padding if nothing else is listed.
    return one_hot(finite(losses).where(mask, torch.inf).argmin(-1), losses) * mask


def softmin_listed(losses: Tensor, mask: Tensor, temperature: float) -> Tensor:
    """Return the softmax of -losses / temperature over the listed solutions (Section 3.4, I-ExplR)."""
    scores = finite(losses, temperature) / -temperature
    return scores.where(mask, -torch.inf).softmax(-1).where(mask, 0.0)


def log_softmax_listed(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the log-softmax of scores over the listed solutions, with a gradient; 0 at padding."""
    nothing_listed = ~mask.any(-1, keepdim=True)
    return scores.where(mask, -torch.inf).masked_fill(nothing_listed, 0.0).log_softmax(-1).where(mask, 0.0)


def mix_with_uniform(weights: Tensor, mask: Tensor, epsilon: float) -> Tensor:
    """Mix in uniform weights with probability `epsilon` (epsilon-greedy exploration)."""
    return weights if epsilon == 0 else (1 - epsilon) * weights + epsilon * uniform(mask, weights.dtype)


def draw_one(weights: Tensor, noise: Tensor) -> Tensor:
    """Draw one listed solution with probability `weights` and return weight 1 for it.

    `noise` has the shape of `weights` and is uniform in [0, 1). -log(1 - noise) are exponential waiting times at rate
    1, so the first arrival at rates `weights` is a draw from `weights`. Weight 0 never arrives.
    """
    race = weights.log() - (-torch.log1p(-noise.to(weights.dtype))).log()
    possible = weights > 0
    return one_hot(race.where(possible, -torch.inf).argmax(-1), weights) * possible


def finite(losses: Tensor, temperature: float = 1.0) -> Tensor:
    """Replace +inf by a number that stays finite when divided by the temperature, so that equal losses stay equal."""
    return losses.clamp(max=torch.finfo(losses.dtype).max / 2 * min(1.0, temperature))
