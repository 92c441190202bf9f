"""Small steps that the objectives share: sums of weighted losses, the divisor of a mean, calls of a user's function."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .validation import expect, expect_dense, may_look_at_values


def weighted_sum(losses: Tensor, weights: Tensor) -> Tensor:
    """Sum the weighted losses of each query; losses of weight 0 are left out, even if they are inf."""
    return (weights * losses.masked_fill(weights == 0, 0.0)).sum(-1)


def heaviest(weights: Tensor) -> Tensor:
    """Return the index of the greatest of weights `[..,K]`, the first of equals; -1 if all are 0."""
    return weights.argmax(-1).where((weights != 0).any(-1), -1)


def divisor(normaliser: Tensor | float, like: Tensor, *, validate: bool) -> Tensor | float:
    """Check a normaliser, a number or a scalar tensor; 0 becomes 1, since then there is nothing to divide.

    Args:
        normaliser: the number of queries that all parts of an update train on.
        like: the losses, whose device a tensor must be on, unless it is on the CPU.
        validate: also check that a tensor is not negative.
    """
    if not isinstance(normaliser, Tensor):
        right = isinstance(normaliser, (int, float)) and 0 <= normaliser < float("inf")
        expect(right, "normaliser", "a number of 0 or more", normaliser)
        return normaliser or 1
    expect_dense(normaliser, "normaliser")
    real = not (normaliser.is_complex() or normaliser.dtype == torch.bool)
    expect(normaliser.numel() == 1 and real, "normaliser", "one real number", _described(normaliser))
    fits = normaliser.device in (like.device, torch.device("cpu"))
    expect(fits, "normaliser", f"device {like.device}", f"device {normaliser.device}")
    scalar = normaliser.detach().reshape(())
    if validate and may_look_at_values(normaliser):
        expect(bool(scalar >= 0), "normaliser", "a number of 0 or more", scalar.item())
    return scalar.masked_fill(scalar == 0, 1)


def _described(tensor: Tensor) -> str:
    return f"shape {list(tensor.shape)} of {tensor.dtype}"


def without_padding(solutions: Tensor, mask: Tensor, fill: int = 0) -> Tensor:
    """Set the padding of solutions `[B,K,..]` to `fill`, for code that cannot handle other values there."""
    expect_dense(solutions, "solutions")
    fits = solutions.shape[:2] == mask.shape
    wanted = f"shape [B,K,..] with B, K = {list(mask.shape)}"
    expect(fits, "solutions", f"a tensor of {wanted}", f"shape {list(solutions.shape)}")
    return solutions.masked_fill(~mask.reshape(*mask.shape, *[1] * (solutions.dim() - 2)), fill)


def call(function: Callable[..., Tensor], logits: Tensor, solutions: Tensor, **options: Tensor | None) -> Tensor:
    """Call a user's function; it needs an argument such as `variable_mask` only if that is used."""
    return function(logits, solutions, **{name: value for name, value in options.items() if value is not None})
