"""The Triton kernels of the equivariant network; ``triton`` launches them.

Tensors are [rows, B, channels]. A program handles one row of one block of queries. Programs of the same block are
consecutive, so that the rows which they gather from each other are in the cache.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportPossiblyUnboundVariable=false
from __future__ import annotations

import triton
import triton.language as tl

NO_SLOT = tl.constexpr(127)


@triton.jit
def _matrix(at, rows: tl.constexpr, columns: tl.constexpr, row_stride, column_stride):
    return tl.load(at + tl.arange(0, rows)[:, None] * row_stride + tl.arange(0, columns)[None, :] * column_stride)


@triton.jit
def _block(rows, B, BB: tl.constexpr):
    """A program's row (a choice or a rule), its queries, and the mask of existing queries [BB, 1]."""
    row = tl.program_id(0) % rows
    b = (tl.program_id(0) // rows * BB + tl.arange(0, BB)).to(tl.int64)
    return row, b, (b < B)[:, None]


@triton.jit
def _two_largest(best, second, winner, runner_up, said, slot):
    """Update the two largest so far and their slots with one more value."""
    runner_up = tl.where(said > best, winner, tl.where(said > second, slot, runner_up))
    winner = tl.where(said > best, slot, winner)
    return tl.maximum(best, said), tl.maximum(second, tl.minimum(best, said)), winner, runner_up


@triton.jit
def _answer(
    best, second, winner, runner_up, weight, pooled, winners, row, inside,
    P: tl.constexpr, H: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """The rules' answers from what they pooled, which KEEP stores for the backward pass (both slots in one number)."""
    p = tl.arange(0, P)[None, :]
    dtype = weight.dtype.element_ty
    second = tl.where(second == float("-inf"), 0.0, second)
    if KEEP:
        tl.store(pooled + row * 2 * P + p, best.to(dtype), mask=inside)
        tl.store(pooled + row * 2 * P + P + p, second.to(dtype), mask=inside)
        tl.store(winners + row * P + p, (winner + 256 * runner_up).to(tl.int16), mask=inside)
    answer = tl.dot(best.to(dtype), _matrix(weight, P, 2 * H, 2 * H, 1))
    return tl.dot(second.to(dtype), _matrix(weight + P * 2 * H, P, 2 * H, 2 * H, 1), answer)


@triton.jit
def _grad_pooled(total, weight, P: tl.constexpr, H: tl.constexpr):
    """Gradients of the two pooled values from those of the answers."""
    best = tl.dot(total, _matrix(weight, 2 * H, P, 1, 2 * H))
    return best, tl.dot(total, _matrix(weight + P * 2 * H, 2 * H, P, 1, 2 * H))


@triton.jit
def rules_forward(
    spoken, weight, members, real, kind, pooled, winners, answers, B, G,
    D: tl.constexpr, P: tl.constexpr, H: tl.constexpr, BB: tl.constexpr, WIDTH: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """One rule: pool what its choices send, and answer."""
    HH: tl.constexpr = 2 * H
    g, b, inside = _block(G, B, BB)
    p, h = tl.arange(0, P)[None, :], tl.arange(0, HH)[None, :]
    best, second = tl.full((BB, P), float("-inf"), tl.float32), tl.full((BB, P), float("-inf"), tl.float32)
    winner, runner_up = tl.full((BB, P), NO_SLOT, tl.int32), tl.full((BB, P), NO_SLOT, tl.int32)
    for w in tl.static_range(WIDTH):
        row = tl.load(members + g * WIDTH + w) * B + b
        said = tl.load(spoken + row[:, None] * P + p, mask=inside, other=0.0).to(tl.float32)
        said = tl.where(tl.load(real + g * WIDTH + w) != 0, said, float("-inf"))
        best, second, winner, runner_up = _two_largest(best, second, winner, runner_up, said, w)
    of_kind = weight + tl.load(kind + g) * 2 * P * HH
    row = (g * B + b)[:, None]
    answer = _answer(best, second, winner, runner_up, of_kind, pooled, winners, row, inside, P, H, KEEP)
    tl.store(answers + row * HH + h, answer.to(answers.dtype.element_ty), mask=inside)


@triton.jit
def choices_forward(
    state, x, query, answers, rules, spread, relayed, of_variable, most, ends, V,
    choice, choice_bias, update, update_bias, readout, new_x, spoken, gate, scale, logits, B, C,
    D: tl.constexpr, P: tl.constexpr, H: tl.constexpr, BB: tl.constexpr, DEGREE: tl.constexpr,
    RELATED: tl.constexpr, KEEP: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    """One choice: gather the answers, update, normalise, read out, and send again unless it is the last step."""
    c, b, inside = _block(C, B, BB)
    d, p, h = tl.arange(0, D)[None, :], tl.arange(0, P)[None, :], tl.arange(0, H)[None, :]
    dtype = x.dtype.element_ty
    to_gate = _matrix(choice + P * D, D, H, 1, D)
    to_value = _matrix(choice + (P + H) * D, D, H, 1, D)
    to_state = _matrix(update, H, D, 1, H)
    gate_bias, value_bias = tl.load(choice_bias + P + h), tl.load(choice_bias + P + H + h)
    state_bias, out = tl.load(update_bias + d), tl.load(readout + d)
    to_spoken, spoken_bias = _matrix(choice, D, P, 1, D), tl.load(choice_bias + p)
    row = (c * B + b)[:, None]
    seen = tl.load(x + row * D + d, mask=inside, other=0.0)
    before = tl.load(state + row * D + d, mask=inside, other=0.0)
    asked = tl.load(query + row * D + d, mask=inside, other=0.0)
    gates = tl.dot(seen, to_gate) + gate_bias
    values = tl.dot(seen, to_value) + value_bias
    for j in tl.static_range(DEGREE):
        rule = (tl.load(rules + c * DEGREE + j) * B + b)[:, None] * 2 * H
        share = tl.load(spread + c * DEGREE + j)
        gates += share * tl.load(answers + rule + h, mask=inside, other=0.0).to(tl.float32)
        values += share * tl.load(answers + rule + H + h, mask=inside, other=0.0).to(tl.float32)
    if RELATED:
        for e in range(tl.load(most)):
            end = tl.load(of_variable + (c // V * ends + e) * B + b, mask=b < B, other=-1)
            here = (end >= 0)[:, None]
            relay = ((b * ends + end) * V + c % V)[:, None] * 2 * H
            gates += tl.load(relayed + relay + h, mask=here, other=0.0).to(tl.float32)
            values += tl.load(relayed + relay + H + h, mask=here, other=0.0).to(tl.float32)
    if KEEP:
        tl.store(gate + row * 2 * H + h, gates.to(dtype), mask=inside)
        tl.store(gate + row * 2 * H + H + h, values.to(dtype), mask=inside)
    hidden = gates * tl.sigmoid(gates) * values
    moved = tl.dot(hidden.to(dtype), to_state, before + state_bias)
    moved -= tl.sum(moved, 1)[:, None] / D
    inverse = tl.rsqrt(tl.sum(moved * moved, 1) / D + 1e-5)
    new = moved * inverse[:, None]
    tl.store(state + row * D + d, new, mask=inside)
    tl.store(logits + c * B + b, tl.sum(new * out, 1), mask=b < B)
    again = (new + asked.to(tl.float32)).to(dtype)
    if KEEP:
        tl.store(scale + c * B + b, inverse, mask=b < B)
    if KEEP or not LAST:
        tl.store(new_x + row * D + d, again, mask=inside)
    if not LAST:
        says = tl.dot(again, to_spoken) + spoken_bias
        tl.store(spoken + row * P + p, says.to(dtype), mask=inside)


@triton.jit
def choices_backward(
    grad_state, grad_logits, scale, x, query, gate, winners, grad_pooled, rules, slot,
    grad_relayed, of_variable, most, ends, V, choice, update, readout, grad_spoken, grad_moved, grad_own, hidden,
    B, C,
    D: tl.constexpr, P: tl.constexpr, H: tl.constexpr, BB: tl.constexpr, DEGREE: tl.constexpr,
    RELATED: tl.constexpr, LAST: tl.constexpr, FIRST: tl.constexpr,
):  # fmt: skip
    """One choice: back through what it sent after a step (not LAST), then through its update (not FIRST)."""
    c, b, inside = _block(C, B, BB)
    d, p, h = tl.arange(0, D)[None, :], tl.arange(0, P)[None, :], tl.arange(0, H)[None, :]
    dtype = x.dtype.element_ty
    out = tl.load(readout + d)
    from_spoken = _matrix(choice, P, D, D, 1)
    from_gate = _matrix(choice + P * D, H, D, D, 1)
    from_value = _matrix(choice + (P + H) * D, H, D, D, 1)
    from_state = _matrix(update, D, H, H, 1)
    row = (c * B + b)[:, None]
    grad = tl.load(grad_state + row * D + d, mask=inside, other=0.0)
    if not FIRST:
        seen = tl.load(x + row * D + d, mask=inside, other=0.0)
        asked = tl.load(query + row * D + d, mask=inside, other=0.0)
        gates = tl.load(gate + row * 2 * H + h, mask=inside, other=0.0).to(tl.float32)
        values = tl.load(gate + row * 2 * H + H + h, mask=inside, other=0.0).to(tl.float32)
    if not LAST:
        said = tl.zeros((BB, P), tl.float32)
        for j in tl.static_range(DEGREE):
            rule = (tl.load(rules + c * DEGREE + j) * B + b)[:, None]
            own = tl.load(slot + c * DEGREE + j)
            both = tl.load(winners + rule * P + p, mask=inside, other=0).to(tl.int32)
            best = tl.load(grad_pooled + rule * 2 * P + p, mask=inside, other=0.0).to(tl.float32)
            second = tl.load(grad_pooled + rule * 2 * P + P + p, mask=inside, other=0.0).to(tl.float32)
            said += tl.where(both % 256 == own, best, 0.0) + tl.where(both // 256 == own, second, 0.0)
        if RELATED:
            for e in range(tl.load(most)):
                end = tl.load(of_variable + (c // V * ends + e) * B + b, mask=b < B, other=-1)
                relay = ((b * ends + end) * V + c % V)[:, None] * P
                said += tl.load(grad_relayed + relay + p, mask=(end >= 0)[:, None], other=0.0).to(tl.float32)
        tl.store(grad_spoken + row * (P + 2 * H) + p, said.to(dtype), mask=inside)
        grad = tl.dot(said.to(dtype), from_spoken, grad)
    if not FIRST:
        new = seen.to(tl.float32) - asked.to(tl.float32)
        grad += tl.load(grad_logits + c * B + b, mask=b < B, other=0.0)[:, None] * out
        grad = grad - tl.sum(grad, 1)[:, None] / D - new * (tl.sum(grad * new, 1) / D)[:, None]
        grad *= tl.load(scale + c * B + b, mask=b < B, other=0.0)[:, None]
        tl.store(grad_moved + row * D + d, grad.to(dtype), mask=inside)
        grad_hidden = tl.dot(grad.to(dtype), from_state)
        opened = tl.sigmoid(gates)
        tl.store(hidden + row * H + h, (gates * opened * values).to(dtype), mask=inside)
        grad_gates = (grad_hidden * values * opened * (1 + gates * (1 - opened))).to(dtype)
        grad_values = (grad_hidden * gates * opened).to(dtype)
        tl.store(grad_own + row * (P + 2 * H) + P + h, grad_gates, mask=inside)
        tl.store(grad_own + row * (P + 2 * H) + P + H + h, grad_values, mask=inside)
        grad = tl.dot(grad_gates, from_gate, grad)
        grad = tl.dot(grad_values, from_value, grad)
    tl.store(grad_state + row * D + d, grad, mask=inside)


@triton.jit
def rules_backward(
    grad_own, weight, members, gather, kind, grad_answers, grad_pooled, B, G,
    D: tl.constexpr, P: tl.constexpr, H: tl.constexpr, BB: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """One rule: back from the gathered answers to the pooled values."""
    HH: tl.constexpr = 2 * H
    g, b, inside = _block(G, B, BB)
    p, h = tl.arange(0, P)[None, :], tl.arange(0, HH)[None, :]
    total = tl.zeros((BB, HH), tl.float32)
    for w in tl.static_range(WIDTH):
        row = (tl.load(members + g * WIDTH + w) * B + b)[:, None]
        share = tl.load(gather + g * WIDTH + w)
        total += share * tl.load(grad_own + row * (P + HH) + P + h, mask=inside, other=0.0).to(tl.float32)
    dtype = grad_answers.dtype.element_ty
    total = total.to(dtype)
    of_kind = weight + tl.load(kind + g) * 2 * P * HH
    row = (g * B + b)[:, None]
    tl.store(grad_answers + row * HH + h, total, mask=inside)
    best, second = _grad_pooled(total, of_kind, P, H)
    tl.store(grad_pooled + row * 2 * P + p, best.to(dtype), mask=inside)
    tl.store(grad_pooled + row * 2 * P + P + p, second.to(dtype), mask=inside)


@triton.jit
def _running(x, backwards: tl.constexpr):
    """Cumulative sums along the first axis, from the last row if backwards."""
    up = tl.cumsum(x, 0)
    return tl.sum(x, 0)[None, :] - up + x if backwards else up


@triton.jit
def relations_forward(
    spoken, weight, pooled, winners, relayed, ends, B, M, V,
    D: tl.constexpr, P: tl.constexpr, H: tl.constexpr, VV: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """One relation a < b of one query: row d is the rule {a >= d} + {b <= d}. Slots are v for a, V + v for b."""
    b, m = tl.program_id(0) // M, tl.program_id(0) % M
    small, large = tl.load(ends + b * 2 * M + m), tl.load(ends + b * 2 * M + M + m)
    d, p, h = tl.arange(0, VV)[:, None], tl.arange(0, P)[None, :], tl.arange(0, 2 * H)[None, :]
    real = tl.where(small >= 0, p, P) < P
    best, second = tl.full((VV, P), float("-inf"), tl.float32), tl.full((VV, P), float("-inf"), tl.float32)
    winner, runner_up = tl.full((VV, P), NO_SLOT, tl.int32), tl.full((VV, P), NO_SLOT, tl.int32)
    for side in tl.static_range(2):
        for v in range(V):
            row = ((large if side else small) * V + v).to(tl.int64) * B + b
            said = tl.load(spoken + row * P + p, mask=real, other=0.0).to(tl.float32)
            said = tl.where(v <= d if side else v >= d, said, float("-inf"))
            best, second, winner, runner_up = _two_largest(best, second, winner, runner_up, said, side * V + v)
    dtype = relayed.dtype.element_ty
    row = tl.program_id(0).to(tl.int64) * V + d
    answer = _answer(best, second, winner, runner_up, weight, pooled, winners, row, d < V, P, H, KEEP)
    answer = tl.where(d < V, answer, 0.0) / V
    row = (b.to(tl.int64) * 2 * M + m) * V + d
    # Choice (a, v) is in the rules d <= v, choice (b, v) in the rules d >= v.
    tl.store(relayed + row * 2 * H + h, _running(answer, False).to(dtype), mask=d < V)
    tl.store(relayed + (row + M * V) * 2 * H + h, _running(answer, True).to(dtype), mask=d < V)


@triton.jit
def relations_backward(
    grad_own, weight, winners, grad_related, grad_relayed, ends, B, M, V,
    D: tl.constexpr, P: tl.constexpr, H: tl.constexpr, VV: tl.constexpr,
):  # fmt: skip
    """One relation: back from what both of its variables gathered to what they sent."""
    b, m = tl.program_id(0) // M, tl.program_id(0) % M
    small, large = tl.load(ends + b * 2 * M + m), tl.load(ends + b * 2 * M + M + m)
    d, p, h = tl.arange(0, VV)[:, None], tl.arange(0, P)[None, :], tl.arange(0, 2 * H)[None, :]
    real = tl.where(small >= 0, d, V) < V
    grad_small = tl.load(grad_own + ((small * V + d).to(tl.int64) * B + b) * (P + 2 * H) + P + h, mask=real, other=0.0)
    grad_large = tl.load(grad_own + ((large * V + d).to(tl.int64) * B + b) * (P + 2 * H) + P + h, mask=real, other=0.0)
    total = _running(grad_small.to(tl.float32), True) + _running(grad_large.to(tl.float32), False)
    dtype = grad_related.dtype.element_ty
    total = tl.where(d < V, total / V, 0.0).to(dtype)
    row = tl.program_id(0).to(tl.int64) * V + d
    tl.store(grad_related + row * 2 * H + h, total, mask=d < V)
    best, second = _grad_pooled(total, weight, P, H)
    both = tl.load(winners + row * P + p, mask=d < V, other=0).to(tl.int32)
    to_small = tl.zeros((VV, P), tl.float32)
    to_large = tl.zeros((VV, P), tl.float32)
    for rule in range(V):
        of_rule = d == rule
        won = tl.sum(tl.where(of_rule, both, 0), 0)[None, :]
        grad_best = tl.sum(tl.where(of_rule, best, 0.0), 0)[None, :]
        grad_second = tl.sum(tl.where(of_rule, second, 0.0), 0)[None, :]
        first, other = won % 256, won // 256
        to_small += tl.where(first == d, grad_best, 0.0) + tl.where(other == d, grad_second, 0.0)
        to_large += tl.where(first == V + d, grad_best, 0.0) + tl.where(other == V + d, grad_second, 0.0)
    row = (b.to(tl.int64) * 2 * M + m) * V + d
    tl.store(grad_relayed + row * P + p, to_small.to(dtype), mask=d < V)
    tl.store(grad_relayed + (row + M * V) * P + p, to_large.to(dtype), mask=d < V)
