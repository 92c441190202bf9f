"""The three objectives whose weights do not depend on the losses: Naive, Random, Unique (Sections 3.2 and 4.2)."""

from __future__ import annotations

from torch import Tensor

from .base import Objective, Reduction
from .contract import PairLoss
from .weighting import one_hot, uniform


class Naive(Objective):
    """The sum of the losses of all listed solutions (Eq. 1).

    Args:
        mean_over_listed: divide by the query's number of listed solutions, so that queries with many solutions do not
            count more.
        pair_loss: the loss of one listed solution at one step; `CategoricalNLL()` by default.
        reduction: "mean" over the trained queries, "sum", or "none": the loss of every query, `[B]`.
        validate: also check the values of the tensors.
    """

    equal_weights = True

    def __init__(
        self,
        *,
        mean_over_listed: bool = False,
        pair_loss: PairLoss | None = None,
        reduction: Reduction = "mean",
        validate: bool = True,
    ) -> None:
        super().__init__(per_step=False, draws=False, pair_loss=pair_loss, reduction=reduction, validate=validate)
        self.mean_over_listed = mean_over_listed

    def _solution_weights(self, losses: Tensor, mask: Tensor, noise: Tensor | None) -> Tensor:
        return uniform(mask, losses.dtype) if self.mean_over_listed else mask.to(losses.dtype)


class Random(Objective):
    """The loss of one arbitrary solution of each query, the same throughout training: the first listed (Section 4.2).

    Shuffle the listed solutions of a query once, when the data is built. Then the choice is the same in every epoch, in
    every order of the queries and after a restart.

    Args:
        pair_loss: the loss of one listed solution at one step; `CategoricalNLL()` by default.
        reduction: "mean" over the trained queries, "sum", or "none": the loss of every query, `[B]`.
        validate: also check the values of the tensors.
    """

    equal_weights = True

    def __init__(
        self, *, pair_loss: PairLoss | None = None, reduction: Reduction = "mean", validate: bool = True
    ) -> None:
        super().__init__(per_step=False, draws=False, pair_loss=pair_loss, reduction=reduction, validate=validate)

    def _solution_weights(self, losses: Tensor, mask: Tensor, noise: Tensor | None) -> Tensor:
        return one_hot(mask.to(losses.dtype).argmax(-1), losses) * mask


class Unique(Objective):
    """The mean loss of the queries with one listed solution; the others are left out (Section 4.2).

    Args:
        pair_loss: the loss of one listed solution at one step; `CategoricalNLL()` by default.
        reduction: "mean" over the trained queries, "sum", or "none": the loss of every query, `[B]`.
        validate: also check the values of the tensors.
    """

    equal_weights = True

    def __init__(
        self, *, pair_loss: PairLoss | None = None, reduction: Reduction = "mean", validate: bool = True
    ) -> None:
        super().__init__(per_step=False, draws=False, pair_loss=pair_loss, reduction=reduction, validate=validate)

    def _solution_weights(self, losses: Tensor, mask: Tensor, noise: Tensor | None) -> Tensor:
        return (mask & self._trained(mask).unsqueeze(-1)).to(losses.dtype)

    def _trained(self, mask: Tensor) -> Tensor:
        return mask.sum(-1) == 1
