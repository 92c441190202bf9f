"""The layers of a Neural Logic Machine without expanded and permuted tensors, with a hand-written backward pass.

They compute exactly the function of the literal network (Dong et al. 2019; breadth 2, one linear map and a sigmoid per
arity and layer, reductions that exclude the object itself), rearranged:

* Binary predicates are stored as s = (b_ij + b_ji) / 2 and d = (b_ij - b_ji) / 2 of each unordered pair. With weights A
  on b_ij and B on b_ji, A b_ij + B b_ji = (A + B) s + (A - B) d, and minus instead of plus gives the transposed entry.
  This halves the multiplications and needs no transposes. The diagonal is left out: no reduction reads it, so it never
  reaches an output.
* Pair (k, i) holds the objects i and j = i + k + 1 modulo n, for k below n // 2. Then u_j and the reductions over the
  pairs in which an object comes second are shifted views, without gathers. For even n the last k holds each pair twice.
  Both copies hold the same predicates, and only one of them wins a reduction and gets its gradient.
* Each layer writes its channels once into a buffer and reads a prefix of it (``packing``). Only new channels are
  reduced. The contribution of earlier layers to the next ``GROUP`` layers is one product, so the buffer is read once
  per group instead of once per layer.
* The backward pass mirrors this. It stores only gradients of pre-activations. The gradient of a layer's outputs is one
  product with the gradients of all later layers; the gradient of all weights is one product with the buffers at the
  end.

If several entries of a reduction are equal extremes, one of them gets the gradient, as with ``torch.max(dim)``.
"""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from oneofmany.networks.kernels import takes_triton
from oneofmany.networks.nlm import plain
from oneofmany.networks.nlm.packing import Spec, pack, pack_gradient, split
from oneofmany.networks.nlm.plain import matmul, through_tanh

GROUP = 5
"""Layers per group; the contribution of all layers before a group is one product."""

Kept = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
"""Logits, the packed matrices, the buffers X, U and Z, and the positions of the unary and binary extremes."""


def forward_pass(spec: Spec, flat: Tensor, unary: Tensor, nullary: Tensor, binary: Tensor, dtype: torch.dtype) -> Kept:
    """Return the logits and what the backward pass needs: matrices, buffers and positions of the extremes."""
    W, L = spec.width, spec.depth
    B, n = unary.shape[1:]
    packed = pack(spec, flat).to(dtype)
    pair, obj, nul = split(spec, packed)
    X, U, Z = _buffers(spec, unary, nullary, binary, dtype)
    layer_functions = _layer_functions(X)
    # int16 is enough for the index of an object, n < 32,768.
    extreme_u = torch.empty(L - 1, 2, W, B, dtype=torch.int16, device=X.device)
    extreme_b = torch.empty(spec.binary_layers_of(n), 2, W, B, n, dtype=torch.int16, device=X.device)

    early = X.new_empty(0)
    for layer in range(L):
        z, u, x = spec.z(layer), spec.u(layer), spec.x(layer)
        rows = nul[2 * W * layer :][: 2 * W, :z]
        if layer < spec.unary_layers:
            from_unary = layer_functions.object_forward(
                rows,
                obj[3 * W * layer :][: 3 * W, :u],
                Z[:z],
                U[:u],
                Z[z : z + 3 * W],
                U[u : u + W],
                extreme_u[layer] if layer < L - 1 else None,
                layer < spec.nullary_layers,
            )
            if layer < len(extreme_b):
                first = layer - layer % GROUP
                if layer == first:
                    group = slice(W * first, W * min(first + GROUP, len(extreme_b)))
                    early = layer_functions.product(pair[:, group, :x], X[:, :x].flatten(2))
                layer_functions.pair_forward(
                    early[:, W * (layer - first) :][:, :W],
                    pair[:, W * layer :][:, :W, spec.x(first) : x],
                    X[:, spec.x(first) : x],
                    from_unary,
                    X[:, x : x + W],
                    U[u + W : u + 3 * W].view(2, W, B, n),
                    extreme_b[layer],
                )
        elif layer < spec.nullary_layers:
            Z[z : z + W] = matmul(rows[:W], Z[:z]).tanh()
    if spec.unary_readout:
        seen = spec.u(L - 1) + W
        logits = matmul(obj[-1:, :seen], U[:seen].flatten(1)).view(B, n)
    else:
        seen = spec.z(L - 1) + W
        logits = matmul(nul[-1:, :seen], Z[:seen]).view(B)
    return logits.to(flat.dtype), packed, X, U, Z, extreme_u, extreme_b


def backward_pass(
    spec: Spec,
    grad: Tensor,
    packed: Tensor,
    X: Tensor,
    U: Tensor,
    Z: Tensor,
    extreme_u: Tensor,
    extreme_b: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the parameters, the unary and the nullary inputs; ``grad`` is that of the logits."""
    W, L, dtype = spec.width, spec.depth, X.dtype
    pair, obj, nul = split(spec, packed)
    B, n = U.shape[1:]
    layer_functions = _layer_functions(X)
    # Gradients of the pre-activations, in the row order of the matrices; for pairs, half of sum and difference.
    grad_Z, grad_U = Z.new_zeros(len(nul), B), U.new_zeros(len(obj), B, n)
    grad_X = X.new_empty(2, W * len(extreme_b), *X.shape[2:])
    scale = _scale(grad, dtype)
    (grad_U if spec.unary_readout else grad_Z)[-1] = grad * scale

    early = X.new_empty(0)
    for layer in reversed(range(L)):
        z, u, x = spec.z(layer), spec.u(layer), spec.x(layer)
        later = slice(2 * W * (layer + 1), None)
        if layer < spec.unary_layers:
            later_u = slice(3 * W * (layer + 1), None)
            grad_reduced = layer_functions.object_backward(
                nul[later, z : z + 3 * W],
                obj[later_u, u : u + 3 * W],
                grad_Z[later],
                grad_U[later_u],
                Z[z : z + W],
                U[u : u + W],
                extreme_u[layer] if layer < L - 1 else None,
                grad_Z[2 * W * layer :][: 2 * W],
                grad_U[3 * W * layer :][:W],
                layer < spec.nullary_layers,
            )
            if layer < len(extreme_b):
                first = layer - layer % GROUP
                end = min(first + GROUP, len(extreme_b))
                if layer == end - 1:
                    early = layer_functions.product(
                        pair[:, W * end : W * len(extreme_b), spec.x(first) : spec.x(end)].mT,
                        grad_X[:, W * end :].flatten(2),
                    )
                layer_functions.pair_backward(
                    early[:, W * (layer - first) :][:, :W],
                    pair[:, W * (layer + 1) : W * end, x : x + W].mT,
                    grad_X[:, W * (layer + 1) : W * end],
                    grad_reduced,
                    extreme_b[layer],
                    X[:, x : x + W],
                    grad_X[:, W * layer :][:, :W],
                    grad_U[3 * W * layer + W :][: 2 * W].view(2, W, B, n),
                )
        elif layer < spec.nullary_layers:
            grad_nullary = matmul(nul[later, z : z + W].mT, grad_Z[later])
            grad_Z[2 * W * layer :][:W] = through_tanh(grad_nullary, Z[z : z + W])

    grad_nullary = matmul(nul[:, 1 : 1 + spec.nullary + 2 * spec.unary].mT, grad_Z)
    grad_unary = matmul(obj[:, 1 : 1 + spec.unary].mT, grad_U.flatten(1)).view(spec.unary, B, n)
    inputs = U[1 : 1 + spec.unary]
    where = torch.stack([inputs.argmax(-1), inputs.argmin(-1)], -1)
    grad_unary.scatter_add_(-1, where, grad_nullary[spec.nullary :].view(2, spec.unary, B).permute(1, 2, 0))

    grad_pair = torch.zeros_like(pair, dtype=grad.dtype)
    if grad_X.numel():
        _pair_weight_gradient(grad_X, X, grad_pair)
    grad_obj = matmul(grad_U.flatten(1), U.flatten(1).mT)
    grad_nul = matmul(grad_Z, Z.mT)
    flat = pack_gradient(spec, grad_pair, grad_obj.to(grad.dtype), grad_nul.to(grad.dtype))
    return flat / scale, grad_unary.to(grad.dtype) / scale, grad_nullary[: spec.nullary].to(grad.dtype) / scale


def _buffers(
    spec: Spec, unary: Tensor, nullary: Tensor, binary: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """X [2, channels, B, n // 2, n], U [channels, B, n] and Z [channels, B] with the inputs in their first rows."""
    B, n = unary.shape[1:]
    options = {"dtype": dtype, "device": unary.device}
    i = torch.arange(n, device=unary.device)
    j = (i + 1 + i[: n // 2, None]) % n
    i = i.expand_as(j)
    X = torch.empty(2, spec.x(spec.binary_layers_of(n)), B, n // 2, n, **options)
    X[:, spec.binary : spec.x(0)] = 0
    X[0, : spec.binary] = ((binary[:, i, j] + binary[:, j, i]) / 2)[:, None]
    X[1, : spec.binary] = ((binary[:, i, j] - binary[:, j, i]) / 2)[:, None]
    # Rows that no used output reads are multiplied by zero weights, so they must be finite.
    U, Z = torch.zeros(spec.u(spec.depth), B, n, **options), torch.zeros(spec.z(spec.depth), B, **options)
    itself = torch.eye(n, dtype=torch.bool, device=unary.device)
    U[0] = 1
    U[1 : 1 + spec.unary] = unary
    U[1 + spec.unary :][: spec.binary] = binary.masked_fill(itself, 0).amax(-1)[:, None]
    U[1 + spec.unary + spec.binary :][: spec.binary] = binary.masked_fill(itself, 1).amin(-1)[:, None]
    if n == 1:
        # Without pairs, an empty max is 0 and an empty min 1; they are stored centred, as -1 and 1.
        layers = U[spec.u(0) :].view(spec.depth, 3, spec.width, B, 1)
        layers[:, 1], layers[:, 2] = -1, 1
    Z[0] = 1
    Z[1 : 1 + spec.nullary] = nullary
    Z[1 + spec.nullary :][: spec.unary] = unary.amax(-1)
    Z[1 + spec.nullary + spec.unary :][: spec.unary] = unary.amin(-1)
    return X, U, Z


def _scale(grad: Tensor, dtype: torch.dtype) -> Tensor:
    """For float16 a power of two that brings the largest gradient near 16, well inside its range; else one."""
    if dtype != torch.float16:
        return grad.new_ones(())
    largest = grad.abs().amax().clamp(1e-30, 1e30)
    return torch.exp2(4 - torch.log2(largest).floor())


def _pair_weight_gradient(grad_X: Tensor, X: Tensor, out: Tensor) -> None:
    """Write 2 grad_X X^T into ``out``; skip most of the part above the diagonal, which has no weights."""
    rows, channels = grad_X.shape[1], X.shape[1]
    if X.is_cuda:
        # One product per few queries, then their sum: this keeps all multiprocessors busy.
        B = X.shape[2]
        parts = B // 4 if B % 4 == 0 else B
        for half in range(2):
            left, right = (x[half].view(len(x[half]), parts, -1).transpose(0, 1) for x in (grad_X, X))
            out[half, :rows, :channels] = matmul(left, right.mT).sum(0).mul_(2)
        return
    inputs = channels - rows
    step = max(8, rows // 6)
    for start in range(0, rows, step):
        end = min(start + step, rows)
        gradient = matmul(grad_X[:, start:end].flatten(2), X[:, : inputs + end].flatten(2).mT)
        out[:, start:end, : inputs + end] = gradient.mul_(2)


def _layer_functions(X: Tensor) -> ModuleType:
    """The module (plain or Triton) that computes the layers."""
    if takes_triton(X, X.dtype):
        from oneofmany.networks.nlm import triton

        return triton
    return plain
