"""What all objectives share: pair losses, then weights over the listed solutions, then a mean over the queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from .contract import PairLoss, ValueLoss, computing_type, settings_of
from .pair_losses import CategoricalNLL, NegativeLogLikelihood
from .reducing import call, divisor, heaviest, weighted_sum, without_padding
from .validation import (
    as_mask,
    as_variable_mask,
    check_length_values,
    check_noise_values,
    check_per_solution,
    check_solution_values,
    expect,
    expect_device,
    expect_shape,
    expect_tensor,
    may_look_at_values,
)

Reduction = Literal["mean", "sum", "none"]
"""What an objective returns: the mean over the trained queries, their sum, or the loss of every query."""


class Prepared(NamedTuple):
    """Checked masks: of the listed solutions `[B,K]`, and of the variables that count, `[B,R]`, `[B,K,R]` or None."""

    mask: Tensor
    kept: Tensor | None


class WeightedLoss(nn.Module):
    """A loss that weights the listed solutions: the base of `Objective` and `SelectR`.

    Args:
        per_step: weights for every step. False: one weight vector for all steps, from the mean over the steps.
        draws: whether the weights are drawn at random.
        pair_loss: the loss of one listed solution at one step; `CategoricalNLL()` by default.
        reduction: "mean" over the trained queries, "sum", or "none": the loss of every query, `[B]`.
        validate: also check the values of the tensors. This waits for the device; compiled and captured graphs skip it.
    """

    equal_weights = False
    """Whether all non-zero weights of a query are equal, so that their sum is the same in any order."""

    def __init__(
        self, *, per_step: bool, draws: bool, pair_loss: PairLoss | None, reduction: Reduction, validate: bool
    ) -> None:
        super().__init__()
        expect(reduction in get_args(Reduction), "reduction", "mean, sum or none", reduction)
        usable = pair_loss is None or (callable(pair_loss) and not isinstance(pair_loss, type))
        expect(usable, "pair_loss", "a function or an instance, such as CategoricalNLL()", pair_loss)
        self.per_step = per_step
        self.draws = draws
        self.pair_loss: PairLoss = CategoricalNLL() if pair_loss is None else pair_loss
        self.reduction: Reduction = reduction
        self.validate = validate

    def extra_repr(self) -> str:
        """Return the settings."""
        return settings_of(self)

    def pair_losses(
        self,
        logits: Tensor,
        solutions: Tensor,
        mask: Tensor | None = None,
        *,
        variable_mask: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """Return the pair losses `[T,B,K]` or `[B,K]`; those of padding are meaningless.

        Args:
            logits: `[B,R,V]` or `[T,B,R,V]`, or what the pair loss takes.
            solutions: `[B,K,R]`; int64 values 0..V-1 where the mask is True, anything where it is False.
            mask: `[B,K]` of bool or any integer type, True for a listed solution, False for padding. None: all are.
            variable_mask: `[B,R]` or `[B,K,R]` of bool or any integer type, False leaves a variable out.
            lengths: for a pair loss that takes them (`SequenceNLL`, `CTCNLL`).
        """
        listed, kept = self._prepare(logits, solutions, mask, variable_mask, lengths)
        loss = self.pair_loss
        if isinstance(loss, NegativeLogLikelihood):
            return loss.without_checks(logits, solutions, kept, any_order=self.equal_weights)
        fill = loss.ignore_index if isinstance(loss, ValueLoss) else 0
        clean = without_padding(solutions, listed, 0 if fill is None else fill)
        return call(loss, logits, clean, variable_mask=variable_mask, lengths=lengths)

    def count(self, mask: Tensor) -> Tensor:
        """Return the number of queries that are trained on, a scalar int64: the divisor of the mean.

        Sum it over all processes or micro-batches that share an update, and pass the sum to each call as `normaliser`.

        Args:
            mask: `[B,K]` of bool or any integer type, True for a listed solution, False for padding.
        """
        return self._trained(as_mask(mask, mask, "mask", validate=self.validate)).sum()

    def draw_noise(self, mask: Tensor, generator: torch.Generator, *, steps: int | None = None) -> Tensor | None:
        """Draw the noise of one call: uniform in [0, 1), in the shape of the weights; None if nothing is drawn.

        Draw it outside of compiled functions and pass it to them as an input.

        Args:
            mask: `[B,K]` of bool or any integer type, True for a listed solution, False for padding.
            generator: a generator on the mask's device.
            steps: the number of steps of the logits; None if they have no step axis.
        """
        mask = as_mask(mask, mask, "mask")
        expect(generator.device.type == mask.device.type, "generator", f"device {mask.device}", generator.device)
        if not self.draws:
            return None
        shape = (steps, *mask.shape) if self.per_step and steps is not None else tuple(mask.shape)
        return torch.rand(shape, generator=generator, device=mask.device)

    def reduce_weighted(
        self,
        pair_losses: Tensor,
        weights: Tensor,
        mask: Tensor | None = None,
        *,
        normaliser: Tensor | float | None = None,
    ) -> Tensor:
        """Return the loss from pair losses and the weights that this objective gave them.

        Args:
            pair_losses: `[B,K]` or `[T,B,K]`, negative log-likelihoods of the listed solutions.
            weights: `[B,K]` or per step `[T,B,K]`, from `weights`.
            mask: as in the call.
            normaliser: as in the call.
        """
        losses, mask = self._take(pair_losses, "pair_losses", mask)
        expect_shape(weights, "weights", "of the pair losses", losses.shape)
        return self._reduce_queries(self._query_losses(losses, weights, mask), self._trained(mask), normaliser)

    def _query_losses(self, losses: Tensor, weights: Tensor, mask: Tensor) -> Tensor:
        return weighted_sum(losses, weights)

    def _trained(self, mask: Tensor) -> Tensor:
        """Return which queries are trained on, `[B]`."""
        return mask.any(-1)

    def _prepare(
        self,
        logits: Tensor,
        solutions: Tensor,
        mask: Tensor | None,
        variable_mask: Tensor | None,
        lengths: Tensor | None = None,
    ) -> Prepared:
        """Check the input; a pair loss that is not over values checks its own."""
        mask = as_mask(mask, solutions, "solutions", validate=self.validate)
        loss = self.pair_loss
        if not isinstance(loss, ValueLoss):
            return Prepared(mask, variable_mask)
        loss.check(logits, solutions, lengths)
        expect_shape(mask, "mask", "[B,K]", solutions.shape[:2])
        expect_device(mask, "mask", solutions.device)
        kept = as_variable_mask(variable_mask, solutions, validate=self.validate)
        ignoring = loss.ignore_index is not None
        if self.validate and may_look_at_values(mask):
            if lengths is not None:
                own = lengths.where(mask, 0) if lengths.shape == mask.shape else lengths
                check_length_values(own, loss.longest(logits, solutions))
            counts = loss.kept(solutions, kept, lengths)
            wrong, expected = loss.wrong_values(logits, solutions)
            listed = mask.unsqueeze(-1)
            if counts is not None:
                listed = listed & (counts if counts.dim() == 3 else counts.unsqueeze(1))
            check_solution_values(solutions, wrong & listed, expected)
            # All values of the listed solutions are known, so a slower path for what is left out may be avoided.
            ignoring = ignoring and bool(((solutions == loss.ignore_index) & mask.unsqueeze(-1)).any())
            if kept is None and not mask.any(-1).all():
                kept = torch.ones_like(solutions[:, 0], dtype=torch.bool)
        if ignoring:
            kept = loss.kept(solutions, kept, lengths)
        if kept is not None:  # a query without listed solutions uses no variable
            kept = kept & (mask.unsqueeze(-1) if kept.dim() == 3 else mask.any(-1, keepdim=True))
        return Prepared(mask, kept)

    def _take(self, values: Tensor, name: str, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Check numbers per listed solution; return their mean over the steps unless `per_step`, and the mask."""
        mask = as_mask(mask, values, name, validate=self.validate)
        check_per_solution(values, name, mask)
        values = values.to(computing_type(values))
        return values.mean(0) if values.dim() == 3 and not self.per_step else values, mask

    def _noise_for(self, weights_shape: torch.Size, mask: Tensor, generator: object, noise: Tensor | None) -> Tensor:
        """Return the noise that was passed in, or draw it."""
        if noise is None:
            if not isinstance(generator, torch.Generator):
                raise ValueError(f"generator: expected a torch.Generator, or noise=, to draw from, got {generator}")
            drawn = self.draw_noise(mask, generator, steps=weights_shape[0] if len(weights_shape) == 3 else None)
            assert drawn is not None
            return drawn
        expect_tensor(noise, "noise")
        expect_shape(noise, "noise", "[B,K]" if len(weights_shape) == 2 else "[T,B,K]", weights_shape)
        expect_device(noise, "noise", mask.device)
        if self.validate and may_look_at_values(noise):
            check_noise_values(noise)
        return noise

    def _refuse_noise(self, noise: Tensor | None) -> None:
        expect(
            self.draws or noise is None, "noise", f"None, since this {type(self).__name__} draws nothing", "a tensor"
        )

    def _reduce_queries(self, losses: Tensor, trained: Tensor, normaliser: Tensor | float | None) -> Tensor:
        """Reduce the losses `[B]` or `[T,B]` of the queries, 0 for those that are not trained on, `[B]`.

        Without any to train on, the result is a zero with a gradient.
        """
        needed = self.reduction == "mean"
        expect(needed or normaliser is None, "normaliser", f"None with reduction {self.reduction!r}", "a number")
        if self.reduction == "none":
            return losses.mean(0) if losses.dim() == 2 else losses
        steps = len(losses) if losses.dim() == 2 else 1
        if self.reduction == "sum":
            return losses.sum() / steps
        by = trained.sum().clamp(min=1) if normaliser is None else divisor(normaliser, losses, validate=self.validate)
        return losses.sum() / (by if steps == 1 else steps * by)


class Objective(WeightedLoss, ABC):
    """An objective whose weights are computed from the pair losses: all but SelectR.

    Every objective has the same call. `reduce` and `weights` do the same with pair losses of your own.
    """

    def forward(
        self,
        logits: Tensor,
        solutions: Tensor,
        mask: Tensor | None = None,
        *,
        variable_mask: Tensor | None = None,
        lengths: Tensor | None = None,
        normaliser: Tensor | float | None = None,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the loss in nats: by default a scalar, the mean over the queries that are trained on.

        Args:
            logits: `[B,R,V]` or `[T,B,R,V]`, or what the pair loss takes.
            solutions: `[B,K,R]`; int64 values 0..V-1 where the mask is True, anything where it is False.
            mask: `[B,K]` of bool or any integer type, False for padding; None: all are listed. A query without listed
                solutions is left out of the mean.
            variable_mask: `[B,R]` or `[B,K,R]` of bool or any integer type, False leaves a variable out.
            lengths: for a pair loss that takes them (`SequenceNLL`, `CTCNLL`).
            normaliser: the divisor of the mean, instead of the number of trained queries in this batch: `count`, summed
                over the processes or micro-batches of an update.
            generator: the generator of an objective that samples; the others ignore it.
            noise: `[B,K]` (per step `[T,B,K]`), drawn by `draw_noise`, instead of a generator.
        """
        pair_losses = self.pair_losses(logits, solutions, mask, variable_mask=variable_mask, lengths=lengths)
        return self.reduce(pair_losses, mask, normaliser=normaliser, generator=generator, noise=noise)

    if TYPE_CHECKING:
        __call__ = forward

    def reduce(
        self,
        pair_losses: Tensor,
        mask: Tensor | None = None,
        *,
        normaliser: Tensor | float | None = None,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the loss from pair losses that you computed.

        Args:
            pair_losses: `[B,K]` or `[T,B,K]`, negative log-likelihoods of the listed solutions.
            mask: as in the call.
            normaliser: as in the call.
            generator: as in the call.
            noise: as in the call.
        """
        losses, mask = self._take(pair_losses, "pair_losses", mask)
        weights = self._weigh(losses.detach(), mask, generator, noise)
        return self.reduce_weighted(losses, weights, mask, normaliser=normaliser)

    @torch.no_grad()
    def weights(
        self,
        pair_losses: Tensor,
        mask: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the weights of the listed solutions, `[B,K]` or per step `[T,B,K]`, without a gradient.

        Args:
            pair_losses: `[B,K]` or `[T,B,K]`, negative log-likelihoods of the listed solutions.
            mask: as in the call.
            generator: as in the call.
            noise: as in the call.
        """
        losses, mask = self._take(pair_losses, "pair_losses", mask)
        return self._weigh(losses, mask, generator, noise)

    def chosen(
        self,
        pair_losses: Tensor,
        mask: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return which listed solution each query is trained on, `[B]` or per step `[T,B]`, for logging.

        It is the one of greatest weight, the first of equals; -1 if the query is left out. With an objective that
        draws, pass the `noise` of the call.
        """
        return heaviest(self.weights(pair_losses, mask, generator=generator, noise=noise))

    def _weigh(self, losses: Tensor, mask: Tensor, generator: torch.Generator | None, noise: Tensor | None) -> Tensor:
        self._refuse_noise(noise)
        used = self._noise_for(losses.shape, mask, generator, noise) if self.draws else None
        return self._solution_weights(losses, mask, used)

    @abstractmethod
    def _solution_weights(self, losses: Tensor, mask: Tensor, noise: Tensor | None) -> Tensor:
        """Return weights in the shape of `losses`: 0 at padding, without a gradient."""
