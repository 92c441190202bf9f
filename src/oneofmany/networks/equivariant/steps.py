"""The steps of the equivariant networks: one round over the rules, and the loop over steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oneofmany.networks.equivariant.plain import (
    pool_relations,
    spread_relations,
    sum_rows,
    top_over_rules,
)
from oneofmany.networks.equivariant.rules import FEATURES
from oneofmany.networks.equivariant.sums import beliefs, sum_features
from oneofmany.networks.equivariant.tables import RelationTables, RuleTables, SumTables
from oneofmany.networks.kernels import autocasts, takes_cpu, takes_cuda


class RuleBlock(nn.Module):
    """One round: choices send, each rule pools and answers by its kind, choices update through a gated layer.

    Args:
        kinds: names of the kinds of rules; each kind has its own weights.
        width: channels of a choice's state.
        pooled: channels that a rule pools (largest and second largest).
        hidden: gated hidden units of the update.
        relation_kind: the kind of a query's relations, or None.
        sums: names of the kinds of rules with weights and bounds.
    """

    def __init__(
        self,
        kinds: Sequence[str],
        width: int,
        pooled: int,
        hidden: int,
        relation_kind: str | None,
        sums: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.kinds, self.relation_kind = tuple(kinds), relation_kind
        self.width, self.pooled, self.hidden = width, pooled, hidden
        self.choice = nn.Linear(width, pooled + 2 * hidden)
        bound = 1 / math.sqrt(2 * pooled)
        self.rule = nn.Parameter(torch.empty(len(self.kinds), 2 * pooled, 2 * hidden).uniform_(-bound, bound))
        self.update = nn.Linear(hidden, width)
        self.sums = tuple(sums)
        if self.sums:
            bound = 1 / math.sqrt(FEATURES)
            self.sum = nn.Parameter(torch.empty(len(self.sums), FEATURES, 2 * hidden).uniform_(-bound, bound))

    def forward(
        self,
        state: Tensor,
        query: Tensor,
        tables: RuleTables,
        relations: RelationTables | None,
        belief: Tensor | None = None,
    ) -> Tensor:
        """Return the next state [C, B, width] from the state and the embedded query, both [C, B, width].

        ``belief`` [R, B, V], the probabilities of the values, is needed for rules with weights and bounds.
        """
        spoken, own = self.choice(state + query).split([self.pooled, 2 * self.hidden], -1)
        pooled = top_over_rules(spoken, tables)
        weights = dict(zip(self.kinds, self.rule.unbind(), strict=True))
        of_kinds = pooled.split([count for _, count in tables.kinds])
        answers = torch.cat([part @ weights[kind] for part, (kind, _) in zip(of_kinds, tables.kinds, strict=True)])
        own = own + sum_rows(answers, tables.spread)
        if relations is not None and self.relation_kind is not None:
            answers = pool_relations(spoken, relations) @ weights[self.relation_kind]
            own = own + spread_relations(answers, relations)
        if belief is not None and tables.sums is not None:
            own = own + self.told(belief, tables.sums).to(own.dtype)
        gate, value = own.chunk(2, -1)
        return F.layer_norm(state + self.update(F.silu(gate) * value), (self.width,))

    def told(self, belief: Tensor, sums: SumTables) -> Tensor:
        """Return what rules with weights and bounds tell the choices, [C, B, 2 * hidden], from the belief [R, B, V]."""
        of_kinds = zip(sum_features(belief, sums), sums.kinds, strict=True)
        parts = [features.to(self.sum.dtype) @ self.sum[self.sums.index(kind)] for features, kind in of_kinds]
        return torch.stack(parts).sum(0)


class Step(nn.Module):
    """One step: a round over the rules and the logits of the new state.

    It is a separate module so that ``network.compile_step()`` compiles a single step for any number of steps.
    """

    def __init__(self, block: RuleBlock) -> None:
        super().__init__()
        self.block = block
        bound = 1 / math.sqrt(block.width)
        self.readout = nn.Parameter(torch.empty(block.width).uniform_(-bound, bound))

    def forward(
        self,
        state: Tensor,
        query: Tensor,
        tables: RuleTables,
        relations: RelationTables | None,
        belief: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the next state [C, B, width] and its logits [C, B].

        ``belief`` [R, B, V] is what rules with weights and bounds expect; by default that of the state's logits.
        """
        if tables.sums is not None:
            if belief is None:
                with torch.autocast(state.device.type, enabled=False):
                    belief = beliefs(state @ self.readout.to(state.dtype), tables.sums.weights.shape[-1])
            if uses_cpu_kernels(self, state, query, relations):
                from oneofmany.networks.equivariant import cpu_autograd

                told = self.block.told(belief, tables.sums)
                logits, state = cpu_autograd.run_steps(self, state, query, tables, 1, True, told)
                return state, logits[0]
        state = self.block(state, query, tables, relations, belief)
        # Logits need full precision: in 16 bits, close values of a variable would tie.
        with torch.autocast(state.device.type, enabled=False):
            return state, state @ self.readout.to(state.dtype)


def run_steps(
    step: Step,
    state: Tensor,
    query: Tensor,
    tables: RuleTables,
    relations: RelationTables | None,
    steps: int,
    every_step: bool,
    belief: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return logits [T, C, B] (T = 1, the last step's only, if not every_step) and the last state [C, B, width].

    ``belief`` is that of ``Step``, the same in all steps.
    """
    if uses_kernels(step.block, state, tables, relations):
        from oneofmany.networks.equivariant import cuda

        return cuda.run_steps(step, state, query, tables, relations, steps, every_step)
    if tables.sums is None and uses_cpu_kernels(step, state, query, relations):
        from oneofmany.networks.equivariant import cpu_autograd

        return cpu_autograd.run_steps(step, state, query, tables, steps, every_step)
    made = []
    for _ in range(steps):
        state, last = step(state, query, tables, relations, belief)
        made = [*made, last] if every_step else [last]
    return torch.stack(made), state


def uses_kernels(block: RuleBlock, state: Tensor, tables: RuleTables, relations: RelationTables | None) -> bool:
    """Return whether all steps from a state [C, B, width] run as CUDA kernels.

    The kernels need widths of 16, 32 or 64, slots that fit into a byte, and at most 16 values in relations a < b.
    """
    if tables.sums is not None or not takes_cuda(state) or not autocasts(state) or not state.numel():
        return False
    widths = all(width in (16, 32, 64) for width in (block.width, block.pooled, block.hidden))
    values = 0 if relations is None else len(state) // relations.variables
    return widths and tables.members.shape[1] < 127 and values <= 16


def uses_cpu_kernels(step: Step, state: Tensor, query: Tensor, relations: RelationTables | None) -> bool:
    """Return whether steps from a state [C, B, width] run as compiled kernels on a CPU.

    They know relations as rules only, and need the formulas of this module. Rules with weights and bounds depend on
    the belief, so they are computed between the steps.
    """
    if relations is not None or not state.numel():
        return False
    return all(map(takes_cpu, (state, query, *step.parameters()))) and is_plain(step)


def is_plain(network: nn.Module) -> bool:
    """Return whether a network computes just what its classes say: no hooks, nothing replaced, nothing compiled."""
    return not any(
        one._forward_hooks or one._forward_pre_hooks or "forward" in vars(one) or one._compiled_call_impl is not None
        for one in network.modules()
    )
