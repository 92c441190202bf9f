"""The pair loss of real-valued outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from .contract import computing_type, settings_of
from .validation import as_variable_mask, expect, expect_axes, expect_device, expect_tensor


class SquaredError(nn.Module):
    """The squared difference of each listed solution from the output, summed over the variables.

    Divided by twice the variance it is the negative log-likelihood of a Gaussian, without its constant. The default
    variance of 0.5 gives the sum of squares. The variance is the temperature of CC-Loss and I-ExplR.

    Args:
        variance: the variance of every variable around the output.
    """

    def __init__(self, *, variance: float = 0.5) -> None:
        super().__init__()
        expect(0 < variance < float("inf"), "variance", "a number above 0", variance)
        self.variance = variance

    def extra_repr(self) -> str:
        """Return the settings."""
        return settings_of(self)

    def forward(self, output: Tensor, solutions: Tensor, variable_mask: Tensor | None = None) -> Tensor:
        """Return the loss of every listed solution, `[B,K]` or `[T,B,K]`.

        A solution that holds a NaN has the loss NaN and no gradient.

        Args:
            output: `[B,R]` or `[T,B,R]`, real numbers.
            solutions: `[B,K,R]`, real numbers.
            variable_mask: `[B,R]` or `[B,K,R]` of bool or any integer type, False leaves a variable out.
        """
        expect_tensor(output, "output")
        expect_axes(output.dim() in (2, 3) and min(output.shape) > 0, output, "output", "shape [B,R] or [T,B,R]")
        expect_tensor(solutions, "solutions")
        batch, variables = output.shape[-2:]
        right = solutions.dim() == 3 and solutions.shape[::2] == (batch, variables) and solutions.shape[1] > 0
        expect_axes(right, solutions, "solutions", f"shape [B,K,R] with B, R = {[batch, variables]} and K >= 1")
        expect_device(solutions, "solutions", output.device)
        kept = as_variable_mask(variable_mask, solutions)
        unknown = solutions.isnan()
        left_out = torch.zeros_like(unknown)
        if kept is not None:
            left_out = ~(kept if kept.dim() == 3 else kept.unsqueeze(1)).expand_as(unknown)
        numbers = output.to(computing_type(output)).unsqueeze(-2)
        # Set to 0 before the difference, so that no gradient is 0 times NaN.
        spoiled = unknown | left_out
        difference = numbers.masked_fill(spoiled, 0.0) - solutions.to(numbers.dtype).masked_fill(spoiled, 0.0)
        losses = difference.square().sum(-1) / (2 * self.variance)
        return losses.masked_fill((unknown & ~left_out).any(-1), torch.nan)

    if TYPE_CHECKING:
        __call__ = forward
