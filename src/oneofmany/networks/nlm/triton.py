"""One layer of a Neural Logic Machine as Triton kernels, for 16-bit buffers on a GPU.

It has the same five functions as ``plain``, which is the reference; ``layers`` explains the layout. The kernels are in
``triton_objects`` and ``triton_pairs``.

This module imports triton: import it only on a CUDA machine.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false
from __future__ import annotations

import torch
import triton
from torch import Tensor

from oneofmany.networks.nlm import plain
from oneofmany.networks.nlm.triton_objects import objects_backward, objects_forward
from oneofmany.networks.nlm.triton_pairs import pairs_backward, pairs_forward, pairs_reduce, pairs_sum

MOST_OBJECTS = 256
"""Most objects of a query that fit one multiprocessor; with more, objects run as plain PyTorch."""
CHANNELS = 128
"""Channels of objects per iteration: many, so that their loads hide each other's latency."""
BLOCK = 256
"""Columns (query, pair) per program."""
OBJECTS, PAIRS = 128, 16
"""Objects per program of a reduction, and pairs of each object per iteration."""
WARPS = 8


def object_forward(
    nul: Tensor,
    obj: Tensor,
    Z: Tensor,
    U: Tensor,
    new_z: Tensor,
    new_u: Tensor,
    extreme: Tensor | None,
    with_nullary: bool,
) -> Tensor:
    """See ``plain.object_forward``."""
    W, B, n = new_u.shape
    if n > MOST_OBJECTS:
        return plain.object_forward(nul, obj, Z, U, new_z, new_u, extreme, with_nullary)
    ends = torch.empty(2, W, B, n, dtype=torch.float32, device=U.device)
    objects_forward[(B,)](
        nul, obj, Z, U, new_z, new_u, new_u if extreme is None else extreme, ends,
        len(Z), len(U), B, n, nul.stride(0), obj.stride(0),
        W=W, **_sizes(W, n), NULLARY=with_nullary, REDUCED=extreme is not None,
    )  # fmt: skip
    return ends


def object_backward(
    nul: Tensor,
    obj: Tensor,
    grad_Z: Tensor,
    grad_U: Tensor,
    out_z: Tensor,
    out_u: Tensor,
    extreme: Tensor | None,
    grad_new_z: Tensor,
    grad_new_u: Tensor,
    with_nullary: bool,
) -> Tensor:
    """See ``plain.object_backward``."""
    W, B, n = grad_new_u.shape
    if n > MOST_OBJECTS:
        return plain.object_backward(
            nul, obj, grad_Z, grad_U, out_z, out_u, extreme, grad_new_z, grad_new_u, with_nullary
        )
    grad_reduced = torch.empty(2, W, B, n, dtype=torch.float32, device=grad_U.device)
    objects_backward[(B,)](
        nul, obj, grad_Z, grad_U, out_z, out_u, out_u if extreme is None else extreme, grad_new_z, grad_new_u,
        grad_reduced, len(grad_Z), len(grad_U), B, n, nul.stride(0), obj.stride(0),
        W=W, **_sizes(W, n), NULLARY=with_nullary, REDUCED=extreme is not None,
    )  # fmt: skip
    return grad_reduced


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return ``a @ b`` [2, .., ..] in 16 bits, the precision of the terms that it is added to."""
    return torch.bmm(a, b) if a.shape[-1] else a.new_zeros(2, a.shape[1], b.shape[2])


def pair_forward(
    early: Tensor, weight: Tensor, near: Tensor, ends: Tensor, new: Tensor, reduced: Tensor, extreme: Tensor
) -> None:
    """See ``plain.pair_forward``."""
    _, W, B, H, n = new.shape
    columns = B * H * n
    half_rows, channels = _padded(W, weight.shape[-1])
    pairs_forward[(triton.cdiv(columns, BLOCK),)](
        early, weight, near, ends, new, columns, B, H, n,
        early.stride(0), weight.stride(0), weight.stride(1), near.stride(0), new.stride(0), weight.shape[-1],
        W=W, HALF=half_rows, CHANNELS=channels, BLOCK=BLOCK, num_warps=WARPS,
    )  # fmt: skip
    pairs_reduce[(W * B, triton.cdiv(n, OBJECTS))](
        new, reduced, extreme, B, H, n, new.stride(0), W=W, PAIRS=PAIRS, OBJECTS=OBJECTS, num_warps=WARPS
    )  # fmt: skip


def pair_backward(
    early: Tensor,
    weight: Tensor,
    grad_near: Tensor,
    grad_reduced: Tensor,
    extreme: Tensor,
    out: Tensor,
    grad_new: Tensor,
    grad_ends: Tensor,
) -> None:
    """See ``plain.pair_backward``."""
    _, W, B, H, n = grad_new.shape
    columns = B * H * n
    half_rows, channels = _padded(W, weight.shape[-1])
    pairs_backward[(triton.cdiv(columns, BLOCK),)](
        early, weight, grad_near, grad_reduced, extreme, out, grad_new, columns, B, H, n,
        early.stride(0), weight.stride(0), weight.stride(1), weight.stride(2), grad_near.stride(0), out.stride(0),
        grad_new.stride(0), weight.shape[-1],
        W=W, HALF=half_rows, CHANNELS=channels, BLOCK=BLOCK, num_warps=WARPS,
    )  # fmt: skip
    pairs_sum[(W * B, triton.cdiv(n, OBJECTS))](
        grad_new, grad_ends, B, H, n, grad_new.stride(0), W=W, PAIRS=PAIRS, OBJECTS=OBJECTS, num_warps=WARPS
    )  # fmt: skip


def _sizes(W: int, n: int) -> dict[str, int]:
    """Rows and objects padded for matrix units, and the number of warps."""
    rows, objects = (max(16, triton.next_power_of_2(count)) for count in (W, n))
    return {"ROWS": rows, "OBJECTS": objects, "CHANNELS": CHANNELS, "num_warps": 8 if objects >= 128 else 4}


def _padded(W: int, channels: int) -> tuple[int, int]:
    """Rows of each half and channels, padded for matrix units; zero channels stay zero."""
    return max(8, triton.next_power_of_2(W)), max(16, triton.next_power_of_2(channels)) if channels else 0
