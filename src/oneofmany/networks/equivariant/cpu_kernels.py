"""What lies between the matrix products of a step of the equivariant network, compiled with numba.

Rows of choices are ``slot * C + choice``: a slot holds one query, whose rules are those of structure ``at[slot]``.
``out`` [rows, P + 2H] is the product of the choices without bias: what they say to their rules, then their own part of
the update. A rule's row is ``first[g] + slot * stride[g]``, because the rules of a kind are together. The innermost
loops run over channels, so the compiler vectorises them. A row is taken from a whole array: after a slice of columns
the compiler would gather number by number. Sums may be reordered (fastmath), NaN and infinity keep their meaning.
A loop that sums up writes nothing else: whether a loop that also writes is vectorised can depend on where its arrays
are, and the order of a sum with it.
"""

from __future__ import annotations

import numpy as np

from oneofmany.compiled import njit

AT_ONCE = 4
"""A choice gathers the answers of this many rules at a time: the columns of its table are a multiple of it."""

compiled = njit(nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz", "arcp"})


@compiled
def pool(out, at, every, all_sizes, first, stride, bias, pooled, slots, C, P):
    """The two largest over each rule's choices, plus the bias: pooled [rows, 2P]. The second of a single one is 0."""
    for q in range(slots):
        choices, members, sizes = out[q * C : (q + 1) * C], every[at[q]], all_sizes[at[q]]
        for g in range(len(sizes)):
            if sizes[g] == 0:  # padding: nobody reads its row
                continue
            row = pooled[first[g] + q * stride[g]]
            best, second = row[:P], row[P:]
            a = choices[members[g, 0]]
            if sizes[g] == 1:
                for p in range(P):
                    best[p] = a[p] + bias[p]
                    second[p] = np.float32(0)
                continue
            b = choices[members[g, 1]]
            for p in range(P):
                best[p] = max(a[p], b[p])
                second[p] = min(a[p], b[p])
            for w in range(2, sizes[g] - 1, 2):
                a, b = choices[members[g, w]], choices[members[g, w + 1]]
                for p in range(P):
                    high, low = max(a[p], b[p]), min(a[p], b[p])
                    second[p] = max(max(second[p], low), min(best[p], high))
                    best[p] = max(best[p], high)
            if sizes[g] % 2:
                a = choices[members[g, sizes[g] - 1]]
                for p in range(P):
                    second[p] = max(second[p], min(best[p], a[p]))
                    best[p] = max(best[p], a[p])
            for p in range(P):
                best[p] += bias[p]
                second[p] += bias[p]


@compiled
def pool_relations(out, relations, bias, pooled, slots, C, V, P):
    """The two largest over {a >= d} + {b <= d} for each relation a < b and value d: pooled [slots * M * V, 2P]."""
    M = relations.shape[1]
    largest, next_largest = np.empty(P, np.float32), np.empty(P, np.float32)
    for q in range(slots):
        choices = out[q * C : (q + 1) * C]
        for m in range(M):
            small, large = relations[q, m]
            if small < 0:  # padding: nobody reads its rows
                continue
            rows = pooled[(q * M + m) * V : (q * M + m + 1) * V]
            for d in range(V - 1, -1, -1):
                a = choices[small * V + d]
                if d == V - 1:
                    for p in range(P):
                        rows[d, p] = a[p]
                        rows[d, P + p] = -np.inf
                else:
                    for p in range(P):
                        rows[d, P + p] = max(rows[d + 1, P + p], min(rows[d + 1, p], a[p]))
                        rows[d, p] = max(rows[d + 1, p], a[p])
            largest[:], next_largest[:] = -np.inf, -np.inf
            for d in range(V):
                b = choices[large * V + d]
                for p in range(P):
                    next_largest[p] = max(next_largest[p], min(largest[p], b[p]))
                    largest[p] = max(largest[p], b[p])
                    below = max(rows[d, P + p], next_largest[p])
                    rows[d, P + p] = max(below, min(rows[d, p], largest[p])) + bias[p]
                    rows[d, p] = max(rows[d, p], largest[p]) + bias[p]


@compiled
def spread_relations(answers, relations, out, slots, C, V, P):
    """Add the answers [slots * M * V, 2H], divided by V: choice (a, v) is in the rules d <= v, (b, v) in d >= v."""
    M, H2 = relations.shape[1], answers.shape[1]
    share = np.float32(1) / np.float32(V)
    total = np.empty(H2, np.float32)
    for q in range(slots):
        for m in range(M):
            small, large = relations[q, m]
            if small < 0:
                continue
            rows = answers[(q * M + m) * V : (q * M + m + 1) * V]
            total[:] = 0
            for v in range(V):
                own = out[q * C + small * V + v, P:]
                for i in range(H2):
                    total[i] += share * rows[v, i]
                    own[i] += total[i]
            total[:] = 0
            for v in range(V - 1, -1, -1):
                own = out[q * C + large * V + v, P:]
                for i in range(H2):
                    total[i] += share * rows[v, i]
                    own[i] += total[i]


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def sigmoid(x):
    """(1 + tanh(x / 2)) / 2 by a rational function with coefficients of float32: within 3e-7, and it vectorises."""
    y = min(max(x * np.float32(0.5), np.float32(-7.90531110763549805)), np.float32(7.90531110763549805))
    z = y * y
    over = np.float32(-2.76076847742355e-16)
    over = over * z + np.float32(2.00018790482477e-13)
    over = over * z + np.float32(-8.60467152213735e-11)
    over = over * z + np.float32(5.12229709037114e-08)
    over = over * z + np.float32(1.48572235717979e-05)
    over = over * z + np.float32(6.37261928875436e-04)
    over = over * z + np.float32(4.89352455891786e-03)
    under = np.float32(1.19825839466702e-06)
    under = under * z + np.float32(1.18534705686654e-04)
    under = under * z + np.float32(2.26843463243900e-03)
    under = under * z + np.float32(4.89352518554385e-03)
    return np.float32(0.5) + np.float32(0.5) * (y * over / under)


@compiled
def gate(out, answers, at, every, weights, first, stride, bias, hidden, slots, C, P, H):
    """Add the answers of each choice's rules to its own part, and open the gate: hidden [rows, H]."""
    nothing = np.zeros(2 * H, np.float32)
    for q in range(slots):
        rules, weight = every[at[q]], weights[at[q]]
        for c in range(C):
            own, gated = out[q * C + c, P:], hidden[q * C + c]
            for j in range(0, rules.shape[1], AT_ONCE):
                r, s, t, u = rules[c, j], rules[c, j + 1], rules[c, j + 2], rules[c, j + 3]
                k, l, m, n = weight[c, j], weight[c, j + 1], weight[c, j + 2], weight[c, j + 3]  # noqa: E741
                a, b = answers[first[r] + q * stride[r]], answers[first[s] + q * stride[s]]
                d, e = answers[first[t] + q * stride[t]], answers[first[u] + q * stride[u]]
                once = bias if j == 0 else nothing
                for i in range(2 * H):
                    own[i] += once[i] + k * a[i] + l * b[i] + m * d[i] + n * e[i]
            for i in range(H):
                gated[i] = own[i] * sigmoid(own[i]) * own[H + i]


@compiled
def weigh(logits, at, rules, first, variable, weights, share, low, high, kind, told, said, out, slots, C, V, P):
    """Add what rules with weights and bounds tell the choices (``sums``) to their own part of ``out``.

    logits [slots, C] give the belief. told [kinds, C, features] is scratch; said [kinds, features, 2H] are the weights.
    """
    belief = np.empty(C, np.float32)
    one = np.float32(1)
    for q in range(slots):
        s = at[q]
        for r in range(C // V):
            own = logits[q, r * V : (r + 1) * V]
            largest, total = own.max(), np.float32(0)
            for v in range(V):
                belief[r * V + v] = np.exp(own[v] - largest)
            for v in range(V):
                total += belief[r * V + v]
            for v in range(V):
                belief[r * V + v] /= total
        told[:] = 0
        for l in range(rules[s]):  # noqa: E741
            whole = np.float32(0)
            for n in range(first[s, l], first[s, l + 1]):
                for v in range(V):
                    whole += belief[variable[s, n] * V + v] * weights[s, n, v]
            for n in range(first[s, l], first[s, l + 1]):
                others = whole
                for v in range(V):
                    others -= belief[variable[s, n] * V + v] * weights[s, n, v]
                for v in range(V):
                    cell, weight = told[kind[s, l], variable[s, n] * V + v], weights[s, n, v]
                    above, below = high[s, l] - others - weight, others + weight - low[s, l]
                    cell[0] += share[s, n] * weight
                    cell[1] += share[s, n] * (above / (one + abs(above)))
                    cell[2] += share[s, n] * (below / (one + abs(below)))
                    cell[3] += share[s, n] * max(-above, np.float32(0))
                    cell[4] += share[s, n] * max(-below, np.float32(0))
        for k in range(len(told)):
            a, b, d, e, f = said[k, 0], said[k, 1], said[k, 2], said[k, 3], said[k, 4]
            for c in range(C):
                own, cell = out[q * C + c, P:], told[k, c]
                t, u, w, x, y = cell[0], cell[1], cell[2], cell[3], cell[4]
                for i in range(len(own)):
                    own[i] += t * a[i] + u * b[i] + w * d[i] + x * e[i] + y * f[i]


@compiled
def normalise(state, change, bias, query, x, readout, logits, slots, C, D):
    """Normalise state + change, add the query for the next step (``x``), and read the logits [slots, C]."""
    for q in range(slots):
        for c in range(C):
            row, moved, asked, seen = state[q * C + c], change[q * C + c], query[q * C + c], x[q * C + c]
            mean = np.float32(0)
            for i in range(D):
                row[i] += moved[i] + bias[i]
            for i in range(D):
                mean += row[i]
            mean /= np.float32(D)
            variance = np.float32(0)
            for i in range(D):
                variance += (row[i] - mean) * (row[i] - mean)
            scale = np.float32(1) / np.sqrt(variance / np.float32(D) + np.float32(1e-5))
            logit = np.float32(0)
            for i in range(D):
                row[i] = (row[i] - mean) * scale
                seen[i] = row[i] + asked[i]
            for i in range(D):
                logit += row[i] * readout[i]
            logits[q, c] = logit


@compiled
def watch(logits, answers, changed, slots, R, V):
    """Note which queries' answers [slots, R] have changed."""
    for q in range(slots):
        for r in range(R):
            taken = 0
            for v in range(1, V):
                if logits[q, r * V + v] > logits[q, r * V + taken]:
                    taken = v
            if answers[q, r] != taken:
                answers[q, r] = taken
                changed[q] = True
