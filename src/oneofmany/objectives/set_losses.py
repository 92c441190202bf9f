"""The pair loss of sets: any order of the elements is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .contract import SmoothedLoss
from .pair_losses import log_likelihoods
from .validation import as_variable_mask, expect, expect_axes, expect_device, expect_tensor


class SetNLL(SmoothedLoss):
    """The cross-entropy of a set under its best order: every element is predicted by one of R slots.

    It is MinLoss over all orders of a listed set, without listing them. The best order comes from scipy
    (`linear_sum_assignment`), on the CPU. A set may have fewer elements than there are slots. Then the other slots are
    not trained, unless the set is filled up with a value that stands for "nothing".

    Args:
        label_smoothing: as in `CategoricalNLL`.
        weight: `[V]`, as in `CategoricalNLL`.
        ignore_index: the value that stands for no element, such as padding. None: there is no such value.
    """

    def forward(self, logits: Tensor, solutions: Tensor, variable_mask: Tensor | None = None) -> Tensor:
        """Return the loss of every listed set at every step, `[T,B,K]`, T = 1 without steps.

        Args:
            logits: `[B,R,V]` or `[T,B,R,V]`, for R slots.
            solutions: `[B,K,N]` int64, at most R elements of every set, values 0..V-1 or `ignore_index`. Others are
                clamped.
            variable_mask: `[B,N]` or `[B,K,N]` of bool or any integer type, False leaves an element out.
        """
        self.check(logits, solutions, None)
        kept = self.kept(solutions, as_variable_mask(variable_mask, solutions))
        with_steps = logits if logits.dim() == 4 else logits.unsqueeze(0)
        table = log_likelihoods(self, with_steps)
        (steps, batch, slots, values), (_, listed, size) = table.shape, solutions.shape
        elements = solutions.clamp(0, values - 1)
        index = elements[:, :, None].expand(steps, batch, listed, slots, size)
        with torch.no_grad():
            costs = -table.detach().unsqueeze(2).expand(-1, -1, listed, -1, -1).gather(-1, index)
            if kept is not None:
                kept = (kept if kept.dim() == 3 else kept.unsqueeze(1)).expand(batch, listed, size)
                costs = costs.masked_fill(~kept.unsqueeze(2), 0.0)
            places = best_slots(costs)
        picked = table.flatten(-2).gather(-1, (places * values + elements).flatten(-2)).view(places.shape)
        return -(picked if kept is None else picked.masked_fill(~kept, 0.0)).sum(-1)

    if TYPE_CHECKING:
        __call__ = forward

    def check(self, logits: Tensor, solutions: Tensor, lengths: Tensor | None) -> None:
        """Check shapes, types and devices; there are no lengths."""
        expect(lengths is None, "lengths", "None, since SetNLL takes none", "a tensor")
        expect_tensor(logits, "logits")
        expect_axes(logits.dim() in (3, 4), logits, "logits", "shape [B,R,V] or [T,B,R,V]")
        expect_axes(min(logits.shape) > 0, logits, "logits", "every axis of length 1 or more")
        batch, slots = logits.shape[-3], logits.shape[-2]
        expect_tensor(solutions, "solutions", dtype=torch.int64)
        right = solutions.dim() == 3 and len(solutions) == batch and solutions.shape[1] > 0
        right = right and 0 < solutions.shape[2] <= slots
        expect_axes(right, solutions, "solutions", f"shape [B,K,N] with B = {batch}, K >= 1 and 1 to {slots} elements")
        expect_device(solutions, "solutions", logits.device)


def best_slots(costs: Tensor) -> Tensor:
    """Return the slot of each element in the assignment of least cost, `[..,N]`, for costs `[..,R,N]` with N <= R.

    Waits for the device: the assignment is computed on the CPU, one problem at a time.
    """
    from scipy.optimize import linear_sum_assignment

    # What is impossible, or not a number, is only very expensive: there is an assignment in any case.
    problems = costs.double().nan_to_num(nan=1e100, posinf=1e100, neginf=-1e100).flatten(0, -3).transpose(-1, -2).cpu()
    slots = [torch.from_numpy(linear_sum_assignment(problem)[1]) for problem in problems.numpy()]
    return torch.stack(slots).to(costs.device).view(*costs.shape[:-2], costs.shape[-1])
