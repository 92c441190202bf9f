"""Pair losses of sequences: a decoder that was given each listed answer, and an encoder with CTC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import ctc_loss

from .contract import SmoothedLoss, ValueLoss, computing_type
from .pair_losses import losses_of
from .validation import (
    as_bool,
    check_length_values,
    expect,
    expect_axes,
    expect_dense,
    expect_device,
    expect_shape,
    expect_tensor,
)


class SequenceNLL(SmoothedLoss):
    """The negative log-likelihood of each listed sequence under a teacher-forced decoder, summed over its tokens.

    The decoder reads every listed answer, so its output has the axis K too. Give it answers that are shifted as it
    wants them, and pass here the tokens that it should predict: of a causal language model `logits[..., :-1, :]` and
    `tokens[..., 1:]`, with `ignore_index` at the prompt.

    Args:
        label_smoothing: as in `CategoricalNLL`.
        weight: `[V]`, as in `CategoricalNLL`.
        ignore_index: the token that does not count, such as padding. None: there is no such token.
    """

    def forward(
        self,
        logits: Tensor,
        solutions: Tensor,
        variable_mask: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of every listed sequence, `[B,K]`.

        One axis N may stand for B and K: logits `[N,L,V]` and solutions `[N,L]` give losses `[N]`.

        Args:
            logits: `[B,K,L,V]`; or `[B,K,L]`, the log-likelihood of each token if your decoder returns that.
            solutions: `[B,K,L]` int64, tokens 0..V-1 or `ignore_index`. Other tokens (padding) are clamped.
            variable_mask: `[B,K,L]` of bool or any integer type (or `[B,L]`), False leaves a token out.
            lengths: `[B,K]`, the number of tokens of each sequence; what comes after them does not count.
        """
        self.check(logits, solutions, lengths)
        if variable_mask is not None:
            variable_mask = _mask_of_tokens(variable_mask, solutions)
        kept = self.kept(solutions, variable_mask, lengths)
        if logits.dim() == solutions.dim():
            numbers = logits.to(computing_type(logits))
            return -(numbers if kept is None else numbers.masked_fill(~kept, 0.0)).sum(-1)
        # Every pair is a query with one solution and the tokens are its variables: logits [1,N,L,V], solutions [N,1,L].
        length = solutions.shape[-1]
        kept = None if kept is None else kept.expand_as(solutions).reshape(-1, length)
        pairs = logits.flatten(0, -3).unsqueeze(0), solutions.reshape(-1, 1, length)
        return losses_of(self, *pairs, kept, binary=False, at_once=None, any_order=True).reshape(solutions.shape[:-1])

    if TYPE_CHECKING:
        __call__ = forward

    def check(self, logits: Tensor, solutions: Tensor, lengths: Tensor | None) -> None:
        """Check shapes, types and devices."""
        expect_tensor(logits, "logits")
        expect_tensor(solutions, "solutions", dtype=torch.int64)
        expect_axes(solutions.dim() in (2, 3), solutions, "solutions", "shape [B,K,L]")
        right = logits.shape == solutions.shape or logits.shape[:-1] == solutions.shape
        expect_axes(right, logits, "logits", f"shape [B,K,L,V] or [B,K,L] with B, K, L = {list(solutions.shape)}")
        expect_axes(min(logits.shape) > 0, logits, "logits", "every axis of length 1 or more")
        expect_device(solutions, "solutions", logits.device)
        options = self.label_smoothing > 0 or self.weight is not None
        of_tokens = logits.dim() == solutions.dim()
        expect(not (of_tokens and options), "logits", "shape [B,K,L,V] for label_smoothing or weight", "[B,K,L]")
        if lengths is not None:
            _check_lengths(lengths, "[B,K]", solutions.shape[:-1], solutions.device)

    def kept(self, solutions: Tensor, variable_mask: Tensor | None, lengths: Tensor | None = None) -> Tensor | None:
        """Return which tokens count, `[B,K,L]`."""
        if lengths is not None:
            within = torch.arange(solutions.shape[-1], device=solutions.device) < lengths.unsqueeze(-1)
            if variable_mask is not None:
                within = within & (variable_mask if variable_mask.dim() == within.dim() else variable_mask.unsqueeze(1))
            variable_mask = within
        return super().kept(solutions, variable_mask)

    def wrong_values(self, logits: Tensor, solutions: Tensor) -> tuple[Tensor, str]:
        """Return where solutions hold what is not a token, and what was expected."""
        if logits.dim() == solutions.dim():
            return torch.zeros_like(solutions, dtype=torch.bool), "of any kind"
        return super().wrong_values(logits, solutions)


class CTCNLL(ValueLoss):
    """The CTC loss of each listed sequence: minus the log of its probability, summed over all alignments to the frames.

    The network reads the query only: it returns logits for every frame, and any alignment of an answer to the frames
    counts. An answer that needs more frames than there are is impossible: its loss is inf, its gradient 0.

    Args:
        blank: the token that stands for no output.
        ignore_index: the token that does not count, such as padding. None: there is no such token.
    """

    def __init__(self, *, blank: int = 0, ignore_index: int | None = -100) -> None:
        expect(blank >= 0, "blank", "0 or more", blank)
        super().__init__(ignore_index=ignore_index)
        self.blank = blank

    def forward(
        self,
        logits: Tensor,
        solutions: Tensor,
        variable_mask: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of every listed sequence, `[B,K]`.

        Args:
            logits: `[B,S,V]`, for S frames.
            solutions: `[B,K,L]` int64, tokens 0..V-1 without the blank, or `ignore_index`. Others are clamped.
            variable_mask: `[B,K,L]` of bool or any integer type (or `[B,L]`), False leaves a token out.
            lengths: `[B]`, the number of frames of each query; None: all S.
        """
        self.check(logits, solutions, lengths)
        frames, values = logits.shape[-2:]
        if variable_mask is not None:
            variable_mask = _mask_of_tokens(variable_mask, solutions)
        kept = self.kept(solutions, variable_mask)
        if kept is None:
            kept = torch.ones_like(solutions, dtype=torch.bool)
        kept = kept.expand_as(solutions)
        # Tokens that count move to the front, in their order.
        targets = solutions.clamp(0, values - 1).gather(-1, (~kept).byte().argsort(dim=-1, stable=True))
        sizes = kept.sum(-1)
        if lengths is None:
            lengths = sizes.new_full((len(logits),), frames)
        else:
            check_length_values(lengths, frames)
        lengths = lengths.to(torch.int64)
        after = torch.arange(frames, device=logits.device) >= lengths.unsqueeze(-1)
        numbers = logits.to(computing_type(logits)).masked_fill(after.unsqueeze(-1), 0.0)
        # A token of probability zero stays finite here, so that only too few frames make torch's loss infinite.
        log_probabilities = numbers.log_softmax(-1).clamp(min=_IMPOSSIBLE).transpose(0, 1)
        losses = [
            ctc_loss(log_probabilities, target, lengths, size, self.blank, reduction="none", zero_infinity=True)
            for target, size in zip(targets.unbind(1), sizes.unbind(1), strict=True)
        ]
        found = torch.stack(losses, -1)
        # A blank frame separates equal tokens.
        within = torch.arange(1, targets.shape[-1], device=sizes.device) < sizes.unsqueeze(-1)
        repeats = (targets[..., 1:] == targets[..., :-1]) & within
        too_long = sizes + repeats.sum(-1) > lengths.unsqueeze(-1)
        return found.masked_fill(too_long | (found > -0.5 * _IMPOSSIBLE), torch.inf)

    if TYPE_CHECKING:
        __call__ = forward

    def check(self, logits: Tensor, solutions: Tensor, lengths: Tensor | None) -> None:
        """Check shapes, types and devices."""
        expect_tensor(logits, "logits")
        expect_axes(logits.dim() == 3 and min(logits.shape) > 0, logits, "logits", "shape [B,S,V] without empty axes")
        expect(self.blank < logits.shape[-1], "blank", f"a token 0..{logits.shape[-1] - 1}", self.blank)
        expect_tensor(solutions, "solutions", dtype=torch.int64)
        right = solutions.dim() == 3 and min(solutions.shape) > 0 and len(solutions) == len(logits)
        expect_axes(right, solutions, "solutions", f"shape [B,K,L] with B = {len(logits)}, K >= 1, L >= 1")
        expect_device(solutions, "solutions", logits.device)
        if lengths is not None:
            _check_lengths(lengths, "[B]", solutions.shape[:1], solutions.device)

    def longest(self, logits: Tensor, solutions: Tensor) -> int:
        """Return the number of frames."""
        return logits.shape[-2]

    def wrong_values(self, logits: Tensor, solutions: Tensor) -> tuple[Tensor, str]:
        """Return where solutions hold what is not a token, or the blank, and what was expected."""
        wrong, expected = super().wrong_values(logits, solutions)
        return wrong | (solutions == self.blank), f"{expected} without the blank {self.blank}"


_IMPOSSIBLE = -1e30
"""The log-probability of a token that cannot be."""


def _mask_of_tokens(variable_mask: Tensor, solutions: Tensor) -> Tensor:
    """Check a mask of tokens, `[B,K,L]` or `[B,L]`, against solutions; return it as bool."""
    mask = as_bool(variable_mask, "variable_mask")
    right = mask.shape == solutions.shape or (solutions.dim() == 3 and mask.shape == solutions[:, 0].shape)
    expect_axes(right, mask, "variable_mask", f"shape [B,K,L] = {list(solutions.shape)} or [B,L]")
    expect_device(mask, "variable_mask", solutions.device)
    return mask


def _check_lengths(lengths: Tensor, layout: str, shape: torch.Size, device: torch.device) -> None:
    expect_dense(lengths, "lengths")
    integer = not (lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool)
    expect(integer, "lengths", "an integer dtype", lengths.dtype)
    expect_shape(lengths, "lengths", layout, shape)
    expect_device(lengths, "lengths", device)
