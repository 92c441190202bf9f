"""Following the noise: the noise of a start takes part in the choice of the listed solution to train on."""

from __future__ import annotations

import torch
from torch import Tensor

from oneofmany.problems import Batch


@torch.no_grad()
def follow_noise(batch: Batch, pair_losses: Tensor, noise: Tensor, weight: float) -> Tensor:
    """The mask [B, K] of the solutions to train on: for each query the one with the smallest loss minus weighted noise.

    By the loss alone, a network tends to give the same few answers from every start. If the noise has a say, other
    noise means another solution, so that several starts find more of the solutions.

    Args:
        batch: queries with their listed solutions.
        pair_losses: [T, B, K].
        noise: [B, C], the noise of the starts. A solution's noise is the sum over the choices that it takes.
        weight: of the noise, in units of the loss.
    """
    solutions = batch.solutions.clamp_min(0)
    of_choice = noise.unflatten(1, (solutions.shape[2], -1))[:, None].expand(-1, solutions.shape[1], -1, -1)
    of_solution = of_choice.gather(-1, solutions[..., None]).squeeze(-1).sum(-1)
    cost = pair_losses.detach().mean(0) - weight * of_solution
    chosen = cost.masked_fill(~batch.mask, torch.inf).argmin(1, keepdim=True)
    return torch.zeros_like(batch.mask).scatter(1, chosen, True) & batch.mask
