"""All steps of the equivariant network as Triton kernels, for bfloat16 on a GPU.

The same function as ``Step`` in ``equivariant``, which is its oracle and explains what happens. It is bound by memory
traffic, so a step is two kernels: one by rules (pool, answer), one by choices (gather the answers, update, normalise,
read out, speak again); the way back is two more, and a query's relations have one each. The state adds up in float32,
products take bfloat16, and what the way back needs is kept as they took it. Gradients of weights are batched products
over all steps at the end.

This module imports triton: import it only where CUDA is.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from oneofmany.networks.rule_pooling import RelationTables, RuleTables

QUERIES = 32
"""Queries that a program handles, of one choice or rule."""
WARPS = 4


@dataclass(frozen=True, eq=False)
class _Tables:
    """``RuleTables`` as the kernels read them: int32 and float32."""

    members: Tensor
    real: Tensor
    rules: Tensor
    slot: Tensor
    spread: Tensor
    gather: Tensor
    kind: Tensor


_TABLES: WeakKeyDictionary[RuleTables, dict[tuple[str, ...], _Tables]] = WeakKeyDictionary()


def _tables(tables: RuleTables, kinds: tuple[str, ...]) -> _Tables:
    known = _TABLES.setdefault(tables, {})
    if kinds not in known:
        of_rules = [kinds.index(name) for name, count in tables.kinds for _ in range(count)]
        known[kinds] = _Tables(
            tables.members.int().contiguous(),
            tables.real.int().contiguous(),
            tables.rules.int().contiguous(),
            tables.slot.int().contiguous(),
            tables.spread.weight.float().contiguous(),
            tables.spread.back_weight.float().contiguous(),
            torch.tensor(of_rules, dtype=torch.int32, device=tables.members.device),
        )
    return known[kinds]


@dataclass(frozen=True, eq=False)
class _Relations:
    """A batch's relations a < b as the kernels read them. End i is variable a of relation i, or b of relation i - M.

    Args:
        ends: int32 [B, 2 * M], the variable of every end, -1 for padding.
        of_variable: int32 [R, 2 * M, B], the ends at every variable, -1 behind the last.
        most: int32 [1], the most ends at one variable.
        kind: which of the kinds of rules has their weights.
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
    place = (at.cumsum(1) - 1).clamp_min(0)  # how many ends before this one are at the variable
    listed = torch.full((at.shape[2], at.shape[1] + 1, len(at)), -1, dtype=torch.int32, device=ends.device)
    number = torch.arange(at.shape[1], dtype=torch.int32, device=ends.device)[None, :, None].expand(at.shape)
    # What is no end of the variable goes to a place behind all others, which is cut off.
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


def supported(block: Any, tables: RuleTables, values: int) -> bool:
    """Whether the kernels can do it: powers of two as widths, slots that fit into a byte, loops short enough."""
    powers = all(width in (16, 32, 64) for width in (block.width, block.pooled, block.hidden))
    return powers and tables.members.shape[1] <= 32 and tables.rules.shape[1] <= 16 and 2 * values < 127


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
    """Logits [T, C, B] (the last step's alone, T = 1, if not every_step) and the last state [C, B, width].

    Args:
        step: the network's ``Step``.
        state: float32 [C, B, width].
        query: the embedded query [C, B, width].
        tables: of the problem.
        relations: of the batch, or None.
        steps: how many.
        every_step: whether all logits are kept.
        dtype: what products take, bfloat16.
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
    def backward(ctx: Any, g_logits: Tensor, g_last: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        gradients = ctx.passed.backward(g_logits.float().contiguous(), g_last.float())
        ctx.passed = None
        return *gradients, None, None, None, None


class _Pass:
    """One way forward and, where its tensors are kept, back."""

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
        # What products take.
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
        """Run a kernel by rows (choices or rules) and blocks of queries."""
        programs = rows * triton.cdiv(queries, QUERIES)
        kernel[(programs,)](*arguments, queries, rows, **self.widths, **constants, BB=QUERIES, num_warps=WARPS)

    def _related(self, kernel: Any, *arguments: Any, **constants: Any) -> None:
        """Run a kernel by queries and relations."""
        r = self.related
        assert r is not None
        queries, ends = r.ends.shape
        kernel[(queries * ends // 2,)](
            *arguments, r.ends, queries, ends // 2, r.values, **self.widths, **constants,
            VV=max(16, triton.next_power_of_2(r.values)), num_warps=2,
        )  # fmt: skip

    def _lists(self) -> tuple[Any, ...]:
        """What kernels by choices need to find a variable's relations; with none, anything."""
        r, t = self.related, self.tables
        return (t.rules, t.rules, 0, 1) if r is None else (r.of_variable, r.most, r.ends.shape[1], r.values)

    def forward(self, state: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [T, C, B] and the last state."""
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
                _rules_forward, G, B, spoken, self.rules, t.members, t.real, t.kind, self.pooled[at], self.winners[at],
                answers, WIDTH=t.members.shape[1], KEEP=keep,
            )  # fmt: skip
            if self.related is not None:
                self._related(
                    _relations_forward, spoken, self.rules[self.related.kind], self.related_pooled[at],
                    self.related_winners[at], relayed, KEEP=keep,
                )  # fmt: skip
            self._by_rows(
                _choices_forward, C, B, state, self.x[at], self.query, answers, t.rules, t.spread, relayed,
                *self._lists(), self.choices, self.choice_bias, self.updates, self.update_bias, self.readout,
                self.x[at + keep], spoken, self.gate[at], self.scale[at], logits[step if self.every_step else 0],
                DEGREE=t.rules.shape[1], RELATED=self.related is not None, KEEP=keep, LAST=step == self.steps - 1,
            )  # fmt: skip
        return logits, state

    def backward(self, g_logits: Tensor, g_last: Tensor) -> tuple[Tensor, ...]:
        """Gradients of the state, the query and the weights."""
        t, steps = self.tables, self.steps
        (_, C, B, D), P, H, G = self.x.shape, self.widths["P"], self.widths["H"], len(t.members)
        ends, values = (0, 1) if self.related is None else (self.related.ends.shape[1], self.related.values)
        g_state = g_last.clone(memory_format=torch.contiguous_format)
        g_own = self._new(steps, C, B, P + 2 * H)  # of what a choice says to its rules and to itself
        g_moved, hidden = self._new(steps, C, B, D), self._new(steps, C, B, H)
        g_pooled, g_answers = self._new(G, B, 2 * P), self._new(steps, G, B, 2 * H)
        g_related, g_relayed = self._new(steps, B, ends // 2, values, 2 * H), self._new(B, ends, values, P)

        def by_choices(step: int) -> None:
            """Back through what was said after a step, then through its update; step -1 has none."""
            at, after = max(step, 0), min(step + 1, steps - 1)
            self._by_rows(
                _choices_backward, C, B, g_state, g_logits[at], self.scale[at], self.x[step + 1], self.query,
                self.gate[at], self.winners[after], g_pooled, t.rules, t.slot, g_relayed, *self._lists(),
                self.choices, self.updates, self.readout, g_own[after], g_moved[at], g_own[at], hidden[at],
                DEGREE=t.rules.shape[1], RELATED=self.related is not None, LAST=step == steps - 1, FIRST=step < 0,
            )  # fmt: skip

        for step in reversed(range(steps)):
            by_choices(step)
            self._by_rows(
                _rules_backward, G, B, g_own[step], self.rules, t.members, t.gather, t.kind, g_answers[step], g_pooled,
                WIDTH=t.members.shape[1],
            )  # fmt: skip
            if self.related is not None:
                self._related(
                    _relations_backward, g_own[step], self.rules[self.related.kind], self.related_winners[step],
                    g_related[step], g_relayed,
                )  # fmt: skip
        by_choices(-1)

        def over_rows(a: Tensor, b: Tensor) -> Tensor:
            """float32 [.., m, n], the sum over steps and queries of a[.., m] * b[.., n], for every choice or rule."""
            return torch.bmm(a.flatten(0, 1).mT, b.flatten(0, 1)).unflatten(0, a.shape[:2]).sum(0, dtype=torch.float32)

        in_choices = over_rows(g_own, self.x[:-1]).sum(0)
        over_steps = g_own.sum(0, dtype=torch.float32)
        g_query = (over_steps.view(C * B, -1) @ self.choice).view(C, B, D)
        in_rules = torch.zeros(self.rule.shape, device=self.device)
        in_rules.index_add_(0, t.kind.long(), over_rows(self.pooled, g_answers))
        if self.related is not None:
            rows = (steps, ends // 2, -1)
            related = over_rows(self.related_pooled.view(*rows, 2 * P), g_related.view(*rows, 2 * H))
            in_rules[self.related.kind] += related.sum(0)
        in_update, update_bias = over_rows(g_moved, hidden).sum(0), g_moved.sum((0, 1, 2), dtype=torch.float32)
        in_readout = over_rows(self.x[1:], g_logits.to(self.dtype)[..., None]).sum((0, 2))
        in_readout -= (self.query * g_logits.sum(0)[..., None]).sum((0, 1))
        return g_state, g_query, in_choices, over_steps.sum((0, 1)), in_rules, in_update, update_bias, in_readout


# ---- kernels -------------------------------------------------------------------------------------------------------
# Rows lie [rows, B, channels]; a program takes one row of one block of queries. Programs of one block come one after
# the other, so that what they gather from each other's rows is in the cache.


@triton.jit
def _matrix(at, rows: tl.constexpr, columns: tl.constexpr, row_stride, column_stride):
    return tl.load(at + tl.arange(0, rows)[:, None] * row_stride + tl.arange(0, columns)[None, :] * column_stride)


@triton.jit
def _rules_forward(
    spoken, weight, members, real, kind, pooled, winners, answers, B, G,
    D: tl.constexpr, P: tl.constexpr, H: tl.constexpr, BB: tl.constexpr, WIDTH: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    HH: tl.constexpr = 2 * H
    g = tl.program_id(0) % G
    b = (tl.program_id(0) // G * BB + tl.arange(0, BB)).to(tl.int64)
    p, h = tl.arange(0, P)[None, :], tl.arange(0, HH)[None, :]
    inside = (b < B)[:, None]
    best = tl.full((BB, P), float("-inf"), tl.float32)
    second = tl.full((BB, P), float("-inf"), tl.float32)
    winner = tl.full((BB, P), 127, tl.int32)
    runner_up = tl.full((BB, P), 127, tl.int32)
    for w in tl.static_range(WIDTH):
        row = tl.load(members + g * WIDTH + w) * B + b
        said = tl.load(spoken + row[:, None] * P + p, mask=inside, other=0.0).to(tl.float32)
        said = tl.where(tl.load(real + g * WIDTH + w) != 0, said, float("-inf"))
        runner_up = tl.where(said > best, winner, tl.where(said > second, w, runner_up))
        winner = tl.where(said > best, w, winner)
        second = tl.maximum(second, tl.minimum(best, said))
        best = tl.maximum(best, said)
    second = tl.where(second == float("-inf"), 0.0, second)
    dtype = answers.dtype.element_ty
    of_kind = weight + tl.load(kind + g) * 2 * P * HH
    row = (g * B + b)[:, None]
    if KEEP:
        tl.store(pooled + row * 2 * P + p, best.to(dtype), mask=inside)
        tl.store(pooled + row * 2 * P + P + p, second.to(dtype), mask=inside)
        tl.store(winners + row * P + p, (winner + 256 * runner_up).to(tl.int16), mask=inside)
    answer = tl.dot(best.to(dtype), _matrix(of_kind, P, HH, HH, 1))
    answer = tl.dot(second.to(dtype), _matrix(of_kind + P * HH, P, HH, HH, 1), answer)
    tl.store(answers + row * HH + h, answer.to(dtype), mask=inside)


@triton.jit
def _choices_forward(
    state, x, query, answers, rules, spread, relayed, of_variable, most, ends, V,
    choice, choice_bias, update, update_bias, readout, new_x, spoken, gate, scale, logits, B, C,
    D: tl.constexpr, P: tl.constexpr, H: tl.constexpr, BB: tl.constexpr, DEGREE: tl.constexpr,
    RELATED: tl.constexpr, KEEP: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) % C
    b = (tl.program_id(0) // C * BB + tl.arange(0, BB)).to(tl.int64)
    d, p, h = tl.arange(0, D)[None, :], tl.arange(0, P)[None, :], tl.arange(0, H)[None, :]
    inside = (b < B)[:, None]
    dtype = x.dtype.element_ty
    to_gate = _matrix(choice + P * D, D, H, 1, D)
    to_value = _matrix(choice + (P + H) * D, D, H, 1, D)
    to_state = _matrix(update, H, D, 1, H)
    gate_bias, value_bias = tl.load(choice_bias + P + h), tl.load(choice_bias + P + H + h)
    state_bias, out = tl.load(update_bias + d), tl.load(readout + d)
    to_spoken, spoken_bias = _matrix(choice, D, P, 1, D), tl.load(choice_bias + p)
    row = (c * B + b)[:, None]
    seen = tl.load(x + row * D + d, mask=inside, other=0.0)
    before = tl.load(state + row * D + d, mask=inside, other=0.0)
    asked = tl.load(query + row * D + d, mask=inside, other=0.0)
    gates = tl.dot(seen, to_gate) + gate_bias
    values = tl.dot(seen, to_value) + value_bias
    for j in tl.static_range(DEGREE):
        rule = (tl.load(rules + c * DEGREE + j) * B + b)[:, None] * 2 * H
        share = tl.load(spread + c * DEGREE + j)
        gates += share * tl.load(answers + rule + h, mask=inside, other=0.0).to(tl.float32)
        values += share * tl.load(answers + rule + H + h, mask=inside, other=0.0).to(tl.float32)
    if RELATED:
        for e in range(tl.load(most)):
            end = tl.load(of_variable + (c // V * ends + e) * B + b, mask=b < B, other=-1)
            here = (end >= 0)[:, None]
            relay = ((b * ends + end) * V + c % V)[:, None] * 2 * H
            gates += tl.load(relayed + relay + h, mask=here, other=0.0).to(tl.float32)
            values += tl.load(relayed + relay + H + h, mask=here, other=0.0).to(tl.float32)
    if KEEP:
        tl.store(gate + row * 2 * H + h, gates.to(dtype), mask=inside)
        tl.store(gate + row * 2 * H + H + h, values.to(dtype), mask=inside)
    hidden = gates * tl.sigmoid(gates) * values
    moved = tl.dot(hidden.to(dtype), to_state, before + state_bias)
    moved -= tl.sum(moved, 1)[:, None] / D
    inverse = tl.rsqrt(tl.sum(moved * moved, 1) / D + 1e-5)
    new = moved * inverse[:, None]
    tl.store(state + row * D + d, new, mask=inside)
    tl.store(logits + c * B + b, tl.sum(new * out, 1), mask=b < B)
    again = (new + asked.to(tl.float32)).to(dtype)
    if KEEP:
        tl.store(scale + c * B + b, inverse, mask=b < B)
        tl.store(new_x + row * D + d, again, mask=inside)
    if not LAST:
        if not KEEP:
            tl.store(new_x + row * D + d, again, mask=inside)
        says = tl.dot(again, to_spoken) + spoken_bias
        tl.store(spoken + row * P + p, says.to(dtype), mask=inside)


@triton.jit
def _choices_backward(
    g_state, g_logits, scale, x, query, gate, winners, g_pooled, rules, slot,
    g_relayed, of_variable, most, ends, V, choice, update, readout, g_spoken, g_moved, g_own, hidden,
    B, C,
    D: tl.constexpr, P: tl.constexpr, H: tl.constexpr, BB: tl.constexpr, DEGREE: tl.constexpr,
    RELATED: tl.constexpr, LAST: tl.constexpr, FIRST: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) % C
    b = (tl.program_id(0) // C * BB + tl.arange(0, BB)).to(tl.int64)
    d, p, h = tl.arange(0, D)[None, :], tl.arange(0, P)[None, :], tl.arange(0, H)[None, :]
    inside = (b < B)[:, None]
    dtype = x.dtype.element_ty
    out = tl.load(readout + d)
    from_spoken = _matrix(choice, P, D, D, 1)
    from_gate = _matrix(choice + P * D, H, D, D, 1)
    from_value = _matrix(choice + (P + H) * D, H, D, D, 1)
    from_state = _matrix(update, D, H, H, 1)
    row = (c * B + b)[:, None]
    grad = tl.load(g_state + row * D + d, mask=inside, other=0.0)
    if not FIRST:
        seen = tl.load(x + row * D + d, mask=inside, other=0.0)
        asked = tl.load(query + row * D + d, mask=inside, other=0.0)
        gates = tl.load(gate + row * 2 * H + h, mask=inside, other=0.0).to(tl.float32)
        values = tl.load(gate + row * 2 * H + H + h, mask=inside, other=0.0).to(tl.float32)
    if not LAST:
        said = tl.zeros((BB, P), tl.float32)
        for j in tl.static_range(DEGREE):
            rule = (tl.load(rules + c * DEGREE + j) * B + b)[:, None]
            own = tl.load(slot + c * DEGREE + j)
            both = tl.load(winners + rule * P + p, mask=inside, other=0).to(tl.int32)
            best = tl.load(g_pooled + rule * 2 * P + p, mask=inside, other=0.0).to(tl.float32)
            second = tl.load(g_pooled + rule * 2 * P + P + p, mask=inside, other=0.0).to(tl.float32)
            said += tl.where(both % 256 == own, best, 0.0) + tl.where(both // 256 == own, second, 0.0)
        if RELATED:
            for e in range(tl.load(most)):
                end = tl.load(of_variable + (c // V * ends + e) * B + b, mask=b < B, other=-1)
                relay = ((b * ends + end) * V + c % V)[:, None] * P
                said += tl.load(g_relayed + relay + p, mask=(end >= 0)[:, None], other=0.0).to(tl.float32)
        tl.store(g_spoken + row * (P + 2 * H) + p, said.to(dtype), mask=inside)
        grad = tl.dot(said.to(dtype), from_spoken, grad)
    if not FIRST:
        new = seen.to(tl.float32) - asked.to(tl.float32)
        grad += tl.load(g_logits + c * B + b, mask=b < B, other=0.0)[:, None] * out
        grad = grad - tl.sum(grad, 1)[:, None] / D - new * (tl.sum(grad * new, 1) / D)[:, None]
        grad *= tl.load(scale + c * B + b, mask=b < B, other=0.0)[:, None]
        tl.store(g_moved + row * D + d, grad.to(dtype), mask=inside)
        g_hidden = tl.dot(grad.to(dtype), from_state)
        opened = tl.sigmoid(gates)
        tl.store(hidden + row * H + h, (gates * opened * values).to(dtype), mask=inside)
        g_gates = (g_hidden * values * opened * (1 + gates * (1 - opened))).to(dtype)
        g_values = (g_hidden * gates * opened).to(dtype)
        tl.store(g_own + row * (P + 2 * H) + P + h, g_gates, mask=inside)
        tl.store(g_own + row * (P + 2 * H) + P + H + h, g_values, mask=inside)
        grad = tl.dot(g_gates, from_gate, grad)
        grad = tl.dot(g_values, from_value, grad)
    tl.store(g_state + row * D + d, grad, mask=inside)


@triton.jit
def _rules_backward(
    g_own, weight, members, gather, kind, g_answers, g_pooled, B, G,
    D: tl.constexpr, P: tl.constexpr, H: tl.constexpr, BB: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    HH: tl.constexpr = 2 * H
    g = tl.program_id(0) % G
    b = (tl.program_id(0) // G * BB + tl.arange(0, BB)).to(tl.int64)
    p, h = tl.arange(0, P)[None, :], tl.arange(0, HH)[None, :]
    inside = (b < B)[:, None]
    total = tl.zeros((BB, HH), tl.float32)
    for w in tl.static_range(WIDTH):
        row = (tl.load(members + g * WIDTH + w) * B + b)[:, None]
        share = tl.load(gather + g * WIDTH + w)
        total += share * tl.load(g_own + row * (P + HH) + P + h, mask=inside, other=0.0).to(tl.float32)
    dtype = g_answers.dtype.element_ty
    total = total.to(dtype)
    of_kind = weight + tl.load(kind + g) * 2 * P * HH
    row = (g * B + b)[:, None]
    tl.store(g_answers + row * HH + h, total, mask=inside)
    best = tl.dot(total, _matrix(of_kind, HH, P, 1, HH))
    second = tl.dot(total, _matrix(of_kind + P * HH, HH, P, 1, HH))
    tl.store(g_pooled + row * 2 * P + p, best.to(dtype), mask=inside)
    tl.store(g_pooled + row * 2 * P + P + p, second.to(dtype), mask=inside)


@triton.jit
def _running(x, backwards: tl.constexpr):
    """Sums along the first axis up to every row, from the last row if backwards."""
    up = tl.cumsum(x, 0)
    return tl.sum(x, 0)[None, :] - up + x if backwards else up


@triton.jit
def _relations_forward(
    spoken, weight, pooled, winners, relayed, ends, B, M, V,
    D: tl.constexpr, P: tl.constexpr, H: tl.constexpr, VV: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """One relation a < b of one query: row d is the rule {a >= d} + {b <= d}. Slots are v for a, V + v for b."""
    b, m = tl.program_id(0) // M, tl.program_id(0) % M
    small, large = tl.load(ends + b * 2 * M + m), tl.load(ends + b * 2 * M + M + m)
    d, p, h = tl.arange(0, VV)[:, None], tl.arange(0, P)[None, :], tl.arange(0, 2 * H)[None, :]
    real = tl.where(small >= 0, p, P) < P
    best = tl.full((VV, P), float("-inf"), tl.float32)
    second = tl.full((VV, P), float("-inf"), tl.float32)
    winner = tl.full((VV, P), 127, tl.int32)
    runner_up = tl.full((VV, P), 127, tl.int32)
    for side in tl.static_range(2):
        for v in range(V):
            row = ((large if side else small) * V + v).to(tl.int64) * B + b
            said = tl.load(spoken + row * P + p, mask=real, other=0.0).to(tl.float32)
            said = tl.where(v <= d if side else v >= d, said, float("-inf"))
            runner_up = tl.where(said > best, winner, tl.where(said > second, side * V + v, runner_up))
            winner = tl.where(said > best, side * V + v, winner)
            second = tl.maximum(second, tl.minimum(best, said))
            best = tl.maximum(best, said)
    second = tl.where(second == float("-inf"), 0.0, second)
    dtype = relayed.dtype.element_ty
    row = tl.program_id(0).to(tl.int64) * V + d
    if KEEP:
        tl.store(pooled + row * 2 * P + p, best.to(dtype), mask=d < V)
        tl.store(pooled + row * 2 * P + P + p, second.to(dtype), mask=d < V)
        tl.store(winners + row * P + p, (winner + 256 * runner_up).to(tl.int16), mask=d < V)
    answer = tl.dot(best.to(dtype), _matrix(weight, P, 2 * H, 2 * H, 1))
    answer = tl.dot(second.to(dtype), _matrix(weight + P * 2 * H, P, 2 * H, 2 * H, 1), answer)
    answer = tl.where(d < V, answer, 0.0) / V
    row = (b.to(tl.int64) * 2 * M + m) * V + d
    # Choice (a, v) is in the rules d <= v, choice (b, v) in the rules d >= v.
    tl.store(relayed + row * 2 * H + h, _running(answer, False).to(dtype), mask=d < V)
    tl.store(relayed + (row + M * V) * 2 * H + h, _running(answer, True).to(dtype), mask=d < V)


@triton.jit
def _relations_backward(
    g_own, weight, winners, g_related, g_relayed, ends, B, M, V,
    D: tl.constexpr, P: tl.constexpr, H: tl.constexpr, VV: tl.constexpr,
):  # fmt: skip
    b, m = tl.program_id(0) // M, tl.program_id(0) % M
    small, large = tl.load(ends + b * 2 * M + m), tl.load(ends + b * 2 * M + M + m)
    d, p, h = tl.arange(0, VV)[:, None], tl.arange(0, P)[None, :], tl.arange(0, 2 * H)[None, :]
    real = tl.where(small >= 0, d, V) < V
    of_small = tl.load(g_own + ((small * V + d).to(tl.int64) * B + b) * (P + 2 * H) + P + h, mask=real, other=0.0)
    of_large = tl.load(g_own + ((large * V + d).to(tl.int64) * B + b) * (P + 2 * H) + P + h, mask=real, other=0.0)
    total = _running(of_small.to(tl.float32), True) + _running(of_large.to(tl.float32), False)
    dtype = g_related.dtype.element_ty
    total = tl.where(d < V, total / V, 0.0).to(dtype)
    row = tl.program_id(0).to(tl.int64) * V + d
    tl.store(g_related + row * 2 * H + h, total, mask=d < V)
    best = tl.dot(total, _matrix(weight, 2 * H, P, 1, 2 * H))
    second = tl.dot(total, _matrix(weight + P * 2 * H, 2 * H, P, 1, 2 * H))
    both = tl.load(winners + row * P + p, mask=d < V, other=0).to(tl.int32)
    to_small = tl.zeros((VV, P), tl.float32)
    to_large = tl.zeros((VV, P), tl.float32)
    for rule in range(V):
        of_rule = d == rule
        won = tl.sum(tl.where(of_rule, both, 0), 0)[None, :]
        g_best = tl.sum(tl.where(of_rule, best, 0.0), 0)[None, :]
        g_second = tl.sum(tl.where(of_rule, second, 0.0), 0)[None, :]
        first, other = won % 256, won // 256
        to_small += tl.where(first == d, g_best, 0.0) + tl.where(other == d, g_second, 0.0)
        to_large += tl.where(first == V + d, g_best, 0.0) + tl.where(other == V + d, g_second, 0.0)
    row = (b.to(tl.int64) * 2 * M + m) * V + d
    tl.store(g_relayed + row * P + p, to_small.to(dtype), mask=d < V)
    tl.store(g_relayed + (row + M * V) * P + p, to_large.to(dtype), mask=d < V)
