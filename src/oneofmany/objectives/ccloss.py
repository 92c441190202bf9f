"""CC-Loss: minus the log of the total probability of the listed solutions (Section 3.2; Eq. 9 of the appendix)."""

from __future__ import annotations

import torch
from torch import Tensor

from .base import Objective, Reduction
from .contract import PairLoss
from .reducing import weighted_sum
from .weighting import softmin_listed


class CCLoss(Objective):
    """Minus the log of the summed probabilities of the listed solutions, by log-sum-exp (Eq. 9).

    Its `weights` are those of its gradient: the softmax of minus the pair losses. Its value is not the weighted sum of
    the losses: it is smaller by the entropy of the weights.

    Args:
        per_step: the mean of the losses of all steps (as in the authors' code). False: one loss, from the mean of the
            pair losses over the steps.
        pair_loss: the loss of one listed solution at one step; `CategoricalNLL()` by default.
        reduction: "mean" over the trained queries, "sum", or "none": the loss of every query, `[B]`.
        validate: also check the values of the tensors.
    """

    def __init__(
        self,
        *,
        per_step: bool = True,
        pair_loss: PairLoss | None = None,
        reduction: Reduction = "mean",
        validate: bool = True,
    ) -> None:
        super().__init__(per_step=per_step, draws=False, pair_loss=pair_loss, reduction=reduction, validate=validate)

    def _solution_weights(self, losses: Tensor, mask: Tensor, noise: Tensor | None) -> Tensor:
        return softmin_listed(losses, mask, temperature=1.0)

    def _query_losses(self, losses: Tensor, weights: Tensor, mask: Tensor) -> Tensor:
        # If no listed solution is possible, logsumexp has a NaN gradient. Then the value is inf (0 if nothing is
        # listed) and the gradient is that of the weighted sum.
        hopeless = ~(mask & (losses < torch.inf)).any(-1, keepdim=True)
        log_probabilities = (-losses).where(mask, -torch.inf).masked_fill(hopeless, 0.0)
        return torch.where(hopeless.squeeze(-1), weighted_sum(losses, weights), -log_probabilities.logsumexp(-1))
