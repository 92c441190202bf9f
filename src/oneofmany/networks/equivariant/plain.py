"""Pool over rules in plain PyTorch: from the choices of a rule to the rule, and back to the choices.

States have the shape [C, B, channels], so that a rule is a few long contiguous rows. Index tables (``tables``) define
what is pooled and sent back. This module has no parameters.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from oneofmany.networks.equivariant.tables import Incidence, RelationTables, RuleTables

Spans = tuple[tuple[int, int], ...]
"""``RuleTables.spans``."""

# ---- pooling over static rules -------------------------------------------------------------------------------------


def _sum_rows(x: Tensor, index: Tensor, weight: Tensor) -> Tensor:
    weight = weight.to(x.dtype)
    total = x[index[:, 0]] * weight[:, 0, None, None]
    for j in range(1, index.shape[1]):
        total = total + x[index[:, j]] * weight[:, j, None, None]
    return total


class _SumRows(torch.autograd.Function):
    """Gather in both directions: a scatter is slow on a GPU and adds in no fixed order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, weight: Tensor, back_index: Tensor, back_weight: Tensor) -> Tensor:
        ctx.save_for_backward(back_index, back_weight)
        return _sum_rows(x, index, weight)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grad_outputs
        return _sum_rows(grad.contiguous(), *ctx.saved_tensors), None, None, None, None


def _top_two_slots(x: Tensor, members: Tensor, real: Tensor, slots: torch.dtype) -> list[Tensor]:
    """The two largest of every rule, and their slots: each [G, B, channels]."""
    best = x[members[:, 0]]
    second = torch.full_like(best, -torch.inf)
    winner = torch.zeros_like(best, dtype=slots)
    runner_up = torch.full_like(winner, -2)  # not a slot of any choice
    for w in range(1, members.shape[1]):
        other = torch.where(real[:, w, None, None], x[members[:, w]], -torch.inf)
        wins, comes_second = other > best, other > second
        runner_up = torch.where(wins, winner, torch.where(comes_second, w, runner_up))
        winner = torch.where(wins, w, winner)
        second = torch.maximum(second, torch.minimum(best, other))
        best = torch.maximum(best, other)
    return [best, second, winner, runner_up]


class _TopRows(torch.autograd.Function):
    """The two largest choices; of equal ones the first wins. Only their slots are kept for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, members: Tensor, real: Tensor, rules: Tensor, slot: Tensor, spans: Spans
    ) -> Tensor:
        parts = [_top_two_slots(x, *part, slot.dtype) for part in _of_spans(members, real, spans)]
        best, second, winner, runner_up = _joined(parts)
        ctx.save_for_backward(winner, runner_up, rules, slot)
        return torch.cat([best, torch.where(second == -torch.inf, 0, second)], -1)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grad_outputs
        winner, runner_up, rules, slot = ctx.saved_tensors
        grad_best, grad_second = grad.chunk(2, -1)
        total = grad.new_zeros(())
        for j in range(rules.shape[1]):
            rule, own = rules[:, j], slot[:, j, None, None]
            total = total + torch.where(winner[rule] == own, grad_best[rule], 0)
            total = total + torch.where(runner_up[rule] == own, grad_second[rule], 0)
        return total, None, None, None, None, None


def _joined(parts: list[list[Tensor]]) -> list[Tensor]:
    """The same tensors of all spans, one after the other."""
    return parts[0] if len(parts) == 1 else [torch.cat(part) for part in zip(*parts, strict=True)]


def _of_spans(members: Tensor, real: Tensor, spans: Spans) -> list[tuple[Tensor, Tensor]]:
    """The rules of every span, without the columns that they do not use."""
    counts = [count for count, _ in spans]
    parts = zip(members.split(counts), real.split(counts), spans, strict=True)
    return [(of[:, :width], there[:, :width]) for of, there, (_, width) in parts]


def sum_rows(x: Tensor, incidence: Incidence) -> Tensor:
    """Return weighted sums of rows: [N, B, channels] -> [M, B, channels]."""
    i = incidence
    return _SumRows.apply(x, i.index, i.weight, i.back_index, i.back_weight)


def top_over_rules(x: Tensor, tables: RuleTables) -> Tensor:
    """Return the largest and second largest over each rule's choices: [C, B, channels] -> [G, B, 2 * channels].

    Together they show whether a choice of the rule is taken and whether another one could be. They do not depend on
    the size of the rule, unlike a mean or a sum. The second of a rule with a single choice is 0.
    """
    return _TopRows.apply(x, tables.members, tables.real, tables.rules, tables.slot, tables.spans)


# ---- pooling over the rules of a query's relations -------------------------------------------------------------------


def _running(x: Tensor, combine: Any, backwards: bool) -> list[Any]:
    """Combine [B, M, V, channels] cumulatively along V, from the last value if backwards; one entry per value."""
    parts = list(x.unbind(2))[:: -1 if backwards else 1]
    for i in range(1, len(parts)):
        parts[i] = combine(parts[i], parts[i - 1])
    return parts[:: -1 if backwards else 1]


def _top_two(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """The two largest of two groups; each group is a tensor or a pair of its two largest."""
    (x, *rest), (y, *others) = (part if isinstance(part, tuple) else (part,) for part in (x, y))
    second = torch.minimum(x, y)
    for below in (*rest, *others):
        second = torch.maximum(second, below)
    return torch.maximum(x, y), second


def pool_relations(x: Tensor, tables: RelationTables) -> Tensor:
    """Return the two largest over {a >= d} + {b <= d} for each value d: [C, B, channels] -> [B, M, V, 2 * channels].

    These are the rules of ``Problem.relation_members``. Running maxima over the values of both variables avoid a gather
    over [B, M, V, V + 1] and a scatter in the backward pass.
    """
    by_variable = x.unflatten(0, (tables.variables, -1)).permute(2, 0, 1, 3)
    ends = torch.bmm(tables.ends.to(x.dtype), by_variable.flatten(2)).unflatten(2, (by_variable.shape[2], -1))
    a, b = ends.chunk(2, 1)
    both = zip(_running(a, _top_two, backwards=True), _running(b, _top_two, backwards=False), strict=True)
    return torch.stack([torch.cat(_top_two(*parts), -1) for parts in both], 2)


def spread_relations(messages: Tensor, tables: RelationTables) -> Tensor:
    """Return the sum over a choice's relation rules divided by V: [B, M, V, channels] -> [C, B, channels].

    Choice (a, v) is in the rules d <= v of a < b, choice (b, v) in the rules d >= v.
    """
    values = messages.shape[2]
    sums = [torch.stack(_running(messages, torch.add, backwards), 2) for backwards in (False, True)]
    total = torch.bmm(tables.ends.to(messages.dtype).mT, torch.cat(sums, 1).flatten(2)).unflatten(2, (values, -1))
    return total.permute(1, 2, 0, 3).flatten(0, 1) / values
