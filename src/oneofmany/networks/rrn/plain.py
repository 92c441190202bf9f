"""The sum of the messages at each cell, in plain PyTorch.

It uses the distinct edges and splits the first layer into two halves per cell (p for the sender, q with the bias for
the receiver), since W [h_j; h_i] = W_sender h_j + W_receiver h_i. A double edge sends one message with weight 2, or
with two dropout masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor


class Layer(NamedTuple):
    """Weight [out, in] and bias [out] of a linear layer."""

    weight: Tensor
    bias: Tensor


class Graph(NamedTuple):
    """``sudoku_slots`` as tensors.

    Args:
        neighbours: int64 [R, D].
        returning: int64 [R, D], see ``graph.returning``.
        doubles: number of slots that stand for two edges; 0 if all edges are distinct.
    """

    neighbours: Tensor
    returning: Tensor
    doubles: int


def plain_messages(p: Tensor, q: Tensor, layers: Sequence[Layer], graph: Graph, counts: Tensor | None) -> Tensor:
    """Return the summed messages at each cell, [B, R, H].

    Args:
        p: [B, R, H], the sender's half of the first message layer.
        q: [B, R, H], the receiver's half, bias included.
        layers: the second to the fourth message layer.
        graph: the edges.
        counts: uint8 [B, R, D, H] from ``kept_counts``; the result is the sum of the kept messages, not yet scaled.
            With None it is the sum of the *third* layer's activations, since the linear fourth layer can then act once
            per cell.
    """
    R, D = graph.neighbours.shape
    z = (p.index_select(1, graph.neighbours.flatten()).unflatten(1, (R, D)) + q[:, :, None]).relu_()
    for weight, bias in layers[:2]:
        z = F.linear(z, weight, bias).relu_()
    if counts is None:
        return z.sum(2) + z[:, :, : graph.doubles].sum(2)
    return (F.linear(z, *layers[2]) * counts).sum(2)
