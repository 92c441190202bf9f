"""One layer's pairs of a Neural Logic Machine as Triton kernels, for 16-bit buffers on a GPU.

The same functions as in ``nlm_layers``, which is their oracle and explains the layout. What a layer does to its pairs
is bound by memory traffic, so everything between the products and the buffers happens on the chip: one kernel makes a
layer's outputs (or gradients), a second one reduces (or sums) them over the objects.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from oneofmany.networks.kernel_functions import tanh

BLOCK = 256
"""Columns (query, pair) that a program handles."""
OBJECTS, PAIRS = 128, 16
"""Objects that a program reduces for, and pairs of each that it looks at in one round."""
WARPS = 8


def product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` [2, .., ..], rounded to 16 bits: it is read once more, and as precise as what it is added to."""
    return torch.bmm(a, b) if a.shape[-1] else a.new_zeros(2, a.shape[1], b.shape[2])


def pair_forward(
    early: Tensor, weight: Tensor, near: Tensor, ends: Tensor, new: Tensor, reduced: Tensor, extreme: Tensor
) -> None:
    """See ``nlm_layers.pair_forward``."""
    _, W, B, H, n = new.shape
    columns = B * H * n
    half_rows, channels = _padded(W, weight.shape[-1])
    _forward[(triton.cdiv(columns, BLOCK),)](
        early, weight, near, ends, new, columns, B, H, n,
        early.stride(0), weight.stride(0), weight.stride(1), near.stride(0), new.stride(0), weight.shape[-1],
        W=W, HALF=half_rows, CHANNELS=channels, BLOCK=BLOCK, num_warps=WARPS,
    )  # fmt: skip
    _reduce[(W * B, triton.cdiv(n, OBJECTS))](
        new, reduced, extreme, B, H, n, new.stride(0), W=W, PAIRS=PAIRS, OBJECTS=OBJECTS, num_warps=WARPS
    )  # fmt: skip


def pair_backward(
    early: Tensor,
    weight: Tensor,
    near: Tensor,
    g_reduced: Tensor,
    extreme: Tensor,
    out: Tensor,
    new: Tensor,
    ends: Tensor,
) -> None:
    """See ``nlm_layers.pair_backward``."""
    _, W, B, H, n = new.shape
    columns = B * H * n
    half_rows, channels = _padded(W, weight.shape[-1])
    _backward[(triton.cdiv(columns, BLOCK),)](
        early, weight, near, g_reduced, extreme, out, new, columns, B, H, n,
        early.stride(0), weight.stride(0), weight.stride(1), weight.stride(2), near.stride(0), out.stride(0),
        new.stride(0), weight.shape[-1],
        W=W, HALF=half_rows, CHANNELS=channels, BLOCK=BLOCK, num_warps=WARPS,
    )  # fmt: skip
    _sum[(W * B, triton.cdiv(n, OBJECTS))](
        new, ends, B, H, n, new.stride(0), W=W, PAIRS=PAIRS, OBJECTS=OBJECTS, num_warps=WARPS
    )  # fmt: skip


def _padded(W: int, channels: int) -> tuple[int, int]:
    """Rows for each half and channels, as matrix units want them; no channels stay none."""
    return max(8, triton.next_power_of_2(W)), max(16, triton.next_power_of_2(channels)) if channels else 0


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
    """What all other layers give to this one: tile [2 * HALF, BLOCK] in float32."""
    row = tl.arange(0, 2 * HALF)
    half, w = row // HALF, row % HALF
    live = (w < W)[:, None]
    x = tl.load(
        early + (half * early_half + w.to(tl.int64) * columns)[:, None] + column[None], live & inside[None], 0.0
    )
    x = x.to(tl.float32)
    if CHANNELS > 0:
        # Both halves in one product: the rows of one meet zeros for the channels of the other.
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
def _forward(
    early, weight, near, ends, new, columns, B, H, n,
    early_half, weight_half, weight_row, near_half, new_half, channels,
    W: tl.constexpr, HALF: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
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
    # Loaded first, needed last: nobody waits for them.
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
    """The larger of two and where it stands; of equals what came first."""
    later = x > best
    return tl.where(later, x, best), tl.where(later, code, at)


@triton.jit
def _largest(best, at):
    """Over the rows; of equals the one with the smallest code."""
    value = tl.max(best, 0)
    return value, tl.min(tl.where(best == value[None], at, 32767), 0)


@triton.jit
def _reduce(
    new, reduced, extreme, B, H, n, new_half, W: tl.constexpr, PAIRS: tl.constexpr, OBJECTS: tl.constexpr
):  # fmt: skip
    base = tl.program_id(0).to(tl.int64)
    # The smallest is the largest with the other sign.
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
def _extremes(g_reduced, extreme, base, obj, code, known, side):
    """Gradient of an object's max and min where they stand at this pair."""
    at = base + obj
    high = tl.load(extreme + at, known, -1).to(tl.int32) == code
    low = tl.load(extreme + side + at, known, -1).to(tl.int32) == code
    g_high = tl.load(g_reduced + at, known & high, 0.0)
    g_low = tl.load(g_reduced + side + at, known & low, 0.0)
    return g_high + g_low


@triton.jit(do_not_specialize=["channels"])
def _backward(
    early, weight, near, g_reduced, extreme, out, new, columns, B, H, n,
    early_half, weight_half, weight_row, weight_column, near_half, out_half, new_half, channels,
    W: tl.constexpr, HALF: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
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
    of_i = _extremes(g_reduced, extreme, base, i[None], k[None], known, side)
    of_j = _extremes(g_reduced, extreme, base, j[None], (k + H)[None], known, side)
    x = _early_and_near(
        early, weight, near, column, inside, columns, early_half, weight_half, weight_row, weight_column, near_half,
        channels, W, HALF, CHANNELS,
    )  # fmt: skip
    forth, back = _halves(x, HALF, BLOCK)
    forth, back = forth + of_i, back + of_j
    # Rounding may take s + d and s - d just out of -1..1, and the slope must not turn negative.
    forth, back = forth * tl.maximum(1 - (s + d) * (s + d), 0.0), back * tl.maximum(1 - (s - d) * (s - d), 0.0)
    tl.store(new + at, ((forth + back) * 0.5).to(new.dtype.element_ty), known)
    tl.store(new + new_half + at, ((forth - back) * 0.5).to(new.dtype.element_ty), known)


@triton.jit
def _sum(new, ends, B, H, n, new_half, W: tl.constexpr, PAIRS: tl.constexpr, OBJECTS: tl.constexpr):
    base = tl.program_id(0).to(tl.int64)
    total = tl.zeros((PAIRS, OBJECTS), tl.float32)
    difference = tl.zeros((PAIRS, OBJECTS), tl.float32)
    for first_k in range(0, H, PAIRS):
        s0, d0, s1, d1, _, _ = _both_ends(new, base, new_half, first_k, H, n, PAIRS, OBJECTS)
        total += s0 + s1
        difference += d0 - d1
    t = tl.program_id(1) * OBJECTS + tl.arange(0, OBJECTS)
    to = ends + base * n + t
    tl.store(to, tl.sum(total, 0).to(ends.dtype.element_ty), t < n)
    tl.store(to + W * B * n, tl.sum(difference, 0).to(ends.dtype.element_ty), t < n)
