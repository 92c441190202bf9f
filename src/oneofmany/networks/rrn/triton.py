"""All steps of the RRN on a GPU: a step is two matrix products, the messages and the LSTM cell.

It computes the same function as ``RRN._recur``, which is the reference. Each step is

    said  = h halves^T + bias       the sender's and the receiver's half of the first message layer
    s     = messages(said)          ``triton_messages``
    gates = of_x + [s, h] into^T    the part of x is the same in every step
    h, c  = LSTM(gates, c)          ``triton_cell``

Products take bfloat16; c and all sums over edges and steps are float32. Weight gradients are batched products over all
steps at the end, except those of the messages, whose activations would not fit into memory.

This module imports triton: import it only on a CUDA machine.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from oneofmany.networks.rrn.triton_cell import cell_backward, cell_forward
from oneofmany.networks.rrn.triton_messages import add_parts, messages_backward, messages_forward, sum_slots

WIDTH = 96
ROW = WIDTH + 8
"""Columns of a layer's stored inputs: its channels, a 1, and zeros up to the next 16 bytes."""
MANY_CELLS = 64 * 132
"""From this number of cells on, the forward pass uses blocks of 64 (matrix products of a warp group), which then keep
all multiprocessors of an H100 busy; with fewer cells, blocks of 16 are faster."""
BLOCK = 16
"""Cells per block of the backward pass; larger blocks run out of registers."""
WARPS = 4


def run_steps(
    x: Tensor,
    of_x: Tensor,
    into: Tensor,
    halves: Tensor,
    bias: Tensor,
    weights: Tensor,
    biases: Tensor,
    messages: Messages,
    keys: Sequence[Tensor | None],
    every_step: bool,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """Return the hidden states [T, B, R, 96] of all steps (T = 1, the last one only, if not every_step).

    Args:
        x: [B, R, 96], the input of the first messages.
        of_x: [B, R, 384], the part of x in the LSTM's gates, with their bias.
        into: [384, 192], the gates' weights on the summed messages and on the hidden state.
        halves: [192, 96], the first message layer: the sender's half, then the receiver's.
        bias: [192], its bias.
        weights: [3, 96, 96], the other message layers.
        biases: [3, 96], their biases.
        messages: the graph, and dropout.
        keys: int32 [2] for the dropout of each step; None without dropout.
        every_step: whether to return all hidden states.
        dtype: of the inputs of products.
    """
    tensors = (x, of_x, into, halves, bias, weights, biases)
    if torch.is_grad_enabled():
        hidden = _Steps.apply(*tensors, messages, keys, dtype)
        return hidden if every_step else hidden[-1:]
    return _Pass(tensors, messages, keys, dtype, keep=False, every_step=every_step).forward()


class _Steps(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *rest: Any) -> Tensor:
        *tensors, messages, keys, dtype = rest
        ctx.passed = _Pass(tensors, messages, keys, dtype, keep=True, every_step=True)
        return ctx.passed.forward()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (grad_hidden,) = grad_outputs
        gradients = ctx.passed.backward(grad_hidden.contiguous())
        ctx.passed = None
        return *gradients, None, None, None


class _Pass:
    """One forward pass and, if its tensors are kept, its backward pass."""

    def __init__(
        self,
        tensors: Sequence[Tensor],
        messages: Messages,
        keys: Sequence[Tensor | None],
        dtype: torch.dtype,
        keep: bool,
        every_step: bool,
    ) -> None:
        x, of_x, into, halves, bias, weights, biases = tensors
        self.x, self.of_x, self.into, self.halves, self.bias = (
            t.to(dtype).contiguous() for t in (x, of_x, into, halves, bias)
        )
        self.layers = operands(weights, biases, dtype)
        self.messages, self.keys, self.dtype = messages, keys, dtype
        self.keep, self.every_step = keep, every_step

    def _new(self, count: int, channels: int, dtype: torch.dtype | None = None) -> Tensor:
        return torch.empty(count, *self.x.shape[:2], channels, device=self.x.device, dtype=dtype or self.dtype)

    def forward(self) -> Tensor:
        keep = self.keep
        slots = len(self.keys) if keep else 1
        self.said, self.gates = self._new(slots, 2 * WIDTH), self._new(slots, 4 * WIDTH)
        # Concatenated: the summed messages of a step, and the hidden state before it.
        self.met, self.c = self._new(slots + keep, 2 * WIDTH), self._new(slots + keep, WIDTH, torch.float32)
        hidden = self._new(len(self.keys) if self.every_step else 1, WIDTH)
        self.met[0, ..., WIDTH:] = 0
        self.c[0] = 0
        h = self.x
        for step, key in enumerate(self.keys):
            at = step if keep else 0
            torch.addmm(self.bias, _rows(h), self.halves.t(), out=_rows(self.said[at]))
            message_forward(self.said[at], *self.layers, self.messages, key, self.met[at])
            torch.mm(_rows(self.met[at]), self.into.t(), out=_rows(self.gates[at]))
            h = hidden[step if self.every_step else 0]
            lstm_forward(self.gates[at], self.of_x, self.c[at], h, self.met[at + keep], self.c[at + keep])
        return hidden

    def backward(self, grad_hidden: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of x, of_x, into, halves, bias, weights and biases."""
        grad_said, grad_gates = torch.empty_like(self.said), self.gates  # the gradient overwrites the gates
        grad_met, grad_h, grad_c = self._new(1, 2 * WIDTH)[0], self._new(1, WIDTH)[0], torch.zeros_like(self.c[0])
        grad_layers = torch.zeros(3, WIDTH, ROW, device=self.x.device)
        last = len(self.keys) - 1
        for step in range(last, -1, -1):
            lstm_backward(
                grad_hidden[step], grad_met, grad_h, grad_c, grad_gates[step], self.of_x, self.c[step], step == last
            )
            torch.mm(_rows(grad_gates[step]), self.into, out=_rows(grad_met))
            message_backward(
                grad_met, self.said[step], *self.layers, self.messages, self.keys[step], grad_said[step], grad_layers
            )
            torch.mm(_rows(grad_said[step]), self.halves, out=_rows(grad_h))
        grad_halves = (
            _over_steps(grad_said, self.met[:-1, ..., WIDTH:]) + (_rows(grad_said[0]).t() @ _rows(self.x)).float()
        )
        return (
            grad_h,
            grad_gates.sum(0, dtype=torch.float32),
            _over_steps(grad_gates, self.met[:-1]),
            grad_halves,
            grad_said.sum((0, 1, 2), dtype=torch.float32),
            grad_layers[..., :WIDTH],
            grad_layers[..., WIDTH],
        )


def _rows(x: Tensor) -> Tensor:
    return x.flatten(0, 1)


def _over_steps(a: Tensor, b: Tensor) -> Tensor:
    """float32 [m, n]: the sum over steps and cells of a[.., m] * b[.., n]."""
    return torch.bmm(a.flatten(1, 2).mT, b.flatten(1, 2)).sum(0, dtype=torch.float32)


# ---- launching the kernels -------------------------------------------------------------------------------------------


def operands(weights: Tensor, biases: Tensor, dtype: torch.dtype = torch.bfloat16) -> tuple[Tensor, Tensor]:
    """Return the kernels' weights and biases, computed once for all steps.

    The weights are [3, 96, 96]. Each bias becomes 16 rows that sum to it and is added by a product with ones: 24
    registers per thread and layer would cost more than a sixth of a product.
    """
    rows = biases.new_zeros(3, 16, WIDTH, dtype=dtype)
    rest = biases.float()
    for i in range(3):  # three bfloat16 numbers hold a float32
        rows[:, i] = rest.to(dtype)
        rest = rest - rows[:, i].float()
    return weights.to(dtype).contiguous(), rows


class Messages(NamedTuple):
    """The message graph, and dropout.

    Args:
        slots: int32 [D, R], the neighbours by slot.
        doubles: number of slots that stand for two edges.
        threshold: see ``dropout.threshold_of``.
        scale: factor of the sums.
        row_offset: index of the first board in the whole batch.
    """

    slots: Tensor
    doubles: int
    threshold: int
    scale: float
    row_offset: int


def message_forward(pq: Tensor, w: Tensor, rows: Tensor, messages: Messages, key: Tensor | None, out: Tensor) -> None:
    """Write the summed messages at each cell, as in ``plain.plain_messages``, times the scale.

    Args:
        pq: [B, R, 192], the sender's and the receiver's half of the first message layer, contiguous.
        w: [3, 96, 96], from ``operands``.
        rows: [3, 16, 96], from ``operands``.
        messages: the graph.
        key: int32 [2], the step's dropout keys; None without dropout.
        out: [B, R, 96 or more]: the first 96 channels are written.
    """
    slots, doubles, threshold, scale, row_offset = messages
    (D, R), N = slots.shape, pq.shape[0] * pq.shape[1]
    cells = 64 if N >= MANY_CELLS else BLOCK
    messages_forward[(triton.cdiv(N, cells),)](
        pq, w, rows, slots, slots if key is None else key, out, N, row_offset, (threshold - 32768) << 16, scale, 0,
        OUT=out.shape[2], R=R, D=D, DOUBLES=doubles, DROPOUT=key is not None, CELLS=cells, num_warps=WARPS,
        num_stages=1,
    )  # fmt: skip


def message_backward(
    grad: Tensor,
    pq: Tensor,
    w: Tensor,
    rows: Tensor,
    messages: Messages,
    key: Tensor | None,
    grad_pq: Tensor,
    grad_layers: Tensor,
) -> None:
    """Write the gradient of pq and add the gradients of the layers.

    Args:
        grad: the gradient of ``out`` in ``message_forward``; its first 96 channels are read.
        pq: as in ``message_forward``.
        w: as in ``message_forward``.
        rows: as in ``message_forward``.
        messages: as in ``message_forward``.
        key: as in ``message_forward``.
        grad_pq: receives the gradient of pq.
        grad_layers: float32 [3, 96, 104], for each layer the gradient of the weights and, in column 96, of the biases.
    """
    slots, doubles, threshold, scale, row_offset = messages
    (D, R), B = slots.shape, pq.shape[0]
    layers, N = 2 if key is None else 3, B * R
    grad_edges = pq.new_empty(D, B, R, WIDTH)
    taken, given = (pq.new_empty(layers, D, B, R, columns) for columns in (ROW, WIDTH))
    messages_backward[(triton.cdiv(N, BLOCK),)](
        grad, pq, w, rows, slots, slots if key is None else key, taken, given, grad_edges, grad_pq, N, row_offset,
        (threshold - 32768) << 16, scale, GRAD=grad.shape[2], R=R, D=D, DOUBLES=doubles, DROPOUT=key is not None,
        CELLS=BLOCK, num_warps=WARPS, num_stages=1,
    )  # fmt: skip
    total = N * WIDTH
    sum_slots[(triton.cdiv(total, 1024),)](grad_edges, grad_pq, total, D=D, ELEMENTS=1024, num_warps=WARPS)
    # One long product would use few multiprocessors: split it into many shorter ones, each of some boards of a slot.
    parts = D * max(part for part in range(1, 5) if B % part == 0)
    products = torch.bmm(given.view(layers * parts, -1, WIDTH).mT, taken.view(layers * parts, -1, ROW))
    size = WIDTH * ROW  # without dropout the fourth layer is not part of this
    add_parts[(triton.cdiv(size, 128), layers)](
        products, grad_layers, COUNT=parts, SIZE=size, PARTS=16, ELEMENTS=128, num_warps=WARPS
    )


def lstm_forward(gates: Tensor, of_x: Tensor, c: Tensor, h: Tensor, met: Tensor, new_c: Tensor) -> None:
    """Run the LSTM cell: gates + of_x [B, R, 384] and c float32 [B, R, 96] give h, the last half of met, and new_c."""
    N = c.shape[0] * c.shape[1]
    cell_forward[(triton.cdiv(N, 32), 3)](gates, of_x, c, h, met, new_c, N)


def lstm_backward(
    grad_h: Tensor,
    grad_met: Tensor,
    grad_said: Tensor,
    grad_c: Tensor,
    gates: Tensor,
    of_x: Tensor,
    c: Tensor,
    last: bool,
) -> None:
    """Overwrite the gates with their gradient, and the gradient of the new c with that of the old c.

    The gradient of h has contributions from the step's output (grad_h) and, except in the last step, from the gates
    (the last half of grad_met) and the messages (grad_said) of the next step.
    """
    N = c.shape[0] * c.shape[1]
    cell_backward[(triton.cdiv(N, 32), 3)](grad_h, grad_met, grad_said, grad_c, gates, of_x, c, N, LAST=last)
