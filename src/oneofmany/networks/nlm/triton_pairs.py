"""The Triton kernels for the pairs of one NLM layer; ``triton`` launches them.

Memory traffic is the limit, so everything between the products and the buffers happens on the chip: one kernel computes
a layer's outputs (or gradients), a second one reduces (or sums) them over the objects.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false
from __future__ import annotations

import triton
import triton.language as tl

from oneofmany.networks.triton_math import tanh

# Tiles of 2 * HALF rows hold the symmetric half (s) over the antisymmetric one (d), so a sum over the halves is s + d.


@triton.jit
def _halves(x, HALF: tl.constexpr, BLOCK: tl.constexpr):
    """s + d and s - d of a tile [2 * HALF, BLOCK]."""
    x = tl.reshape(x, (2, HALF, BLOCK))
    sign = 1 - 2 * tl.arange(0, 2)[:, None, None]
    return tl.sum(x, 0), tl.sum(x * sign, 0)


@triton.jit
def _early_and_near(
    early, weight, near, column, inside, columns, early_half, weight_half, weight_row, weight_column, near_half,
    channels, W: tl.constexpr, HALF: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """The contribution of all other layers: tile [2 * HALF, BLOCK] in float32."""
    row = tl.arange(0, 2 * HALF)
    half, w = row // HALF, row % HALF
    live = (w < W)[:, None]
    x = tl.load(
        early + (half * early_half + w.to(tl.int64) * columns)[:, None] + column[None], live & inside[None], 0.0
    )
    x = x.to(tl.float32)
    if CHANNELS > 0:
        # Both halves in one product: rows of one half have zero weights for channels of the other.
        side, c = tl.arange(0, 2 * CHANNELS) // CHANNELS, tl.arange(0, 2 * CHANNELS) % CHANNELS
        known = c < channels
        b = tl.load(
            near + (side * near_half + c.to(tl.int64) * columns)[:, None] + column[None],
            known[:, None] & inside[None],
            0.0,
        )
        own = live & (half[:, None] == side[None]) & known[None]
        a = tl.load(weight + (side * weight_half + c * weight_column)[None] + w[:, None] * weight_row, own, 0.0)
        x = tl.dot(a, b, x)
    return x


@triton.jit(do_not_specialize=["channels"])
def pairs_forward(
    early, weight, near, ends, new, columns, B, H, n,
    early_half, weight_half, weight_row, near_half, new_half, channels,
    W: tl.constexpr, HALF: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A layer's outputs for a block of columns (query, pair)."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    query, pair = column // (H * n), column % (H * n)
    i = pair % n
    j = i + pair // n + 1
    j = tl.where(j >= n, j - n, j)
    row = tl.arange(0, 2 * HALF)
    half, w = row // HALF, row % HALF
    known = (w < W)[:, None] & inside[None]
    base = ((half * W + w) * B)[:, None] + query[None]
    # Loaded early, used late: this hides the latency.
    of_i, of_j = tl.load(ends + base * n + i[None], known, 0.0), tl.load(ends + base * n + j[None], known, 0.0)
    x = _early_and_near(
        early, weight, near, column, inside, columns, early_half, weight_half, weight_row, 1, near_half, channels,
        W, HALF, CHANNELS,
    )  # fmt: skip
    sign = (1 - 2 * half)[:, None]
    x += 0.5 * (of_i + sign * of_j)
    forth, back = _halves(x, HALF, BLOCK)
    forth, back = tanh(forth), tanh(back)
    w = tl.arange(0, HALF)
    known = (w < W)[:, None] & inside[None]
    to = new + (w.to(tl.int64) * columns)[:, None] + column[None]
    tl.store(to, ((forth + back) * 0.5).to(new.dtype.element_ty), known)
    tl.store(to + new_half, ((forth - back) * 0.5).to(new.dtype.element_ty), known)


@triton.jit
def _both_ends(x, base, half, first_k, H, n, PAIRS: tl.constexpr, OBJECTS: tl.constexpr):
    """s and d of the pairs in which an object is first, then of those in which it is second: [PAIRS, OBJECTS]."""
    t = tl.program_id(1) * OBJECTS + tl.arange(0, OBJECTS)[None]
    k = first_k + tl.arange(0, PAIRS)[:, None]
    known = (k < H) & (t < n)
    i = t - k - 1
    i = tl.where(i < 0, i + n, i)
    first, second = x + base * (H * n) + k * n + t, x + base * (H * n) + k * n + i
    return (
        tl.load(first, known, 0.0).to(tl.float32),
        tl.load(first + half, known, 0.0).to(tl.float32),
        tl.load(second, known, 0.0).to(tl.float32),
        tl.load(second + half, known, 0.0).to(tl.float32),
        k,
        known,
    )


@triton.jit
def _larger(best, at, x, code):
    """The larger of two and its position; the first one if they are equal."""
    later = x > best
    return tl.where(later, x, best), tl.where(later, code, at)


@triton.jit
def _largest(best, at):
    """The largest over the rows and its position; the smallest code if several are equal."""
    value = tl.max(best, 0)
    return value, tl.min(tl.where(best == value[None], at, 32767), 0)


@triton.jit
def pairs_reduce(
    new, reduced, extreme, B, H, n, new_half, W: tl.constexpr, PAIRS: tl.constexpr, OBJECTS: tl.constexpr
):  # fmt: skip
    """Each object's max and min over the other objects, and their positions, for one channel of one query."""
    base = tl.program_id(0).to(tl.int64)
    # The minimum is computed as the maximum of the negated values.
    high = tl.full((PAIRS, OBJECTS), -2.0, tl.float32)
    low = tl.full((PAIRS, OBJECTS), -2.0, tl.float32)
    high_at = tl.zeros((PAIRS, OBJECTS), tl.int32)
    low_at = tl.zeros((PAIRS, OBJECTS), tl.int32)
    for first_k in range(0, H, PAIRS):
        s0, d0, s1, d1, k, known = _both_ends(new, base, new_half, first_k, H, n, PAIRS, OBJECTS)
        forth, back = s0 + d0, s1 - d1
        high, high_at = _larger(high, high_at, tl.where(known, forth, -2.0), k)
        high, high_at = _larger(high, high_at, tl.where(known, back, -2.0), k + H)
        low, low_at = _larger(low, low_at, tl.where(known, -forth, -2.0), k)
        low, low_at = _larger(low, low_at, tl.where(known, -back, -2.0), k + H)
    t = tl.program_id(1) * OBJECTS + tl.arange(0, OBJECTS)
    to = base * n + t
    side = W * B * n
    value, at = _largest(high, high_at)
    tl.store(reduced + to, value.to(reduced.dtype.element_ty), t < n)
    tl.store(extreme + to, at.to(tl.int16), t < n)
    value, at = _largest(low, low_at)
    tl.store(reduced + side + to, (-value).to(reduced.dtype.element_ty), t < n)
    tl.store(extreme + side + to, at.to(tl.int16), t < n)


@triton.jit
def _extremes(grad_reduced, extreme, base, obj, code, known, side):
    """Gradient of an object's max and min if this pair is their position."""
    at = base + obj
    high = tl.load(extreme + at, known, -1).to(tl.int32) == code
    low = tl.load(extreme + side + at, known, -1).to(tl.int32) == code
    grad_high = tl.load(grad_reduced + at, known & high, 0.0)
    grad_low = tl.load(grad_reduced + side + at, known & low, 0.0)
    return grad_high + grad_low


@triton.jit(do_not_specialize=["channels"])
def pairs_backward(
    early, weight, grad_near, grad_reduced, extreme, out, grad_new, columns, B, H, n,
    early_half, weight_half, weight_row, weight_column, near_half, out_half, grad_half, channels,
    W: tl.constexpr, HALF: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients of a layer's pre-activations for a block of columns (query, pair)."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    query, pair = column // (H * n), column % (H * n)
    i = pair % n
    k = pair // n
    j = i + k + 1
    j = tl.where(j >= n, j - n, j)
    w = tl.arange(0, HALF)
    known = (w < W)[:, None] & inside[None]
    base = ((w * B)[:, None] + query[None]) * n
    side = W * B * n
    at = (w.to(tl.int64) * columns)[:, None] + column[None]
    s, d = tl.load(out + at, known, 0.0).to(tl.float32), tl.load(out + out_half + at, known, 0.0).to(tl.float32)
    grad_i = _extremes(grad_reduced, extreme, base, i[None], k[None], known, side)
    grad_j = _extremes(grad_reduced, extreme, base, j[None], (k + H)[None], known, side)
    x = _early_and_near(
        early, weight, grad_near, column, inside, columns, early_half, weight_half, weight_row, weight_column,
        near_half, channels, W, HALF, CHANNELS,
    )  # fmt: skip
    forth, back = _halves(x, HALF, BLOCK)
    forth, back = forth + grad_i, back + grad_j
    # Rounding may move s + d and s - d slightly out of -1..1; the slope must not become negative.
    forth, back = forth * tl.maximum(1 - (s + d) * (s + d), 0.0), back * tl.maximum(1 - (s - d) * (s - d), 0.0)
    tl.store(grad_new + at, ((forth + back) * 0.5).to(grad_new.dtype.element_ty), known)
    tl.store(grad_new + grad_half + at, ((forth - back) * 0.5).to(grad_new.dtype.element_ty), known)


@triton.jit
def pairs_sum(grad_new, grad_ends, B, H, n, grad_half, W: tl.constexpr, PAIRS: tl.constexpr, OBJECTS: tl.constexpr):
    """Sums of those gradients over the pairs of each object, for one channel of one query."""
    base = tl.program_id(0).to(tl.int64)
    total = tl.zeros((PAIRS, OBJECTS), tl.float32)
    difference = tl.zeros((PAIRS, OBJECTS), tl.float32)
    for first_k in range(0, H, PAIRS):
        s0, d0, s1, d1, _, _ = _both_ends(grad_new, base, grad_half, first_k, H, n, PAIRS, OBJECTS)
        total += s0 + s1
        difference += d0 - d1
    t = tl.program_id(1) * OBJECTS + tl.arange(0, OBJECTS)
    to = grad_ends + base * n + t
    tl.store(to, tl.sum(total, 0).to(grad_ends.dtype.element_ty), t < n)
    tl.store(to + W * B * n, tl.sum(difference, 0).to(grad_ends.dtype.element_ty), t < n)
