"""Message dropout as a function of a seed: a counter-based hash instead of stored masks.

The masks of all steps of one batch would be [32, B, 1944, 96]. Here each element is a hash of
(seed, step, row of the batch, cell, edge, channel), so that

* the backward pass recomputes the masks instead of storing them,
* the fused kernels and plain PyTorch use the same bits,
* a slice of the batch with its ``row_offset`` has the same masks as in the whole batch (data-parallel training).

Two neighbouring channels share one 32-bit word: the even one uses the low half, the odd one the high half. A message
component is dropped if its half, as an unsigned number, is below ``threshold``. So p is rounded to a multiple of
2**-16; kept messages are scaled by the inverse of the rounded keep rate.
"""

from __future__ import annotations

import torch
from torch import Tensor

MULTIPLY_1 = 0x7FEB352D  # the constants of the hash "lowbias32" (Chris Wellons' hash prospector)
MULTIPLY_2 = 0x846CA68B - 2**32
GOLDEN = 0x9E3779B9 - 2**32
ROWS_AT_A_TIME = 4  # so that the integers fit the CPU's cache


def threshold_of(p: float) -> int:
    """Return how many of the 65,536 values of half a word drop a message."""
    return round(p * 65536)


def scale_of(p: float) -> float:
    """Return the factor of kept messages: one over the keep rate."""
    return 65536 / (65536 - threshold_of(p))


def step_keys(seed: Tensor, steps: int) -> Tensor:
    """Return int32 [T, 2], the keys of each step, from ``seed`` int64 [1] (splitmix64)."""
    z = seed + torch.arange(1, steps + 1, device=seed.device) * (0x9E3779B97F4A7C15 - 2**64)
    z = (z ^ ((z >> 30) & (2**34 - 1))) * (0xBF58476D1CE4E5B9 - 2**64)
    z = (z ^ ((z >> 27) & (2**37 - 1))) * (0x94D049BB133111EB - 2**64)
    z = z ^ ((z >> 31) & (2**33 - 1))
    return torch.stack((z, z >> 32), 1).to(torch.int32)


def mix(x: Tensor) -> Tensor:
    """Apply a bijection of int32 in which every bit of the result depends on every bit of ``x``."""
    x = (x ^ ((x >> 16) & 0xFFFF)) * MULTIPLY_1
    x = (x ^ ((x >> 15) & 0x1FFFF)) * MULTIPLY_2
    return x ^ ((x >> 16) & 0xFFFF)


def kept(key: Tensor, threshold: int, rows: Tensor, cells: int, edges: int, channels: int) -> Tensor:
    """Return which messages are kept at one step: bool [len(rows), cells, edges, channels].

    Args:
        key: int32 [2], the keys of the step.
        threshold: see ``threshold_of``.
        rows: int32 [B], the index of each row in the whole batch.
        cells: R.
        edges: number of edges into a cell; double edges count twice.
        channels: an even number.
    """
    counter = torch.arange(cells * edges, dtype=torch.int32, device=key.device).view(cells, edges)
    counter = counter + rows[:, None, None] * (cells * edges)
    edge = mix(mix(counter + key[0]) ^ key[1])
    word = torch.arange(channels // 2, dtype=torch.int32, device=key.device) * GOLDEN
    halves = mix(edge[..., None] + word).view(torch.int16)
    # The halves are read as signed numbers, which start at -32768.
    return halves >= threshold - 32768


def kept_counts(key: Tensor, threshold: int, row_offset: int, shape: tuple[int, int, int, int], doubles: int) -> Tensor:
    """Return how many copies of each distinct edge's message are kept: uint8 [B, R, D, H].

    Slots below ``doubles`` stand for two edges with separate draws (edges 2d and 2d + 1), the others for one.
    """
    B, R, D, H = shape
    counts = []
    rows = torch.arange(B, dtype=torch.int32, device=key.device) + row_offset
    for some in (rows,) if torch.compiler.is_compiling() else rows.split(ROWS_AT_A_TIME):
        k = kept(key, threshold, some, R, D + doubles, H).view(torch.uint8)
        twice = k[:, :, : 2 * doubles]
        counts.append(torch.cat((twice[:, :, ::2] + twice[:, :, 1::2], k[:, :, 2 * doubles :]), 2))
    return torch.cat(counts)
