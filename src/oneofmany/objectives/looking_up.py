"""Looking up the entries of a table `[T,B,R,V]` that the listed solutions `[B,K,R]` pick, and the gradient of that."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

FEW_VALUES = 256
"""With more values than this, `scatter_add_` is preferred to a kernel that compares every solution with every value."""


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


def look_up(
    table: Tensor, solutions: Tensor, at_once: int | None, kept: Tensor | None = None, any_order: bool = False
) -> Tensor:
    """Sum the entries of `table` `[T,B,R,V]` that each solution of `[B,K,R]` picks; returns `[T,B,K]`.

    Args:
        table: `[T,B,R,V]`.
        solutions: `[B,K,R]`.
        at_once: solutions that are looked up together.
        kept: `[B,K,R]` bool, the variables that count; None: all.
        any_order: only for the gradient, see `without_checks`.
    """
    if _has_kernels(table):
        from . import pair_kernels

        return pair_kernels.look_up(table, solutions, kept)
    steps, values = table.shape[0], table.shape[-1]
    sums = []
    for part, index in chunks(solutions, values, at_once):
        picked = table.gather(-1, index.expand(steps, -1, -1, -1))
        if kept is not None:
            left_out = ~kept[:, part].transpose(1, 2)
            picked = (
                picked.masked_fill(left_out, 0.0) if torch.is_grad_enabled() else picked.masked_fill_(left_out, 0.0)
            )
        sums.append(picked.sum(-2))
    return sums[0] if len(sums) == 1 else torch.cat(sums, -1)


def per_solution(kept: Tensor | None) -> Tensor | None:
    """Return a mask of variables if it differs between the solutions, `[B,K,R]`; else None."""
    return kept if kept is not None and kept.dim() == 3 else None


def without(numbers: Tensor, kept: Tensor | None, *, in_place: bool = False) -> Tensor:
    """Set numbers `[T,B,R,V]` to 0 at variables that no solution uses, so that even a NaN does not matter there."""
    if kept is None:
        return numbers
    unused = ~(kept if kept.dim() == 2 else kept.any(1)).unsqueeze(-1)
    return numbers.masked_fill_(unused, 0.0) if in_place else numbers.masked_fill(unused, 0.0)


class LookUp(torch.autograd.Function):
    """`look_up` with a gradient that is added in a fixed order."""

    forward = staticmethod(look_up)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep what the gradient needs."""
        table, solutions, ctx.at_once, kept, ctx.any_order = inputs
        ctx.shape = table.shape
        ctx.save_for_backward(solutions, kept)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None, None, None]:
        """Return the gradient of the table."""
        (grad,) = grad_outputs
        solutions, kept = ctx.saved_tensors
        zeros = grad.new_zeros(ctx.shape)
        return subtract_taken(zeros, solutions, -grad, ctx.at_once, ctx.any_order, kept), None, None, None, None


def expected_minus_taken(
    probabilities: Tensor,
    solutions: Tensor,
    weights: Tensor,
    at_once: int | None,
    any_order: bool,
    kept: Tensor | None = None,
) -> Tensor:
    """Return the gradient of the pair losses, `probabilities * sum_k w_k - sum_k w_k [solution k takes the value]`.

    Args:
        probabilities: `[T,B,R,V]`; it is overwritten, unless the gradient itself is differentiated.
        solutions: `[B,K,R]` int64. Values outside 0..V-1 (padding) are clamped.
        weights: `[T,B,K]`.
        at_once: solutions that are handled together.
        any_order: whether the order of the sum does not matter.
        kept: `[B,R]` or `[B,K,R]` bool, the variables that count; None: all.
    """
    if _kernel_adds(probabilities, any_order):
        from . import pair_kernels

        own = kept.unsqueeze(1).expand_as(solutions) if kept is not None and kept.dim() == 2 else kept
        pair_kernels.subtract_taken(probabilities, solutions, weights, own, times_total=True)
        return probabilities
    own = per_solution(kept)
    # With a mask of every solution, every variable has its own sum.
    total = (weights.sum(-1).unsqueeze(-1) if own is None else per_variable(weights, own)).unsqueeze(-1)
    in_place = not torch.is_grad_enabled()
    result = probabilities.mul_(total) if in_place else probabilities * total
    result = subtract_taken(result, solutions, weights, at_once, any_order, own)
    return without(result, kept, in_place=in_place)


def subtract_taken(
    result: Tensor,
    solutions: Tensor,
    weights: Tensor,
    at_once: int | None,
    any_order: bool,
    kept: Tensor | None = None,
) -> Tensor:
    """Subtract from `result` `[T,B,R,V]`, in place, the weights `[T,B,K]` of the solutions at the values they take.

    Args:
        result: `[T,B,R,V]`; it is returned.
        solutions: `[B,K,R]` int64. Values outside 0..V-1 (padding) are clamped.
        weights: `[T,B,K]`.
        at_once: solutions that are handled together.
        any_order: whether the order of the sum does not matter.
        kept: `[B,K,R]` bool, the variables that count; None: all.
    """
    if _kernel_adds(result, any_order):
        from . import pair_kernels

        pair_kernels.subtract_taken(result, solutions, weights, kept)
        return result
    if kept is not None:
        # What is left out is subtracted from value 0 and added there again, which is cheaper than one weight per entry.
        solutions = solutions.masked_fill(~kept, 0)
    for part, index in chunks(solutions, result.shape[-1], at_once):
        index = index.expand(len(result), -1, -1, -1)
        result.scatter_add_(-1, index, weights[..., part].neg().unsqueeze(-2).expand(index.shape))
    if kept is not None:
        result[..., 0] += per_variable(weights, ~kept)
    return result


def per_variable(weights: Tensor, kept: Tensor) -> Tensor:
    """Sum the weights `[T,B,K]` of the solutions that use a variable, `[T,B,R]`, by their masks `[B,K,R]`."""
    # In float64, since a GPU may be told to round the products of float32.
    return torch.einsum("tbk,bkr->tbr", weights.double(), kept.double()).to(weights.dtype)


def _kernel_adds(result: Tensor, any_order: bool) -> bool:
    """Return whether a kernel adds up the gradient `[T,B,R,V]`: always in a fixed order, and fast if V is small."""
    return _has_kernels(result) and not (any_order and result.shape[-1] > FEW_VALUES)


def _has_kernels(numbers: Tensor) -> bool:
    """Return whether a GPU's kernels can take `numbers`; autograd, the compiler and fake tensors need operators."""
    fits = type(numbers) is Tensor and numbers.is_cuda and numbers.dtype == torch.float32 and numbers.numel() > 0
    return fits and not torch.is_grad_enabled() and not torch.compiler.is_compiling() and _has_triton()


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
