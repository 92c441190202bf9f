"""Triton kernels of the cell of the RRN's LSTM, width 96: all of it but the products.

This module imports triton: import it only where CUDA is.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false
from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from oneofmany.networks.kernel_functions import tanh


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
    """Rows and channels [32, 32] of a program, and which rows there are."""
    row = tl.program_id(0) * 32 + tl.arange(0, 32)[:, None]
    channel = tl.program_id(1) * 32 + tl.arange(0, 32)[None, :]
    return row, channel, row < N


@triton.jit
def _lstm_kernel(gates, of_x, c, h, met, new_c, N):
    row, channel, valid = _lstm_block(N)
    at = row * 96 + channel
    i, f, g, o = _open_gates(gates, of_x, row * 384 + channel, valid)
    state = f * tl.load(c + at, mask=valid, other=0.0) + i * g
    hidden = (o * tanh(state)).to(h.dtype.element_ty)
    tl.store(new_c + at, state, mask=valid)
    tl.store(h + at, hidden, mask=valid)
    tl.store(met + row * 192 + 96 + channel, hidden, mask=valid)


@triton.jit
def _lstm_backward_kernel(of_h, of_met, of_said, of_c, gates, of_x, c, N, LAST: tl.constexpr):
    row, channel, valid = _lstm_block(N)
    at = row * 96 + channel
    i, f, g, o = _open_gates(gates, of_x, row * 384 + channel, valid)
    old = tl.load(c + at, mask=valid, other=0.0)
    t = tanh(f * old + i * g)
    dh = tl.load(of_h + at, mask=valid, other=0.0).to(tl.float32)
    if not LAST:
        dh += tl.load(of_met + row * 192 + 96 + channel, mask=valid, other=0.0)
        dh += tl.load(of_said + at, mask=valid, other=0.0)
    dc = tl.load(of_c + at, mask=valid, other=0.0) + dh * o * (1 - t * t)
    tl.store(of_c + at, dc * f, mask=valid)
    half = gates.dtype.element_ty
    to = gates + row * 384 + channel
    tl.store(to, (dc * g * i * (1 - i)).to(half), mask=valid)
    tl.store(to + 96, (dc * old * f * (1 - f)).to(half), mask=valid)
    tl.store(to + 192, (dc * i * (1 - g * g)).to(half), mask=valid)
    tl.store(to + 288, (dh * t * o * (1 - o)).to(half), mask=valid)


def lstm_forward(gates: Tensor, of_x: Tensor, c: Tensor, h: Tensor, met: Tensor, new_c: Tensor) -> None:
    """The LSTM's cell: from gates + of_x [B, R, 384] and c float32 [B, R, 96] to h, the last half of met, and new_c."""
    N = c.shape[0] * c.shape[1]
    _lstm_kernel[(triton.cdiv(N, 32), 3)](gates, of_x, c, h, met, new_c, N)


def lstm_backward(
    of_h: Tensor, of_met: Tensor, of_said: Tensor, of_c: Tensor, gates: Tensor, of_x: Tensor, c: Tensor, last: bool
) -> None:
    """Write the gates' gradient over them, and that of c over the one of the new c.

    The gradient of h comes from what the step gave out (of_h) and, but in the last step, from the next one's gates
    (the last half of of_met) and messages (of_said).
    """
    N = c.shape[0] * c.shape[1]
    _lstm_backward_kernel[(triton.cdiv(N, 32), 3)](of_h, of_met, of_said, of_c, gates, of_x, c, N, LAST=last)
