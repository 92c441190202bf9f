"""What the CUDA kernels read: weights in their order, rules and relations in their types, the rules of a block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from oneofmany.networks.equivariant.cuda_kernels import Widths
from oneofmany.networks.equivariant.tables import RelationTables, RuleTables

# ---- weights -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """The weights of a block as the kernels read them, in bfloat16.

    Args:
        forward: of the forward pass over choices: gates, values, state, what is sent.
        backward: of the backward pass: what is sent, gates, values, state.
        answering: [kinds, ..], of the rules: of the largest and of the second choice.
        returning: [kinds, ..], the same for the backward pass.
        telling: [kinds, ..], those of ``answering`` in parts of 16 hidden units: their gates, their values.
        numbers: biases of what is sent, gates, values and state, and the readout, in float32.
    """

    forward: Tensor
    backward: Tensor
    answering: Tensor
    returning: Tensor
    telling: Tensor
    numbers: Tensor


@torch.no_grad()
def kernel_weights(
    choice: Tensor, choice_bias: Tensor, rule: Tensor, update: Tensor, update_bias: Tensor, readout: Tensor
) -> KernelWeights:
    """Return the weights of a block and of its readout."""
    kinds, widths = len(rule), (choice.shape[1], rule.shape[1] // 2, rule.shape[2] // 2)
    flat = torch.cat([choice.flatten(), update.flatten(), rule.flatten()]).to(torch.bfloat16)
    places, sizes = _fragments(widths, kinds, choice.device)
    forward, backward, *of_rules = flat[places].split(sizes)
    answering, returning, telling = (part.view(kinds, -1) for part in of_rules)
    numbers = torch.cat([choice_bias, update_bias, readout]).float()
    return KernelWeights(forward, backward, answering, returning, telling, numbers)


@cache
def _fragments(widths: Widths, kinds: int, device: torch.device) -> tuple[Tensor, list[int]]:
    """Where the kernels' numbers are among all weights, int64 [N], and how many each part of ``KernelWeights`` has."""
    D, P, H = widths
    gate, value, state, rule = P * D, (P + H) * D, (P + 2 * H) * D, (P + 3 * H) * D
    forward = [
        *(fragments(D, H, at, 1, D) for at in (gate, value)),
        fragments(H, D, state, 1, H),
        fragments(D, P, 0, 1, D),
    ]
    backward = [
        fragments(P, D, 0, D, 1),
        *(fragments(H, D, at, D, 1) for at in (gate, value)),
        fragments(D, H, state, H, 1),
    ]
    halves = [rule + half * 2 * P * H for half in range(2 * kinds)]
    answering = [fragments(P, 2 * H, at, 2 * H, 1) for at in halves]
    returning = [fragments(2 * H, P, at, 1, 2 * H) for at in halves]
    told = [fragments(P, H, at + of_value, 2 * H, 1) for at in halves for of_value in (0, H)]
    in_parts = np.reshape(told, (kinds, 2, 2, P // 16, H // 16, -1)).transpose(0, 4, 1, 3, 2, 5)
    parts = [*(np.concatenate(part) for part in (forward, backward, answering, returning)), in_parts.ravel()]
    return torch.from_numpy(np.concatenate(parts)).to(device), [len(part) for part in parts]


def fragments(K: int, N: int, first: int, of_k: int, of_n: int) -> np.ndarray:
    """Return where the numbers of a matrix [K, N] are, in the order in which the matrix units read them: int64 [K * N].

    Entry (k, n) is at first + k * of_k + n * of_n. The order is that of ``Weights`` in the kernels: pairs of parts of
    16 x 8, the 32 lanes, for each of both parts two halves of two numbers.
    """
    k16, n16, lane, part, half, j = np.indices((K // 16, N // 16, 32, 2, 2, 2))
    k = _column(K, 2 * k16 + half, lane % 4, j)
    n = _column(N, 2 * n16 + part, lane // 8, lane // 4 % 2)
    return (first + k * of_k + n * of_n).ravel()


def _column(width: int, pair: np.ndarray, t: np.ndarray, j: np.ndarray) -> np.ndarray:
    """The column of a lane's register pair, as in the kernels."""
    own = min(width // 4, 8)
    return pair // (own // 2) * 4 * own + t * own + pair % (own // 2) * 2 + j


# ---- rules and relations -------------------------------------------------------------------------------------------


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


@dataclass(frozen=True, eq=False)
class KernelTables:
    """``RuleTables`` in the kernels' dtypes (int32 and float32), and the number of consecutive rules of each kind.

    ``near`` and ``links`` are for blocks with whole queries: int16 [G, W], the members, -1 for padding; and int32
    [C, D, 2], a choice's rules and their shares, which are float32. ``whole`` is 1 if every choice has the same number
    of rules, at most 4, all with share 1. These are not made for a structure per query.
    """

    members: Tensor
    real: Tensor
    rules: Tensor
    slot: Tensor
    spread: Tensor
    gather: Tensor
    near: Tensor
    links: Tensor
    whole: int
    counts: tuple[tuple[int, int], ...]


_TABLES: WeakKeyDictionary[RuleTables, dict[tuple[str, ...], KernelTables]] = WeakKeyDictionary()


def kernel_tables(tables: RuleTables, kinds: tuple[str, ...]) -> KernelTables:
    """Return the tables of rules, made once; ``kinds`` are those of the network."""
    known = _TABLES.setdefault(tables, {})
    if kinds not in known:
        known[kinds] = KernelTables(
            tables.members.int().contiguous(),
            tables.real.int().contiguous(),
            tables.rules.int().contiguous(),
            tables.slot.int().contiguous(),
            tables.spread.weight.float().contiguous(),
            tables.spread.back_weight.float().contiguous(),
            *_of_whole_queries(tables),
            tuple((kinds.index(name), count) for name, count in tables.kinds if count),
        )
    return known[kinds]


def _of_whole_queries(tables: RuleTables) -> tuple[Tensor, Tensor, int]:
    """``near``, ``links`` and ``whole`` of ``KernelTables``."""
    shares = tables.spread.weight.float()
    if not tables.shared:
        return shares, shares, 0
    near = tables.members.where(tables.real, -1).short()
    links = torch.stack([tables.rules.int(), shares.view(torch.int32)], -1)
    return near.contiguous(), links.contiguous(), int(shares.shape[1] <= 4 and bool((shares == 1).all()))


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


def kernel_relations(tables: RelationTables, block: Any, choices: int) -> KernelRelations:
    """Return the tables of a batch's relations, for a network's block and C choices."""
    at = tables.ends.bool()  # [B, 2M, R]
    present = at.any(2)
    ends = torch.where(present, at.int().argmax(2), -1).int()
    place = (at.cumsum(1) - 1).clamp_min(0)  # number of earlier ends at the same variable
    listed = torch.full((at.shape[2], at.shape[1] + 1, len(at)), -1, dtype=torch.int32, device=ends.device)
    number = torch.arange(at.shape[1], dtype=torch.int32, device=ends.device)[None, :, None].expand(at.shape)
    # Ends at other variables go to an extra last place, which is cut off.
    place = torch.where(at, place, at.shape[1])
    listed.scatter_(1, place.permute(2, 1, 0), number.permute(2, 1, 0))
    most = at.sum(1).amax().int().reshape(1)
    return KernelRelations(
        ends.contiguous(),
        listed[:, :-1].contiguous(),
        most,
        block.kinds.index(block.relation_kind),
        choices // tables.variables,
    )
