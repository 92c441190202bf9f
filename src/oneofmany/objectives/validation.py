"""Checks of the arguments: every error names the argument, what was expected and what was passed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def expect(condition: bool, name: str, expected: str, got: object) -> None:
    """Raise a `ValueError` that names the argument, what was expected and what was passed."""
    if not condition:
        raise ValueError(f"{name}: expected {expected}, got {got}")


def expect_tensor(value: object, name: str, *, dtype: torch.dtype | None = None) -> None:
    """Check that `value` is a tensor of `dtype` (None: any real floating-point type)."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{name}: expected a torch.Tensor, got {type(value).__name__}")
    if dtype is None:
        expect(value.dtype.is_floating_point, name, "a floating-point dtype", value.dtype)
    elif value.dtype != dtype:
        raise ValueError(f"{name}: expected dtype {dtype}, got {value.dtype}")


def expect_shape(value: Tensor, name: str, layout: str, shape: Sequence[int]) -> None:
    """Check the whole shape of `value`; `layout` names its axes in the message, as in `[B,K]`."""
    if value.shape != tuple(shape):
        raise ValueError(f"{name}: expected shape {layout} = {list(shape)}, got shape {list(value.shape)}")


def expect_axes(right: bool, value: Tensor, name: str, expected: str) -> None:
    """Check a part of the shape of `value`: `right` is the result."""
    if not right:
        raise ValueError(f"{name}: expected {expected}, got shape {list(value.shape)}")


def expect_device(value: Tensor, name: str, device: torch.device) -> None:
    """Check that `value` is on the device of the other tensors."""
    if value.device != device:
        raise ValueError(f"{name}: expected device {device}, got device {value.device}")


def check_mask(mask: Tensor) -> None:
    """Check a mask of listed solutions: bool `[B,K]` with at least one query and one place for a solution."""
    expect_tensor(mask, "mask", dtype=torch.bool)
    expect_axes(mask.dim() == 2, mask, "mask", "shape [B,K]")
    expect_axes(min(mask.shape) > 0, mask, "mask", "B >= 1 and K >= 1")


def check_logits(logits: Tensor, solutions: Tensor, variable_mask: Tensor | None) -> None:
    """Check logits `[B,R,V]` or `[T,B,R,V]` against solutions `[B,K,R]` and an optional variable mask `[B,R]`."""
    expect_tensor(logits, "logits")
    expect_axes(logits.dim() in (3, 4), logits, "logits", "shape [B,R,V] or [T,B,R,V]")
    expect_axes(min(logits.shape) > 0, logits, "logits", "every axis of length 1 or more")
    batch, variables = logits.shape[-3], logits.shape[-2]
    expect_tensor(solutions, "solutions", dtype=torch.int64)
    expect_axes(solutions.dim() == 3, solutions, "solutions", "shape [B,K,R]")
    expect_shape(solutions, "solutions", "[B,K,R]", (batch, solutions.shape[1], variables))
    expect_axes(solutions.shape[1] > 0, solutions, "solutions", "K >= 1")
    expect_device(solutions, "solutions", logits.device)
    if variable_mask is not None:
        expect_tensor(variable_mask, "variable_mask", dtype=torch.bool)
        expect_shape(variable_mask, "variable_mask", "[B,R]", (batch, variables))
        expect_device(variable_mask, "variable_mask", logits.device)


def check_per_solution(values: Tensor, name: str, mask: Tensor, *, with_steps: bool = True) -> None:
    """Check floats with one number per listed solution: `[B,K]` like the mask, or `[T,B,K]` if steps are allowed."""
    expect_tensor(values, name)
    right = values.dim() == 2 or (with_steps and values.dim() == 3 and values.shape[0] > 0)
    if not right or values.shape[-2:] != mask.shape:
        layout = "[B,K] or [T,B,K]" if with_steps else "[B,K]"
        expect_axes(False, values, name, f"shape {layout} with B, K = {list(mask.shape)}")
    expect_device(values, name, mask.device)


def may_look_at_values(tensor: Tensor) -> bool:
    """Return whether values can be read: not while a graph is traced by the compiler or captured by CUDA."""
    if torch.compiler.is_compiling():
        return False
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def check_solution_values(solutions: Tensor, mask: Tensor, variable_mask: Tensor | None, values: int) -> None:
    """Check that the listed solutions hold 0..V-1 in every variable that is not masked. Waits for the device."""
    wrong = ((solutions < 0) | (solutions >= values)) & mask.unsqueeze(-1)
    if variable_mask is not None:
        wrong = wrong & variable_mask.unsqueeze(1)
    if wrong.any():
        place = wrong.nonzero()[0].tolist()
        got = f"{int(solutions[tuple(place)])} at solutions{place}"
        raise ValueError(f"solutions: expected values 0..{values - 1} where mask is True, got {got}")


def check_noise_values(noise: Tensor) -> None:
    """Check that every number of the noise is in [0, 1). Waits for the device."""
    low, high = noise.aminmax()
    expect(bool((low >= 0) & (high < 1)), "noise", "values in [0, 1)", f"{float(low)} to {float(high)}")


def check_fraction(value: float, name: str) -> None:
    """Check that an option is a probability."""
    expect(0.0 <= value <= 1.0, name, "a number in [0, 1]", value)
