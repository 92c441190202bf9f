"""NLM: the paper's prediction network for N-Queens and Futoshiki (appendix; Dong et al. 2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oneofmany.networks.nlm_machine import LogicMachine, Precision
from oneofmany.networks.nlm_predicates import Predicates, Relations, task_of
from oneofmany.problems import Batch, Problem


class NLM(nn.Module):
    """Predicts every choice on its own: a logit for each (variable, value), whose sigmoid is its probability.

    The same weights serve every size of the task. Parameters with the paper's depth and width: 312,242 (N-Queens),
    313,684 (Futoshiki); with ``learned_nullary=16``, as the authors' older code, 319,938 and 321,380.

    Args:
        predicates: what the network is told about a query.
        depth: layers.
        width: predicates that every layer makes for each arity.
        residual: every layer sees the inputs and what all earlier layers made, or only the layer before.
        learned_nullary: how many learned numbers z enter as nullary predicates sigmoid(z), the same for all queries.
        precision: of what is kept between the layers (``nlm_machine.Precision``).
    """

    value_offset = 0

    def __init__(
        self,
        predicates: Predicates,
        *,
        depth: int = 30,
        width: int = 8,
        residual: bool = True,
        learned_nullary: int = 0,
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        self.predicates = predicates
        self.machine = LogicMachine(
            learned_nullary,
            1 + predicates.flags,
            predicates.binary,
            depth=depth,
            width=width,
            residual=residual,
            precision=precision,
        )
        self.z = nn.Parameter(torch.randn(learned_nullary)) if learned_nullary else None

    def forward(self, batch: Batch) -> Tensor:
        """Logits [B, R, V]."""
        weight = self.machine.readout.weight
        self.predicates.check(batch, weight.device)
        unary = self.predicates.prior(batch, weight.dtype)
        if self.predicates.flags:
            unary = torch.cat([unary, self.predicates.flag_inputs(batch, weight.dtype)], -1)
        binary = self.predicates.static(batch.problem, weight.device, weight.dtype).binary
        nullary = None if self.z is None else self.z.sigmoid().expand(len(unary), -1)
        logits = self.machine(unary, binary, nullary)
        return logits.view(-1, batch.problem.variables, batch.problem.values)


def nlm_for(
    task: str | Problem,
    *,
    depth: int = 30,
    width: int = 8,
    residual: bool = True,
    learned_nullary: int = 0,
    precision: Precision = "float32",
    relations: Relations = "horizontal",
) -> NLM:
    """The NLM of a task, given by name or by one of its problems (the size does not matter).

    ``relations`` says which relations of a Futoshiki the two flags may stand for (``nlm_predicates.Relations``); the
    other arguments are those of ``NLM``.
    """
    return NLM(
        Predicates(task_of(task), relations),
        depth=depth,
        width=width,
        residual=residual,
        learned_nullary=learned_nullary,
        precision=precision,
    )
