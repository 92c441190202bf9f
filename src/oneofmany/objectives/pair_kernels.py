"""The sum over the listed solutions in the pair losses' gradient, as one Triton kernel for a GPU.

It computes the same as ``scatter_add_``, its oracle in the tests. On a GPU ``scatter_add_`` adds the weights of
solutions with the same value in an arbitrary order, so that every training run ends differently. This kernel adds them
in a fixed order.

This module imports triton: import it only if CUDA is available.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false
from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

LISTED = 8
"""Listed solutions that a program handles together."""
TILE = 2048
"""Numbers that it holds for them: some variables, all values."""


def subtract_taken(result: Tensor, solutions: Tensor, weights: Tensor) -> None:
    """Subtract from `result`, in place, the weight of every listed solution at the values that it takes.

    Args:
        result: `[T,B,R,V]` float32, no size is 0.
        solutions: `[B,K,R]` int64. Values outside 0..V-1 (padding) are clamped.
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
    """Handle one step of one query, some of its variables."""
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
