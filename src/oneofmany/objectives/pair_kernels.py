"""The part of the pair losses' gradient that adds over the listed solutions, as one Triton kernel for a GPU.

The same function as ``scatter_add_``, which is its oracle. That adds the weights of solutions with the same value in
whatever order a GPU comes to them, so that a training run comes out differently every time. Here a program adds them in
one order.

This module imports triton: import it only where CUDA is.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false
from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

LISTED = 8
"""Listed solutions that a program looks at together."""
TILE = 2048
"""Numbers that it has in hand for them: some variables, all values."""


def subtract_taken(result: Tensor, solutions: Tensor, weights: Tensor) -> None:
    """Subtract from `result`, in place, the weights of the listed solutions that take a value.

    Args:
        result: `[T,B,R,V]` float32, none of the sizes 0.
        solutions: `[B,K,R]` int64. Values outside 0..V-1 (padding) are read as the nearest one inside.
        weights: `[T,B,K]` float32.
    """
    T, B, R, V = result.shape
    values = triton.next_power_of_2(V)
    variables = max(1, min(16, TILE // (LISTED * values)))
    _subtract[(T * B, triton.cdiv(R, variables))](
        result, solutions.contiguous(), weights.contiguous(), B, solutions.shape[1], R, V, *result.stride(),
        LISTED=LISTED, VARIABLES=variables, VALUES=values,
    )  # fmt: skip


@triton.jit(do_not_specialize=["B", "K", "R", "V", "by_step", "by_query", "by_variable", "by_value"])
def _subtract(
    result, solutions, weights, B, K, R, V, by_step, by_query, by_variable, by_value,
    LISTED: tl.constexpr, VARIABLES: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """One step of one query, some of its variables."""
    row = tl.program_id(0).to(tl.int64)
    step, query = row // B, row % B
    variable = tl.program_id(1) * VARIABLES + tl.arange(0, VARIABLES)
    value = tl.arange(0, VALUES)
    taken = tl.zeros([VARIABLES, VALUES], tl.float32)
    for first in range(0, K, LISTED):
        k = first + tl.arange(0, LISTED)
        inside = (k < K)[:, None] & (variable < R)[None, :]
        theirs = tl.load(solutions + (query * K + k[:, None]) * R + variable[None, :], mask=inside, other=0)
        theirs = tl.minimum(tl.maximum(theirs, 0), V - 1)
        weight = tl.load(weights + row * K + k, mask=k < K, other=0.0)
        taken += tl.sum(tl.where(theirs[:, :, None] == value[None, None, :], weight[:, None, None], 0.0), 0)
    entries = result + step * by_step + query * by_query
    entries += variable[:, None].to(tl.int64) * by_variable + value[None, :] * by_value
    inside = (variable < R)[:, None] & (value < V)[None, :]
    tl.store(entries, tl.load(entries, mask=inside, other=0.0) - taken, mask=inside)
