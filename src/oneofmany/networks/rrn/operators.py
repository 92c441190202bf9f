"""The messages as a PyTorch custom operator: faster than ``plain`` on a CPU; torch.compile does not trace into it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from oneofmany.networks.rrn.plain import Graph, Layer

EDGES_AT_A_TIME = 1620  # one 9 x 9 board: its activations (96 channels of float32) fit a core's cache


def cached_messages(p: Tensor, q: Tensor, layers: Sequence[Layer], graph: Graph, counts: Tensor | None) -> Tensor:
    """Compute ``plain.plain_messages`` a few boards at a time, with a hand-written backward pass."""
    (w2, b2), (w3, b3), (w4, b4) = layers
    return torch.ops.oneofmany.rrn_messages(
        p, q, w2, b2, w3, b3, w4, b4, graph.neighbours, graph.returning, graph.doubles, counts
    )[0]


def _boards_at_a_time(edges: int) -> int:
    return max(1, EDGES_AT_A_TIME // max(1, edges))


def _below(indices: Tensor, boards: int, rows: int) -> Tensor:
    """Indices [boards, n] into stacked boards of ``rows`` rows each."""
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
    """The summed messages, and the second and third layer's activations [B, R * D, H] for the backward pass.

    The first layer's activations are recomputed, which is cheaper than storing them for every step.
    """
    (R, D), (B, _, H), p = neighbours.shape, p.shape, p.contiguous()
    out, second, third = p.new_empty(p.shape), p.new_empty(B, R * D, H), p.new_empty(B, R * D, H)
    n = _boards_at_a_time(R * D)
    senders, first = _below(neighbours, n, R), p.new_empty(n * R * D, H)
    # A product with a contiguous matrix is faster than one with a transposed view. Adding the bias afterwards is faster
    # than addmm, which first writes the bias to memory outside the cache.
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
    """Write activations [B * R * D, H] of the first layer, relu(p of the sender + q of the receiver), to ``into``."""
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
    grad_p, grad_q = torch.empty_like(grad), torch.empty_like(grad)
    grad_weights, grad_biases = grad.new_zeros(3, H, H), grad.new_zeros(3, H)
    layers = list(zip(grad_weights, grad_biases, strict=True))
    n = _boards_at_a_time(R * D)
    senders, returns, bags = _below(neighbours, n, R), _below(returning, n, R * D), torch.arange(0, n * R * D, D)
    # Reuse the same memory for every block, so that it stays in the cache.
    buffers = grad.new_empty(3, n, R * D, H)

    def back(layer: int, grad_edges: Tensor, z: Tensor, weight: Tensor, into: Tensor) -> Tensor:
        """Gradient of the layer below, before its ReLU, from the gradient of this layer and its inputs z."""
        grad_weight, grad_bias = layers[layer]
        grad_weight.addmm_(grad_edges.t(), z)
        grad_bias.add_(grad_edges.sum(0))
        return _relu_backward(torch.mm(grad_edges, weight, out=into), z, into)

    for start in range(0, B, n):
        some = slice(start, start + n)
        one, two, first = buffers[:, : len(grad[some])].flatten(1, 2)
        z2, z3 = second[some].flatten(0, 1), third[some].flatten(0, 1)
        above, grad_edges = grad[some, :, None], one.view(-1, R, D, H)
        if counts is None:
            _relu_backward(above.expand_as(grad_edges), z3.view_as(grad_edges), grad_edges)
            grad_edges[:, :, :doubles].mul_(2)  # *= would also copy the slice onto itself
        else:
            torch.mul(above, counts[some], out=grad_edges)
            one, two = back(2, one, z3, w4, two), one
        back(1, one, z2, w3, two)
        z1 = _first_layer(p[some], q[some], senders, first)
        grad_edges = back(0, two, z1, w2, one)
        torch.sum(grad_edges.view(-1, R, D, H), 2, out=grad_q[some])
        boards = len(grad_edges) // (R * D)
        grad_p[some] = torch.embedding_bag(grad_edges, returns[:boards].flatten(), bags[: boards * R])[0].view(-1, R, H)
    return grad_p, grad_q, grad_weights, grad_biases


def _relu_backward(grad: Tensor, z: Tensor, into: Tensor) -> Tensor:
    """grad if the activation z is not 0, else 0; PyTorch's threshold_backward takes 1.5 times as long."""
    return torch.ops.aten.hardshrink_backward.grad_input(grad, z, 0, grad_input=into)


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
    grad_p, grad_q, grad_w, grad_b = torch.ops.oneofmany.rrn_messages_backward(
        grad.contiguous(), *kept, ctx.doubles, counts
    )
    last = (None, None) if counts is None else (grad_w[2], grad_b[2])
    return grad_p, grad_q, grad_w[0], grad_b[0], grad_w[1], grad_b[1], *last, None, None, None, None


torch.library.register_autograd("oneofmany::rrn_messages", _backward, setup_context=_setup)
