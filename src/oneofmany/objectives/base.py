"""What all objectives share: pair losses, then weights over the listed solutions, then a mean over the queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from .pair_losses import CategoricalNLL, NegativeLogLikelihood, PairLoss, computing_type
from .validation import (
    check_logits,
    check_mask,
    check_noise_values,
    check_per_solution,
    check_solution_values,
    expect,
    expect_device,
    expect_shape,
    expect_tensor,
    may_look_at_values,
)


class WeightedLoss:
    """A loss that weights the listed solutions: the base of `Objective` and `SelectR`.

    Args:
        per_step: weights for every step. False: one weight vector for all steps, from the mean over the steps.
        draws: whether the weights are drawn at random.
        pair_loss: the loss of one listed solution at one step; `CategoricalNLL()` by default.
        validate: also check the values of the tensors. This waits for the device; compiled and captured graphs skip it.
    """

    equal_weights = False
    """Whether all non-zero weights of a query are equal, so that their sum is the same in any order."""

    def __init__(self, *, per_step: bool, draws: bool, pair_loss: PairLoss | None, validate: bool) -> None:
        self.per_step = per_step
        self.draws = draws
        self.pair_loss: PairLoss = CategoricalNLL() if pair_loss is None else pair_loss
        self.validate = validate

    def pair_losses(
        self, logits: Tensor, solutions: Tensor, mask: Tensor, *, variable_mask: Tensor | None = None
    ) -> Tensor:
        """Return the pair losses `[T,B,K]` (T = 1 without steps); those of padding are meaningless.

        Args:
            logits: `[B,R,V]` or `[T,B,R,V]`.
            solutions: `[B,K,R]` int64, values 0..V-1 where the mask is True, anything where it is False.
            mask: `[B,K]` bool, True for a listed solution, False for padding.
            variable_mask: `[B,R]` bool, False leaves a variable out.
        """
        self._check(logits, solutions, mask, variable_mask)
        if isinstance(self.pair_loss, NegativeLogLikelihood):
            return self.pair_loss.without_checks(logits, solutions, variable_mask, any_order=self.equal_weights)
        return call(self.pair_loss, logits, without_padding(solutions, mask), variable_mask)

    def draw_noise(self, mask: Tensor, generator: torch.Generator, *, steps: int | None = None) -> Tensor | None:
        """Draw the noise of one call: uniform in [0, 1), in the shape of the weights; None if nothing is drawn.

        Draw it outside of compiled functions and pass it to them as an input.

        Args:
            mask: `[B,K]` bool, True for a listed solution, False for padding.
            generator: a generator on the mask's device.
            steps: the number of steps of the logits; None if they have no step axis.
        """
        check_mask(mask)
        expect(generator.device.type == mask.device.type, "generator", f"device {mask.device}", generator.device)
        if not self.draws:
            return None
        shape = (steps, *mask.shape) if self.per_step and steps is not None else tuple(mask.shape)
        return torch.rand(shape, generator=generator, device=mask.device)

    def _check(self, logits: Tensor, solutions: Tensor, mask: Tensor, variable_mask: Tensor | None) -> None:
        """Check the input; a user's own pair loss checks its own."""
        check_mask(mask)
        if isinstance(self.pair_loss, NegativeLogLikelihood):
            check_logits(logits, solutions, variable_mask)
            expect_shape(mask, "mask", "[B,K]", solutions.shape[:2])
            expect_device(mask, "mask", solutions.device)
            if self.validate and may_look_at_values(mask):
                check_solution_values(solutions, mask, variable_mask, logits.shape[-1])

    def _take(self, values: Tensor, name: str, mask: Tensor) -> Tensor:
        """Check numbers per step and listed solution; returns their mean over the steps unless `per_step`."""
        check_mask(mask)
        check_per_solution(values, name, mask)
        values = values.to(computing_type(values))
        return values.mean(0) if values.dim() == 3 and not self.per_step else values

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


class Objective(WeightedLoss, ABC):
    """An objective whose weights are computed from the pair losses: all but SelectR.

    Every objective has the same call. `reduce` and `weights` do the same with pair losses of your own.
    """

    def __call__(
        self,
        logits: Tensor,
        solutions: Tensor,
        mask: Tensor,
        *,
        variable_mask: Tensor | None = None,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the loss: a scalar in nats, the mean over the queries that are trained on.

        Args:
            logits: `[B,R,V]` or `[T,B,R,V]`.
            solutions: `[B,K,R]` int64, values 0..V-1 where the mask is True, anything where it is False.
            mask: `[B,K]` bool, False for padding. A query without listed solutions is left out of the mean.
            variable_mask: `[B,R]` bool, False leaves a variable out.
            generator: the generator of an objective that samples; the others ignore it.
            noise: `[B,K]` (per step `[T,B,K]`), drawn by `draw_noise`, instead of a generator.
        """
        pair_losses = self.pair_losses(logits, solutions, mask, variable_mask=variable_mask)
        return self.reduce(pair_losses, mask, generator=generator, noise=noise)

    def reduce(
        self,
        pair_losses: Tensor,
        mask: Tensor,
        *,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the loss from pair losses that you computed.

        Args:
            pair_losses: `[B,K]` or `[T,B,K]`, negative log-likelihoods of the listed solutions.
            mask: `[B,K]` bool, True for a listed solution, False for padding.
            generator: as in the call.
            noise: as in the call.
        """
        losses = self._take(pair_losses, "pair_losses", mask)
        weights = self._weigh(losses.detach(), mask, generator, noise)
        return mean(self._query_losses(losses, weights, mask), (weights != 0).any(-1))

    @torch.no_grad()
    def weights(
        self,
        pair_losses: Tensor,
        mask: Tensor,
        *,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the weights of the listed solutions, `[B,K]` or per step `[T,B,K]`, without a gradient.

        Args:
            pair_losses: `[B,K]` or `[T,B,K]`, negative log-likelihoods of the listed solutions.
            mask: `[B,K]` bool, True for a listed solution, False for padding.
            generator: as in the call.
            noise: as in the call.
        """
        losses = self._take(pair_losses, "pair_losses", mask)
        return self._weigh(losses, mask, generator, noise)

    def _weigh(self, losses: Tensor, mask: Tensor, generator: torch.Generator | None, noise: Tensor | None) -> Tensor:
        self._refuse_noise(noise)
        used = self._noise_for(losses.shape, mask, generator, noise) if self.draws else None
        return self._solution_weights(losses, mask, used)

    @abstractmethod
    def _solution_weights(self, losses: Tensor, mask: Tensor, noise: Tensor | None) -> Tensor:
        """Return weights in the shape of `losses`: 0 at padding, without a gradient."""

    def _query_losses(self, losses: Tensor, weights: Tensor, mask: Tensor) -> Tensor:
        return weighted_sum(losses, weights)


def weighted_sum(losses: Tensor, weights: Tensor) -> Tensor:
    """Sum the weighted losses of each query; losses of weight 0 are left out, even if they are inf."""
    return (weights * losses.masked_fill(weights == 0, 0.0)).sum(-1)


def mean(query_losses: Tensor, trained: Tensor) -> Tensor:
    """Average losses `[..,B]` over the trained queries (others have loss 0); without any, a zero with a gradient."""
    return query_losses.sum() / trained.sum().clamp(min=1)


def without_padding(solutions: Tensor, mask: Tensor) -> Tensor:
    """Set the padding of solutions `[B,K,..]` to value 0, for code that cannot handle other values there."""
    expect(
        isinstance(solutions, Tensor) and solutions.shape[:2] == mask.shape,
        "solutions",
        f"a tensor of shape [B,K,..] with B, K = {list(mask.shape)}",
        f"shape {list(solutions.shape)}" if isinstance(solutions, Tensor) else type(solutions).__name__,
    )
    return solutions.masked_fill(~mask.reshape(*mask.shape, *[1] * (solutions.dim() - 2)), 0)


def call(function: PairLoss, logits: Tensor, solutions: Tensor, variable_mask: Tensor | None) -> Tensor:
    """Call a user's function; it needs a `variable_mask` argument only if a mask is used."""
    if variable_mask is None:
        return function(logits, solutions)
    with_mask: Callable[..., Tensor] = function
    return with_mask(logits, solutions, variable_mask=variable_mask)
