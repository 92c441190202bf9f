"""The search over choices and rules, compiled with numba.

The state is one bitset per rule (in 64-bit words) of the choices that are still open, and their number. Taking a choice
removes the other choices of its rules; an exactly-one rule with one open choice takes it, with none it fails. When
nothing follows any more, the search branches on the exactly-one rule with the fewest open choices: first with a choice
taken, then, in the same state, with that choice removed. So no state is copied for the second half of a branch.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from oneofmany.exact.random import below

Structure = namedtuple("Structure", "values exact words_of_rule members rules_of_choice rules words bits forced")
"""A problem's rules as arrays.

values: V. exact: uint8 [G]. words_of_rule: int32 [G+1], the words of rule g are words_of_rule[g] to
words_of_rule[g+1]. members: int32 [W, 64], the choice behind every bit of a word. rules_of_choice: int32 [C+1], the
entries of choice c in the next three arrays: rules int32 [E], words int32 [E] and bits uint64 [E]. forced: int64 [N],
the choices that are the only one of an exactly-one rule from the start.
"""

FAILED = -1


@intrinsic
def _lowest_bit(typing_context: Any, word: Any = None) -> Any:
    """Index of the lowest set bit of a non-zero uint64; calls give the word alone."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True)
def _remove(choice, s, open_words, open_count, done, queue, tail):
    """Remove an open choice from all its rules; queue what follows. Returns the queue's tail, or FAILED."""
    for entry in range(s.rules_of_choice[choice], s.rules_of_choice[choice + 1]):
        rule = s.rules[entry]
        open_words[s.words[entry]] &= ~s.bits[entry]
        open_count[rule] -= 1
        left = open_count[rule]
        if left <= 1 and s.exact[rule]:
            if left == 0:
                return FAILED
            for word in range(s.words_of_rule[rule], s.words_of_rule[rule + 1]):
                if open_words[word]:
                    only = s.members[word, _lowest_bit(open_words[word])]
                    if not done[only // s.values]:
                        queue[tail] = only
                        tail += 1
                    break
    return tail


@njit(cache=True, nogil=True)
def _propagate(s, open_words, open_count, done, queue, tail, assigned, related, relations):
    """Take all queued choices and whatever follows. Returns whether the state is still consistent."""
    head = 0
    V = s.values
    while head < tail:
        choice = queue[head]
        head += 1
        variable = choice // V
        if done[variable]:
            if assigned[variable] != choice - variable * V:
                return False
            continue
        first = s.rules_of_choice[choice]
        if not open_words[s.words[first]] & s.bits[first]:
            return False
        done[variable] = 1
        assigned[variable] = choice - variable * V
        for entry in range(first, s.rules_of_choice[choice + 1]):
            rule = s.rules[entry]
            for word in range(s.words_of_rule[rule], s.words_of_rule[rule + 1]):
                others = open_words[word]
                if word == s.words[entry]:
                    others &= ~s.bits[entry]
                while others:
                    other = s.members[word, _lowest_bit(others)]
                    others &= others - np.uint64(1)
                    tail = _remove(other, s, open_words, open_count, done, queue, tail)
                    if tail == FAILED:
                        return False
        for i in range(related[variable], related[variable + 1]):
            other, is_larger = relations[i, 0], relations[i, 1]
            value = choice - variable * V
            low, high = (0, value + 1) if is_larger else (value, V)
            for excluded in range(other * V + low, other * V + high):
                entry = s.rules_of_choice[excluded]
                if open_words[s.words[entry]] & s.bits[entry]:
                    tail = _remove(excluded, s, open_words, open_count, done, queue, tail)
                    if tail == FAILED:
                        return False
    return True


@njit(cache=True, nogil=True)
def _branch(s, open_words, open_count, shuffled, random):
    """A choice to try, from the exactly-one rule with the fewest open choices; FAILED if every rule is decided."""
    best, fewest = FAILED, 1 << 30
    for rule in range(len(s.exact)):
        left = open_count[rule]
        if 1 < left < fewest and s.exact[rule]:
            best, fewest = rule, left
            if left == 2:
                break
    if best == FAILED:
        return FAILED
    skip = below(random, fewest) if shuffled else 0
    for word in range(s.words_of_rule[best], s.words_of_rule[best + 1]):
        rest = open_words[word]
        while rest:
            if skip == 0:
                return s.members[word, _lowest_bit(rest)]
            skip -= 1
            rest &= rest - np.uint64(1)
    return FAILED


@njit(cache=True, nogil=True)
def _relations_by_variable(pairs, variables, related, relations):
    """Index pairs a < b by variable: ``related`` [R+1], ``relations`` [2M, 2] of (other variable, other is larger)."""
    related[:] = 0
    for m in range(len(pairs)):
        if pairs[m, 0] >= 0:
            related[pairs[m, 0] + 1] += 1
            related[pairs[m, 1] + 1] += 1
    for variable in range(variables):
        related[variable + 1] += related[variable]
    fill = related.copy()
    for m in range(len(pairs)):
        a, b = pairs[m, 0], pairs[m, 1]
        if a >= 0:
            relations[fill[a], 0], relations[fill[a], 1] = b, 1
            relations[fill[b], 0], relations[fill[b], 1] = a, 0
            fill[a] += 1
            fill[b] += 1


@njit(cache=True, nogil=True)
def _narrow(s, query, pairs, open_words, open_count, done, queue, tail):
    """Remove what the relations alone exclude: along a < b the lowest and highest possible values rise and fall."""
    V = s.values
    low = np.zeros(len(query), np.int64)
    high = np.full(len(query), V - 1)
    for variable in range(len(query)):
        if query[variable]:
            low[variable] = high[variable] = query[variable] - 1
    changed = True
    while changed:
        changed = False
        for m in range(len(pairs)):
            a, b = pairs[m, 0], pairs[m, 1]
            if a >= 0:
                if low[b] <= low[a]:
                    low[b] = low[a] + 1
                    changed = True
                if high[a] >= high[b]:
                    high[a] = high[b] - 1
                    changed = True
                if low[b] > high[b] or low[a] > high[a]:
                    return FAILED
    for variable in range(len(query)):
        for value in range(V):
            if value < low[variable] or value > high[variable]:
                entry = s.rules_of_choice[variable * V + value]
                if open_words[s.words[entry]] & s.bits[entry]:
                    tail = _remove(variable * V + value, s, open_words, open_count, done, queue, tail)
                    if tail == FAILED:
                        return FAILED
    return tail


@njit(cache=True, nogil=True)
def search(s, full_words, full_count, queries, pairs, limit, shuffled, seeds, total, offsets, solutions):
    """Enumerate the solutions of every query, each up to ``limit``.

    queries: uint8 [Q, R]. pairs: int16 [Q, M, 2]. full_words, full_count: the state before any given. total: int64 [Q],
    filled in. solutions: uint8 [S, R], where query q's listed solutions go to rows offsets[q] to offsets[q+1]; if it
    has more, a uniform sample of them stays (reservoir sampling). seeds: uint64 [Q], for order and sample.
    """
    variables = queries.shape[1]
    depth = variables + 1
    open_words = np.empty((depth, len(full_words)), np.uint64)
    open_count = np.empty((depth, len(full_count)), np.int16)
    done = np.empty((depth, variables), np.uint8)
    tried = np.empty(depth, np.int64)
    # Every removal queues at most one choice for each rule of a choice, and nothing is removed twice in one pass.
    queue = np.empty(len(s.rules) + len(s.forced) + variables, np.int64)
    assigned = np.empty(variables, np.int64)
    related = np.empty(variables + 1, np.int64)
    relations = np.empty((2 * pairs.shape[1], 2), np.int64)
    random = np.empty(1, np.uint64)

    for q in range(len(queries)):
        open_words[0] = full_words
        open_count[0] = full_count
        done[0] = 0
        random[0] = seeds[q]
        _relations_by_variable(pairs[q], variables, related, relations)
        tail = 0
        for choice in s.forced:
            queue[tail] = choice
            tail += 1
        for variable in range(variables):
            if queries[q, variable]:
                queue[tail] = variable * s.values + queries[q, variable] - 1
                tail += 1
        consistent = True
        if related[variables]:
            tail = _narrow(s, queries[q], pairs[q], open_words[0], open_count[0], done[0], queue, tail)
            consistent = tail != FAILED
        found = 0
        room = offsets[q + 1] - offsets[q]
        level = 0
        consistent = consistent and _propagate(
            s, open_words[0], open_count[0], done[0], queue, tail, assigned, related, relations
        )
        while True:
            choice = FAILED
            if consistent:
                choice = _branch(s, open_words[level], open_count[level], shuffled, random)
                if choice == FAILED:  # every rule is decided: a solution
                    slot = found if found < room else (below(random, found + 1) if room else 0)
                    if slot < room:
                        for variable in range(variables):
                            solutions[offsets[q] + slot, variable] = assigned[variable] + 1
                    found += 1
                    if found >= limit:
                        break
            if choice != FAILED:
                tried[level] = choice
                open_words[level + 1] = open_words[level]
                open_count[level + 1] = open_count[level]
                done[level + 1] = done[level]
                level += 1
                queue[0] = choice
                tail = 1
            else:
                level -= 1
                if level < 0:
                    break
                tail = _remove(tried[level], s, open_words[level], open_count[level], done[level], queue, 0)
                if tail == FAILED:
                    consistent = False
                    continue
            consistent = _propagate(
                s, open_words[level], open_count[level], done[level], queue, tail, assigned, related, relations
            )
        total[q] = found
