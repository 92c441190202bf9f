"""The layers of a Neural Logic Machine as PyTorch custom operators, which torch.compile does not trace into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from math import prod

import torch
from torch import Tensor

from oneofmany.networks.nlm import layers
from oneofmany.networks.nlm.packing import Spec

INFERENCE_BYTES = 2**30
"""Limit of the largest buffer at inference; larger batches run in parts."""


def logic_layers(
    spec: Spec, flat: Tensor, unary: Tensor, nullary: Tensor, binary: Tensor, dtype: torch.dtype
) -> Tensor:
    """Run all layers and the readout.

    Args:
        spec: the shape of the network.
        flat: [parameters] of all linear maps: nullary, unary and binary for each layer, weight before bias, then the
            readout.
        unary: [unary inputs, B, n] of ``flat``'s dtype.
        nullary: [nullary inputs, B] likewise.
        binary: [binary inputs, n, n], the same for every query.
        dtype: of the buffers: that of ``flat``, float16 or bfloat16 (sums stay in float32).

    Returns:
        Logits [B, n], or [B] with a readout on the nullary predicates.
    """
    form = list(map(int, astuple(spec)))
    if torch.is_grad_enabled() and (flat.requires_grad or unary.requires_grad or nullary.requires_grad):
        return torch.ops.oneofmany.nlm_train(form, flat, unary, nullary, binary, dtype)[0]
    return torch.ops.oneofmany.nlm_infer(form, flat, unary, nullary, binary, dtype)


@torch.library.custom_op("oneofmany::nlm_train", mutates_args=())
def _train(
    form: Sequence[int], flat: Tensor, unary: Tensor, nullary: Tensor, binary: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    with torch.cuda.device_of(flat), torch.autocast(flat.device.type, enabled=False):
        return layers.forward_pass(_spec(form), flat, unary, nullary, binary, dtype)


@_train.register_fake
def _(form, flat, unary, nullary, binary, dtype):
    spec = _spec(form)
    W, L = spec.width, spec.depth
    B, n = unary.shape[1:]
    binary_layers = spec.binary_layers_of(n)
    buffer = {"dtype": dtype, "device": flat.device}
    extreme = {"dtype": torch.int16, "device": flat.device}
    return (
        flat.new_empty(B, n) if spec.unary_readout else flat.new_empty(B),
        torch.empty(sum(map(prod, spec.shapes)), **buffer),
        torch.empty(2, spec.x(binary_layers), B, n // 2, n, **buffer),
        torch.empty(spec.u(L), B, n, **buffer),
        torch.empty(spec.z(L), B, **buffer),
        torch.empty(L - 1, 2, W, B, **extreme),
        torch.empty(binary_layers, 2, W, B, n, **extreme),
    )


@torch.library.custom_op("oneofmany::nlm_train_backward", mutates_args=())
def _train_backward(
    form: Sequence[int],
    grad: Tensor,
    packed: Tensor,
    X: Tensor,
    U: Tensor,
    Z: Tensor,
    extreme_u: Tensor,
    extreme_b: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    with torch.cuda.device_of(grad), torch.autocast(grad.device.type, enabled=False):
        return layers.backward_pass(_spec(form), grad, packed, X, U, Z, extreme_u, extreme_b)


@_train_backward.register_fake
def _(form, grad, packed, X, U, Z, extreme_u, extreme_b):
    spec = _spec(form)
    B, n = U.shape[1:]
    return (
        grad.new_empty(spec.parameters),
        grad.new_empty(spec.unary, B, n),
        grad.new_empty(spec.nullary, B),
    )


def _keep(ctx, inputs, output) -> None:
    ctx.form = inputs[0]
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*output[1:])


def _backward(ctx, grad, *_unused):
    if grad is None:
        return (None,) * 6
    flat, unary, nullary = torch.ops.oneofmany.nlm_train_backward(ctx.form, grad.contiguous(), *ctx.saved_tensors)
    return None, flat, unary, nullary, None, None


_train.register_autograd(_backward, setup_context=_keep)


@torch.library.custom_op("oneofmany::nlm_infer", mutates_args=())
def _infer(
    form: Sequence[int], flat: Tensor, unary: Tensor, nullary: Tensor, binary: Tensor, dtype: torch.dtype
) -> Tensor:
    spec = _spec(form)
    B, n = unary.shape[1:]
    per_query = max(1, 2 * spec.x(spec.binary_layers) * (n // 2) * n * dtype.itemsize)
    step = max(1, INFERENCE_BYTES // per_query)
    with torch.cuda.device_of(flat), torch.autocast(flat.device.type, enabled=False):
        parts = [
            layers.forward_pass(spec, flat, unary[:, b : b + step], nullary[:, b : b + step], binary, dtype)[0]
            for b in range(0, B, step)
        ]
    return torch.cat(parts)


@_infer.register_fake
def _(form, flat, unary, nullary, binary, dtype):
    spec = _spec(form)
    B, n = unary.shape[1:]
    return flat.new_empty(B, n) if spec.unary_readout else flat.new_empty(B)


def _spec(form: Sequence[int]) -> Spec:
    nullary, unary, binary, depth, width, residual, unary_readout = form
    return Spec(nullary, unary, binary, depth, width, bool(residual), bool(unary_readout))
