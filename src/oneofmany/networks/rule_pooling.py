"""Pooling over rules: from a rule's choices to the rule, and back to every choice.

States lie choice by choice, [C, B, channels], so that a rule is a few long contiguous rows. What is pooled and how it is
sent back depends on index tables alone; no parameter lives here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor

from oneofmany.problems import Problem


@dataclass(frozen=True, eq=False)
class Incidence:
    """A weighted sum of rows in both directions: ``out[m] = sum_j weight[m, j] * x[index[m, j]]`` and its transpose.

    Args:
        index, weight: int64 and float [M, J], weight 0 for padding.
        back_index, back_weight: [N, I], the same pairs seen from the N rows of x.
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
        slot: [C, D], where the choice stands in ``members`` of that rule, -1 for padding.
        mean: rules from choices, the mean of a rule's choices.
        spread: choices from rules, for every kind the mean over the choice's rules of that kind.
        kinds: (kind, first rule, last rule + 1).
        degree: float [C, kinds], how many rules of each of ``kinds`` a choice has.
    """

    members: Tensor
    rules: Tensor
    slot: Tensor
    mean: Incidence
    spread: Incidence
    kinds: tuple[tuple[str, int, int], ...]
    degree: Tensor


_TABLES: WeakKeyDictionary[Problem, dict[torch.device, RuleTables]] = WeakKeyDictionary()


@torch.compiler.assume_constant_result
def rule_tables(problem: Problem, device: torch.device) -> RuleTables:
    """The tables of a problem on a device, built once."""
    known = _TABLES.setdefault(problem, {})
    if device not in known:
        known[device] = _build(problem, device)
    return known[device]


def _build(problem: Problem, device: torch.device) -> RuleTables:
    order = problem.kind.argsort(kind="stable")
    members = torch.from_numpy(problem.members[order])
    kind = torch.from_numpy(problem.kind[order])
    exact = torch.from_numpy(problem.exact[order])
    (G, W), C, K = members.shape, problem.choices, len(problem.kinds)

    kinds = []
    for k, name in enumerate(problem.kinds):
        of_kind = (kind == k).nonzero()[:, 0]
        # A kind's weights say what its rules mean, so they cannot mean two things.
        kept = set(exact[of_kind].tolist()) | ({False} if name == problem.relation_kind else set())
        if len(kept) > 1:
            raise ValueError(
                f"rules of kind {name!r}: expected all exactly-one or all at-most-one, got both; give them two kinds"
            )
        if len(of_kind):
            kinds.append((name, int(of_kind[0]), int(of_kind[-1]) + 1))

    # One row for every pair of a rule and a choice in it, by choice and then by rule.
    real = members >= 0
    rule, slot = real.nonzero(as_tuple=True)
    choice = members[real]
    by_choice = choice.argsort(stable=True)
    rule, slot, choice = rule[by_choice], slot[by_choice], choice[by_choice]
    count = choice.bincount(minlength=C)
    column = torch.arange(len(choice)) - (count.cumsum(0) - count)[choice]
    D = int(count.max())

    def from_choice(values: Tensor, padding: int = 0) -> Tensor:
        table = torch.full((C, D), padding, dtype=values.dtype)
        table[choice, column] = values
        return table

    def from_rule(values: Tensor) -> Tensor:
        table = torch.zeros(G, W, dtype=values.dtype)
        table[rule, slot] = values
        return table

    degree = torch.zeros(C, K).index_put_((choice, kind[rule]), torch.ones(()), accumulate=True)
    of_mean = (1 / real.sum(1))[rule]
    of_spread = 1 / degree[choice, kind[rule]]
    index = torch.where(real, members, members[:, :1])
    rules = from_choice(rule)
    small = torch.int8 if W <= 127 else torch.int16
    tables = {
        "members": index,
        "rules": rules,
        "slot": from_choice(slot.to(small), -1),
        "mean": Incidence(index, from_rule(of_mean), rules, from_choice(of_mean)),
        "spread": Incidence(rules, from_choice(of_spread), index, from_rule(of_spread)),
        "kinds": tuple(kinds),
        "degree": degree[:, [problem.kinds.index(name) for name, _, _ in kinds]],
    }
    return RuleTables(**{name: _to(value, device) for name, value in tables.items()})


def _to(value: Any, device: torch.device) -> Any:
    if isinstance(value, Incidence):
        return Incidence(*(_to(part, device) for part in vars(value).values()))
    return value.to(device) if isinstance(value, Tensor) else value


def _unrolled(x: Tensor) -> bool:
    """Whether to go slot by slot, which a compiler fuses into one kernel without atomics, or to call fast CPU kernels."""
    return x.is_cuda or torch.compiler.is_compiling()


def _sum_rows(x: Tensor, index: Tensor, weight: Tensor) -> Tensor:
    weight = weight.to(x.dtype)
    if not _unrolled(x):
        return F.embedding_bag(index, x.flatten(1), mode="sum", per_sample_weights=weight).view(-1, *x.shape[1:])
    total = x[index[:, 0]] * weight[:, 0, None, None]
    for j in range(1, index.shape[1]):
        total = total + x[index[:, j]] * weight[:, j, None, None]
    return total


class _SumRows(torch.autograd.Function):
    """Both directions gather: nothing is scattered, so the result does not depend on the order of additions."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, weight: Tensor, back_index: Tensor, back_weight: Tensor) -> Tensor:
        ctx.save_for_backward(back_index, back_weight)
        return _sum_rows(x, index, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _sum_rows(grad.contiguous(), *ctx.saved_tensors), None, None, None, None


class _MaxRows(torch.autograd.Function):
    """The largest of a rule's choices, channel by channel; the first of equals gets the gradient."""

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
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        winner, rules, slot = ctx.saved_tensors
        total = None
        for j in range(rules.shape[1]):
            rule = rules[:, j]
            part = torch.where(winner[rule] == slot[:, j, None, None], grad[rule], 0)
            total = part if total is None else total + part
        return total, None, None, None


def sum_rows(x: Tensor, incidence: Incidence) -> Tensor:
    """[N, B, channels] -> [M, B, channels], weighted sums of rows."""
    i = incidence
    return _SumRows.apply(x, i.index, i.weight, i.back_index, i.back_weight)


def max_over_rules(x: Tensor, tables: RuleTables) -> Tensor:
    """[C, B, channels] -> [G, B, channels], the largest of every rule's choices."""
    if _unrolled(x):
        return _MaxRows.apply(x, tables.members, tables.rules, tables.slot)
    # The windows of a channels-last picture are the rules: the one CPU kernel that finds winners with vector instructions.
    G, W = tables.members.shape
    picture = x.flatten(1).index_select(0, tables.members.flatten()).view(1, G, W, -1).permute(0, 3, 1, 2)
    return F.max_pool2d(picture, (1, W)).permute(0, 2, 3, 1).reshape(G, *x.shape[1:])
