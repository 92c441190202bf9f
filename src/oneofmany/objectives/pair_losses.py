"""Pair losses: the negative log-likelihood of one listed solution at one step, summed over the variables, in nats.

`CategoricalNLL` and `BinaryNLL` make a table `[T,B,R,V]` of losses per variable and value, from which every listed
solution picks one entry per variable. The gradient is `probabilities * sum_k g_k - sum_k g_k [solution k takes the
value]`. It is written out below, since it needs neither the `[T,B,K,R]` entries of the forward pass nor a gradient of
the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from .contract import SmoothedLoss, computing_type
from .looking_up import LookUp, default_solutions_at_once, expected_minus_taken, look_up, per_solution, without
from .validation import as_variable_mask, check_logits, expect, expect_device


class NegativeLogLikelihood(SmoothedLoss):
    """The base of `CategoricalNLL` and `BinaryNLL`; the options are those of `CategoricalNLL`."""

    binary = False

    def __init__(
        self,
        *,
        label_smoothing: float = 0.0,
        weight: Tensor | None = None,
        ignore_index: int | None = -100,
        solutions_at_once: int | None = None,
    ) -> None:
        expect(solutions_at_once is None or solutions_at_once > 0, "solutions_at_once", "1 or more", solutions_at_once)
        super().__init__(label_smoothing=label_smoothing, weight=weight, ignore_index=ignore_index)
        self.solutions_at_once = solutions_at_once

    def forward(self, logits: Tensor, solutions: Tensor, variable_mask: Tensor | None = None) -> Tensor:
        """Return the loss of every listed solution at every step.

        Args:
            logits: `[B,R,V]` or `[T,B,R,V]`. 16-bit logits are computed in float32.
            solutions: `[B,K,R]` int64, values 0..V-1 or `ignore_index`. Other values (padding) are clamped.
            variable_mask: `[B,R]` or `[B,K,R]` of bool or any integer type; False leaves a variable out.

        Returns:
            `[T,B,K]`, T = 1 without steps; float32, or float64 for float64 logits.
        """
        self.check(logits, solutions, None)
        kept = self.kept(solutions, as_variable_mask(variable_mask, solutions))
        return self.without_checks(logits, solutions, kept)

    if TYPE_CHECKING:
        __call__ = forward

    def check(self, logits: Tensor, solutions: Tensor, lengths: Tensor | None) -> None:
        """Check shapes, types and devices; there are no lengths."""
        expect(lengths is None, "lengths", f"None, since {type(self).__name__} takes none", "a tensor")
        check_logits(logits, solutions)

    def without_checks(
        self, logits: Tensor, solutions: Tensor, kept: Tensor | None, *, any_order: bool = False
    ) -> Tensor:
        """Return the same as the call, for arguments that are already checked.

        Args:
            logits: as in the call.
            solutions: as in the call.
            kept: the variables that count, `[B,R]` or `[B,K,R]` bool; `ignore_index` is not looked at again.
            any_order: whether the gradients of a query's losses give the same sum in any order, because all non-zero
                ones are equal. If not, a GPU adds them in a fixed order.
        """
        with_steps = logits if logits.dim() == 4 else logits.unsqueeze(0)
        at_once = self.solutions_at_once or default_solutions_at_once(with_steps)
        return losses_of(self, with_steps, solutions, kept, self.binary, at_once, any_order)


class CategoricalNLL(NegativeLogLikelihood):
    """Cross-entropy of a softmax over the values, summed over the variables (the loss of Section 3.2).

    Args:
        label_smoothing: the share of the target that is spread over all values, as in `torch.nn.CrossEntropyLoss`.
        weight: `[V]` or `[R,V]`, the weight of the loss of each value, as in `torch.nn.CrossEntropyLoss`; `[R,1]`
            weighs the variables.
        ignore_index: the value that marks a variable of a listed solution as left out. None: there is no such value,
            which is a little faster.
        solutions_at_once: listed solutions that are looked up together. The largest temporary tensor has
            T * B * R * solutions_at_once numbers. None: as many as keep it within 16 million numbers or the size of
            the logits, whichever is larger. A GPU's kernels (float32, with triton) need no such tensor.
    """


class BinaryNLL(NegativeLogLikelihood):
    """Binary cross-entropy of C = R * V independent sigmoids, summed over all choices (as the paper trains its NLM).

    Args:
        ignore_index: as in `CategoricalNLL`.
        solutions_at_once: as in `CategoricalNLL`.
    """

    binary = True

    def __init__(self, *, ignore_index: int | None = -100, solutions_at_once: int | None = None) -> None:
        super().__init__(ignore_index=ignore_index, solutions_at_once=solutions_at_once)


def losses_of(
    options: SmoothedLoss,
    logits: Tensor,
    solutions: Tensor,
    kept: Tensor | None,
    binary: bool,
    at_once: int | None,
    any_order: bool,
) -> Tensor:
    """Return the pair losses `[T,B,K]` of logits `[T,B,R,V]`, with the label smoothing and weights of `options`."""
    # The compiler fuses the formulas itself.
    compiling = torch.compiler.is_compiling()
    if options.label_smoothing == 0 and options.weight is None:
        losses = _pair_losses if compiling else _PairLosses.apply
        return losses(logits, solutions, kept, binary, at_once, any_order)
    table = log_likelihoods(options, logits, kept, binary)
    pick = look_up if compiling else LookUp.apply
    return -pick(without(table, kept), solutions, at_once, per_solution(kept), any_order)


def log_likelihoods(options: SmoothedLoss, logits: Tensor, kept: Tensor | None = None, binary: bool = False) -> Tensor:
    """Return the log-likelihood of every value, `[T,B,R,V]`, with the label smoothing and weights of `options`."""
    table, weight, smoothing = _table(logits, kept, binary), options.weight, options.label_smoothing
    if weight is not None:
        pairs = zip(weight.shape[::-1], table.shape[::-1], strict=False)
        fits = weight.dim() in (1, 2) and all(own in (1, other) for own, other in pairs)
        wanted = f"shape [V] or [R,V] with R, V = {list(table.shape[-2:])}"
        expect(fits, "weight", wanted, f"shape {list(weight.shape)}")
        expect_device(weight, "weight", table.device)
        # A value of weight 0 does not count, even if it is impossible.
        table = (table * weight.to(table.dtype)).masked_fill(weight == 0, 0.0)
    if smoothing > 0:
        table = (1 - smoothing) * table + smoothing * table.mean(-1, keepdim=True)
    return table


def _table(logits: Tensor, kept: Tensor | None, binary: bool) -> Tensor:
    """Return the log-likelihood `[T,B,R,V]` of every value of every variable."""
    numbers = without(logits.to(computing_type(logits)), kept)
    return -_binary_losses(numbers) if binary else _log_softmax(numbers)


def _pair_losses(
    logits: Tensor,
    solutions: Tensor,
    kept: Tensor | None,
    binary: bool,
    at_once: int | None,
    any_order: bool = False,  # of the gradient
) -> Tensor:
    """Return the pair losses `[T,B,K]` of logits `[T,B,R,V]`."""
    own = per_solution(kept)
    # With a mask of every solution, what is left out is set to 0 when it is picked; more is needed for a gradient only.
    everywhere = kept if own is None or torch.is_grad_enabled() else None
    return -look_up(without(_table(logits, everywhere, binary), everywhere), solutions, at_once, own)


class _PairLosses(torch.autograd.Function):
    """`_pair_losses` with its gradient written out."""

    forward = staticmethod(_pair_losses)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        logits, solutions, kept, ctx.binary, ctx.at_once, ctx.any_order = inputs
        ctx.save_for_backward(logits, solutions, kept)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        (grad,) = grad_outputs
        logits, solutions, kept = ctx.saved_tensors
        numbers = logits.to(grad.dtype)
        probabilities = numbers.sigmoid() if ctx.binary else _softmax(numbers)
        result = expected_minus_taken(probabilities, solutions, grad, ctx.at_once, ctx.any_order, kept)
        return result.to(logits.dtype), None, None, None, None, None


LARGE = 256.0
"""Losses of this size leave the others fewer than 16 bits after the binary point in float32."""


def _binary_losses(logits: Tensor) -> Tensor:
    """Return the loss `[T,B,R,V]` of a variable that takes a value: that choice is on, its other choices are off."""
    off = -logsigmoid(-logits)
    # A logit of +inf forces its choice on: every other value of the variable is impossible, this one is not.
    forced = off == torch.inf
    off = off.masked_fill(forced, 0.0)
    total = off.sum(-1, keepdim=True)
    others_off = total - off
    # A very large loss swallows the digits of the others, so they are added up without it.
    largest = off.argmax(-1, keepdim=True)
    without = off.scatter(-1, largest, 0.0).sum(-1, keepdim=True)
    others_off = others_off.scatter(-1, largest, torch.where(total > LARGE, without, others_off.gather(-1, largest)))
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
