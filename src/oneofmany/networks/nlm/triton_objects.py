"""The Triton kernels for the objects of one NLM layer; ``triton`` launches them.

In plain PyTorch a layer's nullary and unary predicates are about fifteen operations on very little data. With the
paper's batch of four queries, launching them takes longer than everything else. Here one program handles all objects of
a query.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import triton
import triton.language as tl

from oneofmany.networks.triton_math import tanh

CHANGING = ["z", "u", "B", "n"]
"""Arguments that vary between layers or calls and must not trigger a recompilation."""


@triton.jit
def _of_objects(a, x, count, B, n, a_row, a_column, W: tl.constexpr, ROWS: tl.constexpr, OBJECTS: tl.constexpr,
                CHANNELS: tl.constexpr):  # fmt: skip
    """3 W rows of a @ x, x [count, B, n], for this program's query: three tiles [ROWS, OBJECTS]."""
    row, i, c = tl.arange(0, ROWS), tl.arange(0, OBJECTS), tl.arange(0, CHANNELS)
    first = tl.zeros((ROWS, OBJECTS), tl.float32)
    second = tl.zeros((ROWS, OBJECTS), tl.float32)
    third = tl.zeros((ROWS, OBJECTS), tl.float32)
    for start in range(0, count, CHANNELS):
        at = start + c
        known = at < count
        v = tl.load(x + (at * B + tl.program_id(0))[:, None] * n + i[None], known[:, None] & (i < n)[None], 0.0)
        weight, mask = a + row[:, None] * a_row + at[None] * a_column, (row < W)[:, None] & known[None]
        first = tl.dot(tl.load(weight, mask, 0.0), v, first)
        second = tl.dot(tl.load(weight + W * a_row, mask, 0.0), v, second)
        third = tl.dot(tl.load(weight + 2 * W * a_row, mask, 0.0), v, third)
    return first, second, third


@triton.jit
def _of_all(a, x, count, B, a_row, a_column, W: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
            THREE: tl.constexpr):  # fmt: skip
    """2 W or 3 W rows of a @ x, x [count, B], for this program's query: [ROWS] each."""
    row, c = tl.arange(0, ROWS), tl.arange(0, CHANNELS)
    first = tl.zeros((ROWS,), tl.float32)
    second = tl.zeros((ROWS,), tl.float32)
    third = tl.zeros((ROWS,), tl.float32)
    for start in range(0, count, CHANNELS):
        at = start + c
        known = at < count
        v = tl.load(x + at * B + tl.program_id(0), known, 0.0).to(tl.float32)[None]
        weight, mask = a + row[:, None] * a_row + at[None] * a_column, (row < W)[:, None] & known[None]
        first += tl.sum(tl.load(weight, mask, 0.0).to(tl.float32) * v, 1)
        second += tl.sum(tl.load(weight + W * a_row, mask, 0.0).to(tl.float32) * v, 1)
        if THREE:
            third += tl.sum(tl.load(weight + 2 * W * a_row, mask, 0.0).to(tl.float32) * v, 1)
    return first, second, third


@triton.jit(do_not_specialize=CHANGING)
def objects_forward(
    nul, obj, Z, U, new_z, new_u, extreme, ends, z, u, B, n, nul_row, obj_row,
    W: tl.constexpr, ROWS: tl.constexpr, OBJECTS: tl.constexpr, CHANNELS: tl.constexpr,
    NULLARY: tl.constexpr, REDUCED: tl.constexpr,
):  # fmt: skip
    """A layer's nullary and unary outputs for one query, and the unary part of its pairs."""
    own, added, _ = _of_all(nul, Z, z, B, nul_row, 1, W, ROWS, CHANNELS, False)
    x, total, difference = _of_objects(obj, U, u, B, n, obj_row, 1, W, ROWS, OBJECTS, CHANNELS)
    x = tanh(x + added[:, None])
    row, i = tl.arange(0, ROWS), tl.arange(0, OBJECTS)
    here, inside = row < W, (i < n)[None]
    of_query = row * B + tl.program_id(0)
    at, known = of_query[:, None] * n + i[None], here[:, None] & inside
    tl.store(ends + at, total, known)
    tl.store(ends + W * B * n + at, difference, known)
    tl.store(new_u + at, x.to(new_u.dtype.element_ty), known)
    if NULLARY:
        tl.store(new_z + of_query, tanh(own).to(new_z.dtype.element_ty), here)
    if REDUCED:
        high, high_at = tl.max(tl.where(inside, x, -2.0), 1, return_indices=True)
        low, low_at = tl.min(tl.where(inside, x, 2.0), 1, return_indices=True)
        tl.store(new_z + W * B + of_query, high.to(new_z.dtype.element_ty), here)
        tl.store(new_z + 2 * W * B + of_query, low.to(new_z.dtype.element_ty), here)
        tl.store(extreme + of_query, high_at.to(tl.int16), here)
        tl.store(extreme + W * B + of_query, low_at.to(tl.int16), here)


@triton.jit(do_not_specialize=CHANGING)
def objects_backward(
    nul, obj, grad_Z, grad_U, out_z, out_u, extreme, grad_new_z, grad_new_u, grad_reduced, z, u, B, n, nul_row, obj_row,
    W: tl.constexpr, ROWS: tl.constexpr, OBJECTS: tl.constexpr, CHANNELS: tl.constexpr,
    NULLARY: tl.constexpr, REDUCED: tl.constexpr,
):  # fmt: skip
    """Gradients of a layer's pre-activations for one query, and of the max and min of its pairs."""
    own, grad_high, grad_low = _of_all(nul, grad_Z, z, B, 1, nul_row, W, ROWS, CHANNELS, REDUCED)
    x, grad_max, grad_min = _of_objects(obj, grad_U, u, B, n, 1, obj_row, W, ROWS, OBJECTS, CHANNELS)
    row, i = tl.arange(0, ROWS), tl.arange(0, OBJECTS)
    here = row < W
    of_query = row * B + tl.program_id(0)
    at, known = of_query[:, None] * n + i[None], here[:, None] & (i < n)[None]
    tl.store(grad_reduced + at, grad_max, known)
    tl.store(grad_reduced + W * B * n + at, grad_min, known)
    if REDUCED:
        high_at = tl.load(extreme + of_query, here, 0).to(tl.int32)
        low_at = tl.load(extreme + W * B + of_query, here, 0).to(tl.int32)
        x += tl.where(i[None] == high_at[:, None], grad_high[:, None], 0.0)
        x += tl.where(i[None] == low_at[:, None], grad_low[:, None], 0.0)
    out = tl.load(out_u + at, known, 0.0).to(tl.float32)
    x *= 1 - out * out
    tl.store(grad_new_u + at, x.to(grad_new_u.dtype.element_ty), known)
    tl.store(grad_new_z + W * B + of_query, tl.sum(x, 1).to(grad_new_z.dtype.element_ty), here)
    if NULLARY:
        out = tl.load(out_z + of_query, here, 0.0).to(tl.float32)
        tl.store(grad_new_z + of_query, (own * (1 - out * out)).to(grad_new_z.dtype.element_ty), here)
