"""What a pair loss is, and what the pair losses over values share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from inspect import signature
from typing import Protocol

import torch
from torch import Tensor, nn

from .validation import check_fraction, expect_tensor


class PairLoss(Protocol):
    """The signature of a pair loss; any callable with it can be used."""

    def __call__(self, logits: Tensor, solutions: Tensor) -> Tensor:
        """Return the pair losses `[T,B,K]` or `[B,K]`; `variable_mask=` and `lengths=` are passed only if used."""
        ...


class ValueLoss(nn.Module, ABC):
    """The base of the pair losses over values 0..V-1.

    Args:
        ignore_index: the value that marks a variable of a listed solution as left out, such as padding at the end of a
            short answer. None: there is no such value.
    """

    def __init__(self, *, ignore_index: int | None = -100) -> None:
        super().__init__()
        self.ignore_index = ignore_index

    def extra_repr(self) -> str:
        """Return the settings."""
        return settings_of(self)

    @abstractmethod
    def check(self, logits: Tensor, solutions: Tensor, lengths: Tensor | None) -> None:
        """Check shapes, types and devices."""

    def kept(self, solutions: Tensor, variable_mask: Tensor | None, lengths: Tensor | None = None) -> Tensor | None:
        """Return which variables of each solution count: the variable mask and `ignore_index` together, `[B,K,R]`."""
        if self.ignore_index is None:
            return variable_mask
        kept = solutions != self.ignore_index
        if variable_mask is None:
            return kept
        return kept & (variable_mask if variable_mask.dim() == kept.dim() else variable_mask.unsqueeze(1))

    def longest(self, logits: Tensor, solutions: Tensor) -> int:
        """Return the largest length, of losses that take lengths."""
        return solutions.shape[-1]

    def wrong_values(self, logits: Tensor, solutions: Tensor) -> tuple[Tensor, str]:
        """Return where solutions hold what is not a value, and what was expected."""
        values = logits.shape[-1]
        return (solutions < 0) | (solutions >= values), f"0..{values - 1}"


class SmoothedLoss(ValueLoss):
    """The base of the pair losses with label smoothing and weights of the values.

    Args:
        label_smoothing: the share of the target that is spread over all values, as in `torch.nn.CrossEntropyLoss`.
        weight: `[V]`, the weight of the loss of each value, as in `torch.nn.CrossEntropyLoss`.
        ignore_index: the value that marks a variable of a listed solution as left out. None: there is no such value.
    """

    weight: Tensor | None

    def __init__(
        self, *, label_smoothing: float = 0.0, weight: Tensor | None = None, ignore_index: int | None = -100
    ) -> None:
        check_fraction(label_smoothing, "label_smoothing")
        if weight is not None:
            expect_tensor(weight, "weight")
        super().__init__(ignore_index=ignore_index)
        self.label_smoothing = label_smoothing
        self.register_buffer("weight", weight)


def computing_type(numbers: Tensor) -> torch.dtype:
    """Return the type to compute in: float64 stays, everything else becomes float32."""
    return torch.float64 if numbers.dtype == torch.float64 else torch.float32


def settings_of(module: nn.Module) -> str:
    """Return the options of a module's constructor as text, for its repr: every option is an attribute of its name."""
    shown = {name: getattr(module, name) for name in signature(type(module)).parameters}
    return ", ".join(f"{name}={_shown(value)}" for name, value in shown.items() if not isinstance(value, nn.Module))


def _shown(value: object) -> str:
    if isinstance(value, Tensor):
        return f"tensor of shape {list(value.shape)}"
    return getattr(value, "__name__", None) or repr(value)
