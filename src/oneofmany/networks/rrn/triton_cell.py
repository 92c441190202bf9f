"""The Triton kernels of the RRN's LSTM cell, width 96, without its matrix products; ``triton`` launches them."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import triton
import triton.language as tl

from oneofmany.networks.triton_math import tanh


@triton.jit
def _gate(gates, of_x, at, valid):
    return tl.load(gates + at, mask=valid, other=0.0).to(tl.float32) + tl.load(of_x + at, mask=valid, other=0.0)


@triton.jit
def _open_gates(gates, of_x, at, valid):
    """The four gates after their nonlinearities."""
    i = tl.sigmoid(_gate(gates, of_x, at, valid))
    f = tl.sigmoid(_gate(gates, of_x, at + 96, valid))
    g = tanh(_gate(gates, of_x, at + 192, valid))
    o = tl.sigmoid(_gate(gates, of_x, at + 288, valid))
    return i, f, g, o


@triton.jit
def _lstm_block(N):
    """Rows and channels [32, 32] of a program, and the mask of existing rows."""
    row = tl.program_id(0) * 32 + tl.arange(0, 32)[:, None]
    channel = tl.program_id(1) * 32 + tl.arange(0, 32)[None, :]
    return row, channel, row < N


@triton.jit
def cell_forward(gates, of_x, c, h, met, new_c, N):
    """The LSTM cell for a block of rows and channels."""
    row, channel, valid = _lstm_block(N)
    at = row * 96 + channel
    i, f, g, o = _open_gates(gates, of_x, row * 384 + channel, valid)
    state = f * tl.load(c + at, mask=valid, other=0.0) + i * g
    hidden = (o * tanh(state)).to(h.dtype.element_ty)
    tl.store(new_c + at, state, mask=valid)
    tl.store(h + at, hidden, mask=valid)
    tl.store(met + row * 192 + 96 + channel, hidden, mask=valid)


@triton.jit
def cell_backward(grad_h, grad_met, grad_said, grad_c, gates, of_x, c, N, LAST: tl.constexpr):
    """Overwrite a block's gates with their gradient, and the gradient of the new c with that of the old c."""
    row, channel, valid = _lstm_block(N)
    at = row * 96 + channel
    i, f, g, o = _open_gates(gates, of_x, row * 384 + channel, valid)
    old = tl.load(c + at, mask=valid, other=0.0)
    t = tanh(f * old + i * g)
    grad_hidden = tl.load(grad_h + at, mask=valid, other=0.0).to(tl.float32)
    if not LAST:
        grad_hidden += tl.load(grad_met + row * 192 + 96 + channel, mask=valid, other=0.0)
        grad_hidden += tl.load(grad_said + at, mask=valid, other=0.0)
    grad_state = tl.load(grad_c + at, mask=valid, other=0.0) + grad_hidden * o * (1 - t * t)
    tl.store(grad_c + at, grad_state * f, mask=valid)
    half = gates.dtype.element_ty
    to = gates + row * 384 + channel
    tl.store(to, (grad_state * g * i * (1 - i)).to(half), mask=valid)
    tl.store(to + 96, (grad_state * old * f * (1 - f)).to(half), mask=valid)
    tl.store(to + 192, (grad_state * i * (1 - g * g)).to(half), mask=valid)
    tl.store(to + 288, (grad_hidden * t * o * (1 - o)).to(half), mask=valid)
