"""Devices by name."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def device_named(name: str) -> torch.device:
    """Return the device of that name; auto is a GPU if there is one. A missing device raises ValueError.

    With auto, a GPU that PyTorch cannot use is an error too: a silent fallback would leave a long run on the CPU.
    """
    usable = torch.cuda.is_available()
    if name == "auto":
        if not usable and torch.cuda.device_count():
            raise ValueError(
                "device: this machine has a GPU, but PyTorch cannot use it (see oneofmany doctor); "
                "use --device cpu, or hide the GPU with CUDA_VISIBLE_DEVICES= before the command"
            )
        name = "cuda" if usable else "cpu"
    device = _device(name, ("cpu", "cuda"))
    if device is None:
        raise ValueError(f"device: expected auto, cpu, cuda or cuda:N, got {name!r}")
    if device.type == "cuda" and not usable:
        raise ValueError(f"device: {name!r} was asked for, but PyTorch finds no GPU here; use --device cpu")
    return device


def usable_device(name: str) -> torch.device:
    """Return the device cpu, cuda, cuda:N or mps after a test that it works; ValueError if it does not."""
    device = _device(name, ("cpu", "cuda", "mps"))
    if device is None:
        raise ValueError(f"--device: expected cpu, cuda or mps, got {name!r}")
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"--device: {name} cannot be used here ({str(error).splitlines()[0]})") from None
    return device


def _device(name: str, kinds: Sequence[str]) -> torch.device | None:
    """The device of that name; None if the name is unknown or not of these kinds."""
    try:
        device = torch.device(name)
    except RuntimeError:
        return None
    return device if device.type in kinds else None
