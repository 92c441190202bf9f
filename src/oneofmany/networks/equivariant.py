"""The equivariant recurrent network over choices and rules: one small network for every task and size.

Every choice is a token with a state, every rule pools the states of its choices and answers all of them. Weights are
shared by all choices, by all rules of a kind and by all steps, and nothing tells one variable or value from another: so
whatever symmetry maps rules to rules of the same kind maps answers to answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oneofmany.networks.rule_pooling import (
    RelationTables,
    RuleTables,
    pool_relations,
    relation_tables,
    rule_tables,
    spread_relations,
    sum_rows,
    top_over_rules,
    unrolled,
)
from oneofmany.problems import Batch, Problem

Inequalities = Literal["rules", "flags"]


class RuleBlock(nn.Module):
    """One round: choices speak, every rule pools and answers by its kind, choices update through a gated layer.

    Args:
        kinds: names of the kinds of rules, each with weights of its own.
        width: channels of a choice's state.
        pooled: channels of which a rule takes the largest and the second largest.
        hidden: gated hidden units of the update.
        relation_kind: which of the kinds is that of a query's relations, or None.
    """

    def __init__(self, kinds: Sequence[str], width: int, pooled: int, hidden: int, relation_kind: str | None) -> None:
        super().__init__()
        self.kinds, self.relation_kind = tuple(kinds), relation_kind
        self.width, self.pooled, self.hidden = width, pooled, hidden
        self.choice = nn.Linear(width, pooled + 2 * hidden)
        bound = 1 / math.sqrt(2 * pooled)
        self.rule = nn.Parameter(torch.empty(len(self.kinds), 2 * pooled, 2 * hidden).uniform_(-bound, bound))
        self.update = nn.Linear(hidden, width)

    def forward(self, state: Tensor, query: Tensor, tables: RuleTables, relations: RelationTables | None) -> Tensor:
        """The next state [C, B, width] from the state and the embedded query, both [C, B, width]."""
        spoken, own = self._choices(state + query)
        pooled = top_over_rules(spoken, tables)
        weights = dict(zip(self.kinds, self.rule.unbind(), strict=True))
        of_kinds = pooled.split([count for _, count in tables.kinds])
        answers = torch.cat([part @ weights[kind] for part, (kind, _) in zip(of_kinds, tables.kinds, strict=True)])
        own = own + sum_rows(answers, tables.spread)
        if relations is not None and self.relation_kind is not None:
            answers = pool_relations(spoken, relations) @ weights[self.relation_kind]
            own = own + spread_relations(answers, relations)
        gate, value = own.chunk(2, -1)
        return F.layer_norm(state + self.update(F.silu(gate) * value), (self.width,))

    def _choices(self, x: Tensor) -> tuple[Tensor, Tensor]:
        weight, bias = self.choice.weight, self.choice.bias
        if unrolled(x):
            spoken, own = F.linear(x, weight, bias).split([self.pooled, 2 * self.hidden], -1)
            return spoken, own
        # Eager CPU kernels want contiguous inputs: two products cost less than one and its copies.
        return F.linear(x, weight[: self.pooled], bias[: self.pooled]), F.linear(
            x, weight[self.pooled :], bias[self.pooled :]
        )


class Step(nn.Module):
    """One step: a round over the rules and the logits that can be read off the new state.

    A module of its own so that ``network.step.compile()`` compiles one step once for any number of steps.
    """

    def __init__(self, block: RuleBlock) -> None:
        super().__init__()
        self.block = block
        bound = 1 / math.sqrt(block.width)
        self.readout = nn.Parameter(torch.empty(block.width).uniform_(-bound, bound))

    def forward(
        self, state: Tensor, query: Tensor, tables: RuleTables, relations: RelationTables | None
    ) -> tuple[Tensor, Tensor]:
        """The next state [C, B, width] and its logits [C, B]."""
        state = self.block(state, query, tables, relations)
        # Logits in full precision: in 16 bits, two close values of a variable would be tied.
        with torch.autocast(state.device.type, enabled=False):
            return state, state @ self.readout.to(state.dtype)


class EquivariantNetwork(nn.Module):
    """A recurrent network over choices and rules (see the module's text); logits [T, B, R, V] at every step.

    No parameter depends on the size of the problem: the weights of 6-queens run on 20-queens as they are.

    Args:
        problem: whose kinds of rules to have weights for; its size does not matter.
        width: channels of a choice's state.
        steps: how many steps to run where the call does not say.
        pooled: channels that a rule pools, ``width`` by default.
        hidden: gated hidden units of the update, ``width`` by default.
        inequalities: how a query's relations a < b come in. ``rules``: as rules like any other. ``flags``: as the two
            flags of the paper's NLM, on the cell of a pair that comes first in reading order (the left one of a
            horizontal pair, the upper one of a vertical pair), "larger than the other" and "smaller than the other";
            the other cell carries no mark.
    """

    value_offset = 0

    def __init__(
        self,
        problem: Problem,
        width: int = 64,
        steps: int = 16,
        pooled: int | None = None,
        hidden: int | None = None,
        inequalities: Inequalities = "rules",
    ) -> None:
        super().__init__()
        if inequalities not in ("rules", "flags"):
            raise ValueError(f"inequalities: expected 'rules' or 'flags', got {inequalities!r}")
        for name, value in {"width": width, "pooled": pooled, "hidden": hidden}.items():
            if value is not None and value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        self.steps = _checked_steps(steps)
        self.inequalities: Inequalities = inequalities
        kinds, relation_kind = used_kinds(problem, inequalities)
        self.embed = nn.Linear(2 + 2 * (inequalities == "flags"), width)
        self.step = Step(RuleBlock(kinds, width, pooled or width, hidden or width, relation_kind))

    def noise_shape(self, batch: Batch) -> tuple[int, int]:
        """[B, C]: one number for every choice."""
        return len(batch), batch.problem.choices

    def forward(
        self,
        batch: Batch,
        *,
        steps: int | None = None,
        noise: Tensor | None = None,
        state: Tensor | None = None,
        every_step: bool = True,
        return_state: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Logits of a batch.

        Args:
            batch: the queries; solutions and mask are not looked at.
            steps: how many steps to run, any number from 1.
            noise: float [B, C], what tells apart choices that the query does not; zeros if None, and then a query
                with a symmetry of its own gets an answer with that symmetry.
            state: [B, C, width] to go on from, as returned by an earlier call; None to start.
            every_step: False gives the last step's logits alone, with memory for one step where no gradient is kept.
            return_state: also return the last state, to go on from (detach it to cut the gradient there).

        Returns:
            Logits [T, B, R, V], or [B, R, V] if not every_step; with return_state, a pair with the state.
        """
        steps = self.steps if steps is None else _checked_steps(steps)
        query, problem = batch.query, batch.problem
        block = self.step.block
        tables = checked_tables(self, batch, block.kinds, self.inequalities == "rules")
        check_tensor("noise", noise, self.noise_shape(batch), query.device)
        check_tensor("state", state, (len(batch), problem.choices, block.width), query.device)

        relations = None
        given = given_feature(query, problem.values)
        features = [given, torch.zeros_like(given) if noise is None else noise.t().to(given.dtype)]
        if self.inequalities == "flags":
            features += flag_features(batch)
        elif batch.relations is not None and batch.relations.shape[1]:
            relations = relation_tables(batch.relations, problem)
        embedded = self.embed(torch.stack(features, -1).to(self.embed.weight.dtype))

        # Choice by choice inside; outside the queries come first, as everywhere.
        inner = embedded.clone() if state is None else state.transpose(0, 1).contiguous()
        # Under autocast the products are in 16 bits, but the state that they add up in is not.
        inner = inner.to(self.embed.weight.dtype)
        logits, inner = run_steps(self.step, inner, embedded, tables, relations, steps, every_step)
        shaped = logits.unflatten(1, (problem.variables, problem.values)).permute(0, 3, 1, 2)
        shaped = shaped if every_step else shaped[0]
        return (shaped, inner.transpose(0, 1)) if return_state else shaped


def run_steps(
    step: Step,
    state: Tensor,
    query: Tensor,
    tables: RuleTables,
    relations: RelationTables | None,
    steps: int,
    every_step: bool,
) -> tuple[Tensor, Tensor]:
    """Logits [T, C, B] (the last step's alone, T = 1, if not every_step) and the last state [C, B, width]."""
    kernels = _kernels(step, state, tables, relations)
    if kernels is not None:
        return kernels.run_steps(step, state, query, tables, relations, steps, every_step, torch.bfloat16)
    made = []
    for _ in range(steps):
        state, last = step(state, query, tables, relations)
        made = [*made, last] if every_step else [last]
    return torch.stack(made), state


def _kernels(step: Step, state: Tensor, tables: RuleTables, relations: RelationTables | None) -> Any:
    """The module of Triton kernels where they apply, else None: bfloat16 on a GPU, not under a compiler."""
    if not state.is_cuda or not state.numel() or torch.compiler.is_compiling() or find_spec("triton") is None:
        return None
    if not torch.is_autocast_enabled("cuda") or torch.get_autocast_dtype("cuda") != torch.bfloat16:
        return None
    kernels = import_module("oneofmany.networks.equivariant_triton")
    values = 0 if relations is None else len(state) // relations.variables
    return kernels if kernels.supported(step.block, tables, values) else None


def used_kinds(problem: Problem, inequalities: Inequalities) -> tuple[tuple[str, ...], str | None]:
    """The kinds that need weights, and which of them is that of the relations: none where they come in as flags."""
    if inequalities == "rules":
        return problem.kinds, problem.relation_kind
    static = {rule.kind for rule in problem.rules}
    return tuple(kind for kind in problem.kinds if kind in static), None


def given_feature(query: Tensor, values: int) -> Tensor:
    """Float [C, B] of query int64 [B, R]: 1 where the choice is given.

    What a given excludes is for the rules to tell: a mark on the other values of its variable would set rows apart from
    columns on a chess board.
    """
    here = query.t()[:, None] == torch.arange(1, values + 1, device=query.device)[:, None]
    return here.flatten(0, 1).float()


def flag_features(batch: Batch) -> list[Tensor]:
    """Two features [C, B]: the choice's cell comes first in a pair and is the larger one; ... the smaller one."""
    problem, query = batch.problem, batch.query
    if batch.relations is None:
        return [torch.zeros(problem.choices, len(query), device=query.device)] * 2
    a, b = batch.relations.unbind(-1)
    cells = torch.arange(problem.variables, device=query.device)[:, None, None]
    larger = ((b < a)[None] & (b[None] == cells)).any(-1)
    smaller = ((a < b)[None] & (a[None] == cells)).any(-1)
    return [flag.float().repeat_interleave(problem.values, 0) for flag in (larger, smaller)]


def _checked_steps(steps: int) -> int:
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        raise ValueError(f"steps: expected a whole number from 1, got {steps!r}")
    return steps


def check_tensor(name: str, value: Tensor | None, shape: tuple[int, ...], device: torch.device) -> None:
    """Raise ValueError unless value is None or a floating-point tensor of this shape on this device."""
    if value is None:
        return
    if tuple(value.shape) != shape or not value.is_floating_point():
        raise ValueError(f"{name}: expected floating point {list(shape)}, got {value.dtype} {list(value.shape)}")
    if value.device != device:
        raise ValueError(f"{name}: expected it on the query's device {device}, got {value.device}")


def checked_tables(network: nn.Module, batch: Batch, kinds: Sequence[str], relations_as_rules: bool) -> RuleTables:
    """The tables of the batch's problem; ValueError unless the batch fits a network with weights for these kinds."""
    query, relations, problem = batch.query, batch.relations, batch.problem
    if query.ndim != 2 or query.shape[1] != problem.variables:
        raise ValueError(f"query: expected [B, {problem.variables}] for {problem}, got {list(query.shape)}")
    if query.dtype != torch.int64:
        raise ValueError(f"query: expected int64, got {query.dtype}")
    device = next(network.parameters()).device
    if query.device != device:
        raise ValueError(f"query: expected it on the network's device {device}, got {query.device}")
    if relations is not None:
        if relations.ndim != 3 or relations.shape[0] != len(query) or relations.shape[2] != 2:
            raise ValueError(f"relations: expected [{len(query)}, M, 2], got {list(relations.shape)}")
        if problem.relation_kind is None and relations.shape[1]:
            raise ValueError(f"relations: expected none for {problem}, got {list(relations.shape)}")
        if relations.dtype != torch.int64 or relations.device != device:
            raise ValueError(
                f"relations: expected int64 on the network's device {device}, got {relations.dtype} on "
                f"{relations.device}"
            )
    tables = rule_tables(problem, device)
    present = [kind for kind, _ in tables.kinds]
    if relations_as_rules and relations is not None and relations.shape[1]:
        present.append(str(problem.relation_kind))
    unknown = [kind for kind in present if kind not in kinds]
    if unknown:
        raise ValueError(f"problem: expected rules of the kinds {list(kinds)}, got {problem} with {unknown}")
    return tables
