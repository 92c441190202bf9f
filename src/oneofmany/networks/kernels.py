"""Choose kernels and precision of the networks. This module alone decides.

Kernels run if matrix products take 16-bit inputs on a GPU. This is how each network gets 16-bit products:

| network | 16-bit products | why |
|---|---|---|
| NLM | built with ``precision="float16"`` or ``"bfloat16"`` | it has its own buffers; float16 is more precise |
| RRN | always bfloat16 on a GPU, unless built with ``kernel="plain"`` | its kernels support bfloat16 only |
| equivariant | ``torch.autocast`` to bfloat16 | without kernels all of its products are PyTorch's own |
| transformer, sequences | ``torch.autocast`` to bfloat16 | PyTorch's own products and fused attention; no kernels |

Those of the NLM and the RRN are Triton kernels, those of the equivariant network CUDA kernels. On a CPU the equivariant
network has kernels for float32, compiled with numba. Everything else runs as plain PyTorch: other networks on CPUs,
float32 on a GPU, functions traced by torch.compile (a compiler cannot see into the kernels), and sizes and rules that
the kernels of a network do not support.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Literal

import torch
from torch import Tensor

from oneofmany.networks.nvrtc import find_compiler
from oneofmany.networks.settings import NetworkKind

Precision = Literal["float32", "bfloat16", "float16"]
"""Precision of activations. With 16 bits, parameters, sums and parameter gradients stay float32."""

Kernel = Literal["auto", "plain", "triton"]
"""``plain``: PyTorch only; ``triton``: Triton kernels or an error; ``auto``: the fastest available."""


# ---- kernels -------------------------------------------------------------------------------------------------------


@cache
def has_triton() -> bool:
    """Return whether Triton is installed."""
    return find_spec("triton") is not None


def takes_triton(tensor: Tensor, dtype: torch.dtype) -> bool:
    """Return whether a pass over this tensor with products in ``dtype`` runs as Triton kernels."""
    return tensor.is_cuda and not torch.compiler.is_compiling() and dtype.itemsize == 2 and has_triton()


@cache
def _compiles(device: torch.device) -> bool:
    """Whether CUDA kernels can be compiled for a GPU; bfloat16 needs Ampere."""
    return find_compiler() is not None and torch.cuda.get_device_capability(device) >= (8, 0)


def takes_cuda(tensor: Tensor) -> bool:
    """Return whether a pass over this tensor with products in bfloat16 runs as CUDA kernels."""
    return tensor.is_cuda and not torch.compiler.is_compiling() and _compiles(tensor.device)


def takes_cpu(tensor: Tensor) -> bool:
    """Return whether a pass over this tensor on a CPU runs as compiled kernels."""
    plain = tensor.device.type != "cpu" or tensor.dtype != torch.float32
    return not plain and not torch.compiler.is_compiling() and not autocasts(tensor)


def autocasts(tensor: Tensor) -> bool:
    """Return whether ``torch.autocast`` to bfloat16 is on for this tensor's device."""
    device = tensor.device.type
    return torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == torch.bfloat16


# ---- precision -----------------------------------------------------------------------------------------------------


def precision_for(kind: NetworkKind, device: torch.device | str, asked: Precision | None = None) -> Precision:
    """Return the precision that a network runs in: as asked, or the one that its kernels are made for.

    Args:
        kind: which network.
        device: where it runs.
        asked: by default float32 on a CPU; on a GPU float16 for the NLM, else bfloat16.
    """
    if asked == "float16" and kind != "nlm":
        raise ValueError(f"precision: this network ({kind}) runs in float32 or bfloat16, got float16")
    if asked is not None:
        return asked
    if torch.device(device).type != "cuda":
        return "float32"
    return "float16" if kind == "nlm" else "bfloat16"


def training_precision(kind: NetworkKind, device: torch.device, asked: Precision) -> Precision:
    """Return the precision of training: as asked on a GPU, float32 on a CPU, which is not faster in 16 bits."""
    return precision_for(kind, device, asked) if device.type == "cuda" else "float32"


def rrn_kernel(device: torch.device | str, precision: Precision) -> Kernel:
    """Return which kernels an RRN of this precision uses: float32 on a GPU is plain PyTorch."""
    return "plain" if torch.device(device).type == "cuda" and precision == "float32" else "auto"


def running(device: torch.device, precision: Precision, *, cached: bool = True) -> AbstractContextManager[object]:
    """Return the context to call a network in: autocast for bfloat16. The NLM handles float16 itself.

    Args:
        device: where the network runs.
        precision: from ``precision_for`` or ``training_precision``.
        cached: whether weights are cast once per context; a captured graph must cast them at every replay.
    """
    if precision != "bfloat16":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=cached)


def check_precision(network: object, precision: Precision) -> None:
    """Raise ValueError unless the network can run in this precision; float16 needs a network built with it."""
    if precision not in ("float32", "bfloat16", getattr(network, "precision", None)):
        raise ValueError(f"precision: expected 'float32' or 'bfloat16', got {precision!r}")
