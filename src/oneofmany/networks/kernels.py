"""Which kernels and which precision the networks run with. Nothing else in this package decides it.

Triton kernels run where products take 16-bit numbers on a GPU. What makes a network take them:

| network | 16-bit products | why |
|---|---|---|
| NLM | built with ``precision="float16"`` or ``"bfloat16"`` | it keeps its own buffers, and float16 has more digits |
| RRN | always bfloat16 on a GPU, unless built with ``kernel="plain"`` | its kernels know bfloat16 only |
| equivariant | ``torch.autocast`` to bfloat16 | all of its products are PyTorch's own otherwise |

Everything else runs as plain PyTorch: CPUs, float32, functions that torch.compile traces (a compiler cannot see into
the kernels), and sizes that the kernels of a network do not support.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Literal

import torch
from torch import Tensor

NetworkKind = Literal["nlm", "rrn", "equivariant"]

Precision = Literal["float32", "bfloat16", "float16"]
"""Of activations. In 16 bits, parameters, sums and gradients of parameters are still float32."""

Kernel = Literal["auto", "plain", "triton"]
"""``plain`` is PyTorch alone; ``triton`` the Triton kernels, or an error; ``auto`` the fastest that can be used."""


# ---- kernels -------------------------------------------------------------------------------------------------------


@cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def takes_triton(tensor: Tensor, dtype: torch.dtype) -> bool:
    """Whether a pass over this tensor whose products take ``dtype`` runs as Triton kernels."""
    return tensor.is_cuda and not torch.compiler.is_compiling() and dtype.itemsize == 2 and has_triton()


def autocasts(tensor: Tensor) -> bool:
    """Whether ``torch.autocast`` lets products of this tensor take bfloat16."""
    device = tensor.device.type
    return torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == torch.bfloat16


# ---- precision -----------------------------------------------------------------------------------------------------


def precision_for(kind: NetworkKind, device: torch.device | str, asked: Precision | None = None) -> Precision:
    """The precision that a network runs in: what is asked for, else what its kernels are made for.

    Args:
        kind: which network.
        device: where it runs.
        asked: None takes float32 on a CPU; on a GPU float16 for the NLM, else bfloat16.
    """
    if asked == "float16" and kind != "nlm":
        raise ValueError(f"precision: this network ({kind}) runs in float32 or bfloat16, got float16")
    if asked is not None:
        return asked
    if torch.device(device).type != "cuda":
        return "float32"
    return "float16" if kind == "nlm" else "bfloat16"


def training_precision(kind: NetworkKind, device: torch.device, asked: Precision) -> Precision:
    """The precision that a network is trained in: what is asked for on a GPU; a CPU is no faster in 16 bits."""
    return precision_for(kind, device, asked) if device.type == "cuda" else "float32"


def rrn_kernel(device: torch.device | str, precision: Precision) -> Kernel:
    """Which kernels an RRN of this precision takes: on a GPU float32 is plain PyTorch."""
    return "plain" if torch.device(device).type == "cuda" and precision == "float32" else "auto"


def running(device: torch.device, precision: Precision, *, cached: bool = True) -> AbstractContextManager[object]:
    """The context that a network is called in: autocast for bfloat16. The NLM keeps its float16 by itself.

    Args:
        device: where the network runs.
        precision: that of ``precision_for`` or ``training_precision``.
        cached: whether weights are cast once per context; a captured graph has to cast them again every time.
    """
    if precision != "bfloat16":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=cached)


def check_precision(network: object, precision: Precision) -> None:
    """Raise ValueError unless a network can be called in this precision: float16 it must have been built with."""
    if precision not in ("float32", "bfloat16", getattr(network, "precision", None)):
        raise ValueError(f"precision: expected 'float32' or 'bfloat16', got {precision!r}")
