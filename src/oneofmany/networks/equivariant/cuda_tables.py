"""The tables of the CUDA kernels: rules and relations in the kernels' types, and which rules a block handles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from oneofmany.networks.equivariant.tables import RelationTables, RuleTables


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
    """``RuleTables`` in the kernels' dtypes (int32 and float32), and the number of consecutive rules of each kind."""

    members: Tensor
    real: Tensor
    rules: Tensor
    slot: Tensor
    spread: Tensor
    gather: Tensor
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
            tuple((kinds.index(name), count) for name, count in tables.kinds if count),
        )
    return known[kinds]


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
