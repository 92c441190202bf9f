"""Two Triton kernels for a GPU: the look-up of the listed solutions in a table, and the pair losses' gradient.

Each reads its table once and computes the same as the operators in `looking_up`, its oracle in the tests, without a
tensor of `[T,B,K,R]` numbers. Variables that are left out cost no pass of their own. Sums have a fixed order. On a GPU
``scatter_add_`` adds the weights of solutions with the same value in an arbitrary order, so that every training run
ends differently.

This module imports triton: import it only if CUDA is available.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

LISTED = 8
"""Listed solutions that a program handles together."""
PICKED = 1024
"""Numbers that a program of the look-up picks together: some solutions, some variables."""
RESULTS = 512
"""Numbers of the gradient that a program computes: some variables, all values."""


def look_up(table: Tensor, solutions: Tensor, kept: Tensor | None = None) -> Tensor:
    """Sum the entries of the table that each solution picks; returns `[T,B,K]`.

    Args:
        table: `[T,B,R,V]` float32, no size is 0.
        solutions: `[B,K,R]` int64. Values outside 0..V-1 (padding) are clamped.
        kept: `[B,K,R]` bool, the variables that count; None: all.
    """
    T, B, R, V = table.shape
    K = solutions.shape[1]
    sums = table.new_empty(T, B, K)
    listed = min(LISTED, triton.next_power_of_2(K))
    with torch.cuda.device_of(table):
        _look_up[(T * B, triton.cdiv(K, listed))](
            table, *_side_by_side(solutions, kept), sums, B, K, R, V, *table.stride(),
            MASKED=kept is not None, LISTED=listed, VARIABLES=min(PICKED // listed, triton.next_power_of_2(R)),
            num_warps=2,
        )  # fmt: skip
    return sums


def subtract_taken(
    result: Tensor, solutions: Tensor, weights: Tensor, kept: Tensor | None = None, *, times_total: bool = False
) -> None:
    """Subtract from `result`, in place, the weight of every listed solution at the values that it takes.

    Args:
        result: `[T,B,R,V]` float32, no size is 0.
        solutions: `[B,K,R]` int64. Values outside 0..V-1 (padding) are clamped.
        weights: `[T,B,K]` float32.
        kept: `[B,K,R]` bool, the variables that count; None: all.
        times_total: first multiply `result` by the sum of the weights of the solutions that use the variable; it is 0
            where none does, even if it was NaN.
    """
    T, B, R, V = result.shape
    K = solutions.shape[1]
    listed, values = min(LISTED, triton.next_power_of_2(K)), triton.next_power_of_2(V)
    variables = max(1, min(32, RESULTS // values, triton.next_power_of_2(R)))
    # Up to 64 comparisons, or 16 results, for every thread.
    warps = min(16, max(1, max(listed, 4) * variables * values // 2048))
    with torch.cuda.device_of(result):
        _subtract[(T * B, triton.cdiv(R, variables))](
            result, *_side_by_side(solutions, kept), weights.contiguous(), B, K, R, V, *result.stride(),
            MASKED=kept is not None, TOTAL=times_total, LISTED=listed, VARIABLES=variables, VALUES=values,
            num_warps=warps,
        )  # fmt: skip


def _side_by_side(solutions: Tensor, kept: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return both in the order of `[B,K,R]`; without a mask, the second is not read."""
    solutions = solutions.contiguous()
    return solutions, solutions if kept is None else kept.contiguous().view(torch.uint8)


@triton.jit(do_not_specialize=["B", "K", "R", "V", "by_step", "by_query", "by_variable"])
def _look_up(
    table, solutions, kept, sums, B, K, R, V, by_step, by_query, by_variable, by_value,
    MASKED: tl.constexpr, LISTED: tl.constexpr, VARIABLES: tl.constexpr,
):  # fmt: skip
    """Handle one step of one query, some of its listed solutions."""
    step, query = tl.program_id(0) // B, tl.program_id(0) % B
    k = tl.program_id(1) * LISTED + tl.arange(0, LISTED)
    table += step.to(tl.int64) * by_step + query.to(tl.int64) * by_query
    solutions += query.to(tl.int64) * K * R
    kept += query.to(tl.int64) * K * R
    total = tl.zeros([LISTED], tl.float32)
    for first in range(0, R, VARIABLES):
        variable = first + tl.arange(0, VARIABLES)
        places = k[:, None] * R + variable[None, :]
        counts = (k < K)[:, None] & (variable < R)[None, :]
        value = tl.load(solutions + places, mask=counts, other=0)
        value = tl.minimum(tl.maximum(value, 0), V - 1)
        if MASKED:
            counts = tl.load(kept + places, mask=counts, other=0) != 0
        picked = table + variable[None, :].to(tl.int64) * by_variable + value * by_value
        total += tl.sum(tl.load(picked, mask=counts, other=0.0), 1)
    tl.store(sums + tl.program_id(0).to(tl.int64) * K + k, total, mask=k < K)


@triton.jit(do_not_specialize=["B", "K", "R", "V", "by_step", "by_query", "by_variable"])
def _subtract(
    result, solutions, kept, weights, B, K, R, V, by_step, by_query, by_variable, by_value,
    MASKED: tl.constexpr, TOTAL: tl.constexpr, LISTED: tl.constexpr, VARIABLES: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """Handle one step of one query, some of its variables."""
    step, query = tl.program_id(0) // B, tl.program_id(0) % B
    variable = tl.program_id(1) * VARIABLES + tl.arange(0, VARIABLES)
    value = tl.arange(0, VALUES)
    result += step.to(tl.int64) * by_step + query.to(tl.int64) * by_query
    solutions += query.to(tl.int64) * K * R
    kept += query.to(tl.int64) * K * R
    weights += tl.program_id(0).to(tl.int64) * K
    entries = result + variable[:, None].to(tl.int64) * by_variable + value[None, :].to(tl.int64) * by_value
    inside = (variable < R)[:, None] & (value < V)[None, :]
    numbers = tl.load(entries, mask=inside, other=0.0)
    taken = tl.zeros([VARIABLES, VALUES], tl.float32)
    users = tl.zeros([VARIABLES], tl.int32)
    for first in range(0, K, LISTED):
        k = first + tl.arange(0, LISTED)
        places = k[:, None] * R + variable[None, :]
        counts = (k < K)[:, None] & (variable < R)[None, :]
        theirs = tl.load(solutions + places, mask=counts, other=0)
        theirs = tl.minimum(tl.maximum(theirs, 0), V - 1).to(tl.int32)
        if MASKED:
            counts = tl.load(kept + places, mask=counts, other=0) != 0
            theirs = tl.where(counts, theirs, -1)
            users += tl.sum(counts.to(tl.int32), 0)
        weight = tl.load(weights + k, mask=k < K, other=0.0)
        taken += tl.sum(tl.where(theirs[:, :, None] == value[None, None, :], weight[:, None, None], 0.0), 0)
    if TOTAL:
        # Every solution that uses a variable takes one of its values.
        numbers *= tl.sum(taken, 1)[:, None]
        if MASKED:
            numbers = tl.where((users > 0)[:, None], numbers, 0.0)
    tl.store(entries, numbers - taken, mask=inside)
