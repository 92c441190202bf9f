"""The layers of a Neural Logic Machine without its expanded and permuted tensors, and their hand-written backward.

The function is exactly that of the literal network (Dong et al. 2019; breadth 2, one linear map and a sigmoid for
every arity and layer, reductions that leave out the object itself), rearranged:

* Binary predicates are kept as s = (b_ij + b_ji) / 2 and d = (b_ij - b_ji) / 2 of every unordered pair. With weights A on
  b_ij and B on b_ji, A b_ij + B b_ji = (A + B) s + (A - B) d, and minus instead of plus gives the transposed entry: half of
  the multiplications, and nothing is ever transposed. The diagonal is left out: no reduction sees it, so it never
  reaches an output.
* Pair (k, i) is that of the objects i and j = i + k + 1 modulo n, for k below n // 2. Then u_j and the reductions
  over the pairs in which an object comes second are shifted views, and gathers are not needed. For even n the last k has
  every pair twice; both copies hold the same predicates, and only one of them wins a reduction and gets a gradient.
* Every layer writes its channels once into a buffer and reads a prefix of it (``nlm_packing``); only new channels are
  reduced. What earlier layers give to the next ``GROUP`` layers is one product, so that the buffer is read once per
  group and not once per layer.
* The backward pass mirrors it. It keeps the gradients of the pre-activations only: those of a layer's outputs are one
  product with the gradients of all later layers, and those of all weights one product with the buffers at the end.

Of several equal greatest (smallest) entries of a reduction one gets the gradient, as with ``torch.max(dim)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from types import ModuleType

import torch
from torch import Tensor

from oneofmany.networks.nlm_packing import Spec, pack_gradient, unpack

GROUP = 5
"""Layers whose contribution from all layers before the group is computed at once."""

INFERENCE_BYTES = 2**30
"""Without gradients, as many queries at a time as keep the largest buffer below this."""


def logic_layers(
    spec: Spec, flat: Tensor, unary: Tensor, nullary: Tensor, binary: Tensor, dtype: torch.dtype
) -> Tensor:
    """All layers and the readout.

    Args:
        spec: the form of the network.
        flat: [parameters] of all linear maps: nullary, unary and binary for each layer, each weight before bias,
            then the readout.
        unary: [unary inputs, B, n] of ``flat``'s dtype.
        nullary: [nullary inputs, B] likewise.
        binary: [binary inputs, n, n], the same for every query.
        dtype: of the buffers: that of ``flat``, or float16 or bfloat16 (sums stay in float32).

    Returns:
        [B, n] or, with a readout on the nullary predicates, [B]; before the sigmoid.
    """
    form = list(map(int, astuple(spec)))
    if torch.is_grad_enabled() and (flat.requires_grad or unary.requires_grad or nullary.requires_grad):
        return torch.ops.oneofmany.nlm_train(form, flat, unary, nullary, binary, dtype)[0]
    return torch.ops.oneofmany.nlm_infer(form, flat, unary, nullary, binary, dtype)


# ---- the passes over all layers ------------------------------------------------------------------------------------


def forward_pass(
    spec: Spec, flat: Tensor, unary: Tensor, nullary: Tensor, binary: Tensor, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """Logits and what the backward pass needs: the three matrices, the three buffers, and where the extremes were."""
    W, L = spec.width, spec.depth
    B, n = unary.shape[1:]
    pair, obj, nul = (matrix.to(dtype) for matrix in unpack(spec, flat))
    X, U, Z = _buffers(spec, unary, nullary, binary, dtype)
    kernels = _kernels(X)
    # int16: an object's place among n < 32,768.
    extreme_u = torch.empty(L - 1, 2, W, B, dtype=torch.int16, device=X.device)
    extreme_b = torch.empty(_binary_layers(spec, n), 2, W, B, n, dtype=torch.int16, device=X.device)

    early = X.new_empty(0)
    for layer in range(L):
        z, u, x = spec.z(layer), spec.u(layer), spec.x(layer)
        from_nullary = matmul(nul[2 * W * layer :][: 2 * W], Z[:z])
        if layer < spec.nullary_layers:
            Z[z : z + W] = from_nullary[:W].sigmoid()
        if layer < spec.unary_layers:
            from_unary = matmul(obj[3 * W * layer :][: 3 * W], U[:u].flatten(1)).view(3 * W, B, n)
            new = from_unary[:W].add_(from_nullary[W:, :, None]).sigmoid_()
            U[u : u + W] = new
            if layer < L - 1:
                for side, (value, where) in enumerate((new.max(-1), new.min(-1))):
                    Z[z + W * (side + 1) :][:W] = value
                    extreme_u[layer, side] = where
            if layer < len(extreme_b):
                first = layer - layer % GROUP
                if layer == first:
                    rows = slice(W * first, W * min(first + GROUP, len(extreme_b)))
                    early = kernels.product(pair[:, rows, :x], X[:, :x].flatten(2))
                kernels.pair_forward(
                    early[:, W * (layer - first) :][:, :W],
                    pair[:, W * layer :][:, :W, spec.x(first) : x],
                    X[:, spec.x(first) : x],
                    from_unary[W:].view(2, W, B, n),
                    X[:, x : x + W],
                    U[u + W : u + 3 * W].view(2, W, B, n),
                    extreme_b[layer],
                )
    if spec.unary_readout:
        seen = spec.u(L - 1) + W
        logits = matmul(obj[-1:, :seen], U[:seen].flatten(1)).view(B, n)
    else:
        seen = spec.z(L - 1) + W
        logits = matmul(nul[-1:, :seen], Z[:seen]).view(B)
    return logits.to(flat.dtype), pair, obj, nul, X, U, Z, extreme_u, extreme_b


def backward_pass(
    spec: Spec,
    grad: Tensor,
    pair: Tensor,
    obj: Tensor,
    nul: Tensor,
    X: Tensor,
    U: Tensor,
    Z: Tensor,
    extreme_u: Tensor,
    extreme_b: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the parameters, the unary and the nullary inputs; ``grad`` is that of the logits."""
    W, L, dtype = spec.width, spec.depth, X.dtype
    B, n = U.shape[1:]
    kernels = _kernels(X)
    # Gradients of the pre-activations, with the rows of the matrices; of pairs: half of sum and difference.
    dZ, dU = Z.new_zeros(len(nul), B), U.new_zeros(len(obj), B, n)
    dX = X.new_empty(2, W * len(extreme_b), *X.shape[2:])
    scale = _scale(grad, dtype)
    (dU if spec.unary_readout else dZ)[-1] = grad * scale

    early = X.new_empty(0)
    for layer in reversed(range(L)):
        z, u, x = spec.z(layer), spec.u(layer), spec.x(layer)
        later = slice(2 * W * (layer + 1), None)
        g_nullary = matmul(nul[later, z : z + 3 * W].mT, dZ[later])
        if layer < spec.nullary_layers:
            dZ[2 * W * layer :][:W] = _through_sigmoid(g_nullary[:W], Z[z : z + W])
        if layer < spec.unary_layers:
            later = slice(3 * W * (layer + 1), None)
            g_unary = matmul(obj[later, u : u + 3 * W].mT, dU[later].flatten(1)).view(3 * W, B, n)
            new = g_unary[:W]
            if layer < L - 1:
                new.scatter_add_(-1, extreme_u[layer].permute(1, 2, 0).long(), g_nullary[W:].view(2, W, B).permute(1, 2, 0))
            new = _through_sigmoid(new, U[u : u + W])
            dU[3 * W * layer :][:W] = new
            dZ[2 * W * layer + W :][:W] = new.sum(-1)
            if layer < len(extreme_b):
                first = layer - layer % GROUP
                end = min(first + GROUP, len(extreme_b))
                if layer == end - 1:
                    early = kernels.product(
                        pair[:, W * end : W * len(extreme_b), spec.x(first) : spec.x(end)].mT,
                        dX[:, W * end :].flatten(2),
                    )
                kernels.pair_backward(
                    early[:, W * (layer - first) :][:, :W],
                    pair[:, W * (layer + 1) : W * end, x : x + W].mT,
                    dX[:, W * (layer + 1) : W * end],
                    g_unary[W:].view(2, W, B, n),
                    extreme_b[layer],
                    X[:, x : x + W],
                    dX[:, W * layer :][:, :W],
                    dU[3 * W * layer + W :][: 2 * W].view(2, W, B, n),
                )

    g_nullary = matmul(nul[:, 1 : spec.z(0)].mT, dZ)
    g_unary = matmul(obj[:, 1 : 1 + spec.unary].mT, dU.flatten(1)).view(spec.unary, B, n)
    inputs = U[1 : 1 + spec.unary]
    where = torch.stack([inputs.argmax(-1), inputs.argmin(-1)], -1)
    g_unary.scatter_add_(-1, where, g_nullary[spec.nullary :].view(2, spec.unary, B).permute(1, 2, 0))

    g_pair = torch.zeros_like(pair, dtype=grad.dtype)
    if dX.numel():
        _pair_weight_gradient(dX, X, g_pair)
    g_obj = matmul(dU.flatten(1), U.flatten(1).mT)
    g_nul = matmul(dZ, Z.mT)
    flat = pack_gradient(spec, g_pair, g_obj.to(grad.dtype), g_nul.to(grad.dtype))
    return flat / scale, g_unary.to(grad.dtype) / scale, g_nullary[: spec.nullary].to(grad.dtype) / scale


def _buffers(
    spec: Spec, unary: Tensor, nullary: Tensor, binary: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """X [2, channels, B, n // 2, n], U [channels, B, n] and Z [channels, B] with the inputs in their first rows."""
    B, n = unary.shape[1:]
    options = {"dtype": dtype, "device": unary.device}
    i = torch.arange(n, device=unary.device)
    j = (i + 1 + i[: n // 2, None]) % n
    i = i.expand_as(j)
    X = torch.empty(2, spec.x(_binary_layers(spec, n)), B, n // 2, n, **options)
    X[0, 0], X[1, 0] = 1, 0
    X[0, 1 : spec.x(0)] = ((binary[:, i, j] + binary[:, j, i]) / 2)[:, None]
    X[1, 1 : spec.x(0)] = ((binary[:, i, j] - binary[:, j, i]) / 2)[:, None]
    # Rows that only unused outputs would read must be finite: they meet zero weights.
    U, Z = torch.zeros(spec.u(spec.depth), B, n, **options), torch.zeros(spec.z(spec.depth), B, **options)
    itself = torch.eye(n, dtype=torch.bool, device=unary.device)
    U[0] = 1
    U[1 : 1 + spec.unary] = unary
    U[1 + spec.unary :][: spec.binary] = binary.masked_fill(itself, 0).amax(-1)[:, None]
    U[1 + spec.unary + spec.binary :][: spec.binary] = binary.masked_fill(itself, 1).amin(-1)[:, None]
    if n == 1:
        # No pairs: the greatest of nothing is 0 and the smallest 1.
        U[spec.u(0) :].view(spec.depth, 3, spec.width, B, 1)[:, 2] = 1
    Z[0] = 1
    Z[1 : 1 + spec.nullary] = nullary
    Z[1 + spec.nullary :][: spec.unary] = unary.amax(-1)
    Z[1 + spec.nullary + spec.unary :][: spec.unary] = unary.amin(-1)
    return X, U, Z


def _binary_layers(spec: Spec, n: int) -> int:
    return spec.binary_layers if n > 1 else 0


def _scale(grad: Tensor, dtype: torch.dtype) -> Tensor:
    """A power of two that brings the largest entry near 16, where float16 has room below and above; else one."""
    if dtype != torch.float16:
        return grad.new_ones(())
    largest = grad.abs().amax().clamp(1e-30, 1e30)
    return torch.exp2(4 - torch.log2(largest).floor())


def _pair_weight_gradient(dX: Tensor, X: Tensor, out: Tensor) -> None:
    """Adds 2 dX X^T into ``out``, leaving out (most of) what lies above the diagonal, where no weights are."""
    rows, channels = dX.shape[1], X.shape[1]
    if X.is_cuda:
        # One product per query, then their sum: enough independent work whatever the library's heuristics.
        for half in range(2):
            per_query = matmul(dX[half].flatten(2).transpose(0, 1), X[half].flatten(2).permute(1, 2, 0))
            out[half, :rows, :channels] = per_query.sum(0).mul_(2)
        return
    inputs = channels - rows
    step = max(8, rows // 6)
    for start in range(0, rows, step):
        end = min(start + step, rows)
        gradient = matmul(dX[:, start:end].flatten(2), X[:, : inputs + end].flatten(2).mT)
        out[:, start:end, : inputs + end] = gradient.mul_(2)


# ---- products ------------------------------------------------------------------------------------------------------


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` for two or three axes, in float32 if the operands have 16 bits."""
    if a.dtype in (torch.float32, torch.float64):
        return a @ b
    if a.is_cuda:
        return (torch.mm if a.ndim == 2 else torch.bmm)(a, b, out_dtype=torch.float32)
    return a.float() @ b.float()


product = matmul


def _through_sigmoid(grad: Tensor, output: Tensor) -> Tensor:
    return torch.ops.aten.sigmoid_backward(grad, output.to(grad.dtype))


# ---- one layer's pairs, in plain PyTorch ---------------------------------------------------------------------------


def pair_forward(
    early: Tensor, weight: Tensor, near: Tensor, ends: Tensor, new: Tensor, reduced: Tensor, extreme: Tensor
) -> None:
    """A layer's binary outputs and their reductions. H = n // 2.

    Args:
        early: [2, W, B * H * n] what the layers before the group give (may be overwritten).
        weight: [2, W, C] on the channels of the group's layers so far.
        near: [2, C, B, H, n] those channels.
        ends: [2, W, B, n] what the unary predicates give: sum and difference of p and q, where b_ij gets p_i + q_j.
        new: [2, W, B, H, n] receives the outputs.
        reduced: [2, W, B, n] receives every object's max and min over the other objects.
        extreme: int16 [2, W, B, n] receives where they are: k if at b_ij, H + k if the object is the pair's second.
    """
    half_sum, half_difference = _ahead_inputs(ends)
    n, H = ends.shape[-1], new.shape[-2]
    z = torch.baddbmm(early, weight, near.flatten(2)) if _same(early, weight) and weight.shape[-1] else early
    if z is early and weight.shape[-1]:
        z = early + matmul(weight, near.flatten(2))
    s, d = z.view(new.shape)
    s = s.add_(half_sum[..., None, :n]).add_(_ahead(half_sum, n))
    d = d.add_(half_difference[..., None, :n]).sub_(_ahead(half_difference, n))
    forth, back = (s + d).sigmoid_(), s.sub_(d).sigmoid_()
    mean = torch.lerp(forth, back, 0.5)
    new[0], new[1] = mean, forth - mean
    back = turned(back)
    for side, (first, second) in enumerate(((forth.max(-2), back.max(-2)), (forth.min(-2), back.min(-2)))):
        later = second.values > first.values if side == 0 else second.values < first.values
        reduced[side] = torch.where(later, second.values, first.values)
        extreme[side] = torch.where(later, second.indices + H, first.indices)


def pair_backward(
    early: Tensor,
    weight: Tensor,
    near: Tensor,
    g_reduced: Tensor,
    extreme: Tensor,
    out: Tensor,
    new: Tensor,
    ends: Tensor,
) -> None:
    """Gradients of a layer's binary pre-activations, and their sums for the unary predicates.

    Args:
        early: [2, W, B * H * n] what the layers after the group give.
        weight: [2, W, C] from the group's later layers.
        near: [2, C, B, H, n] their gradients.
        g_reduced: [2, W, B, n] gradients of the layer's max and min.
        extreme: int16 [2, W, B, n] where those were (see ``pair_forward``).
        out: [2, W, B, H, n] the layer's outputs.
        new: [2, W, B, H, n] receives half of the sum and difference of the two orders' gradients.
        ends: [2, W, B, n] receives their sums over the pairs of every object.
    """
    s, d = (early + matmul(weight, near.flatten(2)) if weight.shape[-1] else early).view(new.shape)
    grad = torch.stack([s + d, s - d])
    grad.view(-1).scatter_add_(0, _place(extreme, new.shape[-2]).flatten(), g_reduced.flatten())
    s, d = out.to(grad.dtype)
    forth, back = _through_sigmoid(grad[0], s + d), _through_sigmoid(grad[1], s - d)
    mean = torch.lerp(forth, back, 0.5)
    difference = forth - mean
    new[0], new[1] = mean, difference
    ends[0] = mean.sum(-2) + turned(mean).sum(-2)
    ends[1] = difference.sum(-2) - turned(difference).sum(-2)


def _same(early: Tensor, weight: Tensor) -> bool:
    return early.dtype == weight.dtype


def _ahead_inputs(ends: Tensor) -> Tensor:
    """Halves [2, W, B, n] followed by their first n // 2 again."""
    return torch.cat([ends, ends[..., : ends.shape[-1] // 2]], -1).mul_(0.5)


def _ahead(x: Tensor, n: int) -> Tensor:
    """[.., n + H] -> [.., H, n]: entry (k, i) is that of the object i + k + 1."""
    return x.unfold(-1, n, 1)[..., 1:, :]


def turned(x: Tensor) -> Tensor:
    """[.., H, n] -> [.., H, n]: entry (k, j) is that of the pair whose second object is j."""
    H, n = x.shape[-2:]
    twice = torch.cat([x, x], -1)
    return twice.as_strided(x.shape, (*twice.stride()[:-2], 2 * n - 1, 1), n - 1)


def _place(extreme: Tensor, H: int) -> Tensor:
    """Index into [2, W, B, H, n] (order ij or ji first) of the entries that ``extreme`` [2, W, B, n] names."""
    _, W, B, n = extreme.shape
    code = extreme.long()
    second = (code >= H).long()
    k = code - H * second
    i = (torch.arange(n, device=code.device) - second * (k + 1)) % n
    row = torch.arange(W * B, device=code.device).view(W, B, 1)
    return (second * (W * B) + row) * (H * n) + k * n + i


def _kernels(X: Tensor) -> ModuleType:
    """The module whose ``product``, ``pair_forward`` and ``pair_backward`` run here: Triton's on a GPU in 16 bit."""
    import oneofmany.networks.nlm_layers as plain

    return plain


# ---- as operators, so that torch.compile takes them whole -----------------------------------------------------------


@torch.library.custom_op("oneofmany::nlm_train", mutates_args=())
def _train(
    form: Sequence[int], flat: Tensor, unary: Tensor, nullary: Tensor, binary: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    with torch.autocast(flat.device.type, enabled=False):
        return forward_pass(_spec(form), flat, unary, nullary, binary, dtype)  # type: ignore[return-value]


@_train.register_fake
def _(form, flat, unary, nullary, binary, dtype):
    spec = _spec(form)
    W, L = spec.width, spec.depth
    B, n = unary.shape[1:]
    layers = _binary_layers(spec, n)
    buffer = {"dtype": dtype, "device": flat.device}
    extreme = {"dtype": torch.int16, "device": flat.device}
    return (
        flat.new_empty(B, n) if spec.unary_readout else flat.new_empty(B),
        torch.empty(2, W * L, spec.x(L), **buffer),
        torch.empty(3 * W * L + int(spec.unary_readout), spec.u(L), **buffer),
        torch.empty(2 * W * L + int(not spec.unary_readout), spec.z(L), **buffer),
        torch.empty(2, spec.x(layers), B, n // 2, n, **buffer),
        torch.empty(spec.u(L), B, n, **buffer),
        torch.empty(spec.z(L), B, **buffer),
        torch.empty(L - 1, 2, W, B, **extreme),
        torch.empty(layers, 2, W, B, n, **extreme),
    )


@torch.library.custom_op("oneofmany::nlm_train_backward", mutates_args=())
def _train_backward(
    form: Sequence[int],
    grad: Tensor,
    pair: Tensor,
    obj: Tensor,
    nul: Tensor,
    X: Tensor,
    U: Tensor,
    Z: Tensor,
    extreme_u: Tensor,
    extreme_b: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    with torch.autocast(grad.device.type, enabled=False):
        return backward_pass(_spec(form), grad, pair, obj, nul, X, U, Z, extreme_u, extreme_b)


@_train_backward.register_fake
def _(form, grad, pair, obj, nul, X, U, Z, extreme_u, extreme_b):
    spec = _spec(form)
    parameters = sum(spec.width * (fan + 1) for layer in range(spec.depth) for fan in spec.fan_in(layer))
    B, n = U.shape[1:]
    return (
        grad.new_empty(parameters + spec.readout + 1),
        grad.new_empty(spec.unary, B, n),
        grad.new_empty(spec.nullary, B),
    )


def _keep(ctx, inputs, output) -> None:
    ctx.form = inputs[0]
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*output[1:])


def _backward(ctx, grad, *_unused):
    flat, unary, nullary = torch.ops.oneofmany.nlm_train_backward(ctx.form, grad.contiguous(), *ctx.saved_tensors)
    return None, flat, unary, nullary, None, None


_train.register_autograd(_backward, setup_context=_keep)


@torch.library.custom_op("oneofmany::nlm_infer", mutates_args=())
def _infer(
    form: Sequence[int], flat: Tensor, unary: Tensor, nullary: Tensor, binary: Tensor, dtype: torch.dtype
) -> Tensor:
    spec = _spec(form)
    B, n = unary.shape[1:]
    per_query = 2 * spec.x(spec.binary_layers) * max(n // 2, 1) * n * dtype.itemsize
    step = max(1, INFERENCE_BYTES // per_query)
    with torch.autocast(flat.device.type, enabled=False):
        parts = [
            forward_pass(spec, flat, unary[:, b : b + step], nullary[:, b : b + step], binary, dtype)[0]
            for b in range(0, B, step)
        ]
    return torch.cat(parts)


@_infer.register_fake
def _(form, flat, unary, nullary, binary, dtype):
    spec = _spec(form)
    B, n = unary.shape[1:]
    return flat.new_empty(B, n) if spec.unary_readout else flat.new_empty(B)


def _spec(form: Sequence[int]) -> Spec:
    *counts, residual, unary_readout = form
    return Spec(*counts, bool(residual), bool(unary_readout))
