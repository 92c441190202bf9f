"""The search over choices and rules, compiled with numba.

The state is one bitset per rule (in 64-bit words) of the choices that are still open. Taking a choice removes the other
choices of its rules. An exactly-one rule with one open choice takes it, and with none it fails. When nothing more
follows, the search branches on an exactly-one rule with the fewest open choices: first it takes a choice, then it
removes that choice from the same state. So the second half of a branch needs no copy of the state.

Rules with weights and bounds (``sums``) exclude choices whenever nothing more follows from the others. The search is
compiled without them for problems that have none.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from oneofmany.compiled import njit
from oneofmany.exact.bits import lowest_bit, number_of_bits
from oneofmany.exact.random import below
from oneofmany.exact.relations import UNEQUAL, narrow_ranges, relations_by_variable
from oneofmany.exact.sums import excluded_by_sums

Structure = namedtuple(
    "Structure",
    "values variable_of exact single members places_of_choice places words_of_rule rule_of_word wide_exact forced "
    "unequal",
)
"""A problem's rules as arrays.

Rules of at most 64 choices have one word each: first the ``exact`` exactly-one rules, then the at-most-one rules, up to
word ``single``. The words of wider rules follow: those of wide rule g are words_of_rule[g] to words_of_rule[g+1], and
word w belongs to rule rule_of_word[w - single]; wide_exact: bool. members: uint32 [W, 64], the choice behind every bit.
places: uint32 [E], word * 64 + bit; those of choice c are places_of_choice[c] to places_of_choice[c+1]. values: V.
variable_of: uint32 [C]. forced: uint32 [N], the choices that are the only one of an exactly-one rule from the start.
unequal: bool, relations are a != b and not a < b.
Indices are unsigned because the compiler would add a test for negative signed ones.
"""

NONE = np.uint32(2**32 - 1)
NO_WORD = np.uint64(2**64 - 1)
FAILED = -1
LOOK = 64
"""Branches of a search between two looks at the flag that stops it."""
IN_ORDER, SHUFFLED, ANY_RULE = 0, 1, 2
"""The order of a search: fixed; values at random; values, and rules among equals, at random."""


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
            found = np.int64(s.members[other, lowest_bit(bits)])
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
            only = members[word, lowest_bit(left)]
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
                other = members[own, lowest_bit(others)]
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
            if is_larger == UNEQUAL:
                low = value
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
            tail = _remove(s.members[word, lowest_bit(open_words[word])], NO_WORD, s, open_words, done, queue, tail)
            if tail == FAILED:
                return FAILED
    return tail


@njit(cache=True, nogil=True)
def _remove_if_open(choice, s, open_words, done, queue, tail):
    if _is_open(choice, s.places_of_choice, s.places, open_words):
        return _remove(choice, NO_WORD, s, open_words, done, queue, tail)
    return tail


@njit(cache=True, nogil=True)
def _branch(s, open_words, undecided, order, random):
    """A choice to try, from an exactly-one rule with the fewest open choices, and the first undecided word.

    All exactly-one words below ``undecided`` are decided. Every variable has an exactly-one rule, so as long as a
    variable is open, one of these rules is undecided. Wide rules are considered only if all others are decided.
    """
    best, fewest, first, equal = np.int64(-1), np.int64(1 << 30), undecided, 1
    for word in range(undecided, np.int64(s.exact)):
        bits = open_words[word]
        if bits & (bits - np.uint64(1)):
            if best < 0:
                first = word
            left = np.int64(number_of_bits(bits))
            if left < fewest:
                best, fewest, equal = word, left, 1
                if left == 2 and order != ANY_RULE:
                    break
            elif left == fewest and order == ANY_RULE:
                equal += 1
                if below(random, equal) == 0:
                    best = word
    end = best + 1
    if best < 0:
        first = np.int64(s.exact)
        for rule in range(len(s.wide_exact)):
            if s.wide_exact[rule]:
                left = np.int64(0)
                for word in range(s.words_of_rule[rule], s.words_of_rule[rule + 1]):
                    left += np.int64(number_of_bits(open_words[word]))
                if 1 < left < fewest:
                    best, end, fewest = np.int64(s.words_of_rule[rule]), np.int64(s.words_of_rule[rule + 1]), left
    skip = below(random, fewest) if order else 0
    for word in range(best, end):
        rest = open_words[word]
        while rest:
            if skip == 0:
                return s.members[word, lowest_bit(rest)], first
            skip -= 1
            rest &= rest - np.uint64(1)
    return NONE, first


@njit(cache=True, nogil=True)
def _narrow(s, query, pairs, open_words, done, queue, tail):
    """Remove what the relations alone exclude: a < b raises the lowest value of b and lowers the highest value of a."""
    V = s.values
    low = np.zeros(len(query), np.int64)
    high = np.full(len(query), V - 1)
    if not narrow_ranges(query, pairs, low, high):
        return FAILED
    for variable in range(len(query)):
        for value in range(V):
            if value < low[variable] or value > high[variable]:
                tail = _remove_if_open(np.uint32(variable * V + value), s, open_words, done, queue, tail)
                if tail == FAILED:
                    return FAILED
    return tail


@njit(cache=True, nogil=True)
def search(
    s, sums, full_words, queries, pairs, limit, branches, stop, order, seeds, total, finished, offsets, solutions
):
    """Enumerate the solutions of every query, up to ``limit`` per query.

    The search of a query ends early after ``branches`` branches, and all searches end when another thread sets
    ``stop``, uint8 [1]. finished: bool [Q], filled in: whether the search of a query reached its end or the limit.
    sums: the rules with weights and bounds, None without any.

    queries: uint8 [Q, R]. pairs: int16 [Q, M, 2]. full_words: uint64 [W], the state before any given. total: int64 [Q],
    filled in. solutions: uint8 [S, R], filled in: rows offsets[q] to offsets[q+1] are the listed solutions of query q,
    a uniform sample if there are more (reservoir sampling). order: IN_ORDER, SHUFFLED or ANY_RULE. seeds: uint64 [Q],
    for the order and the sample.
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
    rules, parts = (0, 0) if sums is None else (len(sums.low), len(sums.word))
    seen = np.empty((depth, rules), np.int64)
    excluded = np.empty(128 * parts, np.uint32)

    for q in range(len(queries)):
        open_words[0] = full_words
        done[0] = 0
        left[0] = variables
        undecided[0] = 0
        random[0] = seeds[q]
        if sums is not None:
            seen[0] = -1
        relations_by_variable(pairs[q], variables, s.unequal, related, relations)
        tail = 0
        for choice in s.forced:
            queue[tail] = choice
            tail += 1
        for variable in range(variables):
            if queries[q, variable]:
                queue[tail] = variable * s.values + queries[q, variable] - 1
                tail += 1
        if related[variables] and not s.unequal:
            tail = _narrow(s, queries[q], pairs[q], open_words[0], done[0], queue, tail)
        found = 0
        room = offsets[q + 1] - offsets[q]
        level = 0
        allowed, free = branches, np.int64(0)  # branches left, and those of them until the next look at the flag
        finished[q] = True
        while True:
            taken = FAILED
            if tail != FAILED:
                taken = _propagate(s, open_words[level], done[level], queue, tail, assigned, related, relations)
            if sums is not None:
                while taken != FAILED:
                    number = excluded_by_sums(sums, s.members, open_words[level], seen[level], excluded)
                    tail = min(number, 0)
                    for i in range(number):
                        if tail != FAILED:
                            tail = _remove_if_open(excluded[i], s, open_words[level], done[level], queue, tail)
                    if number == 0:
                        break
                    more = FAILED
                    if tail != FAILED:
                        more = _propagate(s, open_words[level], done[level], queue, tail, assigned, related, relations)
                    taken = FAILED if more == FAILED else taken + more
            if taken != FAILED:
                left[level] -= taken
                if left[level]:
                    if free == 0:
                        free = min(allowed, LOOK)
                        allowed -= free
                        if free <= 0 or stop[0]:
                            finished[q] = False
                            break
                    free -= 1
                    choice, first = _branch(s, open_words[level], undecided[level], order, random)
                    undecided[level] = first
                    tried[level] = choice
                    open_words[level + 1] = open_words[level]
                    done[level + 1] = done[level]
                    left[level + 1] = left[level]
                    undecided[level + 1] = first
                    if sums is not None:
                        seen[level + 1] = seen[level]
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
