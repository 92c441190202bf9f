"""The equivariant recurrent network over choices and rules: one small network for all tasks and sizes.

Each choice is a token with a state. Each rule pools the states of its choices and sends one message back to all of
them. Weights are shared by all choices, by all rules of a kind and by all steps, and variables and values have no
embeddings. So the network is equivariant under every symmetry that maps rules to rules of the same kind.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from oneofmany.networks.equivariant.inputs import check_tensor, checked_tables, flag_features, given_feature
from oneofmany.networks.equivariant.rules import refusal, sum_kinds, used_kinds
from oneofmany.networks.equivariant.steps import RuleBlock, Step, run_steps
from oneofmany.networks.equivariant.tables import relation_tables
from oneofmany.networks.protocol import TaskNetwork
from oneofmany.networks.settings import Inequalities
from oneofmany.problems import Batch, Problem


class EquivariantNetwork(TaskNetwork):
    """Recurrent network over choices and rules (see the module's docstring); logits [T, B, R, V] of all steps.

    No parameter depends on the size of the problem: weights trained on 6-queens run on 20-queens.

    Args:
        problem: a problem with the kinds of rules to have weights for; its size does not matter.
        width: channels of a choice's state.
        steps: default number of steps.
        pooled: channels that a rule pools; ``width`` by default.
        hidden: gated hidden units of the update; ``width`` by default.
        inequalities: input form of a query's relations a < b. ``rules``: rules like any other. ``flags``: the two flags
            of the paper's NLM, "larger than the other" and "smaller than the other", on the cell of a pair that comes
            first in reading order (the left one of a horizontal pair, the upper one of a vertical pair). The other
            cell has no flag.
    """

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
        self._trained = f"{problem.task} {problem.size}"
        kinds, relation_kind = used_kinds(problem, inequalities)
        self.embed = nn.Linear(2 + 2 * (inequalities == "flags"), width)
        block = RuleBlock(kinds, width, pooled or width, hidden or width, relation_kind, sum_kinds(problem))
        self.step = Step(block)

    def accepts(self, problem: Problem, relations: np.ndarray | None = None) -> str | None:
        """Return None for problems of any task and size whose kinds of rules the network has weights for."""
        block = self.step.block
        return refusal(problem, relations, block.kinds, self.inequalities, self._trained, block.sums)

    def noise_shape(self, batch: Batch) -> tuple[int, int]:
        """Return [B, C]: one number per choice."""
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
        """Return the logits of a batch.

        Args:
            batch: the queries; solutions and mask are not used.
            steps: number of steps, at least 1; the network's own by default.
            noise: float [B, C], which breaks symmetries; zeros by default, and then a symmetric query gets an answer
                with the same symmetry.
            state: [B, C, width] from an earlier call, to continue from; None to start.
            every_step: False returns the last step's logits only; without gradients, memory is then that of one step.
            return_state: also return the last state, to continue from (detach it to cut the gradient).

        Returns:
            Logits [T, B, R, V], or [B, R, V] if not every_step; with return_state, a pair with the state.
        """
        steps = self.steps if steps is None else _checked_steps(steps)
        query, problem = batch.query, batch.problem
        block = self.step.block
        tables = checked_tables(self, batch, block.kinds, self.inequalities == "rules", block.sums)
        check_tensor("noise", noise, self.noise_shape(batch), query.device)
        check_tensor("state", state, (len(batch), problem.choices, block.width), query.device)

        relations = None
        given = given_feature(query, problem.values)
        features = [given, torch.zeros_like(given) if noise is None else noise.t().to(given.dtype)]
        if self.inequalities == "flags":
            features += flag_features(batch)
        elif tables.shared and batch.relations is not None and batch.relations.shape[1]:
            relations = relation_tables(batch.relations, problem)
        embedded = self.embed(torch.stack(features, -1).to(self.embed.weight.dtype))

        # Inside, choices come first ([C, B, ..]); outside, queries come first, as everywhere.
        # Under autocast products are in 16 bits, but the state that accumulates them stays float32.
        dtype = self.embed.weight.dtype
        inner = embedded.to(dtype, copy=True) if state is None else state.to(dtype).transpose(0, 1).contiguous()
        if not tables.shared:  # the choices of all queries, one after the other: [B * C, 1, ..]
            embedded, inner = (x.transpose(0, 1).flatten(0, 1)[:, None] for x in (embedded, inner))
        logits, inner = run_steps(self.step, inner, embedded, tables, relations, steps, every_step)
        if not tables.shared:
            logits = logits.view(len(logits), len(batch), -1).mT
            inner = inner.view(len(batch), -1, block.width).transpose(0, 1)
        shaped = logits.unflatten(1, (problem.variables, problem.values)).permute(0, 3, 1, 2)
        shaped = shaped if every_step else shaped[0]
        return (shaped, inner.transpose(0, 1)) if return_state else shaped


def _checked_steps(steps: int) -> int:
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        raise ValueError(f"steps: expected a whole number of at least 1, got {steps!r}")
    return steps
