"""The compiled CUDA kernels of the equivariant network, and how many blocks and how much memory they take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import torch
from torch import Tensor

from oneofmany.networks.nvrtc import Module, compile_kernels

Widths = tuple[int, int, int]
"""D, P and H: channels of a choice's state, pooled channels, hidden units."""
SOURCES = ("kernels.cu", "resident.cu", "weights.cu")
WARPS = {"choices_backward": 4, "relations_forward": 4, "relations_backward": 4}
WARPS |= {"resident_forward": 12, "resident_backward": 16}
"""Warps of a block; 8 for the other kernels."""
BLOCKS = {"choices_backward": 3, "relations_forward": 3, "resident_forward": 1, "resident_backward": 1}
BLOCKS |= {"weight_sums": 1}
"""Blocks of a kernel on a multiprocessor, each of which goes through many tiles; 2 of the other kernels."""


# ---- what they read -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """The weights of a block as the kernels read them, in bfloat16.

    Args:
        forward: of the forward pass over choices: gates, values, state, what is sent.
        backward: of the backward pass: what is sent, gates, values, state.
        answering: [kinds, ..], of the rules: of the largest and of the second choice. For blocks with whole queries in
            parts of 16 hidden units: their gates and their values.
        returning: [kinds, ..], the same for the backward pass. For blocks with whole queries in parts of 16 pooled
            channels: the largest and the second.
        sums: of what is sent, gates and values, and of the state, for the sums over all steps.
        numbers: biases of what is sent, gates, values and state, and the readout, in float32.
    """

    forward: Tensor
    backward: Tensor
    answering: Tensor
    returning: Tensor
    sums: Tensor
    numbers: Tensor


@dataclass(frozen=True, eq=False)
class WholeQueries:
    """The rules as blocks with whole queries read them.

    Args:
        near: int16 [G, ..], the members of every rule, padded with C to whole fours; as ``listed`` makes them.
        longest: the largest number of members.
        links: int32 [C, 4], the rules that a choice hears, as ``spots`` makes them.
        shares: bfloat16 [4], the share of every link; 0 for padding.
        slots: int32 [C, 4], a choice's rules, likewise; in the highest byte twice its slot there, 14 for padding.
        givers: int16 [G, ..], the choices that hear a rule, padded in the same way.
        most: the largest number of them.
        scales: float32 [G], their share.
        homes: int32 [G, 2], the first rule of a rule's kind, and their number.
    """

    near: Tensor
    longest: int
    links: Tensor
    shares: Tensor
    slots: Tensor
    givers: Tensor
    most: int
    scales: Tensor
    homes: Tensor


@dataclass(frozen=True, eq=False)
class KernelTables:
    """``RuleTables`` in the kernels' dtypes (int32 and float32), and the number of consecutive rules of each kind.

    ``whole`` is for blocks with whole queries, or None.
    """

    members: Tensor
    real: Tensor
    rules: Tensor
    slot: Tensor
    spread: Tensor
    gather: Tensor
    whole: WholeQueries | None
    counts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class KernelRelations:
    """A batch's relations a < b for the kernels. End i is variable a of relation i, or b of relation i - M.

    Args:
        ends: int32 [B, 2 * M], the variable of each end, -1 for padding.
        of_variable: int32 [R, 2 * M, B], the ends at each variable, padded with -1.
        most: int32 [1], the largest number of ends at one variable.
        kind: index of the relations' kind of rules.
        values: V.
    """

    ends: Tensor
    of_variable: Tensor
    most: Tensor
    kind: int
    values: int


@cache
def parts_of(counts: tuple[tuple[int, int], ...], blocks: int, device: torch.device) -> Tensor:
    """Which rules a block handles, int32 [N, 5]: first rule, rules, kind, number of the block, blocks of this kind.

    Args:
        counts: (kind, number of rules) in the order of the rules.
        blocks: about how many there should be.
        device: of the table.
    """
    rows, first, total = [], 0, sum(count for _, count in counts)
    for kind, count in counts:
        share = -(-blocks * count // total)
        rows += [(first, count, kind, number, share) for number in range(share)]
        first += count
    return torch.tensor(rows, dtype=torch.int32, device=device)


# ---- the kernels --------------------------------------------------------------------------------------------------


class Kernels:
    """The kernels for one GPU and these widths.

    Args:
        widths: D, P and H.
        device: the GPU.

    Attributes:
        multiprocessors: their number.
        limit: shared memory that a block can have, in bytes.
        span: rows that a block of ``weight_sums`` takes through all steps.
    """

    def __init__(self, widths: Widths, device: torch.device) -> None:
        D, P, H = widths
        of_device = torch.cuda.get_device_properties(device)
        self.multiprocessors, self.limit = of_device.multi_processor_count, of_device.shared_memory_per_block_optin
        self.span = 64 if stage_memory(widths, 64) <= self.limit else 32
        folder = files("oneofmany.networks.equivariant.cuda")
        source = "".join(folder.joinpath(name).read_text() for name in SOURCES)
        warps = {f"{name.upper()}_WARPS": WARPS[f"resident_{name}"] for name in ("forward", "backward")}
        self.module = Module(
            compile_kernels(source, {"D": D, "P": P, "H": H, "SPAN": self.span, **warps}, device), device
        )
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


def stage_memory(widths: Widths, span: int) -> int:
    """Return the bytes of a block of ``weight_sums``: of its stages and of what is made of them."""
    D, P, H = widths
    of_threads = -(-span * H // (16 * 16 * 8)) * 8 * 1024
    return (span // 32 + 2) * (span * (2 * P + 4 * D + 4) + of_threads) + 2 * span * 6 * H


# ---- whole queries in a block --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Resident:
    """How blocks take whole queries through all steps.

    Args:
        queries: of a block.
        half: bytes of what choices send, and of what rules answer.
        of_choices: bytes of what choices hand back.
        of_rules: bytes of what rules hand back.
        forward: shared memory of a block in the forward pass.
        backward: the same of the backward pass.
    """

    queries: int
    half: int
    of_choices: int
    of_rules: int
    forward: int
    backward: int


def resident_memory(widths: Widths, C: int, G: int, queries: int) -> Resident:
    """Return what a block with so many queries of C choices and G rules needs."""
    _, P, H = widths
    of_rules = _whole(queries * G * 4 * max(P, H))
    # A query's last row is for the padding of lists.
    half, of_choices = (max(of_rules, _whole(queries * (C + 1) * 2 * width)) for width in (P, H))
    weights = _whole(choice_memory(widths))
    winners = _whole(queries * G * P)
    return Resident(queries, half, of_choices, of_rules, weights + 2 * half, weights + of_choices + of_rules + winners)


def _whole(size: int) -> int:
    """Round up to whole lines of the shared memory."""
    return -(-size // 128) * 128


def resident_queries(
    widths: Widths, C: int, G: int, longest: int, B: int, multiprocessors: int, limit: int, keep: bool
) -> Resident | None:
    """Return how blocks take whole queries through all steps; None if every step has its own kernels.

    A block uses one multiprocessor, so a few queries are faster by kernels that share out the rows of a query. The
    number of a block's queries is the one for which the GPU is done first.

    Args:
        widths: D, P and H.
        C: choices of a query.
        G: rules of a query.
        longest: choices of the longest rule; a slot has 4 bits if it is kept.
        B: queries.
        multiprocessors: of the GPU.
        limit: shared memory that a block can have, in bytes.
        keep: whether there is a backward pass.
    """
    sizes = [resident_memory(widths, C, G, n) for n in range(1, min(B, 64) + 1)]
    fitting = [size for size in sizes if max(size.forward, size.backward if keep else 0) <= limit]
    if not fitting or multiprocessors > 4 * B or (keep and longest > 14):
        return None
    rounds = {size: -(-B // (size.queries * multiprocessors)) for size in fitting}
    return min(fitting, key=lambda size: (rounds[size] * size.queries, rounds[size]))
