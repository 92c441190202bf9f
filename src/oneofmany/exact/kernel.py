"""The search over choices and rules, compiled with numba.

The state is one bitset per rule (in 64-bit words) of the choices that are still open. Taking a choice removes the other
choices of its rules. An exactly-one rule with one open choice takes it, and with none it fails. When nothing more
follows, the search branches on an exactly-one rule with the fewest open choices: first it takes a choice, then it
removes that choice from the same state. So the second half of a branch needs no copy of the state.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from oneofmany.exact.random import below

Structure = namedtuple(
    "Structure",
    "values variable_of exact single members places_of_choice places words_of_rule rule_of_word wide_exact forced",
)
"""A problem's rules as arrays.

Rules of at most 64 choices have one word each: first the ``exact`` exactly-one rules, then the at-most-one rules, up to
word ``single``. The words of wider rules follow: those of wide rule g are words_of_rule[g] to words_of_rule[g+1], and
word w belongs to rule rule_of_word[w - single]; wide_exact: bool. members: uint32 [W, 64], the choice behind every bit.
places: uint32 [E], word * 64 + bit; those of choice c are places_of_choice[c] to places_of_choice[c+1]. values: V.
variable_of: uint32 [C]. forced: uint32 [N], the choices that are the only one of an exactly-one rule from the start.
Indices are unsigned because the compiler would add a test for negative signed ones.
"""

NONE = np.uint32(2**32 - 1)
NO_WORD = np.uint64(2**64 - 1)
FAILED = -1


def _unary_intrinsic(emit: Any) -> Any:
    """Return a function of one uint64 that compiles to a single machine instruction."""

    @intrinsic
    def function(typing_context: Any, word: Any = None) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return emit(builder, arguments[0])

        return types.uint64(types.uint64), generate

    return function


_lowest_bit = _unary_intrinsic(lambda builder, word: builder.cttz(word, ir.Constant(ir.IntType(1), 1)))
_number_of_bits = _unary_intrinsic(lambda builder, word: builder.ctpop(word))


@njit(cache=True, nogil=True)
def _word(place):
    return np.uint64(place) >> np.uint64(6)


@njit(cache=True, nogil=True)
def _bit(place):
    return np.uint64(1) << (np.uint64(place) & np.uint64(63))


@njit(cache=True, nogil=True)
def _is_open(choice, places_of_choice, places, open_words):
    place = places[places_of_choice[choice]]
    return (open_words[_word(place)] & _bit(place)) != 0


@njit(cache=True, nogil=True)
def _only_of_wide(s, word, open_words):
    """The only open choice of this word's wide rule: FAILED if none is, NONE if several are or it is at-most-one."""
    rule = s.rule_of_word[word - s.single]
    found = np.int64(FAILED)
    if not s.wide_exact[rule]:
        return np.int64(NONE)
    for other in range(s.words_of_rule[rule], s.words_of_rule[rule + np.uint32(1)]):
        bits = open_words[other]
        if bits:
            if found != FAILED or bits & (bits - np.uint64(1)):
                return np.int64(NONE)
            found = np.int64(s.members[other, _lowest_bit(bits)])
    return found


@njit(cache=True, nogil=True)
def _remove(choice, skip, s, open_words, done, queue, tail):
    """Remove an open choice from its words except ``skip``; queue what follows. Returns the queue's tail or FAILED."""
    places_of_choice, places, members, variable_of = s.places_of_choice, s.places, s.members, s.variable_of
    for entry in range(places_of_choice[choice], places_of_choice[choice + np.uint32(1)]):
        place = places[entry]
        word = _word(place)
        if word == skip:
            continue
        left = open_words[word] & ~_bit(place)
        open_words[word] = left
        if word < s.exact:
            if left & (left - np.uint64(1)):
                continue
            if not left:
                return FAILED
            only = members[word, _lowest_bit(left)]
        elif word < s.single:
            continue
        else:
            found = _only_of_wide(s, word, open_words)
            if found == FAILED:
                return FAILED
            if found == NONE:
                continue
            only = np.uint32(found)
        if not done[variable_of[only]]:
            queue[tail] = only
            tail += 1
    return tail


@njit(cache=True, nogil=True)
def _propagate(s, open_words, done, queue, tail, assigned, related, relations):
    """Take all queued choices and all that follow. Returns how many were taken, or FAILED."""
    places_of_choice, places, members, variable_of = s.places_of_choice, s.places, s.members, s.variable_of
    head = taken = 0
    V = s.values
    while head < tail:
        choice = queue[head]
        head += 1
        variable = variable_of[choice]
        if not _is_open(choice, places_of_choice, places, open_words):
            return FAILED
        if done[variable]:
            continue
        done[variable] = 1
        taken += 1
        value = np.int64(choice) - np.int64(variable) * V
        assigned[variable] = value
        for entry in range(places_of_choice[choice], places_of_choice[choice + np.uint32(1)]):
            place = places[entry]
            own = _word(place)
            others = open_words[own] & ~_bit(place)
            open_words[own] = _bit(place)
            while others:
                other = members[own, _lowest_bit(others)]
                others &= others - np.uint64(1)
                tail = _remove(other, own, s, open_words, done, queue, tail)
                if tail == FAILED:
                    return FAILED
            if own >= s.single:
                tail = _remove_rest_of_wide(own, s, open_words, done, queue, tail)
                if tail == FAILED:
                    return FAILED
        for i in range(related[variable], related[variable + 1]):
            other_variable, is_larger = relations[i, 0], relations[i, 1]
            low, high = (0, value + 1) if is_larger else (value, V)
            for excluded in range(other_variable * V + low, other_variable * V + high):
                tail = _remove_if_open(np.uint32(excluded), s, open_words, done, queue, tail)
                if tail == FAILED:
                    return FAILED
    return taken


@njit(cache=True, nogil=True)
def _remove_rest_of_wide(own, s, open_words, done, queue, tail):
    """Remove the choices of a wide rule's other words, after one of word ``own`` was taken."""
    rule = s.rule_of_word[own - s.single]
    for word in range(s.words_of_rule[rule], s.words_of_rule[rule + np.uint32(1)]):
        while word != own and open_words[word]:
            tail = _remove(s.members[word, _lowest_bit(open_words[word])], NO_WORD, s, open_words, done, queue, tail)
            if tail == FAILED:
                return FAILED
    return tail


@njit(cache=True, nogil=True)
def _remove_if_open(choice, s, open_words, done, queue, tail):
    if _is_open(choice, s.places_of_choice, s.places, open_words):
        return _remove(choice, NO_WORD, s, open_words, done, queue, tail)
    return tail


@njit(cache=True, nogil=True)
def _branch(s, open_words, undecided, shuffled, random):
    """A choice to try, from an exactly-one rule with the fewest open choices, and the first undecided word.

    All exactly-one words below ``undecided`` are decided. Every variable has an exactly-one rule, so as long as a
    variable is open, one of these rules is undecided. Wide rules are considered only if all others are decided.
    """
    best, fewest, first = np.int64(-1), np.int64(1 << 30), undecided
    for word in range(undecided, np.int64(s.exact)):
        bits = open_words[word]
        if bits & (bits - np.uint64(1)):
            if best < 0:
                first = word
            left = np.int64(_number_of_bits(bits))
            if left < fewest:
                best, fewest = word, left
                if left == 2:
                    break
    end = best + 1
    if best < 0:
        first = np.int64(s.exact)
        for rule in range(len(s.wide_exact)):
            if s.wide_exact[rule]:
                left = np.int64(0)
                for word in range(s.words_of_rule[rule], s.words_of_rule[rule + 1]):
                    left += np.int64(_number_of_bits(open_words[word]))
                if 1 < left < fewest:
                    best, end, fewest = np.int64(s.words_of_rule[rule]), np.int64(s.words_of_rule[rule + 1]), left
    skip = below(random, fewest) if shuffled else 0
    for word in range(best, end):
        rest = open_words[word]
        while rest:
            if skip == 0:
                return s.members[word, _lowest_bit(rest)], first
            skip -= 1
            rest &= rest - np.uint64(1)
    return NONE, first


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
            fill[a] += 1
            relations[fill[b], 0], relations[fill[b], 1] = a, 0
            fill[b] += 1


@njit(cache=True, nogil=True)
def _narrow(s, query, pairs, open_words, done, queue, tail):
    """Remove what the relations alone exclude: a < b raises the lowest value of b and lowers the highest value of a."""
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
                tail = _remove_if_open(np.uint32(variable * V + value), s, open_words, done, queue, tail)
                if tail == FAILED:
                    return FAILED
    return tail


@njit(cache=True, nogil=True)
def search(s, full_words, queries, pairs, limit, shuffled, seeds, total, offsets, solutions):
    """Enumerate the solutions of every query, up to ``limit`` per query.

    queries: uint8 [Q, R]. pairs: int16 [Q, M, 2]. full_words: uint64 [W], the state before any given. total: int64 [Q],
    filled in. solutions: uint8 [S, R], filled in: rows offsets[q] to offsets[q+1] are the listed solutions of query q,
    a uniform sample if there are more (reservoir sampling). seeds: uint64 [Q], for the order and the sample.
    """
    variables = queries.shape[1]
    depth = variables + 1
    open_words = np.empty((depth, len(full_words)), np.uint64)
    done = np.empty((depth, variables), np.uint8)
    left = np.empty(depth, np.int64)  # the number of variables that are not done
    undecided = np.empty(depth, np.int64)
    tried = np.empty(depth, np.uint32)
    # Every removal queues at most one choice for each place of a choice, and nothing is removed twice in one pass.
    queue = np.empty(len(s.places) + len(s.forced) + variables, np.uint32)
    assigned = np.empty(variables, np.uint8)
    related = np.empty(variables + 1, np.int64)
    relations = np.empty((2 * pairs.shape[1], 2), np.int64)
    random = np.empty(1, np.uint64)

    for q in range(len(queries)):
        open_words[0] = full_words
        done[0] = 0
        left[0] = variables
        undecided[0] = 0
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
        if related[variables]:
            tail = _narrow(s, queries[q], pairs[q], open_words[0], done[0], queue, tail)
        found = 0
        room = offsets[q + 1] - offsets[q]
        level = 0
        while True:
            taken = FAILED
            if tail != FAILED:
                taken = _propagate(s, open_words[level], done[level], queue, tail, assigned, related, relations)
            if taken != FAILED:
                left[level] -= taken
                if left[level]:
                    choice, first = _branch(s, open_words[level], undecided[level], shuffled, random)
                    undecided[level] = first
                    tried[level] = choice
                    open_words[level + 1] = open_words[level]
                    done[level + 1] = done[level]
                    left[level + 1] = left[level]
                    undecided[level + 1] = first
                    level += 1
                    queue[0] = choice
                    tail = 1
                    continue
                slot = found if found < room else (below(random, found + 1) if room else 0)
                if slot < room:
                    for variable in range(variables):
                        solutions[offsets[q] + slot, variable] = assigned[variable] + 1
                found += 1
                if found >= limit:
                    break
            level -= 1
            if level < 0:
                break
            tail = _remove(tried[level], NO_WORD, s, open_words[level], done[level], queue, 0)
        total[q] = found
