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

EDGES_AT_A_TIME = 4860  # their activations (96 channels of float32) stay in a CPU's cache


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
) -> tuple[Tensor, Tensor, Tensor]:
    """What arrives, and the second and the third layer's activations [B, R * D, H], which the backward needs.

    Those of the first layer are cheap to have again, and fresh memory for every step is not.
    """
    (R, D), (B, _, H) = neighbours.shape, p.shape
    out, second, third = p.new_empty(p.shape), p.new_empty(B, R * D, H), p.new_empty(B, R * D, H)
    for some in _boards(B, R * D):
        z1 = _first_layer(p[some], q[some], neighbours)
        z2 = torch.addmm(b2, z1, w2.t(), out=second[some].flatten(0, 1)).relu_()
        z3 = torch.addmm(b3, z2, w3.t(), out=third[some].flatten(0, 1)).relu_()
        if counts is None:
            arriving = z3.view(-1, R, D, H)
            out[some] = arriving.sum(2) + arriving[:, :, :doubles].sum(2)
        else:
            out[some] = torch.addmm(b4, z3, w4.t(), out=z1).view(-1, R, D, H).mul_(counts[some]).sum(2)
    return out, second, third


def _first_layer(p: Tensor, q: Tensor, neighbours: Tensor) -> Tensor:
    """Activations [B * R * D, H] of the first layer: relu(p of the sender + q of the receiver)."""
    R, D = neighbours.shape
    z = p.index_select(1, neighbours.flatten())
    z.view(-1, R, D, p.shape[2]).add_(q[:, :, None])
    return z.relu_().flatten(0, 1)


@_messages.register_fake
def _(p: Tensor, q: Tensor, w2: Tensor, b2, w3, b3, w4, b4, neighbours: Tensor, returning, doubles, counts):
    second = p.new_empty(len(p), neighbours.numel(), p.shape[2])
    return p.new_empty(p.shape), second, torch.empty_like(second)


@torch.library.custom_op("oneofmany::rrn_messages_backward", mutates_args=())
def _messages_backward(
    grad: Tensor,
    p: Tensor,
    q: Tensor,
    second: Tensor,
    third: Tensor,
    w2: Tensor,
    w3: Tensor,
    w4: Tensor,
    neighbours: Tensor,
    returning: Tensor,
    doubles: int,
    counts: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of p, q, the three weights [3, H, H] and the three biases [3, H]."""
    (R, D), (B, _, H) = returning.shape, grad.shape
    of_p, of_q = torch.empty_like(grad), torch.empty_like(grad)
    of_weights, of_biases = grad.new_zeros(3, H, H), grad.new_zeros(3, H)
    relu_backward = torch.ops.aten.threshold_backward.grad_input

    def to_weights(layer: int, g: Tensor, z: Tensor) -> None:
        of_weights[layer].addmm_(g.t(), z)
        of_biases[layer] += g.sum(0)

    for some in _boards(B, R * D):
        z1, z2, z3 = _first_layer(p[some], q[some], neighbours), second[some].flatten(0, 1), third[some]
        if counts is None:
            above = z3.view(-1, R, D, H)
            g = torch.ops.aten.threshold_backward(grad[some, :, None].expand_as(above), above, 0)
            g[:, :, :doubles] *= 2
            g = g.flatten(0, 2)
        else:
            g = (grad[some, :, None] * counts[some]).flatten(0, 2)
            to_weights(2, g, z3.flatten(0, 1))
            g = g @ w4
            relu_backward(g, z3.flatten(0, 1), 0, grad_input=g)
        to_weights(1, g, z2)
        g = g @ w3
        relu_backward(g, z2, 0, grad_input=g)
        to_weights(0, g, z1)
        g = g @ w2
        g = relu_backward(g, z1, 0, grad_input=g).view(-1, R * D, H)
        of_q[some] = g.view(-1, R, D, H).sum(2)
        boards = torch.arange(len(g))[:, None, None] * (R * D)
        bags = (boards + returning).view(-1, D)
        of_p[some] = F.embedding_bag(bags, g.flatten(0, 1), mode="sum").view(-1, R, H)
    return of_p, of_q, of_weights, of_biases


@_messages_backward.register_fake
def _(grad: Tensor, p, q, second, third, w2, w3, w4, neighbours, returning, doubles, counts):
    H = grad.shape[2]
    return torch.empty_like(grad), torch.empty_like(grad), grad.new_empty(3, H, H), grad.new_empty(3, H)


def _setup(ctx, inputs, output) -> None:
    p, q, w2, _, w3, _, w4, _, neighbours, returning, doubles, counts = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(p, q, *output[1:], w2, w3, w4, neighbours, returning, counts)
    ctx.doubles = doubles


def _backward(ctx, grad: Tensor | None, *_: Tensor | None):
    if grad is None:
        return (None,) * 12
    *kept, counts = ctx.saved_tensors
    of_p, of_q, w, b = torch.ops.oneofmany.rrn_messages_backward(grad.contiguous(), *kept, ctx.doubles, counts)
    last = (None, None) if counts is None else (w[2], b[2])
    return of_p, of_q, w[0], b[0], w[1], b[1], *last, None, None, None, None


torch.library.register_autograd("oneofmany::rrn_messages", _backward, setup_context=_setup)
