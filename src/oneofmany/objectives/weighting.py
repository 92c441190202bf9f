"""Weights over the listed solutions: the few ways to choose, shared by the objectives.

Every function takes the mask `[B,K]` of listed solutions and works on `[B,K]` or, per step, on `[T,B,K]`. Padding and
all-masked rows get weight 0, without a NaN on the way.
"""

from __future__ import annotations

import torch
from torch import Tensor


def uniform(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Give `[B,K]` equal weights over the listed solutions of each query."""
    listed = mask.to(dtype)
    return listed / listed.sum(-1, keepdim=True).clamp(min=1)


def one_hot(index: Tensor, like: Tensor) -> Tensor:
    """Give weight 1 to the solution at `index` `[..,B]`, in the shape and type of `like` `[..,B,K]`."""
    places = torch.arange(like.shape[-1], device=like.device)
    return (places == index.unsqueeze(-1)).to(like.dtype)


def first_minimum(losses: Tensor, mask: Tensor) -> Tensor:
    """Give weight 1 to the listed solution of least loss; ties take the first (Eq. 4)."""
    # An impossible listed solution (loss inf) must still win against padding when nothing else is listed.
    candidates = finite(losses).masked_fill(~mask, torch.inf)
    return one_hot(candidates.argmin(-1), losses) * mask


def log_softmax_listed(scores: Tensor, mask: Tensor) -> Tensor:
    """Log-softmax of scores over the listed solutions; 0 at padding."""
    scores = scores.masked_fill(~mask, -torch.inf).masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return scores.log_softmax(-1).masked_fill(~mask, 0.0)


def softmax_listed(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax of scores over the listed solutions; 0 at padding."""
    return log_softmax_listed(scores, mask).exp() * mask


def softmin_listed(losses: Tensor, mask: Tensor, temperature: float) -> Tensor:
    """Softmax of minus the losses over a temperature, over the listed solutions (Section 3.4, I-ExplR)."""
    losses = finite(losses)
    least = losses.masked_fill(~mask, torch.inf).amin(-1, keepdim=True)
    # The shift comes before the division: a low temperature must not turn equal large losses into inf - inf.
    return softmax_listed((least - losses) / temperature, mask)


def mix_with_uniform(weights: Tensor, mask: Tensor, epsilon: float) -> Tensor:
    """With probability `epsilon` take any listed solution instead (epsilon-greedy exploration)."""
    return weights if epsilon == 0 else (1 - epsilon) * weights + epsilon * uniform(mask, weights.dtype)


def draw_one(weights: Tensor, noise: Tensor) -> Tensor:
    """Draw one listed solution with probability `weights`; weight 1 for it.

    `noise` has the shape of `weights` and is uniform in [0, 1): -log(1 - noise) are waiting times at rate 1, and the
    first arrival of a race at rates `weights` is a draw from `weights`. Weight 0 never arrives.
    """
    race = weights.log() - (-torch.log1p(-noise.to(weights.dtype))).log()
    possible = weights > 0
    return one_hot(race.masked_fill(~possible, -torch.inf).argmax(-1), weights) * possible


def finite(losses: Tensor) -> Tensor:
    """Replace +inf by the largest number of the type, so that differences of losses are never NaN."""
    return losses.clamp(max=torch.finfo(losses.dtype).max)
