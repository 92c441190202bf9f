"""Rewards of the selector: how well a listed solution agrees with the prediction (Section 3.4).

Each takes logits `[B,R,V]` or `[T,B,R,V]`, solutions `[B,K,R]` and an optional variable mask `[B,R]` or `[B,K,R]`, and
returns `[T,B,K]` (T = 1 without steps) without a gradient. SelectR takes the mean over the steps, or the reward of each
step.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from .contract import computing_type
from .looking_up import default_solutions_at_once, look_up, per_solution, without
from .validation import as_variable_mask, check_logits


class Reward(Protocol):
    """The signature of a reward; any callable with it can be used."""

    def __call__(self, logits: Tensor, solutions: Tensor) -> Tensor:
        """Return the rewards `[T,B,K]` or `[B,K]`; `variable_mask=` and `lengths=` are passed only if used."""
        ...


def hamming_reward(logits: Tensor, solutions: Tensor, variable_mask: Tensor | None = None) -> Tensor:
    """Count the variables in which the argmax of the logits agrees with the solution (the paper's reward)."""
    return _count(_argmax_agreement, logits, solutions, variable_mask)


def exact_match_reward(logits: Tensor, solutions: Tensor, variable_mask: Tensor | None = None) -> Tensor:
    """Return 1 if the argmax of the logits is the solution, else 0 (the paper's binary reward)."""
    agreeing = _count(_argmax_agreement, logits, solutions, variable_mask)
    return (agreeing == _variables(solutions, variable_mask)).to(agreeing.dtype)


def binary_hamming_reward(logits: Tensor, solutions: Tensor, variable_mask: Tensor | None = None) -> Tensor:
    """Count the choices in which sigmoid(logits) > 0.5 agrees with the solution."""
    return _count(_threshold_agreement, logits, solutions, variable_mask)


def binary_exact_match_reward(logits: Tensor, solutions: Tensor, variable_mask: Tensor | None = None) -> Tensor:
    """Return 1 if sigmoid(logits) > 0.5 takes exactly the choices of the solution, else 0."""
    agreeing = _count(_threshold_agreement, logits, solutions, variable_mask)
    return (agreeing == logits.shape[-1] * _variables(solutions, variable_mask)).to(agreeing.dtype)


class _Agreement(Protocol):
    def __call__(self, logits: Tensor) -> Tensor: ...


@torch.no_grad()
def _count(agreement: _Agreement, logits: Tensor, solutions: Tensor, variable_mask: Tensor | None) -> Tensor:
    check_logits(logits, solutions)
    kept = as_variable_mask(variable_mask, solutions)
    logits = logits if logits.dim() == 4 else logits.unsqueeze(0)
    own = per_solution(kept)
    table = without(agreement(logits).to(computing_type(logits)), kept if own is None else None)
    return look_up(table, solutions, default_solutions_at_once(logits), own)


def _argmax_agreement(logits: Tensor) -> Tensor:
    """Table `[T,B,R,V]`: 1 for the predicted value of a variable, 0 for the others."""
    return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)


def _threshold_agreement(logits: Tensor) -> Tensor:
    """Table `[T,B,R,V]`: how many of a variable's V choices are predicted correctly if it takes a value."""
    taken = (logits > 0).to(torch.int64)
    return logits.shape[-1] - 1 - taken.sum(-1, keepdim=True) + 2 * taken


def _variables(solutions: Tensor, variable_mask: Tensor | None) -> Tensor | int:
    """Return the number of variables that count: R, or `[B,1]` or `[B,K]` with a mask."""
    if variable_mask is None:
        return solutions.shape[-1]
    return (variable_mask != 0).sum(-1, keepdim=variable_mask.dim() == 2)


REWARDS: tuple[Reward, ...] = (hamming_reward, exact_match_reward, binary_hamming_reward, binary_exact_match_reward)
"""The rewards of this module, which take a variable mask of every listed solution."""
