"""One layer of a Neural Logic Machine in plain PyTorch, for any device and precision.

``layers`` explains the layout of objects (unary and nullary predicates) and pairs (binary ones). ``triton`` has the
same five functions for 16 bits on a GPU.
"""

from __future__ import annotations

import torch
from torch import Tensor


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Return ``a @ b`` for two or three axes, in float32 if the operands have 16 bits."""
    if a.dtype in (torch.float32, torch.float64):
        return a @ b
    if a.is_cuda and a.shape[-1]:
        return (torch.mm if a.ndim == 2 else torch.bmm)(a, b, out_dtype=torch.float32)
    return a.float() @ b.float()


product = matmul


def through_tanh(grad: Tensor, output: Tensor) -> Tensor:
    """Return the gradient before tanh from that of its output."""
    return torch.ops.aten.tanh_backward(grad, output.to(grad.dtype))


# ---- objects


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
    """Compute a layer's nullary and unary outputs; return the unary part of its pairs, float32 [2, W, B, n].

    Args:
        nul: [2 W, z] the layer's rows of ``nul``.
        obj: [3 W, u] the layer's rows of ``obj``.
        Z: [z, B] the nullary predicates that the layer sees.
        U: [u, B, n] the unary ones.
        new_z: [3 W, B] receives the nullary outputs, the max and the min of the unary ones.
        new_u: [W, B, n] receives the unary outputs.
        extreme: int16 [2, W, B] receives the positions of max and min; None if they are not needed.
        with_nullary: whether the nullary outputs are needed.
    """
    W, B, n = new_u.shape
    from_nullary = matmul(nul, Z)
    if with_nullary:
        new_z[:W] = from_nullary[:W].tanh()
    from_unary = matmul(obj, U.flatten(1)).view(3 * W, B, n)
    new = from_unary[:W].add_(from_nullary[W:, :, None]).tanh_()
    new_u.copy_(new)
    if extreme is not None:
        for side, (value, where) in enumerate((new.max(-1), new.min(-1))):
            new_z[W * (side + 1) :][:W] = value
            extreme[side] = where
    return from_unary[W:].view(2, W, B, n)


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
    """Compute gradients of a layer's pre-activations; return those of its pairs' max and min, float32 [2, W, B, n].

    Args:
        nul: [r, 3 W] the later rows of ``nul``, on the layer's channels of ``Z``.
        obj: [s, 3 W] the later rows of ``obj``, on the layer's channels of ``U``.
        grad_Z: [r, B] the gradients of the later rows.
        grad_U: [s, B, n] likewise.
        out_z: [W, B] the layer's nullary outputs.
        out_u: [W, B, n] its unary ones.
        extreme: int16 [2, W, B] positions of their max and min; None if they were not needed.
        grad_new_z: [2 W, B] receives the gradients of the layer's rows of ``nul``.
        grad_new_u: [W, B, n] receives those of its first rows of ``obj``.
        with_nullary: whether the nullary outputs were needed.
    """
    W, B, n = grad_new_u.shape
    grad_nullary = matmul(nul.mT, grad_Z)
    if with_nullary:
        grad_new_z[:W] = through_tanh(grad_nullary[:W], out_z)
    grad_unary = matmul(obj.mT, grad_U.flatten(1)).view(3 * W, B, n)
    grad_new = grad_unary[:W]
    if extreme is not None:
        grad_new.scatter_add_(-1, extreme.permute(1, 2, 0).long(), grad_nullary[W:].view(2, W, B).permute(1, 2, 0))
    grad_new = through_tanh(grad_new, out_u)
    grad_new_u.copy_(grad_new)
    grad_new_z[W:] = grad_new.sum(-1)
    return grad_unary[W:].view(2, W, B, n)


# ---- pairs


def pair_forward(
    early: Tensor, weight: Tensor, near: Tensor, ends: Tensor, new: Tensor, reduced: Tensor, extreme: Tensor
) -> None:
    """Compute a layer's binary outputs and their reductions. H = n // 2.

    Args:
        early: [2, W, B * H * n] contribution of the layers before the group (may be overwritten).
        weight: [2, W, C] on the channels of the group's layers so far.
        near: [2, C, B, H, n] those channels.
        ends: [2, W, B, n] contribution of the unary predicates, p_i + q_j for b_ij, as sum and difference of p and q.
        new: [2, W, B, H, n] receives the outputs.
        reduced: [2, W, B, n] receives every object's max and min over the other objects.
        extreme: int16 [2, W, B, n] receives their positions: k for b_ij, H + k if the object is second in the pair.
    """
    n, H = ends.shape[-1], new.shape[-2]
    s, d = _add_product(early, weight, near).view(new.shape)
    # The first H objects are repeated at the end, so that the objects i + k + 1 are a view.
    half_sum, half_difference = torch.cat([ends, ends[..., :H]], -1).mul_(0.5)
    s.add_(half_sum[..., None, :n]).add_(half_sum.unfold(-1, n, 1)[..., 1:, :])
    d.add_(half_difference[..., None, :n]).sub_(half_difference.unfold(-1, n, 1)[..., 1:, :])
    forth, back = (s + d).tanh_(), s.sub_(d).tanh_()
    _mean_and_half_difference(forth, back, new)
    back = _seen_from_second(back)
    for side, (first, second) in enumerate(((forth.max(-2), back.max(-2)), (forth.min(-2), back.min(-2)))):
        later = second.values > first.values if side == 0 else second.values < first.values
        reduced[side] = torch.where(later, second.values, first.values)
        extreme[side] = torch.where(later, second.indices + H, first.indices)


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
    """Compute gradients of a layer's binary pre-activations, and their sums for the unary predicates.

    Args:
        early: [2, W, B * H * n] contribution of the layers after the group.
        weight: [2, W, C] from the group's later layers.
        grad_near: [2, C, B, H, n] their gradients.
        grad_reduced: [2, W, B, n] gradients of the layer's max and min.
        extreme: int16 [2, W, B, n] their positions (see ``pair_forward``).
        out: [2, W, B, H, n] the layer's outputs.
        grad_new: [2, W, B, H, n] receives half of the sum and difference of the two orders' gradients.
        grad_ends: [2, W, B, n] receives their sums over the pairs of every object.
    """
    s, d = _add_product(early, weight, grad_near).view(grad_new.shape)
    grad = torch.empty_like(grad_new, dtype=s.dtype)
    torch.add(s, d, out=grad[0])
    torch.sub(s, d, out=grad[1])
    grad.view(-1).scatter_add_(0, _place(extreme, grad_new.shape[-2]).flatten(), grad_reduced.flatten())
    s, d = out.to(grad.dtype)
    forth, back = through_tanh(grad[0], s + d), through_tanh(grad[1], s - d)
    mean, difference = _mean_and_half_difference(forth, back, grad_new)
    grad_ends[0] = mean.sum(-2) + _seen_from_second(mean).sum(-2)
    grad_ends[1] = difference.sum(-2) - _seen_from_second(difference).sum(-2)


def _add_product(early: Tensor, weight: Tensor, near: Tensor) -> Tensor:
    if not weight.shape[-1]:
        return early
    if early.dtype == weight.dtype:
        return torch.baddbmm(early, weight, near.flatten(2))
    return early + matmul(weight, near.flatten(2))


def _mean_and_half_difference(forth: Tensor, back: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """(forth + back) / 2 and (forth - back) / 2, also written to ``out`` [2, ..]."""
    same = out.dtype == forth.dtype
    mean = torch.lerp(forth, back, 0.5, out=out[0] if same else None)
    difference = torch.sub(forth, mean, out=out[1] if same else None)
    if not same:
        out[0], out[1] = mean, difference
    return mean, difference


def _seen_from_second(x: Tensor) -> Tensor:
    """Reindex [.., H, n] -> [.., H, n]: entry (k, j) belongs to the pair whose second object is j."""
    H, n = x.shape[-2:]
    wrapped = torch.cat([x[..., n - H :], x], -1)
    return wrapped.as_strided(x.shape, (*wrapped.stride()[:-2], n + H - 1, 1), H - 1)


def _place(extreme: Tensor, H: int) -> Tensor:
    """Flat index into [2, W, B, H, n] (first axis: order ij or ji) of the entries in ``extreme`` [2, W, B, n]."""
    _, W, B, n = extreme.shape
    code = extreme.long()
    second = (code >= H).long()
    k = code - H * second
    i = (torch.arange(n, device=code.device) - second * (k + 1)) % n
    row = torch.arange(W * B, device=code.device).view(W, B, 1)
    return (second * (W * B) + row) * (H * n) + k * n + i
