"""A pass in which every step has its own kernels: two forward, one by rules and one by choices, and two back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from oneofmany.networks.equivariant.cuda.compiled import KernelRelations, parts_of
from oneofmany.networks.equivariant.cuda.passes import TYPE, Pass, outer, tiles_of


class StepPass(Pass):
    """As ``Pass``, also with the relations of a batch.

    Args:
        relations: of the batch, or None.
        rest: as in ``Pass``.
    """

    def __init__(self, relations: KernelRelations | None, *rest: Any) -> None:
        super().__init__(*rest)
        self.related = relations

    def _by_choices(self, name: str, C: int, B: int, *arguments: Tensor | int) -> None:
        """Launch a kernel over choices."""
        self.kernels.launch(name, self.kernels.blocks(name, tiles_of(C, B)), *arguments)

    def _by_rules(self, name: str, B: int, before: Sequence[Tensor | int], after: Sequence[Tensor | int]) -> None:
        """Launch a kernel over rules; the table of its parts is between the arguments."""
        t = self.tables
        blocks = self.kernels.blocks(name, sum(tiles_of(count, B) for _, count in t.counts))
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
        slots = self.steps if keep else 1
        ends, values = (0, 1) if self.related is None else (self.related.ends.shape[1], self.related.values)
        self.query = query.to(TYPE).contiguous()
        self.states = self.new(slots + keep, C, B, D)
        self.pooled, self.winners = self.new(slots * G, B, 2 * P), self.new(slots, G, B, P, dtype=torch.int16)
        self.gate, self.scale = self.new(slots, C, B, 2 * H), self.new(slots, C, B, dtype=torch.float32)
        related = (slots, B, ends // 2, values)
        self.related_pooled = self.new(*related, 2 * P)
        self.related_winners = self.new(*related, P, dtype=torch.int16)
        logits = self.new(self.steps if self.every_step else 1, C, B, dtype=torch.float32)
        state = state.float().clone(memory_format=torch.contiguous_format)
        spoken, answers, relayed = self.new(C, B, P), self.new(G, B, 2 * H), self.new(B, ends, values, 2 * H)
        self.states[0] = state
        seen = torch.add(state, self.query, out=self.new(C, B, D))
        weight, bias = self.choice[:P].to(TYPE), self.bias[:P].to(TYPE)  # what is sent before the first step
        torch.addmm(bias, seen.view(-1, D), weight.t(), out=spoken.view(-1, P))
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
                *self._lists(relayed), w.forward, w.numbers, self.states[at + keep], spoken,
                self.gate[at], self.scale[at], logits[step if self.every_step else 0], B, C,
                int(keep), int(step == self.steps - 1),
            )  # fmt: skip
        return logits, state

    def backward(self, grad_logits: Tensor | None, grad_last: Tensor | None) -> tuple[Tensor, ...]:
        """Return the gradients of the state, the query and the weights; None are zeros."""
        t, w, steps, (_, P, H) = self.tables, self.weights, self.steps, self.widths
        (_, C, B, D), G = self.states.shape, len(t.members)
        ends, values = (0, 1) if self.related is None else (self.related.ends.shape[1], self.related.values)
        grad_state = self.new(C, B, D, dtype=torch.float32)
        grad_state.zero_() if grad_last is None else grad_state.copy_(grad_last)
        if grad_logits is None:
            grad_logits = torch.zeros(steps, C, B, device=self.device)
        grad_logits = grad_logits.float().contiguous()
        grad_sent, grad_units, grad_moved = self.new(steps, C, B, P), self.new(C, B, 2 * H), self.new(steps, C, B, D)
        grad_pooled, grad_answers = self.new(G, B, 2 * P), self.new(steps * G, B, 2 * H)
        grad_related, grad_relayed = self.new(steps, B, ends // 2, values, 2 * H), self.new(B, ends, values, P)

        def by_choices(step: int) -> None:
            """Back through what was sent after a step, then through its update; step -1 has no update."""
            at, after = max(step, 0), min(step + 1, steps - 1)
            self._by_choices(
                "choices_backward", C, B, grad_state, grad_logits[at], self.scale[at], self.states[step + 1],
                self.gate[at], self.winners[after], grad_pooled, t.rules, t.slot, t.rules.shape[1],
                *self._lists(grad_relayed), w.backward, w.numbers, grad_sent[after], grad_moved[at],
                grad_units, B, C, int(step == steps - 1), int(step < 0),
            )  # fmt: skip

        for step in reversed(range(steps)):
            by_choices(step)
            self._by_rules(
                "rules_backward",
                B,
                (grad_units, w.returning, t.members, t.gather),
                (grad_answers, grad_pooled, B, step, steps),
            )
            if self.related is not None:
                weight, winners = w.returning[self.related.kind], self.related_winners[step]
                self._by_relations("relations_backward", grad_units, weight, winners, grad_related[step], grad_relayed)
        by_choices(-1)

        given = grad_sent, grad_moved, grad_answers, grad_logits
        grad_query, grad_choice, grad_bias, grad_rule, *others = self.weight_gradients(*given, C * B)
        if self.related is not None:
            grad_rule[self.related.kind] += outer(self.related_pooled, grad_related)
        return grad_state, grad_query.view(C, B, D), grad_choice, grad_bias, grad_rule, *others
