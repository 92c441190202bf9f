"""All steps of the equivariant network as CUDA kernels, for bfloat16 on a GPU.

It computes the same function as ``steps.Step``, which is the reference. If a query's rows fit into the shared memory of
a block, one kernel takes whole queries through all steps. Otherwise a step is two kernels: one over rules (pool,
answer) and one over choices (gather the answers, update, normalise, read out, send again). The backward pass has two
more. Relations of a query add one kernel each way. The state accumulates in float32, products take bfloat16, and their
inputs are kept in bfloat16 for the backward pass. Weight gradients are products over all steps at the end.

``kernels.cu`` and ``resident.cu`` are compiled when they are needed, by the compiler that comes with PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from oneofmany.networks.equivariant.cuda_kernels import half_memory, kernels, resident_memory, resident_queries
from oneofmany.networks.equivariant.cuda_tables import (
    KernelRelations,
    KernelTables,
    KernelWeights,
    kernel_relations,
    kernel_tables,
    kernel_weights,
    parts_of,
)
from oneofmany.networks.equivariant.tables import RelationTables, RuleTables

QUERIES = 512
"""Queries that run together through all steps: more of them need more memory and are not faster."""
TYPE = torch.bfloat16
ROWS = 4096
"""The least number of rows in a partial sum of weight gradients."""


def run_steps(
    step: Any,
    state: Tensor,
    query: Tensor,
    tables: RuleTables,
    relations: RelationTables | None,
    steps: int,
    every_step: bool,
) -> tuple[Tensor, Tensor]:
    """Return logits [T, C, B] (T = 1, the last step's only, if not every_step) and the last state [C, B, width].

    Args:
        step: the network's ``Step``.
        state: float32 [C, B, width].
        query: the embedded query [C, B, width].
        tables: of the problem, or of all queries of the batch, one after the other.
        relations: of the batch, or None.
        steps: number of steps.
        every_step: whether to return the logits of all steps.
    """
    block = step.block
    weights = (block.choice.weight, block.choice.bias, block.rule, block.update.weight, block.update.bias, step.readout)
    at_once = resident(step, state, tables, relations)
    shared = kernel_weights(*weights), kernel_tables(tables, block.kinds), at_once
    made, together = [], state.shape[1] if at_once else QUERIES
    for begin, asked, some in zip(state.split(together, 1), query.split(together, 1), _split(relations), strict=False):
        related = None if some is None else kernel_relations(some, block, len(state))
        if torch.is_grad_enabled():
            logits, last = _Steps.apply(begin, asked, *weights, *shared, related, steps)
            made.append((logits if every_step else logits[-1:], last))
        else:
            made.append(
                _Pass(weights, *shared, related, steps, keep=False, every_step=every_step).forward(begin, asked)
            )
    if len(made) == 1:
        return made[0]
    return torch.cat([logits for logits, _ in made], 2), torch.cat([last for _, last in made], 1)


def resident(step: Any, state: Tensor, tables: RuleTables, relations: RelationTables | None) -> int:
    """Return how many queries each block takes through all steps; 0 if every step has its own kernels."""
    if relations is not None or not tables.shared:
        return 0
    block, (C, B, _) = step.block, state.shape
    widths = block.width, block.pooled, block.hidden
    here = kernels(widths, state.device)
    return resident_queries(widths, C, len(tables.members), B, here.multiprocessors, here.limit)


def _split(relations: RelationTables | None) -> Iterable[RelationTables | None]:
    """The relations of the queries that run together."""
    if relations is None:
        return repeat(None)
    return (replace(relations, ends=ends) for ends in relations.ends.split(QUERIES))


class _Steps(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, state: Tensor, query: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        weights, others = rest[:6], rest[6:]
        ctx.set_materialize_grads(False)
        ctx.passed = _Pass(weights, *others, keep=True, every_step=True)
        return ctx.passed.forward(state, query)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor | None) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        grad_logits, grad_last = grad_outputs
        gradients = ctx.passed.backward(grad_logits, grad_last)
        ctx.passed = None
        return *gradients, None, None, None, None, None


class _Pass:
    """One forward pass and, if its tensors are kept, its backward pass."""

    def __init__(
        self,
        weights: Sequence[Tensor],
        arranged: KernelWeights,
        tables: KernelTables,
        at_once: int,
        relations: KernelRelations | None,
        steps: int,
        keep: bool,
        every_step: bool,
    ) -> None:
        choice, bias, self.rule, *_ = weights
        self.device = choice.device
        self.widths = _, P, _ = choice.shape[1], self.rule.shape[1] // 2, self.rule.shape[2] // 2
        self.first = choice[:P].to(TYPE), bias[:P].to(TYPE)  # what is sent before the first step
        self.weights, self.tables, self.at_once, self.related = arranged, tables, at_once, relations
        self.steps, self.keep, self.every_step = steps, keep, every_step
        self.kernels = kernels(self.widths, self.device)

    def _new(self, *shape: int, dtype: torch.dtype = TYPE) -> Tensor:
        return torch.empty(shape, device=self.device, dtype=dtype)

    def _by_choices(self, name: str, C: int, B: int, *arguments: Tensor | int) -> None:
        """Launch a kernel over choices."""
        self.kernels.launch(name, self.kernels.blocks(name, _tiles(C, B)), *arguments)

    def _by_rules(self, name: str, B: int, before: Sequence[Tensor | int], after: Sequence[Tensor | int]) -> None:
        """Launch a kernel over rules; the table of its parts is between the arguments."""
        t = self.tables
        blocks = self.kernels.blocks(name, sum(_tiles(count, B) for _, count in t.counts))
        parts = parts_of(t.counts, blocks, self.device)
        self.kernels.launch(name, len(parts), *before, t.members.shape[1], parts, *after)

    def _by_relations(self, name: str, *arguments: Tensor | int) -> None:
        """Launch a kernel over queries and relations."""
        r = self.related
        assert r is not None
        B, ends = r.ends.shape
        blocks = self.kernels.blocks(name, B * ends // 2)
        at_last = (int(self.keep),) if name == "relations_forward" else ()
        self.kernels.launch(name, blocks, *arguments, r.ends, B, ends // 2, r.values, *at_last)

    def _lists(self, relayed: Tensor) -> tuple[Tensor | int, ...]:
        """The arguments with which kernels over choices find a variable's relations; placeholders if there are none."""
        r, t = self.related, self.tables
        return (
            (relayed, t.rules, t.rules, 0, 1)
            if r is None
            else (relayed, r.of_variable, r.most, r.ends.shape[1], r.values)
        )

    def forward(self, state: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [T, C, B] and the last state."""
        t, w, keep, (_, P, H) = self.tables, self.weights, self.keep, self.widths
        (C, B, D), G = state.shape, len(t.members)
        slots = self.steps if keep else 0 if self.at_once else 1
        ends, values = (0, 1) if self.related is None else (self.related.ends.shape[1], self.related.values)
        self.query = query.to(TYPE).contiguous()
        self.x = self._new(slots + keep, C, B, D)
        self.pooled, self.winners = self._new(slots * G, B, 2 * P), self._new(slots, G, B, P, dtype=torch.int16)
        self.gate, self.scale = self._new(slots, C, B, 2 * H), self._new(slots, C, B, dtype=torch.float32)
        related = (slots, B, ends // 2, values)
        self.related_pooled = self._new(*related, 2 * P)
        self.related_winners = self._new(*related, P, dtype=torch.int16)
        logits = self._new(self.steps if self.every_step else 1, C, B, dtype=torch.float32)
        if self.at_once:
            return logits, self._run(state.float().contiguous(), logits)

        state = state.float().clone(memory_format=torch.contiguous_format)
        spoken, answers, relayed = self._new(C, B, P), self._new(G, B, 2 * H), self._new(B, ends, values, 2 * H)
        torch.add(state, self.query, out=self.x[0])
        weight, bias = self.first
        torch.addmm(bias, self.x[0].view(-1, D), weight.t(), out=spoken.view(-1, P))
        for step in range(self.steps):
            at = step if keep else 0
            self._by_rules(
                "rules_forward",
                B,
                (spoken, w.answering, t.members, t.real),
                (self.pooled, self.winners[at], answers, B, at, slots, int(keep)),
            )
            if self.related is not None:
                kept = self.related_pooled[at], self.related_winners[at]
                self._by_relations("relations_forward", spoken, w.answering[self.related.kind], *kept, relayed)
            self._by_choices(
                "choices_forward", C, B, state, self.query, answers, t.rules, t.spread, t.rules.shape[1],
                *self._lists(relayed), w.forward, w.numbers,
                self.x[at + keep], spoken, self.gate[at], self.scale[at], logits[step if self.every_step else 0], B, C,
                int(keep), int(step == self.steps - 1),
            )  # fmt: skip
        return logits, state

    def _run(self, state: Tensor, logits: Tensor) -> Tensor:
        """Write the logits, and return the last state: blocks take whole queries through all steps."""
        t, w, at_once, (C, B, D), G = self.tables, self.weights, self.at_once, state.shape, len(self.tables.members)
        parts, last = parts_of(t.counts, 1, self.device), torch.empty_like(state)
        blocks = self.kernels.blocks("resident_forward", -(-B // at_once) * self.kernels.warps("resident_forward"))
        between = self._new(blocks * _tiles(C, at_once) * 16, D, dtype=torch.float32)
        self.kernels.launch(
            "resident_forward", blocks, state, self.query, between, last, t.near, t.near.shape[1], t.links,
            t.links.shape[1], t.whole, parts, len(parts), w.forward, w.numbers, w.telling,
            self.x, self.pooled, self.winners, self.gate, self.scale, logits,
            B, C, G, at_once, half_memory(self.widths, C, G, at_once), self.steps, int(self.keep), int(self.every_step),
            memory=resident_memory(self.widths, C, G, at_once),
        )  # fmt: skip
        return last

    def backward(self, grad_logits: Tensor | None, grad_last: Tensor | None) -> tuple[Tensor, ...]:
        """Return the gradients of the state, the query and the weights; None are zeros."""
        t, w, steps, (_, P, H) = self.tables, self.weights, self.steps, self.widths
        (_, C, B, D), G = self.x.shape, len(t.members)
        ends, values = (0, 1) if self.related is None else (self.related.ends.shape[1], self.related.values)
        grad_state = self._new(C, B, D, dtype=torch.float32)
        grad_state.zero_() if grad_last is None else grad_state.copy_(grad_last)
        if grad_logits is None:
            grad_logits = torch.zeros(steps, C, B, device=self.device)
        grad_logits = grad_logits.float().contiguous()
        grad_own = self._new(steps, C, B, P + 2 * H)  # of a choice's output to its rules and to its own gates
        grad_moved, hidden = self._new(steps, C, B, D), self._new(steps, C, B, H)
        grad_pooled, grad_answers = self._new(G, B, 2 * P), self._new(steps * G, B, 2 * H)
        grad_related, grad_relayed = self._new(steps, B, ends // 2, values, 2 * H), self._new(B, ends, values, P)

        def by_choices(step: int) -> None:
            """Back through what was sent after a step, then through its update; step -1 has no update."""
            at, after = max(step, 0), min(step + 1, steps - 1)
            self._by_choices(
                "choices_backward", C, B, grad_state, grad_logits[at], self.scale[at], self.x[step + 1], self.query,
                self.gate[at], self.winners[after], grad_pooled, t.rules, t.slot, t.rules.shape[1],
                *self._lists(grad_relayed), w.backward, w.numbers, grad_own[after], grad_moved[at],
                grad_own[at], hidden[at], B, C, int(step == steps - 1), int(step < 0),
            )  # fmt: skip

        for step in reversed(range(steps)):
            by_choices(step)
            self._by_rules(
                "rules_backward",
                B,
                (grad_own[step], w.returning, t.members, t.gather),
                (grad_answers, grad_pooled, B, step, steps),
            )
            if self.related is not None:
                weight, winners = w.returning[self.related.kind], self.related_winners[step]
                self._by_relations(
                    "relations_backward", grad_own[step], weight, winners, grad_related[step], grad_relayed
                )
        by_choices(-1)

        grad_query = self._new(C, B, D, dtype=torch.float32)
        blocks = self.kernels.blocks("totals", _tiles(C * B, 1))
        totals = self._new(blocks * self.kernels.warps("totals"), P + 2 * H + 2 * D, dtype=torch.float32)
        given = grad_own, grad_moved, self.x[1:], self.query, grad_logits, w.backward
        self.kernels.launch("totals", blocks, *given, grad_query, totals, C * B, steps)
        grad_choice_bias, grad_update_bias, grad_readout = totals.sum(0).split((P + 2 * H, D, D))
        grad_rule = torch.zeros(self.rule.shape, device=self.device)
        # Not index_add_, which adds in no fixed order on a GPU.
        counts = [steps * count for _, count in t.counts]
        of_kinds = (part.split(counts) for part in (self.pooled, grad_answers))
        for (kind, _), pooled, answers in zip(t.counts, *of_kinds, strict=True):
            grad_rule[kind] += _outer(pooled.unflatten(0, (steps, -1)), answers.unflatten(0, (steps, -1)))
        if self.related is not None:
            grad_rule[self.related.kind] += _outer(self.related_pooled, grad_related)
        return (
            grad_state,
            grad_query,
            _outer(grad_own, self.x[:-1]),
            grad_choice_bias,
            grad_rule,
            _outer(grad_moved, hidden),
            grad_update_bias,
            grad_readout,
        )


def _tiles(items: int, B: int) -> int:
    """As in the kernels: 16 queries of one item, or of several if there are fewer queries."""
    return -(-items * B // 16) if B < 16 else items * -(-B // 16)


def _outer(a: Tensor, b: Tensor) -> Tensor:
    """float32 [m, n]: the sum over all rows of a[.., m] * b[.., n]; in parts, and in a fixed order."""
    a, b = a.flatten(1, -2), b.flatten(1, -2)  # [T, rows, m] and [T, rows, n]
    parts = next(n for n in range(max(1, a.shape[1] // ROWS), 0, -1) if a.shape[1] % n == 0)
    a, b = (x.view(len(x) * parts, -1, x.shape[-1]) for x in (a, b))  # no copy
    return torch.bmm(a.mT, b).sum(0, dtype=torch.float32)
