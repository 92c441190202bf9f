"""Where networks run."""

from __future__ import annotations

import torch


def device_named(name: str) -> torch.device:
    """The device of that name, where auto is a GPU if there is one; ValueError where it is not there.

    A GPU that PyTorch cannot use is an error too: its owner would not like to find the CPU at work the next morning.
    """
    usable = torch.cuda.is_available()
    if name == "auto":
        if not usable and torch.cuda.device_count():
            raise ValueError(
                "device: there is a GPU here, but PyTorch cannot use it (oneofmany doctor says more); "
                "use --device cpu, or hide the GPU with CUDA_VISIBLE_DEVICES= before the command"
            )
        name = "cuda" if usable else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ValueError(f"device: expected auto, cpu, cuda or cuda:N, got {name!r}")
    if device.type == "cuda" and not usable:
        raise ValueError(f"device: {name!r} was asked for, but PyTorch finds no GPU here; use --device cpu")
    return device
