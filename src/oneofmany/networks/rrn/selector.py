"""Selectors for Sudoku: they see in which cells each step of the lagged copy agrees with a listed solution.

The input is T agreement maps 1[argmax of step t == solution], without the query or probabilities. In the authors' code
the output is a distance, and the softmax takes its negative. Here it is the score itself (higher = preferred), which is
the same family of functions with the sign of the last layer flipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from oneofmany.problems import Batch, Problem


class _AgreementSelector(nn.Module):
    """The base of both selectors: checks and agreement maps."""

    def __init__(self, problem: Problem, steps: int, value_offset: int) -> None:
        super().__init__()
        if problem.task != "sudoku":
            raise ValueError(f"problem: this selector needs a Sudoku, got {problem}")
        if steps < 1:
            raise ValueError(f"steps: expected at least 1, got {steps}")
        if value_offset not in (0, 1):
            raise ValueError(f"value_offset: expected 0 or 1, got {value_offset}")
        self.problem, self.steps, self.value_offset = problem, steps, value_offset

    def agreement(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return maps [B * K, T, R] of 0 and 1; a value outside 0..V-1 (possible in padding) never agrees."""
        ours, theirs = self.problem, batch.problem
        if theirs is not ours and (theirs.task, theirs.size, theirs.options) != (ours.task, ours.size, ours.options):
            raise ValueError(f"batch: this selector is for {ours}, got {theirs}")
        B, R, classes = len(batch), ours.variables, ours.values + self.value_offset
        if logits.ndim == 3:
            logits = logits[None]
        if list(logits.shape) != [self.steps, B, R, classes] or not logits.is_floating_point():
            raise ValueError(
                f"logits: expected floats [{self.steps}, {B}, {R}, {classes}], got {logits.dtype} {list(logits.shape)}"
            )
        weight = next(self.parameters())
        if logits.device != weight.device:
            raise ValueError(f"logits: expected the selector's device {weight.device}, got {logits.device}")
        predicted = logits.argmax(-1) - self.value_offset
        agrees = predicted.transpose(0, 1)[:, None] == batch.solutions[:, :, None]
        # A prediction of "blank" (class 0) must not agree with padding of -1.
        agrees = agrees & (predicted >= 0).transpose(0, 1)[:, None]
        return agrees.flatten(0, 1).to(weight.dtype)


class CNNSelector(_AgreementSelector):
    """3 x 3 convolutions over the agreement maps and one linear layer: scores [B, K].

    Args:
        problem: a Sudoku of any box shape.
        steps: T, the number of steps of the logits.
        channels: of the convolutions, with ReLUs between them. The default is that of the authors' code (114,647
            parameters on 9 x 9 with 32 steps); the paper's text has (100, 64, 32, 32), 116,869 parameters.
        value_offset: 1 for logits with a blank class (RRN), 0 for logits over the values only.
        rectify_last: also apply a ReLU after the last convolution, as in the authors' code. Its single channel is 0 for
            every input in about a third of initialisations, and such a selector never learns. Without it, the last
            convolution and the linear layer act as one linear layer after four convolutions, as in the text.
    """

    def __init__(
        self,
        problem: Problem,
        steps: int = 32,
        channels: Sequence[int] = (100, 64, 32, 32, 1),
        value_offset: int = 1,
        rectify_last: bool = False,
    ) -> None:
        super().__init__(problem, steps, value_offset)
        self.rectify_last = rectify_last
        self.convolutions = nn.ModuleList(nn.Conv2d(i, o, 3, padding=1) for i, o in pairwise((steps, *channels)))
        self.output = nn.Linear((steps, *channels)[-1] * problem.variables, 1)

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return scores [B, K] of ``batch.solutions`` from logits [T, B, R, classes] (or [B, R, classes] if T is 1)."""
        n = self.problem.size
        maps = self.agreement(logits, batch).unflatten(-1, (n, n))
        for place, convolution in enumerate(self.convolutions):
            maps = convolution(maps)
            if self.rectify_last or place + 1 < len(self.convolutions):
                maps = maps.relu()
        return self.output(maps.flatten(1)).view(batch.mask.shape)


class MLPSelector(_AgreementSelector):
    """The authors' smaller variant: a learned weighted sum of the steps' maps, then R -> 32 -> 1; scores [B, K].

    Args:
        problem: a Sudoku of any box shape.
        steps: T, the number of steps of the logits.
        width: of the hidden layer.
        value_offset: as in ``CNNSelector``.
    """

    def __init__(self, problem: Problem, steps: int = 32, width: int = 32, value_offset: int = 1) -> None:
        super().__init__(problem, steps, value_offset)
        self.step_weights = nn.Linear(steps, 1, bias=False)
        self.hidden = nn.Linear(problem.variables, width)
        self.output = nn.Linear(width, 1)

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return scores [B, K] of ``batch.solutions`` from logits [T, B, R, classes] (or [B, R, classes] if T is 1)."""
        weighted = torch.matmul(self.step_weights.weight, self.agreement(logits, batch))[:, 0]
        return self.output(self.hidden(weighted).relu()).view(batch.mask.shape)
