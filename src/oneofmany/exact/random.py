"""Random numbers inside compiled functions: xorshift64*, whose state is a uint64 array [1] that is never 0."""

from __future__ import annotations

import numpy as np

from oneofmany.compiled import njit


@njit(cache=True, nogil=True)
def below(state, n):
    """Draw an integer in 0..n-1; n is far below 2**32, so the bias of the multiplication is at most n * 2**-32."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    drawn = x * np.uint64(0x2545F4914F6CDD1D)
    return np.int64(((drawn >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True, nogil=True)
def uniform(state):
    """Draw a number from 0 to 1, without 1."""
    return below(state, 1 << 31) / 2147483648.0
