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

EDGES_AT_A_TIME = 1620  # one 9 x 9 board: its activations (96 channels of float32) fit a core's own cache


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
    """The same as ``plain_messages``, a board or a few at a time, with a hand-written backward."""
    (w2, b2), (w3, b3), (w4, b4) = layers
    return torch.ops.oneofmany.rrn_messages(
        p, q, w2, b2, w3, b3, w4, b4, graph.neighbours, graph.returning, graph.doubles, counts
    )[0]


def _boards_at_a_time(edges: int) -> int:
    return max(1, EDGES_AT_A_TIME // max(1, edges))


def _below(indices: Tensor, boards: int, rows: int) -> Tensor:
    """Indices [boards, n] into as many boards, each of so many rows, one below the other."""
    return torch.arange(boards)[:, None] * rows + indices.flatten()


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
    (R, D), (B, _, H), p = neighbours.shape, p.shape, p.contiguous()
    out, second, third = p.new_empty(p.shape), p.new_empty(B, R * D, H), p.new_empty(B, R * D, H)
    n = _boards_at_a_time(R * D)
    senders, first = _below(neighbours, n, R), p.new_empty(n * R * D, H)
    # A product with a matrix as it lies is faster than one with its transpose, and adding the bias afterwards is faster
    # than addmm, which writes it first into memory that no cache holds.
    w2, w3, w4 = (w.t().contiguous() for w in (w2, w3, w4))
    for start in range(0, B, n):
        some = slice(start, start + n)
        z1 = _first_layer(p[some], q[some], senders, first)
        z2 = torch.mm(z1, w2, out=second[some].flatten(0, 1)).add_(b2).relu_()
        z3 = torch.mm(z2, w3, out=third[some].flatten(0, 1)).add_(b3).relu_()
        if counts is None:
            arriving = z3.view(-1, R, D, H)
            torch.sum(arriving, 2, out=out[some]).add_(arriving[:, :, :doubles].sum(2))
        else:
            arriving = torch.mm(z3, w4, out=z1).add_(b4).view(-1, R, D, H)
            torch.sum(arriving.mul_(counts[some]), 2, out=out[some])
    return out, second, third


def _first_layer(p: Tensor, q: Tensor, senders: Tensor, into: Tensor) -> Tensor:
    """Activations [B * R * D, H] of the first layer, relu(p of the sender + q of the receiver), in memory given."""
    B, R, H = p.shape
    z = torch.index_select(p.flatten(0, 1), 0, senders[:B].flatten(), out=into[: B * senders.shape[1]])
    z.view(B, R, -1, H).add_(q[:, :, None])
    return z.relu_()


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
    (R, D), (B, _, H), p = returning.shape, grad.shape, p.contiguous()
    of_p, of_q = torch.empty_like(grad), torch.empty_like(grad)
    of_weights, of_biases = grad.new_zeros(3, H, H), grad.new_zeros(3, H)
    layers = list(zip(of_weights, of_biases, strict=True))
    n = _boards_at_a_time(R * D)
    senders, returns, bags = _below(neighbours, n, R), _below(returning, n, R * D), torch.arange(0, n * R * D, D)
    # The same memory for every block, since what is fresh is in no cache.
    buffers = grad.new_empty(3, n, R * D, H)

    def back(layer: int, g: Tensor, z: Tensor, weight: Tensor, into: Tensor) -> Tensor:
        """Gradient of the layer below, before its ReLU, from that of this layer and its inputs z."""
        of_weight, of_bias = layers[layer]
        of_weight.addmm_(g.t(), z)
        of_bias.add_(g.sum(0))
        return _relu_backward(torch.mm(g, weight, out=into), z, into)

    for start in range(0, B, n):
        some = slice(start, start + n)
        one, two, first = buffers[:, : len(grad[some])].flatten(1, 2)
        z2, z3 = second[some].flatten(0, 1), third[some].flatten(0, 1)
        above, g = grad[some, :, None], one.view(-1, R, D, H)
        if counts is None:
            _relu_backward(above.expand_as(g), z3.view_as(g), g)
            g[:, :, :doubles].mul_(2)  # *= would also copy the slice onto itself
        else:
            torch.mul(above, counts[some], out=g)
            one, two = back(2, one, z3, w4, two), one
        back(1, one, z2, w3, two)
        z1 = _first_layer(p[some], q[some], senders, first)
        g = back(0, two, z1, w2, one)
        torch.sum(g.view(-1, R, D, H), 2, out=of_q[some])
        boards = len(g) // (R * D)
        of_p[some] = torch.embedding_bag(g, returns[:boards].flatten(), bags[: boards * R])[0].view(-1, R, H)
    return of_p, of_q, of_weights, of_biases


def _relu_backward(g: Tensor, z: Tensor, into: Tensor) -> Tensor:
    """g where the activations z are not 0, else 0; PyTorch's threshold_backward takes half as long again."""
    return torch.ops.aten.hardshrink_backward.grad_input(g, z, 0, grad_input=into)


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
