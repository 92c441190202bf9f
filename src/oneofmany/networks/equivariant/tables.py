"""The rules of a problem and the relations of a batch as index tables on a device."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from oneofmany.networks.equivariant.rules import rule_arrays
from oneofmany.problems import Problem


@dataclass(frozen=True, eq=False)
class Incidence:
    """A weighted sum of rows, ``out[m] = sum_j weight[m, j] * x[index[m, j]]``, and its transpose.

    Args:
        index: int64 [M, J], rows of x.
        weight: float32 [M, J], 0 for padding.
        back_index: int64 [N, I], the same pairs from the side of the N rows of x.
        back_weight: float32 [N, I].
    """

    index: Tensor
    weight: Tensor
    back_index: Tensor
    back_weight: Tensor


@dataclass(frozen=True, eq=False)
class SumTables:
    """Rules with weights and bounds. A group is a variable of a rule; there are N groups, L rules and R variables.

    All numbers of a rule are divided by its largest weight.

    Args:
        of_groups: from variables to groups: every group takes its variable.
        of_rules: from groups to rules: the sum over the rule's groups.
        to_groups: from rules to groups: every group takes its rule.
        spread: for every kind, from groups to variables: the mean over the variable's groups of that kind.
        kinds: the kinds, in the order of ``spread``.
        weights: float [N, 1, V], the weight of every value, 0 for a value that is not in the rule.
        low: float [N, 1, 1], the least sum of the group's rule.
        high: float [N, 1, 1], the greatest sum.
    """

    of_groups: Incidence
    of_rules: Incidence
    to_groups: Incidence
    spread: tuple[Incidence, ...]
    kinds: tuple[str, ...]
    weights: Tensor
    low: Tensor
    high: Tensor


@dataclass(frozen=True, eq=False)
class RuleTables:
    """Index tables of exactly-one and at-most-one rules on one device. Rules are sorted by kind.

    They are those of one problem, for all queries of a batch, or those of all queries of a batch, one after the other
    (``blocks``): then choice c of query b is row b * C + c, and the batch has one column.

    Args:
        members: int64 [G, W], each rule's choices, padded with its first choice.
        real: bool [G, W], False for padding.
        rules: int64 [C, D], each choice's rules, padded with 0.
        slot: int8 or int16 [C, D], the choice's column in ``members`` of that rule, -1 for padding.
        spread: from rules to choices: for each kind the mean over the choice's rules of that kind; for the kind of
            relations a < b the sum divided by V; of neighbourhoods (``rules.neighbourhoods``) the choice's own.
        kinds: (kind, number of rules) in the order of the rules.
        spans: (number of rules, columns of ``members`` that they use) of consecutive rules.
        sums: the rules with weights and bounds; None if there are none.
        shared: whether all queries share the rules.
        blocks: number of queries whose rules these are; 1 if all share them.
    """

    members: Tensor
    real: Tensor
    rules: Tensor
    slot: Tensor
    spread: Incidence
    kinds: tuple[tuple[str, int], ...]
    spans: tuple[tuple[int, int], ...]
    sums: SumTables | None = None
    shared: bool = True
    blocks: int = 1


def spans(counts: Sequence[int], widths: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Join consecutive kinds of equal width: their numbers of rules and widths -> (number of rules, width)."""
    joined: list[tuple[int, int]] = []
    for count, width in zip(counts, widths, strict=True):
        before = joined.pop() if joined and joined[-1][1] == width else (0, width)
        joined += [(before[0] + count, width)] if before[0] + count else []
    return tuple(joined)


_TABLES: WeakKeyDictionary[Problem, dict[torch.device, RuleTables]] = WeakKeyDictionary()


def rule_tables(problem: Problem, device: torch.device) -> RuleTables:
    """Return the tables of a problem on a device, without rules with weights and bounds; they are built once."""
    return _tables_of(id(problem), device)


def _tables_of(address: int, device: torch.device) -> RuleTables:
    # By address: torch 2.11's compiler cannot pass a dataclass to a constant function. It does guard on id(problem),
    # and the caller keeps the problem alive.
    problem = ctypes.cast(address, ctypes.py_object).value
    known = _TABLES.setdefault(problem, {})
    if device not in known:
        known[device] = _build(problem, device)
    return known[device]


# The same as torch.compiler.assume_constant_result, without importing the compiler, which takes seconds.
vars(_tables_of)["_dynamo_marked_constant"] = True


def _build(problem: Problem, device: torch.device) -> RuleTables:
    arrays = rule_arrays(problem)
    slots = np.int8 if arrays.members.shape[1] <= 127 else np.int16
    members, real, rules, spread, back, slot = (
        torch.from_numpy(array).to(device)
        for array in (
            *(arrays.members, arrays.real, arrays.rules, arrays.spread, arrays.back),
            arrays.slot.astype(slots),
        )
    )
    counts = [count for _, count in arrays.kinds]
    widths = [int(part.sum(1).max()) for part in np.split(arrays.real, np.cumsum(counts)[:-1])]
    incidence = Incidence(rules, spread, members, back)
    return RuleTables(members, real, rules, slot, incidence, arrays.kinds, spans(counts, widths))


@dataclass(frozen=True, eq=False)
class RelationTables:
    """A batch's relations a < b as an incidence matrix; the rows of padding are zeros.

    Args:
        ends: float [B, 2 * M, R], 1 if the variable is a (first M rows) or b (other rows).
        variables: R.
    """

    ends: Tensor
    variables: int


def relation_tables(relations: Tensor, problem: Problem) -> RelationTables:
    """Return the tables of relations int64 [B, M, 2], -1 for padding."""
    is_variable = relations.mT.flatten(1)[..., None] == torch.arange(problem.variables, device=relations.device)
    return RelationTables(is_variable.float(), problem.variables)


def neighbourhoods(relations: Tensor, variables: int, values: int, most: int) -> Tensor:
    """Return the rules of relations a != b, as ``rules.neighbourhoods`` does; nothing waits for the device.

    Args:
        relations: int64 [B, M, 2], -1 for padding.
        variables: R, their number.
        values: V, their number.
        most: at least the number of relations at any variable.

    Returns:
        int64 [B, R * V, 1 + most], -1 for padding and for choices of variables without relations.
    """
    R, device = variables, relations.device
    padding = R * R
    both = torch.cat([relations, relations.flip(2)], 1)
    keys = torch.where(both[..., 0] >= 0, both[..., 0] * R + both[..., 1], padding).sort(1).values
    node, neighbour = keys // R, keys % R
    fresh = (keys != keys.roll(1, 1)) & (keys < padding)
    fresh[:, :1] = keys[:, :1] < padding
    degree = torch.zeros(len(keys), R + 1, dtype=torch.int64, device=device).scatter_add_(1, node, fresh.long())
    column = fresh.cumsum(1) - 1 - (degree.cumsum(1) - degree).gather(1, node)
    table = torch.full((len(keys), R * most + 1), -1, device=device)  # the last place is for what is left out
    table.scatter_(1, torch.where(fresh, node * most + column, R * most), neighbour)
    near = table[:, :-1].view(len(keys), R, most)
    own = torch.where(degree[:, :R] > 0, torch.arange(R, device=device), -1)
    members = torch.cat([own[..., None], near], 2)[:, :, None]
    value = torch.arange(values, device=device)[:, None]
    return torch.where(members < 0, -1, members * values + value).flatten(1, 2)
