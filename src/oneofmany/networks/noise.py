"""Standard normal noise as PyTorch draws it on a CPU, without PyTorch: the same seed gives the same noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

PAIRED = 16
"""PyTorch makes normal numbers of 16 uniform ones at a time."""


class Noise:
    """The numbers of ``torch.Generator().manual_seed(seed)`` and ``torch.randn``, call for call, up to rounding."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.RandomState(seed % 2**32)  # the Mersenne Twister, seeded as by PyTorch
        self._spare: float | None = None

    def normal(self, shape: Sequence[int]) -> np.ndarray:
        """Return float32 of this shape."""
        size = int(np.prod(shape))
        if size < PAIRED:
            return np.array([self._one() for _ in range(size)], np.float32).reshape(shape)
        made = (self._words(size) & (2**24 - 1)).astype(np.float32) * np.float32(2**-24)
        whole = size - size % PAIRED
        made[:whole] = _box_muller(made[:whole])
        if size % PAIRED:  # the last 16 are drawn again
            last = (self._words(PAIRED) & (2**24 - 1)).astype(np.float32) * np.float32(2**-24)
            made[-PAIRED:] = _box_muller(last)
        return made.reshape(shape)

    def _words(self, number: int) -> np.ndarray:
        return self._bits.randint(0, 2**32, number, np.uint32)

    def _one(self) -> float:
        """A single number in double precision; they come in pairs."""
        if self._spare is not None:
            value, self._spare = self._spare, None
            return value
        words = self._words(4).astype(np.uint64).reshape(2, 2)
        u, v = ((words[:, 0] << np.uint64(32) | words[:, 1]) & np.uint64(2**53 - 1)).astype(np.float64) * 2**-53
        radius, angle = np.sqrt(-2 * np.log1p(-v)), 2 * np.pi * u
        self._spare = float(radius * np.sin(angle))
        return float(radius * np.cos(angle))


class Noises:
    """The noise of the queries of several problems in one batch: each problem has its own.

    Args:
        parts: the noise of every problem, and the number of its queries, in the order of the batch.
    """

    def __init__(self, parts: Sequence[tuple[Noise, int]]) -> None:
        self.parts = parts

    def normal(self, shape: Sequence[int]) -> np.ndarray:
        """Return float32 of this shape; the first number is that of all queries."""
        return np.concatenate([noise.normal((rows, *shape[1:])) for noise, rows in self.parts])


def _box_muller(uniform: np.ndarray) -> np.ndarray:
    """Normal numbers from uniform ones in [0, 1), 16 at a time: the first 8 give radii, the others angles."""
    u, v = np.split(uniform.reshape(-1, PAIRED), 2, axis=1)
    radius, angle = np.sqrt(-2 * np.log(1 - u)), np.float32(2 * np.pi) * v
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()
