"""The small NLM that scores listed solutions: the paper's latent model for N-Queens and Futoshiki (section 3.4)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oneofmany.networks.kernels import Precision
from oneofmany.networks.nlm.network import LogicMachine
from oneofmany.networks.nlm.predicates import Predicates, Relations, task_of
from oneofmany.problems import Batch, Problem


class NLMSelector(nn.Module):
    """Score a solution by how the lagged copy's probabilities differ from it; higher = preferred.

    Unary input: probability minus the solution (1 if it takes the choice), and the two flags for Futoshiki. The score
    is a linear map on the nullary predicates. The authors' code outputs a distance, which is the negative of this
    score. 7,601 parameters for N-Queens, 7,841 for Futoshiki; 3,641 for N-Queens without residuals.

    Args:
        predicates: the encoding of a query.
        depth: number of layers.
        width: new predicates per layer and arity.
        residual: whether a layer sees the inputs and the outputs of all earlier layers, or only the previous layer.
        precision: of the buffers between layers (see ``LogicMachine``).
    """

    def __init__(
        self,
        predicates: Predicates,
        *,
        depth: int = 4,
        width: int = 10,
        residual: bool = True,
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        self.predicates = predicates
        self.machine = LogicMachine(
            0,
            1 + predicates.flags,
            predicates.binary,
            depth=depth,
            width=width,
            residual=residual,
            readout="nullary",
            precision=precision,
        )

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return scores [B, K] of ``batch.solutions``; padding is scored too.

        Args:
            logits: [B, R, V] of the lagged copy, or [T, B, R, V], of which the last step is used.
            batch: the queries and their listed solutions.
        """
        weight = self.machine.readout.weight
        self.predicates.check(batch, weight.device)
        problem, solutions = batch.problem, batch.solutions
        B, R, V = len(batch.query), problem.variables, problem.values
        if logits.ndim not in (3, 4) or list(logits.shape[-3:]) != [B, R, V] or not logits.numel():
            raise ValueError(f"logits: expected shape [{B}, {R}, {V}], or with steps first, got {list(logits.shape)}")
        if not logits.is_floating_point():
            raise ValueError(f"logits: expected floating point, got {logits.dtype}")
        if solutions.ndim != 3 or solutions.shape[0] != B or solutions.shape[2] != R or not solutions.shape[1]:
            raise ValueError(f"solutions: expected shape [{B}, K, {R}] with K > 0, got {list(solutions.shape)}")
        for name, tensor in (("logits", logits), ("solutions", solutions)):
            if tensor.device != weight.device:
                raise ValueError(f"{name}: expected device {weight.device}, where the network is, got {tensor.device}")
        last = logits[-1] if logits.ndim == 4 else logits
        K = solutions.shape[1]
        taken = solutions[..., None] == torch.arange(V, device=weight.device)
        error = last.to(weight.dtype).sigmoid()[:, None] - taken.to(weight.dtype)
        unary = error.flatten(2)[..., None]
        if self.predicates.flags:
            flags = self.predicates.flag_inputs(batch, weight.dtype)
            unary = torch.cat([unary, flags[:, None].expand(-1, K, -1, -1)], -1)
        binary = self.predicates.static(problem, weight.device, weight.dtype).binary
        return self.machine(unary.flatten(0, 1), binary).view(B, K)


def nlm_selector_for(
    task: str | Problem,
    *,
    depth: int = 4,
    width: int = 10,
    residual: bool = True,
    precision: Precision = "float32",
    relations: Relations = "horizontal",
) -> NLMSelector:
    """Build the NLM selector of a task, given by name or by one of its problems; arguments as in ``NLMSelector``."""
    predicates = Predicates(task_of(task), relations)
    return NLMSelector(predicates, depth=depth, width=width, residual=residual, precision=precision)
