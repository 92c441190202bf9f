"""The compiled CUDA kernels of the equivariant network, and how many blocks and how much memory they take."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import torch
from torch import Tensor

from oneofmany.networks.nvrtc import Module, compile_kernels

Widths = tuple[int, int, int]
"""D, P and H: channels of a choice's state, pooled channels, hidden units."""
SOURCES = ("kernels.cu", "resident.cu")
WARPS = {"choices_backward": 4, "totals": 4, "relations_forward": 4, "relations_backward": 4, "resident_forward": 16}
"""Warps of a block; 8 for the other kernels."""
BLOCKS = {"choices_backward": 3, "relations_forward": 3, "resident_forward": 1}
"""Blocks of a kernel on a multiprocessor, each of which goes through many tiles; 2 of the other kernels."""


class Kernels:
    """The kernels for one GPU and these widths.

    Args:
        widths: D, P and H.
        device: the GPU.

    Attributes:
        multiprocessors: their number.
        limit: shared memory that a block can have, in bytes.
    """

    def __init__(self, widths: Widths, device: torch.device) -> None:
        D, P, H = widths
        folder = files("oneofmany.networks.equivariant")
        source = "".join(folder.joinpath(name).read_text() for name in SOURCES)
        self.module = Module(compile_kernels(source, {"D": D, "P": P, "H": H}, device), device)
        self.multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count
        self.limit = self.module.limit
        self._memory = max(choice_memory(widths), 8 * P * H)  # the latter by kernels over rules

    def launch(self, name: str, blocks: int, *arguments: Tensor | int, memory: int | None = None) -> None:
        """Run a kernel on the current stream; ``memory`` in bytes, if it is not that of a step's kernels."""
        self.module.launch(name, blocks, 32 * self.warps(name), memory or self._memory, arguments)

    def warps(self, name: str) -> int:
        """Return the warps of a block."""
        return WARPS.get(name, 8)

    def blocks(self, name: str, tiles: int) -> int:
        """Return the number of blocks for a number of tiles."""
        return max(1, min(-(-tiles // self.warps(name)), BLOCKS.get(name, 2) * self.multiprocessors))


@cache
def kernels(widths: Widths, device: torch.device) -> Kernels:
    """Return the kernels, which are compiled once."""
    return Kernels(widths, device)


def choice_memory(widths: Widths) -> int:
    """Return the bytes of weights and biases in a kernel over choices."""
    D, P, H = widths
    return 2 * (3 * D * H + D * P) + 4 * (2 * D + 2 * H + P)


def half_memory(widths: Widths, C: int, G: int, queries: int) -> int:
    """Return the bytes of what all choices send, or of what all rules answer, in a block with so many queries."""
    _, P, H = widths
    return -(-queries * max(2 * P * C, 4 * P * G, 4 * H * G) // 128) * 128


def resident_memory(widths: Widths, C: int, G: int, queries: int) -> int:
    """Return the bytes of shared memory of a block that takes so many queries through all steps."""
    return -(-choice_memory(widths) // 128) * 128 + 2 * half_memory(widths, C, G, queries)


def resident_queries(widths: Widths, C: int, G: int, B: int, multiprocessors: int, limit: int) -> int:
    """Return how many queries a block takes through all steps; 0 if one is too large, or the batch too small for it.

    It is the number for which the GPU is done first. A block uses one multiprocessor, so a few queries are faster by
    kernels that share out the rows of a query.
    """
    fitting = [n for n in range(1, min(B, 64) + 1) if resident_memory(widths, C, G, n) <= limit]
    if not fitting or multiprocessors > 4 * B:
        return 0
    rounds = {n: -(-B // (n * multiprocessors)) for n in fitting}
    return min(fitting, key=lambda n: (rounds[n] * n, rounds[n]))
