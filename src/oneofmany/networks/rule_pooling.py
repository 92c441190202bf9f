"""Pooling over rules: from a rule's choices to the rule, and back to every choice.

States lie choice by choice, [C, B, channels], so that a rule is a few long contiguous rows. What is pooled, and where
it is sent back to, depends on index tables alone; no parameter lives here.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor

from oneofmany.problems import Problem

# ---- the static rules of a problem ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Incidence:
    """A weighted sum of rows, ``out[m] = sum_j weight[m, j] * x[index[m, j]]``, and its transpose.

    Args:
        index: int64 [M, J], rows of x.
        weight: float32 [M, J], 0 for padding.
        back_index: int64 [N, I], the same pairs seen from the N rows of x.
        back_weight: float32 [N, I].
    """

    index: Tensor
    weight: Tensor
    back_index: Tensor
    back_weight: Tensor


@dataclass(frozen=True, eq=False)
class RuleTables:
    """Who belongs to whom in one problem's static rules, on one device. Rules are sorted by kind.

    Args:
        members: int64 [G, W], every rule's choices, padded with its first choice.
        rules: int64 [C, D], every choice's rules, padded with 0.
        slot: int8 or int16 [C, D], where the choice stands in ``members`` of that rule, -1 for padding.
        mean: rules from choices, the mean over a rule's choices.
        spread: choices from rules: for every kind the mean over the choice's rules of that kind, but for the kind of
            the relations the sum divided by V.
        kinds: (kind, how many rules) in the order of the rules.
    """

    members: Tensor
    rules: Tensor
    slot: Tensor
    mean: Incidence
    spread: Incidence
    kinds: tuple[tuple[str, int], ...]


_TABLES: WeakKeyDictionary[Problem, dict[torch.device, RuleTables]] = WeakKeyDictionary()


def rule_tables(problem: Problem, device: torch.device) -> RuleTables:
    """The tables of a problem on a device, built once."""
    return _tables_of(id(problem), device)


def _tables_of(address: int, device: torch.device) -> RuleTables:
    # By address because torch 2.11's compiler hands over no dataclass here; it does guard on id(problem), which the
    # caller holds alive.
    problem = ctypes.cast(address, ctypes.py_object).value
    known = _TABLES.setdefault(problem, {})
    if device not in known:
        known[device] = _build(problem, device)
    return known[device]


# What torch.compiler.assume_constant_result does, without importing the whole compiler, which takes seconds.
_tables_of._dynamo_marked_constant = True  # pyright: ignore[reportFunctionMemberAccess]


def _build(problem: Problem, device: torch.device) -> RuleTables:
    order = problem.kind.argsort(kind="stable")
    members = torch.from_numpy(problem.members[order])
    kind = torch.from_numpy(problem.kind[order])
    exact = torch.from_numpy(problem.exact[order])
    for k, name in enumerate(problem.kinds):
        # The weights of a kind are all that tells its rules' meaning apart.
        meanings = {*exact[kind == k].tolist(), *([False] if name == problem.relation_kind else [])}
        if len(meanings) > 1:
            raise ValueError(
                f"rules of kind {name!r}: expected all of them exactly-one or all at-most-one, got both; "
                "give them two kinds"
            )

    # One entry for every rule and choice in it, by choice and then by rule.
    real = members >= 0
    rule, slot = real.nonzero(as_tuple=True)
    choice = members[real]
    by_choice = choice.argsort(stable=True)
    rule, slot, choice = rule[by_choice], slot[by_choice], choice[by_choice]
    degree = choice.bincount(minlength=problem.choices)
    column = torch.arange(len(choice)) - (degree.cumsum(0) - degree)[choice]

    def by_choices(values: Tensor, padding: int = 0) -> Tensor:
        table = torch.full((problem.choices, int(degree.max())), padding, dtype=values.dtype)
        return table.index_put_((choice, column), values).to(device)

    def by_rules(values: Tensor) -> Tensor:
        return torch.zeros(members.shape, dtype=values.dtype).index_put_((rule, slot), values).to(device)

    pair = choice * len(problem.kinds) + kind[rule]
    siblings = pair.bincount()[pair]
    if problem.relation_kind is not None:
        siblings[kind[rule] == problem.kinds.index(problem.relation_kind)] = problem.values
    in_mean, in_spread = 1 / real.sum(1)[rule], 1 / siblings
    index, rules = torch.where(real, members, members[:, :1]).to(device), by_choices(rule)
    counts = kind.bincount(minlength=len(problem.kinds)).tolist()
    return RuleTables(
        members=index,
        rules=rules,
        slot=by_choices(slot.to(torch.int8 if members.shape[1] <= 127 else torch.int16), -1),
        mean=Incidence(index, by_rules(in_mean), rules, by_choices(in_mean)),
        spread=Incidence(rules, by_choices(in_spread), index, by_rules(in_spread)),
        kinds=tuple((name, count) for name, count in zip(problem.kinds, counts, strict=True) if count),
    )


# ---- pooling over static rules -------------------------------------------------------------------------------------


def unrolled(x: Tensor) -> bool:
    """Whether to go slot by slot, which a compiler fuses into one kernel, rather than through CPU kernels."""
    return x.is_cuda or torch.compiler.is_compiling()


def _sum_rows(x: Tensor, index: Tensor, weight: Tensor) -> Tensor:
    weight = weight.to(x.dtype)
    if not unrolled(x):
        return F.embedding_bag(index, x.flatten(1), mode="sum", per_sample_weights=weight).unflatten(1, x.shape[1:])
    total = x[index[:, 0]] * weight[:, 0, None, None]
    for j in range(1, index.shape[1]):
        total = total + x[index[:, j]] * weight[:, j, None, None]
    return total


class _SumRows(torch.autograd.Function):
    """Gathers in both directions: a scatter would add in any order on a GPU, and slowly."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, weight: Tensor, back_index: Tensor, back_weight: Tensor) -> Tensor:
        ctx.save_for_backward(back_index, back_weight)
        return _sum_rows(x, index, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _sum_rows(grad.contiguous(), *ctx.saved_tensors), None, None, None, None


class _MaxRows(torch.autograd.Function):
    """The first of equally large choices gets the gradient; only its slot is kept for the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, members: Tensor, rules: Tensor, slot: Tensor) -> Tensor:
        best = x[members[:, 0]]
        winner = torch.zeros_like(best, dtype=slot.dtype)
        for w in range(1, members.shape[1]):
            other = x[members[:, w]]
            winner = torch.where(other > best, w, winner)
            best = torch.maximum(best, other)
        ctx.save_for_backward(winner, rules, slot)
        return best

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        winner, rules, slot = ctx.saved_tensors
        total = grad.new_zeros(())
        for j in range(rules.shape[1]):
            rule = rules[:, j]
            total = total + torch.where(winner[rule] == slot[:, j, None, None], grad[rule], 0)
        return total, None, None, None


def sum_rows(x: Tensor, incidence: Incidence) -> Tensor:
    """[N, B, channels] -> [M, B, channels], weighted sums of rows."""
    i = incidence
    return _SumRows.apply(x, i.index, i.weight, i.back_index, i.back_weight)


def max_over_rules(x: Tensor, tables: RuleTables) -> Tensor:
    """[C, B, channels] -> [G, B, channels], the largest over every rule's choices."""
    if unrolled(x):
        return _MaxRows.apply(x, tables.members, tables.rules, tables.slot)
    # Rules as the windows of a channels-last picture: the CPU kernel that finds winners with vector instructions.
    G, W = tables.members.shape
    picture = x.flatten(1).index_select(0, tables.members.flatten()).view(1, G, W, -1).permute(0, 3, 1, 2)
    return F.max_pool2d(picture, (1, W)).permute(0, 2, 3, 1).reshape(G, *x.shape[1:])


# ---- pooling over the rules of a query's relations -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RelationTables:
    """A batch's relations a < b as incidence of variables; a padding relation has rows of zeros.

    Args:
        smaller: float [B, M, R], 1 where the variable is a.
        larger: float [B, M, R], 1 where the variable is b.
    """

    smaller: Tensor
    larger: Tensor


def relation_tables(relations: Tensor, problem: Problem) -> RelationTables:
    """The tables of relations int64 [B, M, 2], -1 for padding."""
    is_variable = relations[..., None] == torch.arange(problem.variables, device=relations.device)
    smaller, larger = is_variable.float().unbind(2)
    return RelationTables(smaller, larger)


def _running(x: Tensor, combine: Any, backwards: bool) -> Tensor:
    """Combine [B, R, V, channels] cumulatively along V, from the last value if backwards."""
    parts = list(x.unbind(2))[:: -1 if backwards else 1]
    for i in range(1, len(parts)):
        parts[i] = combine(parts[i], parts[i - 1])
    return torch.stack(parts[:: -1 if backwards else 1], 2)


def pool_relations(x: Tensor, tables: RelationTables, values: int) -> Tensor:
    """[C, B, channels] -> [B, M, V, 2 * channels], maximum and mean over {a >= d} + {b <= d} for every value d.

    The same numbers as from ``Problem.relation_members``, by running maxima and sums over the values of a variable: no
    gather over [B, M, V, V + 1], no scatter on the way back.
    """
    by_variable = x.unflatten(0, (-1, values)).permute(2, 0, 1, 3)

    def at(incidence: Tensor, running: Tensor) -> Tensor:
        return torch.bmm(incidence.to(running.dtype), running.flatten(2)).unflatten(2, running.shape[2:])

    def both(combine: Any) -> tuple[Tensor, Tensor]:
        from_a = at(tables.smaller, _running(by_variable, combine, backwards=True))
        return from_a, at(tables.larger, _running(by_variable, combine, backwards=False))

    mean = torch.add(*both(torch.add)) / (values + 1)
    return torch.cat([torch.maximum(*both(torch.maximum)), mean], -1)


def spread_relations(messages: Tensor, tables: RelationTables) -> Tensor:
    """[B, M, V, channels] -> [C, B, channels], the sum over a choice's relation rules divided by V.

    Choice (a, v) is in the rules d <= v of a < b, choice (b, v) in the rules d >= v.
    """
    values = messages.shape[2]

    def back(incidence: Tensor, backwards: bool) -> Tensor:
        running = _running(messages, torch.add, backwards)
        return torch.bmm(incidence.to(running.dtype).mT, running.flatten(2)).unflatten(2, running.shape[2:])

    total = back(tables.smaller, backwards=False) + back(tables.larger, backwards=True)
    return total.permute(1, 2, 0, 3).flatten(0, 1) / values
