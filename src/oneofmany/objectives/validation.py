"""Checks of the arguments: every error names the argument, what was expected and what was passed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def expect(condition: bool, name: str, expected: str, got: object) -> None:
    """Raise a `ValueError` that names the argument, what was expected and what was passed."""
    if not condition:
        raise ValueError(f"{name}: expected {expected}, got {got}")


def expect_dense(value: object, name: str) -> None:
    """Check that `value` is a tensor with a shape: not nested, not sparse."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{name}: expected a torch.Tensor, got {type(value).__name__}")
    if value.is_nested:
        raise ValueError(
            f"{name}: expected a padded tensor (torch.nested.to_padded_tensor makes one), got a nested one"
        )
    if value.layout != torch.strided:
        raise ValueError(f"{name}: expected a dense tensor, got layout {value.layout}")


def expect_tensor(value: object, name: str, *, dtype: torch.dtype | None = None) -> None:
    """Check that `value` is a tensor of `dtype` (None: any real floating-point type)."""
    expect_dense(value, name)
    assert isinstance(value, Tensor)
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


def as_bool(mask: Tensor, name: str, *, validate: bool = False) -> Tensor:
    """Return a mask of any integer type as bool: 0 is False, 1 is True; `validate` checks that nothing else occurs."""
    expect_dense(mask, name)
    if mask.dtype == torch.bool:
        return mask
    integer = not (mask.is_floating_point() or mask.is_complex())
    expect(integer, name, "a bool or integer dtype", mask.dtype)
    if validate and may_look_at_values(mask) and mask.numel() > 0:
        low, high = mask.aminmax()
        expect(bool((low >= 0) & (high <= 1)), name, "values 0 and 1", f"{int(low)} to {int(high)}")
    return mask != 0


def as_mask(mask: Tensor | None, like: Tensor, name: str, *, validate: bool = False) -> Tensor:
    """Return the mask of listed solutions as bool `[B,K]`; None lists all places of `like` `[..,B,K]` or `[B,K,..]`.

    Args:
        mask: `[B,K]` of bool or any integer type, or None.
        like: `solutions` `[B,K,..]`, or numbers per listed solution, `[B,K]` or `[T,B,K]`.
        name: the name of `like`.
        validate: also check that the values of an integer mask are 0 and 1.
    """
    if mask is None:
        expect_dense(like, name)
        solutions = name == "solutions"
        least = 2 if not solutions else 3
        expect_axes(like.dim() >= least, like, name, "shape [B,K,..]" if solutions else "shape [B,K] or [T,B,K]")
        shape = like.shape[:2] if solutions else like.shape[-2:]
        mask = torch.ones(shape, dtype=torch.bool, device=like.device)
    mask = as_bool(mask, "mask", validate=validate)
    expect_axes(mask.dim() == 2, mask, "mask", "shape [B,K]")
    expect_axes(min(mask.shape) > 0, mask, "mask", "B >= 1 and K >= 1")
    return mask


def as_variable_mask(variable_mask: Tensor | None, solutions: Tensor, *, validate: bool = False) -> Tensor | None:
    """Return a variable mask as bool; check its shape, `[B,R]` or `[B,K,R]`, against solutions `[B,K,R]`."""
    if variable_mask is None:
        return None
    batch, listed, variables = solutions.shape
    mask = as_bool(variable_mask, "variable_mask", validate=validate)
    if mask.shape not in ((batch, variables), (batch, listed, variables)):
        wanted = f"[B,R] = {[batch, variables]} or [B,K,R] = {[batch, listed, variables]}"
        expect_axes(False, mask, "variable_mask", f"shape {wanted}")
    expect_device(mask, "variable_mask", solutions.device)
    return mask


def check_logits(logits: Tensor, solutions: Tensor) -> None:
    """Check logits `[B,R,V]` or `[T,B,R,V]` against solutions `[B,K,R]`."""
    expect_tensor(logits, "logits")
    expect_axes(logits.dim() in (3, 4), logits, "logits", "shape [B,R,V] or [T,B,R,V]")
    expect_axes(min(logits.shape) > 0, logits, "logits", "every axis of length 1 or more")
    batch, variables = logits.shape[-3], logits.shape[-2]
    expect_tensor(solutions, "solutions", dtype=torch.int64)
    expect_axes(solutions.dim() == 3, solutions, "solutions", "shape [B,K,R]")
    expect_shape(solutions, "solutions", "[B,K,R]", (batch, solutions.shape[1], variables))
    expect_axes(solutions.shape[1] > 0, solutions, "solutions", "K >= 1")
    expect_device(solutions, "solutions", logits.device)


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


def check_solution_values(solutions: Tensor, wrong: Tensor, expected: str) -> None:
    """Name the first wrong value of the listed solutions, if `wrong` has one. Waits for the device."""
    if wrong.any():
        place = wrong.nonzero()[0].tolist()
        got = f"{int(solutions[tuple(place)])} at solutions{place}"
        raise ValueError(f"solutions: expected values {expected} where mask is True, got {got}")


def check_length_values(lengths: Tensor, longest: int) -> None:
    """Check that every length is in 0..longest. Waits for the device."""
    low, high = (int(length) for length in lengths.aminmax())
    expect(low >= 0 and high <= longest, "lengths", f"values 0 to {longest}", f"{low} to {high}")


def check_noise_values(noise: Tensor) -> None:
    """Check that every number of the noise is in [0, 1). Waits for the device."""
    low, high = noise.aminmax()
    expect(bool((low >= 0) & (high < 1)), "noise", "values in [0, 1)", f"{float(low)} to {float(high)}")


def check_fraction(value: float, name: str) -> None:
    """Check that an option is a probability."""
    expect(0.0 <= value <= 1.0, name, "a number in [0, 1]", value)
