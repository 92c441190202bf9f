"""The Triton kernels of the RRN's messages; ``triton`` launches them. In the forward pass edges stay on the chip.

A program handles a block of cells and loops over their slots. One slot of a block is one tile [CELLS, 96] of edges, so
the sum over neighbours is an addition in registers. The backward pass recomputes the activations and writes the
sender's gradient of each edge to the sender's place in its slot. Each slot is a permutation, so nothing is written
twice and no atomics are needed. The weight gradients do not fit into the registers as well. Instead, the backward
kernel stores the inputs of each layer, followed by a 1, and the gradients of its outputs. Batched matrix products of
the two are the gradients of the weights and, from the 1, of the biases.

Triton's tiles have power-of-two sides: 96 channels are a tile of 64 (``a``) and one of 32 (``b``).

Matrix products take bfloat16 and accumulate in float32.
"""

# Triton's language is not typed Python, and the package is optional.
# pyright: reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import triton
import triton.language as tl

from oneofmany.networks.rrn.dropout import GOLDEN, MULTIPLY_1, MULTIPLY_2

CHANGING = ["N", "row_offset", "threshold", "nought"]
"""Arguments whose values must not trigger a recompilation."""

_GOLDEN = tl.constexpr(GOLDEN & 0xFFFFFFFF)
_MULTIPLY_1 = tl.constexpr(MULTIPLY_1)
_MULTIPLY_2 = tl.constexpr(MULTIPLY_2 & 0xFFFFFFFF)


@triton.jit
def _mix(x):
    """``dropout.mix`` without its last line."""
    x = (x ^ (x >> 16)) * _MULTIPLY_1
    return (x ^ (x >> 15)) * _MULTIPLY_2


@triton.jit
def _edge_key(counter, key):
    x = _mix(counter.to(tl.uint32) + tl.load(key).to(tl.uint32, bitcast=True))
    x = _mix((x ^ (x >> 16)) ^ tl.load(key + 1).to(tl.uint32, bitcast=True))
    return x ^ (x >> 16)


@triton.jit
def _kept(edge, channel, threshold, value):
    """float32 [CELLS, channels]: ``value`` if the message is kept, else 0; two neighbouring channels share a word."""
    word = _mix(edge[:, None] + ((channel >> 1).to(tl.uint32) * _GOLDEN)[None, :])
    half = tl.where((channel & 1)[None, :] == 1, word, (word << 16) ^ word)
    return tl.where(half.to(tl.int32, bitcast=True) >= threshold, value, 0.0)


@triton.jit
def _counts(d, counter, key, threshold, value, TWICE: tl.constexpr, DOUBLES: tl.constexpr):
    """Number of kept copies of slot d's messages, times ``value``; TWICE for slots that stand for two edges."""
    a = tl.arange(0, 64)
    b = 64 + tl.arange(0, 32)
    edge = _edge_key(counter + (2 * d if TWICE else d + DOUBLES), key)
    of_a = _kept(edge, a, threshold, value)
    of_b = _kept(edge, b, threshold, value)
    if TWICE:
        edge = _edge_key(counter + 2 * d + 1, key)
        of_a += _kept(edge, a, threshold, value)
        of_b += _kept(edge, b, threshold, value)
    return of_a, of_b


@triton.jit
def _rows(x, row, valid, STRIDE: tl.constexpr):
    """Rows of 96 channels as two tiles; 0 if not valid."""
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
    """Two tiles [16, channels] whose rows sum to a bias: it is added by a matrix product with ones."""
    row = tl.arange(0, 16)[:, None] * 96
    return tl.load(bias + row + tl.arange(0, 64)[None, :]), tl.load(bias + row + 64 + tl.arange(0, 32)[None, :])


@triton.jit
def _back(xa, xb, aa, ab, ba, bb):
    """x times the transpose of a weight, which uses the same shared memory as the weight."""
    of_a = tl.dot(xb, ab.T, tl.dot(xa, aa.T))
    of_b = tl.dot(xb, bb.T, tl.dot(xa, ba.T))
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
def messages_forward(
    pq, w, bias, slots, key, out, N, row_offset, threshold, scale, nought, OUT: tl.constexpr,
    R: tl.constexpr, D: tl.constexpr, DOUBLES: tl.constexpr, DROPOUT: tl.constexpr, CELLS: tl.constexpr,
):  # fmt: skip
    """The summed messages at a block of cells."""
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
            # With a constant, the compiler would hoist the product of ones and biases and fill the registers.
            one = 1.0 + d * nought
            sender = board * R + tl.load(slots + d * R + cell)
            za, zb = _first_layer(pq, qa, qb, sender, valid)
            ya, yb = _layer(za, zb, w2aa, w2ab, w2ba, w2bb, b2a, b2b, one)
            ya, yb = _layer(ya.to(half), yb.to(half), w3aa, w3ab, w3ba, w3bb, b3a, b3b, one)
            if DROPOUT:
                ya, yb = _linear(ya.to(half), yb.to(half), w4aa, w4ab, w4ba, w4bb, b4a, b4b, one)
                ka, kb = _counts(d, counter, key, threshold, 1.0, TWICE, DOUBLES)
                sum_a += ya * ka
                sum_b += yb * kb
            else:
                sum_a += ya * (1 + TWICE)
                sum_b += yb * (1 + TWICE)
    _write(out, node, sum_a * scale, sum_b * scale, valid, OUT)


@triton.jit
def _open(ya, yb, za, zb):
    """The gradient before a ReLU: 0 if its output was 0."""
    return tl.where(za > 0, ya, 0.0).to(za.dtype), tl.where(zb > 0, yb, 0.0).to(zb.dtype)


@triton.jit
def _write_taken(taken, row, of_a, of_b, valid):
    """Rows of 104: the channels, a 1 and seven zeros."""
    _write(taken, row, of_a, of_b, valid, 104)
    last = tl.arange(0, 8)[None, :]
    one = tl.where(last == 0, 1.0, tl.zeros((row.shape[0], 8), tl.float32))
    tl.store(taken + row[:, None] * 104 + 96 + last, one.to(taken.dtype.element_ty), mask=valid[:, None])


@triton.jit(do_not_specialize=CHANGING, do_not_specialize_on_alignment=["key"])
def messages_backward(
    grad, pq, w, bias, slots, key, taken, given, grad_edges, grad_pq, N, row_offset, threshold, scale,
    GRAD: tl.constexpr, R: tl.constexpr, D: tl.constexpr, DOUBLES: tl.constexpr, DROPOUT: tl.constexpr,
    CELLS: tl.constexpr,
):  # fmt: skip
    """Gradients of pq; the inputs of the layers go to ``taken``, the gradients of their outputs to ``given``.

    The first layer's activations are computed one slot ahead, which hides the latency of the gather; the product then
    reads them from shared memory.
    """
    half = pq.dtype.element_ty
    slot_size = N.to(tl.int64)  # in rows
    node = tl.program_id(0) * CELLS + tl.arange(0, CELLS)
    valid = node < N
    board = node // R
    cell = node - board * R
    counter = (board + row_offset) * (R * (D + DOUBLES)) + cell * (D + DOUBLES)
    w2aa, w2ab, w2ba, w2bb = _matrix(w, 1, 96)
    w3aa, w3ab, w3ba, w3bb = _matrix(w + 96 * 96, 1, 96)
    w4aa, w4ab, w4ba, w4bb = _matrix(w + 2 * 96 * 96, 1, 96)
    b2a, b2b = _biases(bias)
    b3a, b3b = _biases(bias + 16 * 96)
    qa, qb = _rows(pq + 96, node, valid, 192)
    za, zb = _first_layer(pq, qa, qb, board * R + tl.load(slots + (DOUBLES % D) * R + cell), valid)
    sum_a = tl.zeros((CELLS, 64), tl.float32)
    sum_b = tl.zeros((CELLS, 32), tl.float32)
    for TWICE in tl.static_range(2):
        for d in range(0 if TWICE else DOUBLES, DOUBLES if TWICE else D):
            # A 0 that the compiler does not know: with a constant it would hoist addresses, q and the product of ones
            # and biases out of the loop and fill the registers.
            nought = tl.load(slots + d) >> 31
            one = 1.0 + nought
            here = node + nought
            sender = board * R + tl.load(slots + (d * R + cell + nought))
            _write_taken(taken + d * slot_size * 104, here, za, zb, valid)
            xa, xb = _layer(za, zb, w2aa, w2ab, w2ba, w2bb, b2a, b2b, one)
            xa, xb = xa.to(half), xb.to(half)
            _write_taken(taken + (D + d) * slot_size * 104, here, xa, xb, valid)
            ya, yb = _layer(xa, xb, w3aa, w3ab, w3ba, w3bb, b3a, b3b, one)
            ya, yb = ya.to(half), yb.to(half)
            grad_a, grad_b = _rows(grad, here, valid, GRAD)
            if DROPOUT:
                _write_taken(taken + (2 * D + d) * slot_size * 104, here, ya, yb, valid)
                ka, kb = _counts(d, counter, key, threshold, scale, TWICE, DOUBLES)
                grad_a, grad_b = (grad_a * ka).to(half), (grad_b * kb).to(half)
                _write(given + (2 * D + d) * slot_size * 96, here, grad_a, grad_b, valid, 96)
                grad_a, grad_b = _back(grad_a, grad_b, w4aa, w4ab, w4ba, w4bb)
            else:
                grad_a, grad_b = (
                    grad_a.to(tl.float32) * (scale * (1 + TWICE)),
                    grad_b.to(tl.float32) * (scale * (1 + TWICE)),
                )
            grad_a, grad_b = _open(grad_a, grad_b, ya, yb)
            _write(given + (D + d) * slot_size * 96, here, grad_a, grad_b, valid, 96)
            grad_a, grad_b = _back(grad_a, grad_b, w3aa, w3ab, w3ba, w3bb)
            grad_a, grad_b = _open(grad_a, grad_b, xa, xb)
            _write(given + d * slot_size * 96, here, grad_a, grad_b, valid, 96)
            grad_a, grad_b = _back(grad_a, grad_b, w2aa, w2ab, w2ba, w2bb)
            grad_a, grad_b = tl.where(za > 0, grad_a, 0.0), tl.where(zb > 0, grad_b, 0.0)
            qa, qb = _rows(pq + 96, here, valid, 192)
            following = board * R + tl.load(slots + ((d + 1) % D * R + cell + nought))
            za, zb = _first_layer(pq, qa, qb, following, valid)
            sum_a += grad_a
            sum_b += grad_b
            _write(grad_edges + d * slot_size * 96, sender, grad_a, grad_b, valid, 96)
    _write(grad_pq + 96, node, sum_a, sum_b, valid, 192)


@triton.jit
def sum_slots(grad_edges, grad_pq, total, D: tl.constexpr, ELEMENTS: tl.constexpr):
    """The sender's gradients: write their sum over the slots, [total / 96, 96], to the first half of ``grad_pq``."""
    at = tl.program_id(0) * ELEMENTS + tl.arange(0, ELEMENTS)
    valid = at < total
    sums = tl.zeros((ELEMENTS,), tl.float32)
    for d in tl.static_range(D):
        sums += tl.load(grad_edges + total.to(tl.int64) * d + at, mask=valid, other=0.0).to(tl.float32)
    tl.store(grad_pq + at // 96 * 192 + at % 96, sums.to(grad_pq.dtype.element_ty), mask=valid)


@triton.jit
def add_parts(
    products, sums, COUNT: tl.constexpr, SIZE: tl.constexpr, PARTS: tl.constexpr, ELEMENTS: tl.constexpr
):  # fmt: skip
    """Add the sum of ``products`` [layers, COUNT, SIZE] over its parts to ``sums`` [layers, SIZE]."""
    at, part = tl.program_id(0) * ELEMENTS + tl.arange(0, ELEMENTS), tl.arange(0, PARTS)[:, None]
    found = tl.zeros((PARTS, ELEMENTS), tl.float32)
    for first in range(0, COUNT, PARTS):
        row = tl.program_id(1) * COUNT + first + part
        valid = (first + part < COUNT) & (at < SIZE)[None]
        found += tl.load(products + row * SIZE + at[None], mask=valid, other=0.0).to(tl.float32)
    to = sums + tl.program_id(1) * SIZE + at
    tl.store(to, tl.load(to, mask=at < SIZE, other=0.0) + tl.sum(found, 0), mask=at < SIZE)
