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
        real: bool [G, W], False for padding.
        rules: int64 [C, D], every choice's rules, padded with 0.
        slot: int8 or int16 [C, D], where the choice stands in ``members`` of that rule, -1 for padding.
        spread: choices from rules: for every kind the mean over the choice's rules of that kind, but for the kind of
            the relations the sum divided by V.
        kinds: (kind, how many rules) in the order of the rules.
    """

    members: Tensor
    real: Tensor
    rules: Tensor
    slot: Tensor
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
    in_spread = 1 / siblings
    index, rules = torch.where(real, members, members[:, :1]).to(device), by_choices(rule)
    counts = kind.bincount(minlength=len(problem.kinds)).tolist()
    return RuleTables(
        members=index,
        real=real.to(device),
        rules=rules,
        slot=by_choices(slot.to(torch.int8 if members.shape[1] <= 127 else torch.int16), -1),
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


class _TopRows(torch.autograd.Function):
    """The first of equally large choices comes first; only the slots of both are kept for the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, members: Tensor, real: Tensor, rules: Tensor, slot: Tensor) -> Tensor:
        best = x[members[:, 0]]
        second = torch.full_like(best, -torch.inf)
        winner = torch.zeros_like(best, dtype=slot.dtype)
        runner_up = torch.full_like(winner, -2)  # no choice's slot
        for w in range(1, members.shape[1]):
            other = torch.where(real[:, w, None, None], x[members[:, w]], -torch.inf)
            wins, comes_second = other > best, other > second
            runner_up = torch.where(wins, winner, torch.where(comes_second, w, runner_up))
            winner = torch.where(wins, w, winner)
            second = torch.maximum(second, torch.minimum(best, other))
            best = torch.maximum(best, other)
        ctx.save_for_backward(winner, runner_up, rules, slot)
        return torch.cat([best, torch.where(second == -torch.inf, 0, second)], -1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        winner, runner_up, rules, slot = ctx.saved_tensors
        best, second = grad.chunk(2, -1)
        total = grad.new_zeros(())
        for j in range(rules.shape[1]):
            rule, own = rules[:, j], slot[:, j, None, None]
            total = total + torch.where(winner[rule] == own, best[rule], 0)
            total = total + torch.where(runner_up[rule] == own, second[rule], 0)
        return total, None, None, None, None


class _TopWindows(torch.autograd.Function):
    """Rules as the windows of a channels-last picture: the CPU kernel that finds winners with vector instructions."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, members: Tensor, real: Tensor) -> Tensor:
        G, W = members.shape
        rows = x.flatten(1).index_select(0, members.flatten())
        rows.view(G, W, -1).masked_fill_(~real[..., None], -torch.inf)
        picture = rows.view(1, G, W, -1).permute(0, 3, 1, 2)

        def largest() -> list[Tensor]:
            return [part.flatten(2)[0].t() for part in F.max_pool2d(picture, (1, W), return_indices=True)]

        best, winner = largest()
        rows.scatter_(0, winner, -torch.inf)
        second, runner_up = largest()
        alone = second == -torch.inf
        choice = members.flatten()
        ctx.save_for_backward(choice[winner], choice[runner_up], alone)
        ctx.shape = x.shape
        return torch.cat([part.reshape(G, *x.shape[1:]) for part in (best, second.masked_fill(alone, 0))], -1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        winner, runner_up, alone = ctx.saved_tensors
        best, second = (part.flatten(1) for part in grad.chunk(2, -1))
        total = torch.zeros(ctx.shape, dtype=grad.dtype).flatten(1)
        total.scatter_add_(0, winner, best).scatter_add_(0, runner_up, second.masked_fill(alone, 0))
        return total.view(ctx.shape), None, None


def sum_rows(x: Tensor, incidence: Incidence) -> Tensor:
    """[N, B, channels] -> [M, B, channels], weighted sums of rows."""
    i = incidence
    return _SumRows.apply(x, i.index, i.weight, i.back_index, i.back_weight)


def top_over_rules(x: Tensor, tables: RuleTables) -> Tensor:
    """[C, B, channels] -> [G, B, 2 * channels], the largest and the second largest over every rule's choices.

    Together they tell whether a choice of the rule is taken and whether another one could be, at any size of the rule:
    a mean or a sum would drift with it. The second of a rule with a single choice is 0.
    """
    if unrolled(x):
        return _TopRows.apply(x, tables.members, tables.real, tables.rules, tables.slot)
    return _TopWindows.apply(x, tables.members, tables.real)


# ---- pooling over the rules of a query's relations -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RelationTables:
    """A batch's relations a < b as incidence of variables; a padding relation has rows of zeros.

    Args:
        ends: float [B, 2 * M, R], 1 where the variable is a in the first M rows, where it is b in the others.
        variables: R.
    """

    ends: Tensor
    variables: int


def relation_tables(relations: Tensor, problem: Problem) -> RelationTables:
    """The tables of relations int64 [B, M, 2], -1 for padding."""
    is_variable = relations.mT.flatten(1)[..., None] == torch.arange(problem.variables, device=relations.device)
    return RelationTables(is_variable.float(), problem.variables)


def _running(x: Tensor, combine: Any, backwards: bool) -> list[Any]:
    """Combine [B, M, V, channels] cumulatively along V, from the last value if backwards; one entry for every value."""
    parts = list(x.unbind(2))[:: -1 if backwards else 1]
    for i in range(1, len(parts)):
        parts[i] = combine(parts[i], parts[i - 1])
    return parts[:: -1 if backwards else 1]


def _top_two(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """The two largest of two groups, each one a tensor or already its two largest."""
    (x, *rest), (y, *others) = (part if isinstance(part, tuple) else (part,) for part in (x, y))
    second = torch.minimum(x, y)
    for below in (*rest, *others):
        second = torch.maximum(second, below)
    return torch.maximum(x, y), second


def pool_relations(x: Tensor, tables: RelationTables) -> Tensor:
    """[C, B, channels] -> [B, M, V, 2 * channels], the two largest over {a >= d} + {b <= d} for every value d.

    The same numbers as from ``Problem.relation_members``, by running maxima over the values of both variables: no
    gather over [B, M, V, V + 1], no scatter on the way back.
    """
    by_variable = x.unflatten(0, (tables.variables, -1)).permute(2, 0, 1, 3)
    ends = torch.bmm(tables.ends.to(x.dtype), by_variable.flatten(2)).unflatten(2, (by_variable.shape[2], -1))
    a, b = ends.chunk(2, 1)
    both = zip(_running(a, _top_two, backwards=True), _running(b, _top_two, backwards=False), strict=True)
    return torch.stack([torch.cat(_top_two(*parts), -1) for parts in both], 2)


def spread_relations(messages: Tensor, tables: RelationTables) -> Tensor:
    """[B, M, V, channels] -> [C, B, channels], the sum over a choice's relation rules divided by V.

    Choice (a, v) is in the rules d <= v of a < b, choice (b, v) in the rules d >= v.
    """
    values = messages.shape[2]
    sums = [torch.stack(_running(messages, torch.add, backwards), 2) for backwards in (False, True)]
    total = torch.bmm(tables.ends.to(messages.dtype).mT, torch.cat(sums, 1).flatten(2)).unflatten(2, (values, -1))
    return total.permute(1, 2, 0, 3).flatten(0, 1) / values
