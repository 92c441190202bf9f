"""MinLoss: train only on the listed solution that is nearest to the prediction (Section 3.3)."""

from __future__ import annotations

from torch import Tensor

from .base import Objective, Reduction
from .contract import PairLoss
from .validation import check_fraction
from .weighting import draw_one, first_minimum, mix_with_uniform


class MinLoss(Objective):
    """The least pair loss of each query; ties take the first solution (Eqs. 4 and 5).

    Args:
        per_step: the least loss of every step. False: one solution for all steps, the one with the least mean loss.
        epsilon: with this probability take any listed solution instead (epsilon-greedy; not in the paper). Then every
            call needs a generator or noise.
        pair_loss: the loss of one listed solution at one step; `CategoricalNLL()` by default.
        reduction: "mean" over the trained queries, "sum", or "none": the loss of every query, `[B]`.
        validate: also check the values of the tensors.
    """

    equal_weights = True

    def __init__(
        self,
        *,
        per_step: bool = False,
        epsilon: float = 0.0,
        pair_loss: PairLoss | None = None,
        reduction: Reduction = "mean",
        validate: bool = True,
    ) -> None:
        check_fraction(epsilon, "epsilon")
        super().__init__(
            per_step=per_step, draws=epsilon > 0, pair_loss=pair_loss, reduction=reduction, validate=validate
        )
        self.epsilon = epsilon

    def _solution_weights(self, losses: Tensor, mask: Tensor, noise: Tensor | None) -> Tensor:
        weights = first_minimum(losses, mask)
        return weights if noise is None else draw_one(mix_with_uniform(weights, mask, self.epsilon), noise)
