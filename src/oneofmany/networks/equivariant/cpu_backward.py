"""The gradient of what lies between the matrix products of a step, compiled with numba; arrays as in ``cpu_kernels``.

Every kernel adds in one order, so the same batch gives the same bits.
"""

from __future__ import annotations

import numpy as np

from oneofmany.networks.equivariant.cpu_kernels import compiled, sigmoid


@compiled
def normalise_back(state, change, bias, readout, of_logits, grad, of_bias, of_readout, slots, C, D):
    """From the gradient of the next state to that of state + change, both ``grad`` [rows, D].

    ``of_logits`` [slots, C] is the gradient of the logits; those of the bias and of the readout are added up.
    """
    row = np.empty(D, np.float32)
    for q in range(slots):
        for c in range(C):
            before, moved, own, logit = state[q * C + c], change[q * C + c], grad[q * C + c], of_logits[q, c]
            mean = np.float32(0)
            for i in range(D):
                row[i] = before[i] + (moved[i] + bias[i])
            for i in range(D):
                mean += row[i]
            mean /= np.float32(D)
            variance = np.float32(0)
            for i in range(D):
                variance += (row[i] - mean) * (row[i] - mean)
            scale = np.float32(1) / np.sqrt(variance / np.float32(D) + np.float32(1e-5))
            total, along = np.float32(0), np.float32(0)
            for i in range(D):
                row[i] = (row[i] - mean) * scale
                of_readout[i] += logit * row[i]
                own[i] += logit * readout[i]
            for i in range(D):
                total += own[i]
                along += own[i] * row[i]
            total /= np.float32(D)
            along /= np.float32(D)
            for i in range(D):
                own[i] = scale * (own[i] - total - row[i] * along)
                of_bias[i] += own[i]


@compiled
def gate_back(out, of_hidden, of_out, of_bias, rows, P, H):
    """From the gradient of ``hidden`` [rows, H] to that of the choices' own parts of ``out``."""
    for r in range(rows):
        own, open_, given = out[r, P:], of_hidden[r], of_out[r, P:]
        for i in range(H):
            s = sigmoid(own[i])
            given[i] = open_[i] * own[H + i] * s * (np.float32(1) + own[i] * (np.float32(1) - s))
            given[H + i] = open_[i] * own[i] * s
        for i in range(2 * H):
            of_bias[P + i] += given[i]


@compiled
def collect(of_out, at, every, all_sizes, weights, first, stride, of_said, slots, C, P):
    """From the gradient of the choices' own parts to that of the rules' answers: ``of_said`` [rules, 2H].

    ``weights`` [S, G, W] are those of a rule's answer at each of its choices.
    """
    H2 = of_said.shape[1]
    for q in range(slots):
        members, sizes, spread = every[at[q]], all_sizes[at[q]], weights[at[q]]
        for g in range(len(sizes)):
            row = of_said[first[g] + q * stride[g]]
            if sizes[g] == 0:
                row[:] = np.float32(0)
            for w in range(sizes[g]):
                own, weight = of_out[q * C + members[g, w], P:], spread[g, w]
                if w == 0:
                    for i in range(H2):
                        row[i] = weight * own[i]
                else:
                    for i in range(H2):
                        row[i] += weight * own[i]


@compiled
def pool_back(out, at, every, all_sizes, first, stride, bias, pooled, of_pooled, of_out, of_bias, slots, C, P):
    """From the gradient of ``pooled`` to that of what the choices say; of equal choices the first is the largest."""
    best_left, second_left = np.empty(P, np.float32), np.empty(P, np.float32)
    zero, one = np.float32(0), np.float32(1)
    for r in range(slots * C):
        for p in range(P):
            of_out[r, p] = zero
    for q in range(slots):
        members, sizes = every[at[q]], all_sizes[at[q]]
        for g in range(len(sizes)):
            row, grad = pooled[first[g] + q * stride[g]], of_pooled[first[g] + q * stride[g]]
            best, second, of_best, of_second = row[:P], row[P:], grad[:P], grad[P:]
            best_left[:] = one
            second_left[:] = zero if sizes[g] == 1 else one  # the second of a single choice is a constant
            for w in range(sizes[g]):
                said, given = out[q * C + members[g, w]], of_out[q * C + members[g, w]]
                for p in range(P):
                    value = said[p] + bias[p]
                    largest = best_left[p] if value == best[p] else zero
                    best_left[p] -= largest
                    runner_up = second_left[p] * (one - largest) if value == second[p] else zero
                    second_left[p] -= runner_up
                    given[p] += largest * of_best[p] + runner_up * of_second[p]
    for r in range(slots * C):
        for p in range(P):
            of_bias[p] += of_out[r, p]
