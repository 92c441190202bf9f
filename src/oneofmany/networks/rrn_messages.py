"""The sum of the messages that arrive at every cell: plain PyTorch, and a faster form for CPUs.

All forms work on the distinct edges and on the first layer's two halves per cell (p for the sender, q with the bias for
the receiver), since W [h_j; h_i] = W_sender h_j + W_receiver h_i. An edge that the graph holds twice sends one
message with weight 2, or with two dropout masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

EDGES_AT_A_TIME = 8192  # their activations (96 channels of float32) stay in a CPU's cache


class Layer(NamedTuple):
    """Weight [out, in] and bias [out] of a linear layer."""

    weight: Tensor
    bias: Tensor


class Graph(NamedTuple):
    """``sudoku_slots`` as tensors.

    Args:
        neighbours: int64 [R, D].
        returning: int64 [R, D], see ``rrn_graph.returning``.
        doubles: how many slots stand for two edges; 0 if the graph holds only distinct edges.
    """

    neighbours: Tensor
    returning: Tensor
    doubles: int


def plain_messages(p: Tensor, q: Tensor, layers: Sequence[Layer], graph: Graph, counts: Tensor | None) -> Tensor:
    """What arrives at every cell, [B, R, H].

    Args:
        p: [B, R, H], the sender's half of the first message layer.
        q: [B, R, H], the receiver's half, bias included.
        layers: the second to the fourth message layer.
        graph: the edges.
        counts: uint8 [B, R, D, H] from ``kept_counts``: the sum of the kept messages, not yet scaled; or None: the
            sum of the *third* layer's activations, because the linear fourth layer then acts once per cell.
    """
    R, D = graph.neighbours.shape
    z = (p.index_select(1, graph.neighbours.flatten()).unflatten(1, (R, D)) + q[:, :, None]).relu_()
    for weight, bias in layers[:2]:
        z = F.linear(z, weight, bias).relu_()
    if counts is None:
        return z.sum(2) + z[:, :, : graph.doubles].sum(2)
    return (F.linear(z, *layers[2]) * counts).sum(2)


def cached_messages(p: Tensor, q: Tensor, layers: Sequence[Layer], graph: Graph, counts: Tensor | None) -> Tensor:
    """The same as ``plain_messages``, a few boards at a time, with a hand-written backward."""
    (w2, b2), (w3, b3), (w4, b4) = layers
    return torch.ops.oneofmany.rrn_messages(
        p, q, w2, b2, w3, b3, w4, b4, graph.neighbours, graph.returning, graph.doubles, counts
    )[0]


def _boards(B: int, edges: int) -> list[slice]:
    some = max(1, EDGES_AT_A_TIME // max(1, edges))
    return [slice(start, min(B, start + some)) for start in range(0, B, some)]


@torch.library.custom_op("oneofmany::rrn_messages", mutates_args=())
def _messages(
    p: Tensor,
    q: Tensor,
    w2: Tensor,
    b2: Tensor,
    w3: Tensor,
    b3: Tensor,
    w4: Tensor,
    b4: Tensor,
    neighbours: Tensor,
    returning: Tensor,
    doubles: int,
    counts: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """What arrives, and the activations [3, B, R * D, H] that the backward needs."""
    (R, D), (B, _, H) = neighbours.shape, p.shape
    out = p.new_empty(p.shape)
    activations = p.new_empty(3, B, R * D, H)
    for some in _boards(B, R * D):
        z1, z2, z3 = activations[:, some].flatten(1, 2)
        torch.index_select(p[some], 1, neighbours.flatten(), out=activations[0, some])
        z1.view(-1, R, D, H).add_(q[some, :, None]).relu_()
        torch.addmm(b2, z1, w2.t(), out=z2).relu_()
        torch.addmm(b3, z2, w3.t(), out=z3).relu_()
        if counts is None:
            arriving = z3.view(-1, R, D, H)
            out[some] = arriving.sum(2) + arriving[:, :, :doubles].sum(2)
        else:
            out[some] = torch.addmm(b4, z3, w4.t()).view(-1, R, D, H).mul_(counts[some]).sum(2)
    return out, activations


@_messages.register_fake
def _(p: Tensor, q: Tensor, w2: Tensor, b2, w3, b3, w4, b4, neighbours: Tensor, returning, doubles, counts):
    return p.new_empty(p.shape), p.new_empty(3, len(p), neighbours.numel(), p.shape[2])


@torch.library.custom_op("oneofmany::rrn_messages_backward", mutates_args=())
def _messages_backward(
    grad: Tensor,
    activations: Tensor,
    w2: Tensor,
    w3: Tensor,
    w4: Tensor,
    returning: Tensor,
    doubles: int,
    counts: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of p, q, the three weights [3, H, H] and the three biases [3, H]."""
    (R, D), (B, _, H) = returning.shape, grad.shape
    of_p, of_q = torch.empty_like(grad), torch.empty_like(grad)
    of_weights, of_biases = grad.new_zeros(3, H, H), grad.new_zeros(3, H)
    relu_backward = torch.ops.aten.threshold_backward.grad_input
    for some in _boards(B, R * D):
        z = activations[:, some].flatten(1, 2)
        if counts is None:
            g = grad[some, :, None].repeat(1, 1, D, 1)
            g[:, :, :doubles] *= 2
            g = g.flatten(0, 2)
        else:
            g = (grad[some, :, None] * counts[some]).flatten(0, 2)
            of_weights[2].addmm_(g.t(), z[2])
            of_biases[2] += g.sum(0)
            g = g @ w4
        for layer, weight in ((2, w3), (1, w2)):
            relu_backward(g, z[layer], 0, grad_input=g)
            of_weights[layer - 1].addmm_(g.t(), z[layer - 1])
            of_biases[layer - 1] += g.sum(0)
            g = g @ weight
        g = relu_backward(g, z[0], 0, grad_input=g).view(-1, R * D, H)
        of_q[some] = g.view(-1, R, D, H).sum(2)
        of_p[some] = g.index_select(1, returning.flatten()).view(-1, R, D, H).sum(2)
    return of_p, of_q, of_weights, of_biases


@_messages_backward.register_fake
def _(grad: Tensor, activations, w2, w3, w4, returning, doubles, counts):
    H = grad.shape[2]
    return torch.empty_like(grad), torch.empty_like(grad), grad.new_empty(3, H, H), grad.new_empty(3, H)


def _setup(ctx, inputs, output) -> None:
    _, _, w2, _, w3, _, w4, _, _, returning, doubles, counts = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(output[1], w2, w3, w4, returning, counts)
    ctx.doubles = doubles


def _backward(ctx, grad: Tensor | None, _: Tensor | None):
    if grad is None:
        return (None,) * 12
    activations, w2, w3, w4, returning, counts = ctx.saved_tensors
    of_p, of_q, of_weights, of_biases = torch.ops.oneofmany.rrn_messages_backward(
        grad.contiguous(), activations, w2, w3, w4, returning, ctx.doubles, counts
    )
    w, b = of_weights, of_biases
    last = (None, None) if counts is None else (w[2], b[2])
    return of_p, of_q, w[0], b[0], w[1], b[1], *last, None, None, None, None


torch.library.register_autograd("oneofmany::rrn_messages", _backward, setup_context=_setup)
