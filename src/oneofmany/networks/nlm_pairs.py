"""One layer's pairs of a Neural Logic Machine in plain PyTorch: any device, any precision.

``nlm_layers`` explains what is kept of a pair and where; ``nlm_triton`` has the same functions for 16 bits on a GPU.
"""

from __future__ import annotations

import torch
from torch import Tensor


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` for two or three axes, in float32 if the operands have 16 bits."""
    if a.dtype in (torch.float32, torch.float64):
        return a @ b
    if a.is_cuda and a.shape[-1]:
        return (torch.mm if a.ndim == 2 else torch.bmm)(a, b, out_dtype=torch.float32)
    return a.float() @ b.float()


product = matmul


def through_tanh(grad: Tensor, output: Tensor) -> Tensor:
    """The gradient before tanh from that of its output."""
    return torch.ops.aten.tanh_backward(grad, output.to(grad.dtype))


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
    n, H = ends.shape[-1], new.shape[-2]
    s, d = _add_product(early, weight, near).view(new.shape)
    # Followed by the first H again, so that the objects i + k + 1 are a view.
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
    s, d = _add_product(early, weight, near).view(new.shape)
    grad = torch.empty_like(new, dtype=s.dtype)
    torch.add(s, d, out=grad[0])
    torch.sub(s, d, out=grad[1])
    grad.view(-1).scatter_add_(0, _place(extreme, new.shape[-2]).flatten(), g_reduced.flatten())
    s, d = out.to(grad.dtype)
    forth, back = through_tanh(grad[0], s + d), through_tanh(grad[1], s - d)
    mean, difference = _mean_and_half_difference(forth, back, new)
    ends[0] = mean.sum(-2) + _seen_from_second(mean).sum(-2)
    ends[1] = difference.sum(-2) - _seen_from_second(difference).sum(-2)


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
    """[.., H, n] -> [.., H, n]: entry (k, j) is that of the pair whose second object is j."""
    H, n = x.shape[-2:]
    wrapped = torch.cat([x[..., n - H :], x], -1)
    return wrapped.as_strided(x.shape, (*wrapped.stride()[:-2], n + H - 1, 1), H - 1)


def _place(extreme: Tensor, H: int) -> Tensor:
    """Index into [2, W, B, H, n] (order ij or ji first) of the entries that ``extreme`` [2, W, B, n] names."""
    _, W, B, n = extreme.shape
    code = extreme.long()
    second = (code >= H).long()
    k = code - H * second
    i = (torch.arange(n, device=code.device) - second * (k + 1)) % n
    row = torch.arange(W * B, device=code.device).view(W, B, 1)
    return (second * (W * B) + row) * (H * n) + k * n + i
