"""All steps of the RRN as one operator for a GPU: a step is two matrix products, the messages and the LSTM's cell.

The same function as ``RRN._recur``, which is its oracle. Every step:

    said  = h halves^T + bias       what a cell tells its neighbours, and what it adds to what they tell
    s     = messages(said)          ``triton_messages``
    gates = of_x + [s, h] into^T    x has the same part in every step
    h, c  = LSTM(gates, c)          ``triton_cell``

Products take bfloat16; c and all sums over edges and steps are float32. Gradients of weights are batched products over
all steps at the end, but for those of the messages, whose activations would not fit into memory.

This module imports triton: import it only where CUDA is.
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
"""Columns of what a layer takes in: its channels, a 1 and zeros up to the next 16 bytes."""
MANY_CELLS = 64 * 132
"""From so many cells on, the forward's blocks are of 64 (a warp group's matrix products), which then keep all
multiprocessors of an H100 busy; with fewer cells, blocks of 16 finish earlier."""
BLOCK = 16
"""Cells of a block of the backward: with more, the registers of a thread do not hold what it needs."""
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
    """The hidden states [T, B, R, 96] of every step (the last one's alone, T = 1, if not every_step).

    Args:
        x: [B, R, 96], what the first messages are of.
        of_x: [B, R, 384], its part in the LSTM's gates, with their bias.
        into: [384, 192], the gates' weights of what arrives at a cell and of its hidden state.
        halves: [192, 96], the first message layer: what a sender says, then what a receiver adds.
        bias: [192], its bias.
        weights: [3, 96, 96], the other message layers.
        biases: [3, 96], theirs.
        messages: who sends to whom, and dropout.
        keys: int32 [2] for every step's dropout; None without dropout.
        every_step: whether all hidden states are kept.
        dtype: what products take.
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
    """One way forward and, where its tensors are kept, back."""

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
        # Side by side: what arrives at a cell in a step, and its hidden state before it.
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
        """Gradients of x, of_x, into, halves, bias, weights and biases."""
        grad_said, grad_gates = torch.empty_like(self.said), self.gates  # the gates' gradient takes their place
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
    """float32 [m, n], the sum over steps and cells of a[.., m] * b[.., n]."""
    return torch.bmm(a.flatten(1, 2).mT, b.flatten(1, 2)).sum(0, dtype=torch.float32)


# ---- launching the kernels -------------------------------------------------------------------------------------------


def operands(weights: Tensor, biases: Tensor, dtype: torch.dtype = torch.bfloat16) -> tuple[Tensor, Tensor]:
    """What the kernels multiply with, once for all steps.

    The weights [3, 96, 96], and the biases [3, 96] as 16 rows that add up to them: a bias is added by a product with
    ones, because 24 registers a thread and layer are dearer than a sixth of a product.
    """
    rows = biases.new_zeros(3, 16, WIDTH, dtype=dtype)
    rest = biases.float()
    for i in range(3):  # three bfloat16 numbers hold a float32
        rows[:, i] = rest.to(dtype)
        rest = rest - rows[:, i].float()
    return weights.to(dtype).contiguous(), rows


class Messages(NamedTuple):
    """Who sends to whom, and dropout.

    Args:
        slots: int32 [D, R], the neighbours by slot.
        doubles: how many slots stand for two edges.
        threshold: see ``dropout.threshold_of``.
        scale: what the sums are multiplied by.
        row_offset: index of the first board in the whole batch.
    """

    slots: Tensor
    doubles: int
    threshold: int
    scale: float
    row_offset: int


def message_forward(pq: Tensor, w: Tensor, rows: Tensor, messages: Messages, key: Tensor | None, out: Tensor) -> None:
    """What arrives at every cell, as ``plain.plain_messages`` says, times the scale.

    Args:
        pq: [B, R, 192], the sender's and the receiver's half of the first message layer, contiguous.
        w: [3, 96, 96], from ``operands``.
        rows: [3, 16, 96], from ``operands``.
        messages: who sends to whom.
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
    """Write the gradient of pq, and add those of the layers.

    Args:
        grad: the gradient of ``out`` in ``message_forward``, of whose channels the first 96 are read.
        pq: as there.
        w: as there.
        rows: as there.
        messages: as there.
        key: as there.
        grad_pq: like pq.
        grad_layers: float32 [3, 96, 104], of every layer the weights' gradient and then, in column 96, the biases'.
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
    # One long product would keep a few multiprocessors busy: many shorter ones, of some boards of a slot each.
    parts = D * max(part for part in range(1, 5) if B % part == 0)
    products = torch.bmm(given.view(layers * parts, -1, WIDTH).mT, taken.view(layers * parts, -1, ROW))
    size = WIDTH * ROW  # without dropout the fourth layer is not done here
    add_parts[(triton.cdiv(size, 128), layers)](
        products, grad_layers, COUNT=parts, SIZE=size, PARTS=16, ELEMENTS=128, num_warps=WARPS
    )


def lstm_forward(gates: Tensor, of_x: Tensor, c: Tensor, h: Tensor, met: Tensor, new_c: Tensor) -> None:
    """The LSTM's cell: from gates + of_x [B, R, 384] and c float32 [B, R, 96] to h, the last half of met, and new_c."""
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
    """Write the gates' gradient over them, and that of c over the one of the new c.

    The gradient of h comes from what the step gave out (grad_h) and, but in the last step, from the next one's gates
    (the last half of grad_met) and messages (grad_said).
    """
    N = c.shape[0] * c.shape[1]
    cell_backward[(triton.cdiv(N, 32), 3)](grad_h, grad_met, grad_said, grad_c, gates, of_x, c, N, LAST=last)
