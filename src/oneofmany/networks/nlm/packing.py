"""Pack the weights of a Neural Logic Machine into the matrices that the fast layers multiply by.

The layers (``layers``) have one buffer per arity, channels first. Each layer writes its outputs into them:

* ``Z`` [channels, B]: a constant one; nullary inputs, max and min of the unary inputs; then for each layer its nullary
  outputs and the max and min of its unary outputs.
* ``U`` [channels, B, n]: a constant one; unary inputs, max and min of the binary inputs; then for each layer its unary
  outputs and the max and min of its binary outputs.
* ``X`` [2, channels, B, pairs]: the binary inputs, then the binary outputs of each layer. The first half holds
  (b_ij + b_ji) / 2, the second (b_ij - b_ji) / 2.

A layer reads a prefix of each buffer. Its weights are rows of one matrix per arity, with zeros for unused channels:

* ``nul``: for each layer W rows for its nullary outputs and W rows for the nullary part of its unary outputs, then the
  readout (if it is on the nullary predicates);
* ``obj``: for each layer W rows for its unary outputs and 2 W rows for the part of u_i and u_j in its binary outputs
  (their sum, with the bias, and their difference), then the readout (if it is on the unary predicates);
* ``pair`` [2, ..]: for each layer W rows: the sum and the difference of the weights on b_ij and b_ji.

Outputs of layers are stored as t = tanh(z / 2) = 2 sigmoid(z) - 1 instead of sigmoid(z). They are centred at 0, where
16-bit numbers resolve the small differences between objects in an untrained network. The matrices account for it:
weights on such channels are halved, the other halves are added to the constants, and each pre-activation is z / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import torch
from torch import Tensor


def _aligned(rows: int) -> int:
    """Rows before the first layer, padded to a multiple of eight for 16-bit matrix units."""
    return -(-rows // 8) * 8


@dataclass(frozen=True)
class Spec:
    """The shape of a network of breadth 2.

    Args:
        nullary: nullary inputs.
        unary: unary inputs.
        binary: binary inputs.
        depth: number of layers.
        width: new predicates per layer and arity.
        residual: whether a layer sees the inputs and the outputs of all earlier layers, or only the previous layer.
        unary_readout: one output per object from the unary predicates, or one from the nullary ones.
    """

    nullary: int
    unary: int
    binary: int
    depth: int
    width: int
    residual: bool
    unary_readout: bool

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        layers = sum(self.width * (fan + 1) for layer in range(self.depth) for fan in self.fan_in(layer))
        return layers + self.readout + 1

    def dims(self, layer: int) -> tuple[int, int, int]:
        """Return the nullary, unary and binary predicates that a layer sees; ``layer = depth`` is the readout."""
        if not self.residual and layer:
            return self.width, self.width, self.width
        grown = self.width * layer
        return self.nullary + grown, self.unary + grown, self.binary + grown

    def fan_in(self, layer: int) -> tuple[int, int, int]:
        """Return the input sizes of a layer's nullary, unary and binary linear maps."""
        nullary, unary, binary = self.dims(layer)
        return nullary + 2 * unary, nullary + unary + 2 * binary, 2 * (unary + binary)

    @property
    def readout(self) -> int:
        """Input size of the readout."""
        return self.dims(self.depth)[1 if self.unary_readout else 0]

    # Outputs that do not reach the readout are not computed.

    @property
    def unary_layers(self) -> int:
        """Number of layers whose unary outputs reach the readout."""
        return self.depth if self.unary_readout else self.depth - 1

    @property
    def nullary_layers(self) -> int:
        """Number of layers whose nullary outputs reach the readout."""
        return self.depth - 1 if self.unary_readout else self.depth

    @property
    def binary_layers(self) -> int:
        """Number of layers whose binary outputs reach the readout."""
        return max(self.unary_layers - 1, 0)

    def binary_layers_of(self, objects: int) -> int:
        """Return ``binary_layers`` for a number of objects: a single object has no pairs."""
        return self.binary_layers if objects > 1 else 0

    # First row of a layer's outputs in the buffers; layer -1 stands for the inputs.

    def z(self, layer: int) -> int:
        """Return the first row of a layer in ``Z``."""
        return 1 if layer < 0 else _aligned(1 + self.nullary + 2 * self.unary) + 3 * self.width * layer

    def u(self, layer: int) -> int:
        """Return the first row of a layer in ``U``."""
        return 1 if layer < 0 else _aligned(1 + self.unary + 2 * self.binary) + 3 * self.width * layer

    def x(self, layer: int) -> int:
        """Return the first row of a layer in ``X``."""
        return 0 if layer < 0 else _aligned(self.binary) + self.width * layer

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of ``pair``, ``obj`` and ``nul``."""
        W, L, unary = self.width, self.depth, int(self.unary_readout)
        return (2, W * L, self.x(L)), (3 * W * L + unary, self.u(L)), (2 * W * L + 1 - unary, self.z(L))


@dataclass(frozen=True)
class Packing:
    """``packed = cat(flat, 0)[index]`` and ``flat = packed[inverse]``; int64 tensors on one device."""

    index: Tensor
    inverse: Tensor


@lru_cache(maxsize=32)
def packing(spec: Spec, device: torch.device) -> Packing:
    """Return the index of the packed matrices into the parameters, flattened layer by layer, the readout last."""
    W, L = spec.width, spec.depth
    zero = spec.parameters
    pair, obj, nul = (np.full(shape, zero, np.int64) for shape in spec.shapes)
    flat = 0

    def linear(fan: int, out: int = W) -> tuple[np.ndarray, np.ndarray]:
        nonlocal flat
        weight = flat + np.arange(out * fan).reshape(out, fan)
        flat += out * (fan + 1)
        return weight, np.arange(flat - out, flat)

    def rows(layer: int) -> list[np.ndarray]:
        """Buffer rows that a layer sees: n, umax, umin in Z; u, bmax, bmin in U; b in X."""
        seen = range(-1, layer) if spec.residual else [layer - 1]
        parts: list[list[int]] = [[] for _ in range(7)]
        for m in seen:
            n, u, b = (W, W, W) if m >= 0 else (spec.nullary, spec.unary, spec.binary)
            starts = (spec.z(m), n), (spec.z(m) + n, u), (spec.z(m) + n + u, u)
            starts += (spec.u(m), u), (spec.u(m) + u, b), (spec.u(m) + u + b, b), (spec.x(m), b)
            for part, (start, count) in zip(parts, starts, strict=True):
                part.extend(range(start, start + count))
        return [np.array(part, np.int64) for part in parts]

    for layer in range(L):
        n, u, b = spec.dims(layer)
        z_n, z_max, z_min, u_u, u_max, u_min, x_b = rows(layer)
        fans = spec.fan_in(layer)

        weight, bias = linear(fans[0])
        own, added = nul[2 * W * layer :][:W], nul[2 * W * layer + W :][:W]
        own[:, 0] = bias
        own[:, z_n], own[:, z_max], own[:, z_min] = weight[:, :n], weight[:, n::2], weight[:, n + 1 :: 2]

        weight, bias = linear(fans[1])
        added[:, z_n] = weight[:, :n]
        own = obj[3 * W * layer :][:W]
        own[:, 0] = bias
        own[:, u_u], own[:, u_max], own[:, u_min] = (
            weight[:, n : n + u],
            weight[:, n + u :: 2],
            weight[:, n + u + 1 :: 2],
        )

        weight, bias = linear(fans[2])
        obj[3 * W * layer + W :][:W][:, 0] = bias
        obj[3 * W * layer + W :][:W][:, u_u] = weight[:, :u]
        obj[3 * W * layer + 2 * W :][:W][:, u_u] = weight[:, u + b : 2 * u + b]
        own = pair[:, W * layer :][:, :W]
        own[0][:, x_b], own[1][:, x_b] = weight[:, u : u + b], weight[:, 2 * u + b :]

    weight, bias = linear(spec.readout, 1)
    z_n, _, _, u_u, *_ = rows(L)
    last, seen = (obj[-1], u_u) if spec.unary_readout else (nul[-1], z_n)
    last[0], last[seen] = bias[0], weight[0]

    index = np.concatenate([pair.ravel(), obj.ravel(), nul.ravel()])
    inverse = np.empty(zero + 1, np.int64)
    inverse[index] = np.arange(index.size)
    return Packing(torch.as_tensor(index, device=device), torch.as_tensor(inverse[:-1], device=device))


def pack(spec: Spec, flat: Tensor) -> Tensor:
    """Return the packed matrices, concatenated, from the flattened parameters."""
    packed = torch.cat([flat, flat.new_zeros(1)])[packing(spec, flat.device).index]
    pair, obj, nul = split(spec, packed)
    ends = _ends(spec, obj)
    _sum_and_difference(pair[0], pair[1])
    _sum_and_difference(ends[:, 1], ends[:, 2])
    for weights, constant in _centred(spec, pair, obj, nul):
        constant.add_(weights.mul_(0.5).sum(-1))
    pair[1, :, spec.x(0) :].mul_(0.5)
    ends[:, 2, :, 0] = 0
    _halve(spec, pair, obj, nul)
    return packed


def pack_gradient(spec: Spec, pair: Tensor, obj: Tensor, nul: Tensor) -> Tensor:
    """Transpose ``pack``: return the gradient of the parameters from those of the matrices (overwritten)."""
    ends = _ends(spec, obj)
    _halve(spec, pair, obj, nul)
    ends[:, 2, :, 0] = 0
    pair[1, :, spec.x(0) :].mul_(0.5)
    for weights, constant in _centred(spec, pair, obj, nul):
        weights.add_(constant[..., None]).mul_(0.5)
    _sum_and_difference(pair[0], pair[1])
    _sum_and_difference(ends[:, 1], ends[:, 2])
    return torch.cat([pair.flatten(), obj.flatten(), nul.flatten()])[packing(spec, pair.device).inverse]


def split(spec: Spec, packed: Tensor) -> list[Tensor]:
    """Return views ``pair``, ``obj`` and ``nul`` of the packed matrices."""
    parts = packed.split([prod(shape) for shape in spec.shapes])
    return [part.view(shape) for part, shape in zip(parts, spec.shapes, strict=True)]


def _ends(spec: Spec, obj: Tensor) -> Tensor:
    """[layers, unary / sum / difference, W, channels] of ``obj``."""
    return obj[: 3 * spec.width * spec.depth].view(spec.depth, 3, spec.width, -1)


def _sum_and_difference(first: Tensor, second: Tensor) -> None:
    """Replace (a, b) with (a + b, a - b) in place."""
    first.add_(second)
    second.mul_(-2).add_(first)


def _centred(spec: Spec, pair: Tensor, obj: Tensor, nul: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Weights on outputs of layers, and the constants to which half of them is added.

    A difference b_ij - b_ji or u_i - u_j has no constant.
    """
    weights = pair[0, :, spec.x(0) :].view(spec.depth, spec.width, -1)
    return [
        (weights, _ends(spec, obj)[:, 1, :, 0]),
        (obj[:, spec.u(0) :], obj[:, 0]),
        (nul[:, spec.z(0) :], nul[:, 0]),
    ]


def _halve(spec: Spec, pair: Tensor, obj: Tensor, nul: Tensor) -> None:
    """Halve all rows but the readout: they give z / 2."""
    pair.mul_(0.5)
    obj[: 3 * spec.width * spec.depth].mul_(0.5)
    nul[: 2 * spec.width * spec.depth].mul_(0.5)
