"""Repairing: a local search turns a colouring with clashes into a valid one near it, before it is discovered.

MinLoss trains towards the listed solution that is nearest to the network's answer. Of a large graph only a few of very
many colourings are listed, all of them far away. The search finds one that is near: MinLoss over all solutions, without
a list of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from oneofmany.problems import Batch

TENURE, PER_CLASH = 10.0, 0.5
"""A node may not return to its last colour for a random number of moves up to the first, plus this much per clash."""


@torch.no_grad()
def repair(batch: Batch, answers: Tensor, moves: int, uniform: Tensor) -> Tensor:
    """Return answers [B, R] with fewer clashes, by tabu search (TabuCol) from the network's answers; no clash: valid.

    Each move gives the node with a clash and the colour that lower the number of clashes most. Ties are broken by the
    random numbers. Queries without clashes stay as they are. Nothing waits for the device.

    Args:
        batch: queries whose only rules are relations a != b.
        answers: int64 [B, R], the network's answers with values 0..V-1.
        moves: the length of the search.
        uniform: float [B, R, V] in 0..1.
    """
    assert batch.relations is not None
    (B, R), V = answers.shape, batch.problem.values
    block = torch.arange(B, device=answers.device)
    a, b = torch.where(batch.relations >= 0, batch.relations, R).unbind(2)
    adjacent = torch.zeros(B, (R + 1) ** 2, device=answers.device)
    adjacent = adjacent.scatter_(1, a * (R + 1) + b, 1.0).view(B, R + 1, R + 1)
    adjacent = torch.maximum(adjacent, adjacent.mT)[:, :R, :R].contiguous()
    given = batch.query > 0
    colours = torch.where(given, batch.query - 1, answers)
    every = torch.arange(V, device=answers.device)
    clashes = adjacent @ (colours[..., None] == every).float()  # of every node, for each colour it might have
    barred_until = torch.zeros(B, R, V, device=answers.device)
    for move in range(moves):
        own = clashes.gather(2, colours[..., None])
        movable = (own[..., 0] > 0) & ~given
        # A tie-break below 1/2, other numbers at every move; TabuCol's tenure from the same numbers.
        noise = uniform.flatten(1).roll(move * 977, 1)
        possible = movable[..., None] & (barred_until <= move)
        possible.scatter_(2, colours[..., None], False)
        change = (clashes - own).flatten(1) + noise / 2
        lowest, best = change.masked_fill(~possible.flatten(1), torch.inf).min(1)
        moved = lowest.isfinite()
        node, colour = best // V, best % V
        before = colours[block, node]
        after = torch.where(moved, colour, before)
        colours[block, node] = after
        step = (after[:, None] == every).float() - (before[:, None] == every).float()
        clashes += adjacent[block, node][..., None] * step[:, None]
        left = own[..., 0].sum(1) / 2
        tenure = move + 1 + TENURE * noise[:, 0] + PER_CLASH * left
        barred_until[block, node, before] = torch.where(moved, tenure, barred_until[block, node, before])
    return colours
