"""Pair losses: the negative log-likelihood of one listed solution at one step, summed over the variables, in nats.

Both losses make a table `[T,B,R,V]` of losses per variable and value, from which every listed solution picks one entry
per variable. The gradient is `probabilities * sum_k g_k - sum_k g_k [solution k takes the value]`. It is written out
below, since it needs neither the `[T,B,K,R]` entries of the forward pass nor a gradient of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from .validation import check_logits, expect


class PairLoss(Protocol):
    """The signature of a pair loss; any callable with it can be used."""

    def __call__(self, logits: Tensor, solutions: Tensor) -> Tensor:
        """Return the pair losses `[T,B,K]` or `[B,K]`; `variable_mask=` is passed only if one is used."""
        ...


class NegativeLogLikelihood:
    """The base of `CategoricalNLL` and `BinaryNLL`.

    Args:
        solutions_at_once: listed solutions that are looked up together. The largest temporary tensor has
            T * B * R * solutions_at_once numbers. None: as many as keep it within 16 million numbers or the size of
            the logits, whichever is larger.
    """

    binary = False

    def __init__(self, *, solutions_at_once: int | None = None) -> None:
        expect(solutions_at_once is None or solutions_at_once > 0, "solutions_at_once", "1 or more", solutions_at_once)
        self.solutions_at_once = solutions_at_once

    def __call__(self, logits: Tensor, solutions: Tensor, variable_mask: Tensor | None = None) -> Tensor:
        """Return the loss of every listed solution at every step.

        Args:
            logits: `[B,R,V]` or `[T,B,R,V]`. 16-bit logits are computed in float32.
            solutions: `[B,K,R]` int64, values 0..V-1. Values outside (padding) are clamped.
            variable_mask: `[B,R]` bool; False leaves a variable out.

        Returns:
            `[T,B,K]`, T = 1 without steps; float32, or float64 for float64 logits.
        """
        check_logits(logits, solutions, variable_mask)
        return self.without_checks(logits, solutions, variable_mask)

    def without_checks(
        self, logits: Tensor, solutions: Tensor, variable_mask: Tensor | None, *, any_order: bool = False
    ) -> Tensor:
        """Return the same as the call, for arguments that are already checked.

        Args:
            logits: as in the call.
            solutions: as in the call.
            variable_mask: as in the call.
            any_order: whether the gradients of a query's losses give the same sum in any order, because all non-zero
                ones are equal. If not, a GPU adds them in a fixed order.
        """
        with_steps = logits if logits.dim() == 4 else logits.unsqueeze(0)
        at_once = self.solutions_at_once or default_solutions_at_once(with_steps)
        # The compiler fuses the formula itself.
        losses = _pair_losses if torch.compiler.is_compiling() else _PairLosses.apply
        return losses(with_steps, solutions, variable_mask, self.binary, at_once, any_order)


class CategoricalNLL(NegativeLogLikelihood):
    """Cross-entropy of a softmax over the values, summed over the variables (the loss of Section 3.2)."""


class BinaryNLL(NegativeLogLikelihood):
    """Binary cross-entropy of C = R * V independent sigmoids, summed over all choices (as the paper trains its NLM)."""

    binary = True


def default_solutions_at_once(logits: Tensor) -> int | None:
    """Return how many listed solutions to look up together for logits `[T,B,R,V]`; None means all.

    The compiler fuses the look-up with its sum and needs no chunks; without them one graph works for every K.
    """
    if torch.compiler.is_compiling():
        return None
    steps, batch, variables, values = logits.shape
    return max(values, 2**24 // (steps * batch * variables))


def chunks(solutions: Tensor, values: int, at_once: int | None) -> Iterator[tuple[slice, Tensor]]:
    """Yield the listed solutions `[B,K,R]` in slices of K, as an index `[B,R,k]` that is in range."""
    if at_once is None:
        yield slice(None), solutions.clamp(0, values - 1).transpose(1, 2)
        return
    for start in range(0, solutions.shape[1], at_once):
        part = slice(start, start + at_once)
        yield part, solutions[:, part].clamp(0, values - 1).transpose(1, 2)


def look_up(table: Tensor, solutions: Tensor, at_once: int | None) -> Tensor:
    """Sum the entries of `table` `[T,B,R,V]` that each solution of `[B,K,R]` picks; returns `[T,B,K]`."""
    steps, values = table.shape[0], table.shape[-1]
    sums = [
        table.gather(-1, index.expand(steps, -1, -1, -1)).sum(-2) for _, index in chunks(solutions, values, at_once)
    ]
    return sums[0] if len(sums) == 1 else torch.cat(sums, -1)


def _pair_losses(
    logits: Tensor,
    solutions: Tensor,
    variable_mask: Tensor | None,
    binary: bool,
    at_once: int | None,
    any_order: bool = False,  # of the gradient
) -> Tensor:
    """Return the pair losses `[T,B,K]` of logits `[T,B,R,V]`."""
    numbers = logits.to(computing_type(logits))
    if variable_mask is not None:
        numbers = numbers.masked_fill(~variable_mask.unsqueeze(-1), 0.0)
    table = -_binary_losses(numbers) if binary else _log_softmax(numbers)
    if variable_mask is not None:
        table = table.masked_fill(~variable_mask.unsqueeze(-1), 0.0)
    return -look_up(table, solutions, at_once)


class _PairLosses(torch.autograd.Function):
    """`_pair_losses` with its gradient written out."""

    forward = staticmethod(_pair_losses)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        logits, solutions, variable_mask, ctx.binary, ctx.at_once, ctx.any_order = inputs
        ctx.save_for_backward(logits, solutions, variable_mask)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        (grad,) = grad_outputs
        logits, solutions, variable_mask = ctx.saved_tensors
        numbers = logits.to(grad.dtype)
        total = grad.sum(-1).unsqueeze(-1).unsqueeze(-1)
        probabilities = numbers.sigmoid() if ctx.binary else _softmax(numbers)
        # In place, unless the gradient itself is differentiated.
        result = probabilities * total if torch.is_grad_enabled() else probabilities.mul_(total)
        _subtract_taken(result, solutions, grad, ctx.at_once, ctx.any_order)
        if variable_mask is not None:
            result = result.masked_fill(~variable_mask.unsqueeze(-1), 0.0)
        return result.to(logits.dtype), None, None, None, None, None


def _subtract_taken(result: Tensor, solutions: Tensor, weights: Tensor, at_once: int | None, any_order: bool) -> None:
    """Subtract from `result` `[T,B,R,V]`, in place, the weights `[T,B,K]` of the solutions at the values they take."""
    for_kernel = result.is_cuda and result.dtype == torch.float32 and result.numel() > 0 and not any_order
    if for_kernel and not torch.is_grad_enabled() and _has_triton():
        from .pair_kernels import subtract_taken

        subtract_taken(result, solutions, weights)
        return
    for part, index in chunks(solutions, result.shape[-1], at_once):
        index = index.expand(len(result), -1, -1, -1)
        result.scatter_add_(-1, index, weights[..., part].neg().unsqueeze(-2).expand(index.shape))


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def computing_type(numbers: Tensor) -> torch.dtype:
    """Return the type to compute in: float64 stays, everything else becomes float32."""
    return torch.float64 if numbers.dtype == torch.float64 else torch.float32


def _binary_losses(logits: Tensor) -> Tensor:
    """Return the loss `[T,B,R,V]` of a variable that takes a value: that choice is on, its other choices are off."""
    off = -logsigmoid(-logits)
    # A logit of +inf forces its choice on: every other value of the variable is impossible, this one is not.
    forced = off == torch.inf
    off = off.masked_fill(forced, 0.0)
    others_off = off.sum(-1, keepdim=True) - off
    others_off = others_off.masked_fill(forced.sum(-1, keepdim=True) > forced.to(torch.int64), torch.inf)
    return others_off - logsigmoid(logits)


def _log_softmax(logits: Tensor) -> Tensor:
    # On the short rows of this library (V = 9) torch's CPU kernel is 5 times slower than the written-out formula.
    if not logits.is_cpu:
        return logits.log_softmax(-1)
    shifted = logits - logits.detach().amax(-1, keepdim=True)
    return shifted - shifted.exp().sum(-1, keepdim=True).log()


def _softmax(logits: Tensor) -> Tensor:
    if not logits.is_cpu:
        return logits.softmax(-1)
    powers = (logits - logits.detach().amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)
