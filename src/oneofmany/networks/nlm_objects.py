"""One layer's objects of a Neural Logic Machine, its unary and nullary predicates, in plain PyTorch.

``nlm_layers`` explains what is kept and where; ``nlm_object_kernels`` has the same functions for 16 bits on a GPU.
"""

from __future__ import annotations

from torch import Tensor

from oneofmany.networks.nlm_pairs import matmul, through_tanh


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
    """A layer's nullary and unary outputs, and what its unary predicates give to its pairs, [2, W, B, n] in float32.

    Args:
        nul: [2 W, z] the layer's rows of ``nul``.
        obj: [3 W, u] the layer's rows of ``obj``.
        Z: [z, B] the nullary predicates that the layer sees.
        U: [u, B, n] the unary ones.
        new_z: [3 W, B] receives the nullary outputs, the max and the min of the unary ones.
        new_u: [W, B, n] receives the unary outputs.
        extreme: int16 [2, W, B] receives where max and min are; None where nobody needs them.
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
    dZ: Tensor,
    dU: Tensor,
    out_z: Tensor,
    out_u: Tensor,
    extreme: Tensor | None,
    new_z: Tensor,
    new_u: Tensor,
    with_nullary: bool,
) -> Tensor:
    """Gradients of a layer's pre-activations, and of the max and min of its pairs, [2, W, B, n] in float32.

    Args:
        nul: [r, 3 W] the later rows of ``nul``, on what the layer wrote to ``Z``.
        obj: [s, 3 W] the later rows of ``obj``, on what it wrote to ``U``.
        dZ: [r, B] the gradients of the later rows.
        dU: [s, B, n] likewise.
        out_z: [W, B] the layer's nullary outputs.
        out_u: [W, B, n] its unary ones.
        extreme: int16 [2, W, B] where their max and min were; None where nobody needed them.
        new_z: [2 W, B] receives the gradients of the layer's rows of ``nul``.
        new_u: [W, B, n] receives those of its first rows of ``obj``.
        with_nullary: whether the nullary outputs were needed.
    """
    W, B, n = new_u.shape
    g_nullary = matmul(nul.mT, dZ)
    if with_nullary:
        new_z[:W] = through_tanh(g_nullary[:W], out_z)
    g_unary = matmul(obj.mT, dU.flatten(1)).view(3 * W, B, n)
    new = g_unary[:W]
    if extreme is not None:
        new.scatter_add_(-1, extreme.permute(1, 2, 0).long(), g_nullary[W:].view(2, W, B).permute(1, 2, 0))
    new = through_tanh(new, out_u)
    new_u.copy_(new)
    new_z[W:] = new.sum(-1)
    return g_unary[W:].view(2, W, B, n)
