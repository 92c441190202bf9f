"""The Triton kernels of the RRN as differentiable operators that torch.compile and CUDA graphs can hold.

Import it only where CUDA and triton are.
"""

from __future__ import annotations

import torch
from torch import Tensor

from oneofmany.networks import rrn_kernels

operands = rrn_kernels.operands


@torch.library.custom_op("oneofmany::rrn_messages_triton", mutates_args=())
def messages(
    pq: Tensor, weights: Tensor, biases: Tensor, w: Tensor, rows: Tensor, slots: Tensor, doubles: int,
    key: Tensor | None, threshold: int, scale: float, row_offset: int,
) -> Tensor:  # fmt: skip
    """See ``rrn_kernels.message_forward``; ``weights`` and ``biases``, made into w and rows, get the gradient."""
    return rrn_kernels.message_forward(pq.contiguous(), w, rows, slots, doubles, key, threshold, scale, row_offset)


@torch.library.custom_op("oneofmany::rrn_messages_triton_backward", mutates_args=())
def messages_backward(
    grad: Tensor, pq: Tensor, w: Tensor, rows: Tensor, slots: Tensor, doubles: int, key: Tensor | None,
    threshold: int, scale: float, row_offset: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """See ``rrn_kernels.message_backward``."""
    return rrn_kernels.message_backward(
        grad.contiguous(), pq.contiguous(), w, rows, slots, doubles, key, threshold, scale, row_offset
    )


@torch.library.custom_op("oneofmany::rrn_lstm", mutates_args=())
def lstm(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """See ``rrn_kernels.lstm_forward``."""
    return rrn_kernels.lstm_forward(gates.contiguous(), c.contiguous())


@torch.library.custom_op("oneofmany::rrn_lstm_backward", mutates_args=())
def lstm_backward(of_h: Tensor, of_c: Tensor, gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """See ``rrn_kernels.lstm_backward``."""
    return rrn_kernels.lstm_backward(of_h.contiguous(), of_c.contiguous(), gates.contiguous(), c.contiguous())


@messages.register_fake
def _(pq: Tensor, *_: object) -> Tensor:
    return pq.new_empty(*pq.shape[:2], rrn_kernels.WIDTH)


@messages_backward.register_fake
def _(grad: Tensor, pq: Tensor, w: Tensor, *_: object) -> tuple[Tensor, ...]:
    of_w = w.new_empty(w.shape, dtype=torch.float32)
    return pq.new_empty(pq.shape), of_w, w.new_empty(w.shape[:2], dtype=torch.float32)


@lstm.register_fake
def _(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    return c.new_empty(c.shape, dtype=gates.dtype), c.new_empty(c.shape)


@lstm_backward.register_fake
def _(of_h: Tensor, of_c: Tensor, gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    return gates.new_empty(gates.shape), c.new_empty(c.shape)


def _keep(ctx, inputs, output) -> None:
    pq, _, _, w, rows, slots, doubles, key, *rest = inputs
    ctx.save_for_backward(pq, w, rows, slots, key)
    ctx.settings = (doubles, *rest)


def _messages_gradient(ctx, grad: Tensor):
    pq, w, rows, slots, key = ctx.saved_tensors
    doubles, *rest = ctx.settings
    of_pq, of_w, of_b = messages_backward(grad, pq, w, rows, slots, doubles, key, *rest)
    return of_pq, of_w, of_b, *[None] * 8


def _keep_lstm(ctx, inputs, output) -> None:
    ctx.save_for_backward(*inputs)


def _lstm_gradient(ctx, of_h: Tensor, of_c: Tensor):
    return lstm_backward(of_h, of_c, *ctx.saved_tensors)


messages.register_autograd(_messages_gradient, setup_context=_keep)
lstm.register_autograd(_lstm_gradient, setup_context=_keep_lstm)
