"""I-ExplR: the network's own probabilities weight the listed solutions (Section 3.4)."""

from __future__ import annotations

from torch import Tensor

from .base import Objective, Reduction
from .contract import PairLoss
from .validation import expect
from .weighting import draw_one, softmin_listed


class IExplR(Objective):
    """Informed exploration: weights softmax(-pair loss / temperature), which get no gradient.

    Args:
        temperature: 1 weights by the network's probabilities. Towards 0 it becomes MinLoss, towards infinity the mean
            over the listed solutions. The authors' annealing factor 0.5 is temperature 2.
        sample: train on one solution drawn with these weights, instead of on the expected loss. Then every call needs
            a generator or noise.
        per_step: weights for every step. False: one weight vector for all steps, from the mean over the steps.
        pair_loss: the loss of one listed solution at one step; `CategoricalNLL()` by default.
        reduction: "mean" over the trained queries, "sum", or "none": the loss of every query, `[B]`.
        validate: also check the values of the tensors.
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        sample: bool = False,
        per_step: bool = False,
        pair_loss: PairLoss | None = None,
        reduction: Reduction = "mean",
        validate: bool = True,
    ) -> None:
        expect(0.0 < temperature < float("inf"), "temperature", "a number above 0", temperature)
        super().__init__(per_step=per_step, draws=sample, pair_loss=pair_loss, reduction=reduction, validate=validate)
        self.temperature = temperature
        self.sample = sample

    def _solution_weights(self, losses: Tensor, mask: Tensor, noise: Tensor | None) -> Tensor:
        weights = softmin_listed(losses, mask, self.temperature)
        return weights if noise is None else draw_one(weights, noise)
