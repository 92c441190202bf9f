"""Where every weight of a Neural Logic Machine stands in the matrices that the fast layers multiply by.

The layers (``nlm_layers``) keep one buffer per arity, channels first, into which every layer writes what it computes:

* ``Z`` [channels, B]: a constant one; nullary inputs, max and min of the unary inputs; then for every layer its
  nullary outputs and the max and min of its unary outputs.
* ``U`` [channels, B, n]: a constant one; unary inputs, max and min of the binary inputs; then for every layer its unary
  outputs and the max and min of its binary outputs.
* ``X`` [2, channels, B, pairs]: a constant one and the binary inputs; then every layer's binary outputs. The first half
  holds (b_ij + b_ji) / 2, the second (b_ij - b_ji) / 2.

A layer reads a prefix of them, so its weights are rows of one matrix per arity with zeros where it reads nothing:

* ``nul``, for every layer W rows that give its nullary outputs and W rows that the nullary predicates add to its unary
  outputs, then the readout (if it is on the nullary predicates);
* ``obj``, for every layer W rows that give its unary outputs, and 2 W rows for what u_i and u_j add to its binary
  outputs (as sum and difference), then the readout (if on the unary predicates);
* ``pair`` [2, ..], for every layer W rows: the sum and the difference of the weights on b_ij and b_ji.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor


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

    # First row of a layer's outputs in the buffers; layer -1 are the inputs.

    def z(self, layer: int) -> int:
        """First row of a layer's part of ``Z``."""
        return 1 if layer < 0 else 1 + self.nullary + 2 * self.unary + 3 * self.width * layer

    def u(self, layer: int) -> int:
        """First row of a layer's part of ``U``."""
        return 1 if layer < 0 else 1 + self.unary + 2 * self.binary + 3 * self.width * layer

    def x(self, layer: int) -> int:
        """First row of a layer's part of ``X``."""
        return 1 if layer < 0 else 1 + self.binary + self.width * layer


@dataclass(frozen=True)
class Packing:
    """``packed = cat(flat, 0)[index]`` and ``flat = packed[inverse]``; int64 tensors on one device."""

    index: Tensor
    inverse: Tensor


@lru_cache(maxsize=32)
def packing(spec: Spec, device: torch.device) -> Packing:
    """Index of the packed matrices into the parameters, flattened in the order of ``nullary, unary, binary`` a layer."""
    W, L = spec.width, spec.depth
    zero = sum(W * (fan + 1) for layer in range(L) for fan in spec.fan_in(layer)) + spec.readout + 1
    pair, obj, nul = (np.full(shape, zero, np.int64) for shape in _shapes(spec))
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
        obj[3 * W * layer + W :][:W][:, u_u] = weight[:, :u]
        obj[3 * W * layer + 2 * W :][:W][:, u_u] = weight[:, u + b : 2 * u + b]
        own = pair[:, W * layer :][:, :W]
        own[0][:, 0] = bias
        own[0][:, x_b], own[1][:, x_b] = weight[:, u : u + b], weight[:, 2 * u + b :]

    weight, bias = linear(spec.readout, 1)
    z_n, _, _, u_u, *_ = rows(L)
    last, seen = (obj[-1], u_u) if spec.unary_readout else (nul[-1], z_n)
    last[0], last[seen] = bias[0], weight[0]

    index = np.concatenate([pair.ravel(), obj.ravel(), nul.ravel()])
    inverse = np.empty(zero + 1, np.int64)
    inverse[index] = np.arange(index.size)
    return Packing(torch.as_tensor(index, device=device), torch.as_tensor(inverse[:-1], device=device))


def _shapes(spec: Spec) -> tuple[tuple[int, ...], ...]:
    W, L = spec.width, spec.depth
    readouts = (int(spec.unary_readout), int(not spec.unary_readout))
    return (2, W * L, spec.x(L)), (3 * W * L + readouts[0], spec.u(L)), (2 * W * L + readouts[1], spec.z(L))


def unpack(spec: Spec, flat: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The matrices ``pair``, ``obj`` and ``nul`` from the flattened parameters."""
    packed = torch.cat([flat, flat.new_zeros(1)])[packing(spec, flat.device).index]
    pair, obj, nul = _split(spec, packed)
    _sum_and_difference(spec, pair, obj)
    return pair, obj, nul


def pack_gradient(spec: Spec, pair: Tensor, obj: Tensor, nul: Tensor) -> Tensor:
    """The gradient of the flattened parameters from those of the matrices (which are overwritten)."""
    # The transpose of (a + b, a - b) is itself.
    _sum_and_difference(spec, pair, obj)
    return torch.cat([pair.flatten(), obj.flatten(), nul.flatten()])[packing(spec, pair.device).inverse]


def _sum_and_difference(spec: Spec, pair: Tensor, obj: Tensor) -> None:
    ends = obj[: 3 * spec.width * spec.depth].view(spec.depth, 3, spec.width, -1)
    for first, second in ((pair[0], pair[1]), (ends[:, 1], ends[:, 2])):
        first.add_(second)
        second.mul_(-2).add_(first)


def _split(spec: Spec, packed: Tensor) -> list[Tensor]:
    shapes = _shapes(spec)
    return [
        part.view(shape) for part, shape in zip(packed.split([int(np.prod(s)) for s in shapes]), shapes, strict=True)
    ]
