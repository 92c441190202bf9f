"""Where every weight of a Neural Logic Machine stands in the matrices that the fast layers multiply by.

The layers (``layers``) keep one buffer per arity, channels first, into which every layer writes what it computes:

* ``Z`` [channels, B]: a constant one; nullary inputs, max and min of the unary inputs; then for every layer its
  nullary outputs and the max and min of its unary outputs.
* ``U`` [channels, B, n]: a constant one; unary inputs, max and min of the binary inputs; then for every layer its unary
  outputs and the max and min of its binary outputs.
* ``X`` [2, channels, B, pairs]: the binary inputs, then every layer's binary outputs. The first half holds
  (b_ij + b_ji) / 2, the second (b_ij - b_ji) / 2.

A layer reads a prefix of them, so its weights are rows of one matrix per arity with zeros where it reads nothing:

* ``nul``, for every layer W rows that give its nullary outputs and W rows that the nullary predicates add to its unary
  outputs, then the readout (if it is on the nullary predicates);
* ``obj``, for every layer W rows that give its unary outputs, and 2 W rows for what u_i and u_j add to its binary
  outputs (their sum, with the bias, and their difference), then the readout (if on the unary predicates);
* ``pair`` [2, ..], for every layer W rows: the sum and the difference of the weights on b_ij and b_ji.

Outputs of layers are kept as t = tanh(z / 2) = 2 sigmoid(z) - 1 instead of sigmoid(z): centred at 0, where 16-bit
numbers resolve the small differences between objects that a fresh network starts from. The matrices take that in:
weights on such channels are halved and the other halves join the constants, and every pre-activation is z / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import torch
from torch import Tensor


def _aligned(rows: int) -> int:
    """Rows before the first layer, padded: 16-bit matrix units want multiples of eight."""
    return -(-rows // 8) * 8


@dataclass(frozen=True)
class Spec:
    """The form of a network of breadth 2: how many predicates come in, and what the layers make of them.

    Args:
        nullary: nullary inputs.
        unary: unary inputs.
        binary: binary inputs.
        depth: layers.
        width: predicates that every layer makes for each arity.
        residual: layers see the inputs and all earlier layers' outputs (concatenated), or only the layer before.
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
        """How many numbers the network learns."""
        layers = sum(self.width * (fan + 1) for layer in range(self.depth) for fan in self.fan_in(layer))
        return layers + self.readout + 1

    def dims(self, layer: int) -> tuple[int, int, int]:
        """Nullary, unary and binary predicates that a layer sees; ``layer = depth`` is the readout."""
        if not self.residual and layer:
            return self.width, self.width, self.width
        grown = self.width * layer
        return self.nullary + grown, self.unary + grown, self.binary + grown

    def fan_in(self, layer: int) -> tuple[int, int, int]:
        """Inputs of a layer's nullary, unary and binary linear maps."""
        nullary, unary, binary = self.dims(layer)
        return nullary + 2 * unary, nullary + unary + 2 * binary, 2 * (unary + binary)

    @property
    def readout(self) -> int:
        """Inputs of the readout."""
        return self.dims(self.depth)[1 if self.unary_readout else 0]

    # What no readout can see is not computed: the last layer's outputs of other arities, and what only they use.

    @property
    def unary_layers(self) -> int:
        """How many layers' unary outputs reach the readout."""
        return self.depth if self.unary_readout else self.depth - 1

    @property
    def nullary_layers(self) -> int:
        """How many layers' nullary outputs reach the readout."""
        return self.depth - 1 if self.unary_readout else self.depth

    @property
    def binary_layers(self) -> int:
        """How many layers' binary outputs reach the readout."""
        return max(self.unary_layers - 1, 0)

    def binary_layers_of(self, objects: int) -> int:
        """The same for so many objects: a single one has no pairs."""
        return self.binary_layers if objects > 1 else 0

    # First row of a layer's outputs in the buffers; layer -1 are the inputs.

    def z(self, layer: int) -> int:
        """First row of a layer's part of ``Z``."""
        return 1 if layer < 0 else _aligned(1 + self.nullary + 2 * self.unary) + 3 * self.width * layer

    def u(self, layer: int) -> int:
        """First row of a layer's part of ``U``."""
        return 1 if layer < 0 else _aligned(1 + self.unary + 2 * self.binary) + 3 * self.width * layer

    def x(self, layer: int) -> int:
        """First row of a layer's part of ``X``."""
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
    """Index of the packed matrices into the parameters, which are flattened layer by layer, the readout last."""
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
        """Buffer rows of what a layer sees: n, umax, umin in Z; u, bmax, bmin in U; b in X."""
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
    """The packed matrices, one after the other, from the flattened parameters."""
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
    """The gradient of the flattened parameters from those of the matrices (overwritten): ``pack`` transposed."""
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
    """Views ``pair``, ``obj`` and ``nul`` of the packed matrices."""
    parts = packed.split([prod(shape) for shape in spec.shapes])
    return [part.view(shape) for part, shape in zip(parts, spec.shapes, strict=True)]


def _ends(spec: Spec, obj: Tensor) -> Tensor:
    """[layers, unary / sum / difference, W, channels] of ``obj``."""
    return obj[: 3 * spec.width * spec.depth].view(spec.depth, 3, spec.width, -1)


def _sum_and_difference(first: Tensor, second: Tensor) -> None:
    """(a, b) becomes (a + b, a - b), in place."""
    first.add_(second)
    second.mul_(-2).add_(first)


def _centred(spec: Spec, pair: Tensor, obj: Tensor, nul: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Weights on outputs of layers, and the constants that half of them joins.

    A difference b_ij - b_ji or u_i - u_j has no constant.
    """
    weights = pair[0, :, spec.x(0) :].view(spec.depth, spec.width, -1)
    return [
        (weights, _ends(spec, obj)[:, 1, :, 0]),
        (obj[:, spec.u(0) :], obj[:, 0]),
        (nul[:, spec.z(0) :], nul[:, 0]),
    ]


def _halve(spec: Spec, pair: Tensor, obj: Tensor, nul: Tensor) -> None:
    """All but the readout give z / 2."""
    pair.mul_(0.5)
    obj[: 3 * spec.width * spec.depth].mul_(0.5)
    nul[: 2 * spec.width * spec.depth].mul_(0.5)
