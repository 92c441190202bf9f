"""SelectR: a second network, the selector, learns which listed solution to train on (Section 3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .base import Reduction, WeightedLoss
from .contract import PairLoss, computing_type
from .pair_losses import BinaryNLL, CategoricalNLL
from .reducing import call, heaviest, without_padding
from .rewards import REWARDS, Reward, binary_hamming_reward, hamming_reward
from .validation import as_mask, check_fraction, check_per_solution, expect, expect_tensor
from .weighting import draw_one, log_softmax_listed, mix_with_uniform


class SelectR(WeightedLoss):
    """The weights are the softmax of the selector's scores; a reward trains the selector (Eqs. 6 to 8).

    The selector is any network that scores the listed solutions, `[B,K]`, higher = preferred. In the paper its input is
    the prediction of a lagged copy of the prediction network and each listed solution (`LaggedCopy`). The reward comes
    from the live network. Compute both losses before either network is updated.

    Args:
        sample: train the network on one solution drawn from the policy (Eq. 8), instead of on the expected loss.
        reinforce: train the selector by REINFORCE on one drawn solution, with the policy's expected reward as the
            baseline, instead of by the exact policy gradient (Eq. 7).
        entropy_bonus: the factor of the policy's entropy, which is added to the reward (not in the paper).
        epsilon: with this probability the policy takes any listed solution (not in the paper).
        per_step: scores, weights and rewards for every step, `[T,B,K]`. False: one policy for all steps, and the mean
            of the rewards over the steps.
        reward: how well a listed solution agrees with the live prediction. None: `hamming_reward` with
            `CategoricalNLL`, `binary_hamming_reward` with `BinaryNLL`; it is required with any other pair loss.
        pair_loss: the loss of one listed solution at one step; `CategoricalNLL()` by default.
        reduction: "mean" over the trained queries, "sum", or "none": the loss of every query, `[B]`.
        validate: also check the values of the tensors.
    """

    def __init__(
        self,
        *,
        sample: bool = False,
        reinforce: bool = False,
        entropy_bonus: float = 0.0,
        epsilon: float = 0.0,
        per_step: bool = False,
        reward: Reward | None = None,
        pair_loss: PairLoss | None = None,
        reduction: Reduction = "mean",
        validate: bool = True,
    ) -> None:
        check_fraction(epsilon, "epsilon")
        expect(0.0 <= entropy_bonus < float("inf"), "entropy_bonus", "a number of 0 or more", entropy_bonus)
        super().__init__(
            per_step=per_step, draws=sample or reinforce, pair_loss=pair_loss, reduction=reduction, validate=validate
        )
        self.sample = sample
        self.reinforce = reinforce
        self.entropy_bonus = entropy_bonus
        self.epsilon = epsilon
        self.reward = reward

    def forward(
        self,
        logits: Tensor,
        solutions: Tensor,
        mask: Tensor | None = None,
        scores: Tensor | None = None,
        *,
        variable_mask: Tensor | None = None,
        lengths: Tensor | None = None,
        normaliser: Tensor | float | None = None,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the prediction network's loss; the scores get no gradient from it.

        Args:
            logits: `[B,R,V]` or `[T,B,R,V]`, of the live network, or what the pair loss takes.
            solutions: `[B,K,R]`; int64 values 0..V-1 where the mask is True, anything where it is False.
            mask: `[B,K]` of bool or any integer type, False for padding; None: all are listed. A query without listed
                solutions is left out of the mean.
            scores: `[B,K]` (per step `[T,B,K]`), of the selector.
            variable_mask: `[B,R]` or `[B,K,R]` of bool or any integer type, False leaves a variable out.
            lengths: for a pair loss that takes them (`SequenceNLL`, `CTCNLL`).
            normaliser: the divisor of the mean, instead of the number of trained queries in this batch: `count`, summed
                over the processes or micro-batches of an update.
            generator: the generator to draw from, if `sample`.
            noise: `[B,K]` (per step `[T,B,K]`), drawn by `draw_noise`, instead of a generator.
        """
        pair_losses = self.pair_losses(logits, solutions, mask, variable_mask=variable_mask, lengths=lengths)
        return self.reduce(pair_losses, mask, scores, normaliser=normaliser, generator=generator, noise=noise)

    if TYPE_CHECKING:
        __call__ = forward

    def reduce(
        self,
        pair_losses: Tensor,
        mask: Tensor | None = None,
        scores: Tensor | None = None,
        *,
        normaliser: Tensor | float | None = None,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the prediction network's loss from pair losses `[B,K]` or `[T,B,K]` that you computed."""
        losses, mask = self._take(pair_losses, "pair_losses", mask)
        weights = self._weigh(losses.detach(), mask, scores, generator, noise)
        return self.reduce_weighted(losses, weights, mask, normaliser=normaliser)

    @torch.no_grad()
    def weights(
        self,
        pair_losses: Tensor,
        mask: Tensor | None = None,
        scores: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the weights of the listed solutions, without a gradient; only the shape of the pair losses is used."""
        losses, mask = self._take(pair_losses, "pair_losses", mask)
        return self._weigh(losses, mask, scores, generator, noise)

    def chosen(
        self,
        pair_losses: Tensor,
        mask: Tensor | None = None,
        scores: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return which listed solution each query is trained on, `[B]` or per step `[T,B]`, for logging.

        It is the one of greatest weight, the first of equals; -1 if the query is left out. With `sample`, pass the
        `noise` of the call.
        """
        return heaviest(self.weights(pair_losses, mask, scores, generator=generator, noise=noise))

    def selector_count(self, mask: Tensor) -> Tensor:
        """Return the number of MS queries, which train the selector, a scalar int64: the divisor of `selector_loss`.

        Args:
            mask: `[B,K]` of bool or any integer type, True for a listed solution, False for padding.
        """
        return _multiple(as_mask(mask, mask, "mask", validate=self.validate)).sum()

    def selector_loss(
        self,
        logits: Tensor,
        solutions: Tensor,
        mask: Tensor | None = None,
        scores: Tensor | None = None,
        *,
        variable_mask: Tensor | None = None,
        lengths: Tensor | None = None,
        normaliser: Tensor | float | None = None,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the selector's loss: minus the expected reward, by default the mean over the MS queries (Eq. 6).

        The logits get no gradient from it. With the same `noise` as in the call, both networks learn from the same
        draw. With `reinforce` the value is minus the reward of the draw, and its gradient is the REINFORCE estimate.

        Args:
            logits: `[B,R,V]` or `[T,B,R,V]`, of the live network, or what the reward takes.
            solutions: as in the call.
            mask: as in the call. OS queries do not train the selector.
            scores: `[B,K]` (per step `[T,B,K]`), of the selector.
            variable_mask: as in the call.
            lengths: as in the call; for a reward of your own that takes them.
            normaliser: the divisor of the mean: `selector_count`, summed over the processes or micro-batches.
            generator: the generator to draw from, if `reinforce`.
            noise: `[B,K]` (per step `[T,B,K]`), drawn by `draw_noise`, instead of a generator.
        """
        reward = self.reward or _reward_of(self.pair_loss)
        listed, kept = self._prepare(logits, solutions, mask, variable_mask, lengths)
        with torch.no_grad():
            # A reward of the user's own gets what the user passed.
            used = (
                {"variable_mask": kept} if reward in REWARDS else {"variable_mask": variable_mask, "lengths": lengths}
            )
            rewards = call(reward, logits, without_padding(solutions, listed), **used)
        return self.reduce_rewards(rewards, listed, scores, normaliser=normaliser, generator=generator, noise=noise)

    def reduce_rewards(
        self,
        rewards: Tensor,
        mask: Tensor | None = None,
        scores: Tensor | None = None,
        *,
        normaliser: Tensor | float | None = None,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the selector's loss from rewards `[B,K]` or `[T,B,K]` that you computed; higher = better."""
        rewards, mask = self._take(rewards, "rewards", mask)
        rewards = rewards.detach().where(mask, 0.0)
        log_policy = self._log_policy(scores, mask, rewards.shape)
        policy = log_policy.exp() * mask
        expected = (policy * rewards).sum(-1)
        self._refuse_noise(noise)
        if self.reinforce:
            drawn = draw_one(policy.detach(), self._noise_for(policy.shape, mask, generator, noise))
            reward, log_drawn = (drawn * rewards).sum(-1), (drawn * log_policy).sum(-1)
            expected = reward + (reward - expected.detach()) * (log_drawn - log_drawn.detach())
        if self.entropy_bonus > 0:
            expected = expected - self.entropy_bonus * (policy * log_policy).sum(-1)
        multiple = _multiple(mask)
        return self._reduce_queries(-expected.where(multiple, 0.0), multiple, normaliser)

    @torch.no_grad()
    def _weigh(
        self,
        losses: Tensor,
        mask: Tensor,
        scores: Tensor | None,
        generator: torch.Generator | None,
        noise: Tensor | None,
    ) -> Tensor:
        weights = (self._log_policy(scores, mask, losses.shape).exp() * mask).to(losses.dtype)
        self._refuse_noise(noise)
        return draw_one(weights, self._noise_for(weights.shape, mask, generator, noise)) if self.sample else weights

    def _log_policy(self, scores: Tensor | None, mask: Tensor, shape: torch.Size) -> Tensor:
        """Return the log-probability of each listed solution, in the shape of the losses or rewards; 0 at padding."""
        expect_tensor(scores, "scores")
        assert scores is not None
        check_per_solution(scores, "scores", mask, with_steps=self.per_step)
        if self.per_step:
            same = scores.shape == shape or (scores.dim() == 2 and shape[0] == 1)
            expect(same, "scores", f"shape [T,B,K] = {list(shape)}", f"shape {list(scores.shape)}")
            scores = scores.expand(shape)
        log_policy = log_softmax_listed(scores.to(computing_type(scores)), mask)
        if self.epsilon == 0:
            return log_policy
        mixed = mix_with_uniform(log_policy.exp() * mask, mask, self.epsilon)
        return mixed.masked_fill(~mask, 1.0).log()


def _multiple(mask: Tensor) -> Tensor:
    """Return which queries are MS, `[B]`."""
    return mask.sum(-1) > 1


def _reward_of(pair_loss: PairLoss) -> Reward:
    """Choose the paper's reward for the prediction that a pair loss trains."""
    if isinstance(pair_loss, BinaryNLL):
        return binary_hamming_reward
    known = isinstance(pair_loss, CategoricalNLL)
    expect(known, "reward", "one, since only CategoricalNLL and BinaryNLL have a reward", None)
    return hamming_reward
