"""All steps of the RRN as one operator for a GPU: a step is two matrix products, the messages and the LSTM's cell.

The same function as ``RRN._recur``, which is its oracle. Every step:

    said  = h halves^T + bias       what a cell tells its neighbours, and what it adds to what they tell
    s     = messages(said)          ``rrn_kernels``
    gates = of_x + [s, h] into^T    x has the same part in every step
    h, c  = LSTM(gates, c)          ``rrn_cell``

Products take bfloat16; c and all sums over edges and steps are float32. Gradients of weights are batched products over
all steps at the end, but for those of the messages, whose activations would not fit into memory.

This module imports triton: import it only where CUDA is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from oneofmany.networks.rrn_cell import lstm_backward, lstm_forward
from oneofmany.networks.rrn_kernels import ROW, WIDTH, Messages, message_backward, message_forward, operands


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
    def backward(ctx: Any, of_hidden: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        gradients = ctx.passed.backward(of_hidden.contiguous())
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

    def backward(self, of_hidden: Tensor) -> tuple[Tensor, ...]:
        """Gradients of x, of_x, into, halves, bias, weights and biases."""
        of_said, of_gates = torch.empty_like(self.said), self.gates  # the gates' gradient takes their place
        of_met, of_h, of_c = self._new(1, 2 * WIDTH)[0], self._new(1, WIDTH)[0], torch.zeros_like(self.c[0])
        of_layers = torch.zeros(3, WIDTH, ROW, device=self.x.device)
        last = len(self.keys) - 1
        for step in range(last, -1, -1):
            lstm_backward(of_hidden[step], of_met, of_h, of_c, of_gates[step], self.of_x, self.c[step], step == last)
            torch.mm(_rows(of_gates[step]), self.into, out=_rows(of_met))
            message_backward(
                of_met, self.said[step], *self.layers, self.messages, self.keys[step], of_said[step], of_layers
            )
            torch.mm(_rows(of_said[step]), self.halves, out=_rows(of_h))
        of_halves = _over_steps(of_said, self.met[:-1, ..., WIDTH:]) + (_rows(of_said[0]).t() @ _rows(self.x)).float()
        return (
            of_h,
            of_gates.sum(0, dtype=torch.float32),
            _over_steps(of_gates, self.met[:-1]),
            of_halves,
            of_said.sum((0, 1, 2), dtype=torch.float32),
            of_layers[..., :WIDTH],
            of_layers[..., WIDTH],
        )


def _rows(x: Tensor) -> Tensor:
    return x.flatten(0, 1)


def _over_steps(a: Tensor, b: Tensor) -> Tensor:
    """float32 [m, n], the sum over steps and cells of a[.., m] * b[.., n]."""
    return torch.bmm(a.flatten(1, 2).mT, b.flatten(1, 2)).sum(0, dtype=torch.float32)
