"""The selector over choices and rules: it scores listed solutions of any task and size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oneofmany.networks.equivariant.inputs import checked_tables, flag_features, given_feature
from oneofmany.networks.equivariant.rules import sum_kinds, used_kinds
from oneofmany.networks.equivariant.steps import RuleBlock, Step, run_steps
from oneofmany.networks.equivariant.tables import relation_tables
from oneofmany.networks.settings import Inequalities
from oneofmany.problems import Batch, Problem


class EquivariantSelector(nn.Module):
    """The latent model of the selection module (section 3.4) as a few rounds over choices and rules.

    The inputs of a choice are its probability under the lagged copy, whether the solution takes it, the product of the
    two, and whether it is given. Rules with weights and bounds speak through the sums that the lagged copy expects. The
    score is the mean of a linear readout over the choices. As in ``EquivariantNetwork``, no parameter depends on the
    size of the problem.

    Args:
        problem: a problem with the kinds of rules to have weights for; its size does not matter.
        width: channels of a choice's state.
        rounds: rounds of pooling, all with the same weights.
        inequalities: input form of relations, as in ``EquivariantNetwork``.
        value_offset: of the prediction network.
    """

    def __init__(
        self,
        problem: Problem,
        width: int = 32,
        rounds: int = 3,
        inequalities: Inequalities = "rules",
        value_offset: int = 0,
    ) -> None:
        super().__init__()
        if inequalities not in ("rules", "flags"):
            raise ValueError(f"inequalities: expected 'rules' or 'flags', got {inequalities!r}")
        for name, value, least in (("width", width, 1), ("rounds", rounds, 1), ("value_offset", value_offset, 0)):
            if value < least:
                raise ValueError(f"{name}: expected at least {least}, got {value}")
        self.rounds, self.value_offset = rounds, value_offset
        self.inequalities: Inequalities = inequalities
        kinds, relation_kind = used_kinds(problem, inequalities)
        self.embed = nn.Linear(4 + 2 * (inequalities == "flags"), width)
        self.step = Step(RuleBlock(kinds, width, width, width, relation_kind, sum_kinds(problem)))

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return scores [B, K] of the listed solutions from logits [B, R, classes] or [T, B, R, classes] (last step).

        Padding in ``batch.solutions`` does not change the scores of listed solutions.
        """
        problem, solutions, block = batch.problem, batch.solutions, self.step.block
        tables = checked_tables(self, batch, block.kinds, self.inequalities == "rules", block.sums)
        shape = [len(batch), problem.variables, problem.values + self.value_offset]
        if logits.ndim not in (3, 4) or list(logits.shape[-3:]) != shape or not logits.is_floating_point():
            raise ValueError(
                f"logits: expected floating point {shape} with or without steps before it, "
                f"got {logits.dtype} {list(logits.shape)}"
            )
        if solutions.ndim != 3 or [solutions.shape[0], solutions.shape[2]] != shape[:2]:
            raise ValueError(f"solutions: expected [{shape[0]}, K, {shape[1]}], got {list(solutions.shape)}")
        if {logits.device, solutions.device} != {batch.query.device}:
            raise ValueError(
                f"logits and solutions: expected both on {batch.query.device}, got {logits.device} and "
                f"{solutions.device}"
            )
        B, K, _ = solutions.shape
        last = logits if logits.ndim == 3 else logits[-1]
        copied = last.float().softmax(-1)[..., self.value_offset :].permute(1, 2, 0)  # [R, V, B]
        belief = copied.flatten(0, 1)
        taken = solutions[..., None] == torch.arange(problem.values, device=solutions.device)
        taken = taken.permute(2, 3, 0, 1).flatten(0, 1).float()  # [C, B, K]
        features = [belief, given_feature(batch.query, problem.values)]
        relations = None
        if self.inequalities == "flags":
            features += flag_features(batch)
        elif tables.shared and batch.relations is not None and batch.relations.shape[1]:
            relations = relation_tables(batch.relations.repeat_interleave(K, 0), problem)
        of_pairs = [taken, taken * belief[..., None], *(f[..., None].expand_as(taken) for f in features)]
        embedded = self.embed(torch.stack(of_pairs, -1).to(self.embed.weight.dtype))
        # All pairs are columns of shared rules; in blocks, every query has the columns of its own solutions.
        embedded = _columns(embedded, tables.shared)
        expected = None
        if tables.sums is not None:
            expected = _columns(copied.transpose(1, 2)[:, :, None].expand(-1, -1, K, -1), tables.shared)
        state = embedded.to(self.embed.weight.dtype)  # full precision also under autocast
        of_choices, _ = run_steps(self.step, state, embedded, tables, relations, self.rounds, False, expected)
        return of_choices[0].mean(0).view(B, K) if tables.shared else of_choices[0].view(B, -1, K).mean(1)


def _columns(x: Tensor, shared: bool) -> Tensor:
    """Rows of choices or variables: [N, B, K, channels] -> [N, B * K, channels], or [B * N, K, channels] in blocks."""
    return x.flatten(1, 2) if shared else x.transpose(0, 1).flatten(0, 1)
