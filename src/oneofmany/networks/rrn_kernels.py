"""Triton kernels of the RRN: messages whose edge activations never leave the chip, and the LSTM's pointwise part.

A program takes a block of cells and walks through their slots; one slot of a block is one tile [CELLS, 96] of edges, so
the sum over neighbours is an addition in registers. The backward computes the activations again and writes the sender's
gradient of every edge to the sender's place in its slot (every slot is a permutation, so nothing is written twice and
no atomics are needed). All of it in one kernel, with the weights' gradients, would not fit into the registers: one
kernel writes down what every layer takes in, one the gradients of what it gave out, and batched matrix products make
the weights' gradients of both.

Triton's tiles have powers of two as sides: 96 channels are a tile of 64 (``a``) and one of 32 (``b``).

Matrix products take bfloat16 and accumulate in float32. This module imports triton: import it only where CUDA is.
"""

# Triton's language is Python only to look at, and the package is not everywhere.
# pyright: reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from oneofmany.networks.rrn_dropout import GOLDEN, MULTIPLY_1, MULTIPLY_2

WIDTH = 96
FORWARD = (64, 4)
"""Cells of a block and warps of a program."""
BACKWARD = (32, 4)
"""The same for the backward."""
LSTM_BLOCK = 1024
CHANGING = ["N", "row_offset", "threshold", "nought"]
"""Arguments whose value must not lead to another compilation."""

_GOLDEN = tl.constexpr(GOLDEN & 0xFFFFFFFF)
_MULTIPLY_1 = tl.constexpr(MULTIPLY_1)
_MULTIPLY_2 = tl.constexpr(MULTIPLY_2 & 0xFFFFFFFF)


@triton.jit
def _mix(x):
    """``rrn_dropout.mix`` but for its last line."""
    x = (x ^ (x >> 16)) * _MULTIPLY_1
    return (x ^ (x >> 15)) * _MULTIPLY_2


@triton.jit
def _edge_key(counter, key):
    x = _mix(counter.to(tl.uint32) + tl.load(key).to(tl.uint32, bitcast=True))
    x = _mix((x ^ (x >> 16)) ^ tl.load(key + 1).to(tl.uint32, bitcast=True))
    return x ^ (x >> 16)


@triton.jit
def _kept(edge, channel, threshold):
    """float32 [CELLS, channels], 1 where the message is kept; two neighbouring channels share the word."""
    word = _mix(edge[:, None] + ((channel >> 1).to(tl.uint32) * _GOLDEN)[None, :])
    half = tl.where((channel & 1)[None, :] == 1, word, (word << 16) ^ word)
    return tl.where(half.to(tl.int32, bitcast=True) >= threshold, 1.0, 0.0)


@triton.jit
def _counts(d, counter, key, threshold, TWICE: tl.constexpr, DOUBLES: tl.constexpr):
    """How many copies of slot d's messages are kept, as two tiles; slots that stand for two edges are TWICE."""
    a = tl.arange(0, 64)
    b = 64 + tl.arange(0, 32)
    edge = _edge_key(counter + (2 * d if TWICE else d + DOUBLES), key)
    of_a = _kept(edge, a, threshold)
    of_b = _kept(edge, b, threshold)
    if TWICE:
        edge = _edge_key(counter + 2 * d + 1, key)
        of_a += _kept(edge, a, threshold)
        of_b += _kept(edge, b, threshold)
    return of_a, of_b


@triton.jit
def _rows(x, row, valid, STRIDE: tl.constexpr):
    """Rows of 96 channels as two tiles; 0 where not valid."""
    at = row[:, None] * STRIDE
    of_a = tl.load(x + at + tl.arange(0, 64)[None, :], mask=valid[:, None], other=0.0)
    of_b = tl.load(x + at + 64 + tl.arange(0, 32)[None, :], mask=valid[:, None], other=0.0)
    return of_a, of_b


@triton.jit
def _write(x, row, of_a, of_b, valid, STRIDE: tl.constexpr):
    at = row[:, None] * STRIDE
    tl.store(x + at + tl.arange(0, 64)[None, :], of_a.to(x.dtype.element_ty), mask=valid[:, None])
    tl.store(x + at + 64 + tl.arange(0, 32)[None, :], of_b.to(x.dtype.element_ty), mask=valid[:, None])


@triton.jit
def _matrix(w, STRIDE_IN: tl.constexpr, STRIDE_OUT: tl.constexpr):
    """A weight as four tiles: input a or b, output a or b."""
    a = tl.arange(0, 64)
    b = 64 + tl.arange(0, 32)
    aa = tl.load(w + a[:, None] * STRIDE_IN + a[None, :] * STRIDE_OUT)
    ab = tl.load(w + a[:, None] * STRIDE_IN + b[None, :] * STRIDE_OUT)
    ba = tl.load(w + b[:, None] * STRIDE_IN + a[None, :] * STRIDE_OUT)
    bb = tl.load(w + b[:, None] * STRIDE_IN + b[None, :] * STRIDE_OUT)
    return aa, ab, ba, bb


@triton.jit
def _biases(bias):
    """Two tiles [16, channels] whose rows add up to a bias: adding it is a matrix product with ones."""
    row = tl.arange(0, 16)[:, None] * 96
    return tl.load(bias + row + tl.arange(0, 64)[None, :]), tl.load(bias + row + 64 + tl.arange(0, 32)[None, :])


@triton.jit
def _times(xa, xb, aa, ab, ba, bb):
    of_a = tl.dot(xb, ba, tl.dot(xa, aa))
    of_b = tl.dot(xb, bb, tl.dot(xa, ab))
    return of_a, of_b


@triton.jit
def _linear(xa, xb, aa, ab, ba, bb, bias_a, bias_b, one):
    ones = tl.zeros((xa.shape[0], 16), xa.dtype) + one.to(xa.dtype)
    of_a = tl.dot(xb, ba, tl.dot(xa, aa, tl.dot(ones, bias_a)))
    of_b = tl.dot(xb, bb, tl.dot(xa, ab, tl.dot(ones, bias_b)))
    return of_a, of_b


@triton.jit
def _layer(xa, xb, aa, ab, ba, bb, bias_a, bias_b, one):
    """relu(x W + bias)."""
    of_a, of_b = _linear(xa, xb, aa, ab, ba, bb, bias_a, bias_b, one)
    return tl.maximum(of_a, 0.0), tl.maximum(of_b, 0.0)


@triton.jit
def _first_layer(pq, qa, qb, sender, valid):
    pa, pb = _rows(pq, sender, valid, 192)
    za, zb = pa + qa, pb + qb
    return tl.where(za > 0, za, 0.0), tl.where(zb > 0, zb, 0.0)


@triton.jit(do_not_specialize=CHANGING, do_not_specialize_on_alignment=["key"])
def _forward_kernel(
    pq, w, bias, slots, key, out, N, row_offset, threshold, scale, nought,
    R: tl.constexpr, D: tl.constexpr, DOUBLES: tl.constexpr, DROPOUT: tl.constexpr, CELLS: tl.constexpr,
):  # fmt: skip
    half = pq.dtype.element_ty
    node = tl.program_id(0) * CELLS + tl.arange(0, CELLS)
    valid = node < N
    board = node // R
    cell = node - board * R
    counter = (board + row_offset) * (R * (D + DOUBLES)) + cell * (D + DOUBLES)
    qa, qb = _rows(pq + 96, node, valid, 192)
    w2aa, w2ab, w2ba, w2bb = _matrix(w, 1, 96)
    w3aa, w3ab, w3ba, w3bb = _matrix(w + 96 * 96, 1, 96)
    w4aa, w4ab, w4ba, w4bb = _matrix(w + 2 * 96 * 96, 1, 96)
    b2a, b2b = _biases(bias)
    b3a, b3b = _biases(bias + 16 * 96)
    b4a, b4b = _biases(bias + 2 * 16 * 96)
    sum_a = tl.zeros((CELLS, 64), tl.float32)
    sum_b = tl.zeros((CELLS, 32), tl.float32)
    for TWICE in tl.static_range(2):
        for d in range(0 if TWICE else DOUBLES, DOUBLES if TWICE else D):
            # Not a constant, or the product of ones and biases would leave the loop and fill the registers.
            one = 1.0 + d * nought
            sender = board * R + tl.load(slots + d * R + cell)
            za, zb = _first_layer(pq, qa, qb, sender, valid)
            ya, yb = _layer(za, zb, w2aa, w2ab, w2ba, w2bb, b2a, b2b, one)
            ya, yb = _layer(ya.to(half), yb.to(half), w3aa, w3ab, w3ba, w3bb, b3a, b3b, one)
            if DROPOUT:
                ya, yb = _linear(ya.to(half), yb.to(half), w4aa, w4ab, w4ba, w4bb, b4a, b4b, one)
                ka, kb = _counts(d, counter, key, threshold, TWICE, DOUBLES)
                sum_a += ya * ka
                sum_b += yb * kb
            else:
                sum_a += ya * (1 + TWICE)
                sum_b += yb * (1 + TWICE)
    _write(out, node, sum_a * scale, sum_b * scale, valid, 96)


@triton.jit(do_not_specialize=["N", "nought"])
def _activations_kernel(
    pq, w, bias, slots, taken, N, nought, R: tl.constexpr, D: tl.constexpr, CELLS: tl.constexpr
):  # fmt: skip
    """What the second, third and fourth layer take in, to ``taken`` [3, D, N, 96]."""
    half = pq.dtype.element_ty
    slot_size = N.to(tl.int64) * 96
    layer_size = D * slot_size
    node = tl.program_id(0) * CELLS + tl.arange(0, CELLS)
    valid = node < N
    board = node // R
    cell = node - board * R
    qa, qb = _rows(pq + 96, node, valid, 192)
    w2aa, w2ab, w2ba, w2bb = _matrix(w, 1, 96)
    w3aa, w3ab, w3ba, w3bb = _matrix(w + 96 * 96, 1, 96)
    b2a, b2b = _biases(bias)
    b3a, b3b = _biases(bias + 16 * 96)
    for d in range(D):
        one = 1.0 + d * nought
        to = taken + d * slot_size
        za, zb = _first_layer(pq, qa, qb, board * R + tl.load(slots + d * R + cell), valid)
        _write(to, node, za, zb, valid, 96)
        ya, yb = _layer(za, zb, w2aa, w2ab, w2ba, w2bb, b2a, b2b, one)
        za, zb = ya.to(half), yb.to(half)
        _write(to + layer_size, node, za, zb, valid, 96)
        ya, yb = _layer(za, zb, w3aa, w3ab, w3ba, w3bb, b3a, b3b, one)
        _write(to + 2 * layer_size, node, ya, yb, valid, 96)


@triton.jit
def _where_open(taken, node, ya, yb, valid):
    """The gradient before a ReLU: 0 where it gave out 0."""
    za, zb = _rows(taken, node, valid, 96)
    half = taken.dtype.element_ty
    return tl.where(za > 0, ya, 0.0).to(half), tl.where(zb > 0, yb, 0.0).to(half)


@triton.jit(do_not_specialize=CHANGING, do_not_specialize_on_alignment=["key"])
def _backward_kernel(
    grad, w, slots, key, taken, given, of_edges, of_pq, N, row_offset, threshold, scale,
    R: tl.constexpr, D: tl.constexpr, DOUBLES: tl.constexpr, DROPOUT: tl.constexpr, CELLS: tl.constexpr,
):  # fmt: skip
    """Gradients of pq, and of what the layers gave out, to ``given`` [layers, D, N, 96]."""
    half = grad.dtype.element_ty
    slot_size = N.to(tl.int64) * 96
    layer_size = D * slot_size
    node = tl.program_id(0) * CELLS + tl.arange(0, CELLS)
    valid = node < N
    board = node // R
    cell = node - board * R
    counter = (board + row_offset) * (R * (D + DOUBLES)) + cell * (D + DOUBLES)
    v2aa, v2ab, v2ba, v2bb = _matrix(w, 96, 1)
    v3aa, v3ab, v3ba, v3bb = _matrix(w + 96 * 96, 96, 1)
    v4aa, v4ab, v4ba, v4bb = _matrix(w + 2 * 96 * 96, 96, 1)
    ga, gb = _rows(grad, node, valid, 96)
    ga, gb = (ga.to(tl.float32) * scale).to(half), (gb.to(tl.float32) * scale).to(half)
    sum_a = tl.zeros((CELLS, 64), tl.float32)
    sum_b = tl.zeros((CELLS, 32), tl.float32)
    for TWICE in tl.static_range(2):
        for d in range(0 if TWICE else DOUBLES, DOUBLES if TWICE else D):
            of = taken + d * slot_size
            to = given + d * slot_size
            if DROPOUT:
                ka, kb = _counts(d, counter, key, threshold, TWICE, DOUBLES)
                da, db = ga * ka.to(half), gb * kb.to(half)
                _write(to + 2 * layer_size, node, da, db, valid, 96)
                ya, yb = _times(da, db, v4aa, v4ab, v4ba, v4bb)
            else:
                ya, yb = ga.to(tl.float32) * (1 + TWICE), gb.to(tl.float32) * (1 + TWICE)
            da, db = _where_open(of + 2 * layer_size, node, ya, yb, valid)
            _write(to + layer_size, node, da, db, valid, 96)
            ya, yb = _times(da, db, v3aa, v3ab, v3ba, v3bb)
            da, db = _where_open(of + layer_size, node, ya, yb, valid)
            _write(to, node, da, db, valid, 96)
            ya, yb = _times(da, db, v2aa, v2ab, v2ba, v2bb)
            da, db = _where_open(of, node, ya, yb, valid)
            sum_a += da
            sum_b += db
            _write(of_edges + d * slot_size, board * R + tl.load(slots + d * R + cell), da, db, valid, 96)
    _write(of_pq + 96, node, sum_a, sum_b, valid, 192)


@triton.jit
def _lstm_kernel(gates, c, h, new_c, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = at < total
    first = gates + (at // 96) * 384 + at % 96
    i = tl.sigmoid(tl.load(first, mask=valid, other=0.0).to(tl.float32))
    f = tl.sigmoid(tl.load(first + 96, mask=valid, other=0.0).to(tl.float32))
    g = 2 * tl.sigmoid(2 * tl.load(first + 192, mask=valid, other=0.0).to(tl.float32)) - 1
    o = tl.sigmoid(tl.load(first + 288, mask=valid, other=0.0).to(tl.float32))
    state = f * tl.load(c + at, mask=valid, other=0.0) + i * g
    tl.store(new_c + at, state, mask=valid)
    tl.store(h + at, (o * (2 * tl.sigmoid(2 * state) - 1)).to(h.dtype.element_ty), mask=valid)


@triton.jit
def _lstm_backward_kernel(of_h, of_new_c, gates, c, of_gates, of_c, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = at < total
    first = (at // 96) * 384 + at % 96
    i = tl.sigmoid(tl.load(gates + first, mask=valid, other=0.0).to(tl.float32))
    f = tl.sigmoid(tl.load(gates + first + 96, mask=valid, other=0.0).to(tl.float32))
    g = 2 * tl.sigmoid(2 * tl.load(gates + first + 192, mask=valid, other=0.0).to(tl.float32)) - 1
    o = tl.sigmoid(tl.load(gates + first + 288, mask=valid, other=0.0).to(tl.float32))
    old = tl.load(c + at, mask=valid, other=0.0)
    t = 2 * tl.sigmoid(2 * (f * old + i * g)) - 1
    dh = tl.load(of_h + at, mask=valid, other=0.0).to(tl.float32)
    dc = tl.load(of_new_c + at, mask=valid, other=0.0) + dh * o * (1 - t * t)
    to = of_gates.dtype.element_ty
    tl.store(of_gates + first, (dc * g * i * (1 - i)).to(to), mask=valid)
    tl.store(of_gates + first + 96, (dc * old * f * (1 - f)).to(to), mask=valid)
    tl.store(of_gates + first + 192, (dc * i * (1 - g * g)).to(to), mask=valid)
    tl.store(of_gates + first + 288, (dh * t * o * (1 - o)).to(to), mask=valid)
    tl.store(of_c + at, dc * f, mask=valid)


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


def message_forward(
    pq: Tensor, w: Tensor, rows: Tensor, slots: Tensor, doubles: int, key: Tensor | None, threshold: int,
    scale: float, row_offset: int,
) -> Tensor:  # fmt: skip
    """What arrives at every cell, [B, R, 96], as ``rrn_messages.plain_messages`` says, times ``scale``.

    Args:
        pq: [B, R, 192], the sender's and the receiver's half of the first message layer, contiguous.
        w: [3, 96, 96], from ``operands``.
        rows: [3, 16, 96], from ``operands``.
        slots: int32 [D, R], the neighbours by slot.
        doubles: how many slots stand for two edges.
        key: int32 [2], the step's dropout keys; None without dropout.
        threshold: see ``rrn_dropout.threshold_of``.
        scale: what the sum is multiplied by.
        row_offset: index of the first board in the whole batch.
    """
    (D, R), N = slots.shape, pq.shape[0] * pq.shape[1]
    out = pq.new_empty(*pq.shape[:2], WIDTH)
    cells, warps = FORWARD
    _forward_kernel[(triton.cdiv(N, cells),)](
        pq, w, rows, slots, slots if key is None else key, out, N, row_offset, (threshold - 32768) << 16, scale, 0,
        R=R, D=D, DOUBLES=doubles, DROPOUT=key is not None, CELLS=cells, num_warps=warps, num_stages=1,
    )  # fmt: skip
    return out


def message_backward(
    grad: Tensor, pq: Tensor, w: Tensor, rows: Tensor, slots: Tensor, doubles: int, key: Tensor | None,
    threshold: int, scale: float, row_offset: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of pq, of the weights [3, 96, 96] and of the biases [3, 96]."""
    (D, R), B = slots.shape, pq.shape[0]
    layers, N = 2 if key is None else 3, B * R
    of_edges, taken, given = (pq.new_empty(count, D, B, R, WIDTH) for count in (1, 3, layers))
    of_pq = torch.empty_like(pq)
    cells, warps = FORWARD
    _activations_kernel[(triton.cdiv(N, cells),)](
        pq, w, rows, slots, taken, N, 0, R=R, D=D, CELLS=cells, num_warps=warps, num_stages=1,
    )  # fmt: skip
    cells, warps = BACKWARD
    _backward_kernel[(triton.cdiv(N, cells),)](
        grad, w, slots, slots if key is None else key, taken, given, of_edges, of_pq, N, row_offset,
        (threshold - 32768) << 16, scale, R=R, D=D, DOUBLES=doubles, DROPOUT=key is not None, CELLS=cells,
        num_warps=warps, num_stages=1,
    )  # fmt: skip
    torch.sum(of_edges[0], 0, out=of_pq[..., :WIDTH])
    # One long product would keep a few multiprocessors busy: many shorter ones, of some boards of a slot each.
    parts = layers * D * max(part for part in range(1, 17) if B % part == 0)
    products = torch.bmm(given.view(parts, -1, WIDTH).mT, taken[:layers].view(parts, -1, WIDTH))
    of_w = products.view(layers, -1, WIDTH, WIDTH).sum(1, dtype=torch.float32)
    of_bias = given.view(layers, D * B, R * WIDTH).sum(1, dtype=torch.float32).view(layers, R, WIDTH).sum(1)
    if key is None:  # the fourth layer is not done here
        of_w, of_bias = (
            torch.cat([of_w, of_w.new_zeros(1, WIDTH, WIDTH)]),
            torch.cat([of_bias, of_bias.new_zeros(1, WIDTH)]),
        )
    return of_pq, of_w, of_bias


def lstm_forward(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The LSTM's pointwise part: gates [..., 384] before their nonlinearities and c float32 [..., 96] to h and c."""
    h, new_c = torch.empty_like(c, dtype=gates.dtype), torch.empty_like(c)
    grid = (triton.cdiv(c.numel(), LSTM_BLOCK),)
    _lstm_kernel[grid](gates, c, h, new_c, c.numel(), BLOCK=LSTM_BLOCK)
    return h, new_c


def lstm_backward(of_h: Tensor, of_c: Tensor, gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of gates and of the old c."""
    of_gates, of_old = torch.empty_like(gates), torch.empty_like(c)
    grid = (triton.cdiv(c.numel(), LSTM_BLOCK),)
    _lstm_backward_kernel[grid](of_h, of_c, gates, c, of_gates, of_old, c.numel(), BLOCK=LSTM_BLOCK)
    return of_gates, of_old
