"""All steps of the equivariant network as Triton kernels, for bfloat16 on a GPU.

It computes the same function as ``steps.Step``, which is the reference. Memory traffic is the limit, so a step is two
kernels: one over rules (pool, answer) and one over choices (gather the answers, update, normalise, read out, send
again). The backward pass has two more. Relations of a query add one kernel each way. The state accumulates in float32,
products take bfloat16, and their inputs are kept in bfloat16 for the backward pass. Weight gradients are batched
products over all steps at the end.

This module imports triton: import it only on a CUDA machine.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from oneofmany.networks.equivariant.tables import RelationTables, RuleTables
from oneofmany.networks.equivariant.triton_kernels import (
    choices_backward,
    choices_forward,
    relations_backward,
    relations_forward,
    rules_backward,
    rules_forward,
)

QUERIES = 32
"""Queries per program, of one choice or rule."""
WARPS = 4


@dataclass(frozen=True, eq=False)
class _Tables:
    """``RuleTables`` in the kernels' dtypes (int32 and float32), and the number of consecutive rules of each kind."""

    members: Tensor
    real: Tensor
    rules: Tensor
    slot: Tensor
    spread: Tensor
    gather: Tensor
    kind: Tensor
    counts: tuple[tuple[int, int], ...]


_TABLES: WeakKeyDictionary[RuleTables, dict[tuple[str, ...], _Tables]] = WeakKeyDictionary()


def _tables(tables: RuleTables, kinds: tuple[str, ...]) -> _Tables:
    known = _TABLES.setdefault(tables, {})
    if kinds not in known:
        counts = tuple((kinds.index(name), count) for name, count in tables.kinds)
        of_rules = [kind for kind, count in counts for _ in range(count)]
        known[kinds] = _Tables(
            tables.members.int().contiguous(),
            tables.real.int().contiguous(),
            tables.rules.int().contiguous(),
            tables.slot.int().contiguous(),
            tables.spread.weight.float().contiguous(),
            tables.spread.back_weight.float().contiguous(),
            torch.tensor(of_rules, dtype=torch.int32, device=tables.members.device),
            counts,
        )
    return known[kinds]


@dataclass(frozen=True, eq=False)
class _Relations:
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


def _relations(tables: RelationTables, block: Any, choices: int) -> _Relations:
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
    return _Relations(
        ends.contiguous(),
        listed[:, :-1].contiguous(),
        most,
        block.kinds.index(block.relation_kind),
        choices // tables.variables,
    )


def run_steps(
    step: Any,
    state: Tensor,
    query: Tensor,
    tables: RuleTables,
    relations: RelationTables | None,
    steps: int,
    every_step: bool,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """Return logits [T, C, B] (T = 1, the last step's only, if not every_step) and the last state [C, B, width].

    Args:
        step: the network's ``Step``.
        state: float32 [C, B, width].
        query: the embedded query [C, B, width].
        tables: of the problem.
        relations: of the batch, or None.
        steps: number of steps.
        every_step: whether to return the logits of all steps.
        dtype: of the inputs of products, bfloat16.
    """
    block = step.block
    weights = (block.choice.weight, block.choice.bias, block.rule, block.update.weight, block.update.bias, step.readout)
    prepared = _tables(tables, block.kinds)
    related = None if relations is None else _relations(relations, block, len(state))
    if torch.is_grad_enabled():
        logits, last = _Steps.apply(state, query, *weights, prepared, related, steps, dtype)
        return logits if every_step else logits[-1:], last
    passed = _Pass(weights, prepared, related, steps, dtype, keep=False, every_step=every_step)
    return passed.forward(state, query)


class _Steps(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, state: Tensor, query: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        *weights, tables, relations, steps, dtype = rest
        ctx.passed = _Pass(weights, tables, relations, steps, dtype, keep=True, every_step=True)
        return ctx.passed.forward(state, query)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        grad_logits, grad_last = grad_outputs
        gradients = ctx.passed.backward(grad_logits.float().contiguous(), grad_last.float())
        ctx.passed = None
        return *gradients, None, None, None, None


class _Pass:
    """One forward pass and, if its tensors are kept, its backward pass."""

    def __init__(
        self,
        weights: Sequence[Tensor],
        tables: _Tables,
        relations: _Relations | None,
        steps: int,
        dtype: torch.dtype,
        keep: bool,
        every_step: bool,
    ) -> None:
        self.choice, self.choice_bias, self.rule, self.update, self.update_bias, self.readout = weights
        # Weights as inputs of 16-bit products.
        self.choices, self.rules, self.updates = (
            w.to(dtype).contiguous() for w in (self.choice, self.rule, self.update)
        )
        self.tables, self.related = tables, relations
        self.steps, self.dtype, self.keep, self.every_step = steps, dtype, keep, every_step
        self.widths = {"D": self.choice.shape[1], "P": self.rule.shape[1] // 2, "H": self.rule.shape[2] // 2}
        self.device = self.choice.device

    def _new(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        return torch.empty(shape, device=self.device, dtype=dtype or self.dtype)

    def _by_rows(self, kernel: Any, rows: int, queries: int, *arguments: Any, **constants: Any) -> None:
        """Launch a kernel over rows (choices or rules) and blocks of queries."""
        programs = rows * triton.cdiv(queries, QUERIES)
        kernel[(programs,)](*arguments, queries, rows, **self.widths, **constants, BB=QUERIES, num_warps=WARPS)

    def _related(self, kernel: Any, *arguments: Any, **constants: Any) -> None:
        """Launch a kernel over queries and relations."""
        r = self.related
        assert r is not None
        queries, ends = r.ends.shape
        kernel[(queries * ends // 2,)](
            *arguments, r.ends, queries, ends // 2, r.values, **self.widths, **constants,
            VV=max(16, triton.next_power_of_2(r.values)), num_warps=2,
        )  # fmt: skip

    def _lists(self) -> tuple[Any, ...]:
        """The arguments with which kernels over choices find a variable's relations; placeholders if there are none."""
        r, t = self.related, self.tables
        return (t.rules, t.rules, 0, 1) if r is None else (r.of_variable, r.most, r.ends.shape[1], r.values)

    def forward(self, state: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [T, C, B] and the last state."""
        t, keep = self.tables, self.keep
        (C, B, D), P, H, G = state.shape, self.widths["P"], self.widths["H"], len(t.members)
        slots = self.steps if keep else 1
        ends, values = (0, 1) if self.related is None else (self.related.ends.shape[1], self.related.values)
        self.query = query.to(self.dtype).contiguous()
        self.x = self._new(slots + keep, C, B, D)
        self.pooled, self.winners = self._new(slots, G, B, 2 * P), self._new(slots, G, B, P, dtype=torch.int16)
        self.gate, self.scale = self._new(slots, C, B, 2 * H), self._new(slots, C, B, dtype=torch.float32)
        related = (slots, B, ends // 2, values)
        self.related_pooled, self.related_winners = (
            self._new(*related, 2 * P),
            self._new(*related, P, dtype=torch.int16),
        )
        spoken, answers, relayed = self._new(C, B, P), self._new(G, B, 2 * H), self._new(B, ends, values, 2 * H)
        logits = self._new(self.steps if self.every_step else 1, C, B, dtype=torch.float32)
        state = state.float().clone(memory_format=torch.contiguous_format)

        self.x[0].copy_(state + query)
        torch.addmm(
            self.choice_bias[:P].to(self.dtype), self.x[0].view(-1, D), self.choices[:P].t(), out=spoken.view(-1, P)
        )
        for step in range(self.steps):
            at = step if keep else 0
            self._by_rows(
                rules_forward, G, B, spoken, self.rules, t.members, t.real, t.kind, self.pooled[at], self.winners[at],
                answers, WIDTH=t.members.shape[1], KEEP=keep,
            )  # fmt: skip
            if self.related is not None:
                self._related(
                    relations_forward, spoken, self.rules[self.related.kind], self.related_pooled[at],
                    self.related_winners[at], relayed, KEEP=keep,
                )  # fmt: skip
            self._by_rows(
                choices_forward, C, B, state, self.x[at], self.query, answers, t.rules, t.spread, relayed,
                *self._lists(), self.choices, self.choice_bias, self.updates, self.update_bias, self.readout,
                self.x[at + keep], spoken, self.gate[at], self.scale[at], logits[step if self.every_step else 0],
                DEGREE=t.rules.shape[1], RELATED=self.related is not None, KEEP=keep, LAST=step == self.steps - 1,
            )  # fmt: skip
        return logits, state

    def backward(self, grad_logits: Tensor, grad_last: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of the state, the query and the weights."""
        t, steps = self.tables, self.steps
        (_, C, B, D), P, H, G = self.x.shape, self.widths["P"], self.widths["H"], len(t.members)
        ends, values = (0, 1) if self.related is None else (self.related.ends.shape[1], self.related.values)
        grad_state = grad_last.clone(memory_format=torch.contiguous_format)
        grad_own = self._new(steps, C, B, P + 2 * H)  # of a choice's output to its rules and to its own gates
        grad_moved, hidden = self._new(steps, C, B, D), self._new(steps, C, B, H)
        grad_pooled, grad_answers = self._new(G, B, 2 * P), self._new(steps, G, B, 2 * H)
        grad_related, grad_relayed = self._new(steps, B, ends // 2, values, 2 * H), self._new(B, ends, values, P)

        def by_choices(step: int) -> None:
            """Back through what was sent after a step, then through its update; step -1 has no update."""
            at, after = max(step, 0), min(step + 1, steps - 1)
            self._by_rows(
                choices_backward, C, B, grad_state, grad_logits[at], self.scale[at], self.x[step + 1], self.query,
                self.gate[at], self.winners[after], grad_pooled, t.rules, t.slot, grad_relayed, *self._lists(),
                self.choices, self.updates, self.readout, grad_own[after], grad_moved[at], grad_own[at], hidden[at],
                DEGREE=t.rules.shape[1], RELATED=self.related is not None, LAST=step == steps - 1, FIRST=step < 0,
            )  # fmt: skip

        for step in reversed(range(steps)):
            by_choices(step)
            self._by_rows(
                rules_backward, G, B, grad_own[step], self.rules, t.members, t.gather, t.kind, grad_answers[step],
                grad_pooled, WIDTH=t.members.shape[1],
            )  # fmt: skip
            if self.related is not None:
                self._related(
                    relations_backward, grad_own[step], self.rules[self.related.kind], self.related_winners[step],
                    grad_related[step], grad_relayed,
                )  # fmt: skip
        by_choices(-1)

        def over_rows(a: Tensor, b: Tensor) -> Tensor:
            """float32 [.., m, n]: the sum over steps and queries of a[.., m] * b[.., n], per choice or rule."""
            return torch.bmm(a.flatten(0, 1).mT, b.flatten(0, 1)).unflatten(0, a.shape[:2]).sum(0, dtype=torch.float32)

        grad_choice = over_rows(grad_own, self.x[:-1]).sum(0)
        grad_own_sum = grad_own.sum(0, dtype=torch.float32)
        grad_query = (grad_own_sum.view(C * B, -1) @ self.choice).view(C, B, D)
        grad_rule = torch.zeros(self.rule.shape, device=self.device)
        # Not index_add_, which adds in no fixed order on a GPU.
        by_rule = over_rows(self.pooled, grad_answers).split([count for _, count in t.counts])
        for (kind, _), rules in zip(t.counts, by_rule, strict=True):
            grad_rule[kind] += rules.sum(0)
        if self.related is not None:
            rows = (steps, ends // 2, -1)
            related = over_rows(self.related_pooled.view(*rows, 2 * P), grad_related.view(*rows, 2 * H))
            grad_rule[self.related.kind] += related.sum(0)
        grad_update, grad_update_bias = (
            over_rows(grad_moved, hidden).sum(0),
            grad_moved.sum((0, 1, 2), dtype=torch.float32),
        )
        grad_readout = over_rows(self.x[1:], grad_logits.to(self.dtype)[..., None]).sum((0, 2))
        grad_readout -= (self.query * grad_logits.sum(0)[..., None]).sum((0, 1))
        return (
            grad_state,
            grad_query,
            grad_choice,
            grad_own_sum.sum((0, 1)),
            grad_rule,
            grad_update,
            grad_update_bias,
            grad_readout,
        )
