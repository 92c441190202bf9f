"""What the rules with weights and bounds exclude, compiled with numba.

Every variable takes exactly one value, so it adds one of its weights to the sum of a rule (0 if the value is not in the
rule). The least and the greatest sum follow from the open values of the variables. A value is excluded if the sum would
leave the bounds whatever the other variables take. If the variables of a rule must take different values and have the
same weights (a cage of Killer Sudoku), the sets of values with an allowed sum are listed, and a value is excluded if it
is in none of the sets that are still possible.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from oneofmany.compiled import njit
from oneofmany.exact.bits import lowest_bit, number_of_bits
from oneofmany.problems import Problem

Sums = namedtuple("Sums", "first_group first_part word weights low high first_set sets")
"""The linear rules of a problem as arrays.

The variables of rule l are groups first_group[l] to first_group[l+1]. The words of group n, in which the open values
of its variable are, are parts first_part[n] to first_part[n+1]. word: uint32 [P]. weights: int64 [P, 64], the weight
behind every bit. low, high: int64 [L]. sets: uint64 [X], those of rule l are first_set[l] to first_set[l+1]: the sets
of values that it can take, as bits; a rule without such sets has none.
"""

FAILED = -1
MOST_SETS = 2**14


def sums_of(problem: Problem, words: Mapping[int, range], members: np.ndarray) -> Sums | None:
    """Return the linear rules of a problem; None if it has none.

    Args:
        problem: the problem.
        words: the words of every variable's own rule.
        members: uint32 [W, 64], the choice behind every bit.
    """
    V, linear = problem.values, problem.linear
    if linear is None:
        return None
    rules_of: list[set[int]] = [set() for _ in range(problem.choices)]
    for place in problem.ones[0].tolist():
        for choice in problem.rules[place].choices:
            rules_of[choice].add(place)
    groups, parts, first_group, weights, sets, first_set = [0], [], [0], [], [], [0]
    for rule in range(len(linear.rules)):
        entries = slice(linear.first[rule], linear.first[rule + 1])
        weight_of = np.zeros(problem.choices, np.int64)
        weight_of[linear.choices[entries]] = linear.weights[entries]
        variables = np.unique(linear.choices[entries] // V).tolist()
        for variable in variables:
            parts += words[variable]
            groups.append(len(parts))
        first_group.append(len(groups) - 1)
        own = members[[word for variable in variables for word in words[variable]]]
        weights.append(weight_of[own])
        # Bits that stand for the same values, with the same weights, of variables that must take different values.
        values = own[:, :V] - V * np.array(variables)[:, None] if V <= 64 else own[:0]
        alike = len(values) > 1 and (values == values[0]).all() and (weights[-1] == weights[-1][0])[:, :V].all()
        if alike and len(values) <= V and comb(V, len(values)) <= MOST_SETS:
            shared = (set.intersection(*(rules_of[v * V + d] for v in variables)) for d in range(V))
            if all(shared):
                bounds = int(linear.low[rule]), int(linear.high[rule])
                sets += _sets(tuple(weights[-1][0, :V].tolist()), len(values), *bounds)
        first_set.append(len(sets))
    return Sums(
        np.array(first_group),
        np.array(groups),
        np.array(parts, np.uint32),
        np.concatenate(weights),
        linear.low,
        linear.high,
        np.array(first_set),
        np.array(sets, np.uint64),
    )


@lru_cache(maxsize=4096)
def _sets(weights: tuple[int, ...], number: int, low: int, high: int) -> tuple[int, ...]:
    """The sets of ``number`` values, as bits, whose weights have a sum from ``low`` to ``high``."""
    return tuple(
        sum(1 << value for value in chosen)
        for chosen in combinations(range(len(weights)), number)
        if low <= sum(weights[value] for value in chosen) <= high
    )


@njit(cache=True, nogil=True)
def excluded_by_sums(s, members, open_words, seen, excluded):
    """Fill ``excluded`` with open choices that a rule excludes, perhaps some twice. Returns their number or FAILED.

    seen: int64 [L], the number of open values of every rule when it was last looked at, updated; rules in which it has
    not changed are skipped. members: as in the kernel's ``Structure``. excluded: uint32 [128 * P].
    """
    number = 0
    for rule in range(len(s.low)):
        first, last = s.first_group[rule], s.first_group[rule + 1]
        left = np.int64(0)
        for part in range(s.first_part[first], s.first_part[last]):
            left += np.int64(number_of_bits(open_words[s.word[part]]))
        if left == seen[rule]:
            continue
        seen[rule] = left
        least = greatest = np.int64(0)
        for group in range(first, last):
            lowest, highest = _range(s, group, open_words)
            least += lowest
            greatest += highest
        over, under = s.high[rule] - least, greatest - s.low[rule]
        if over < 0 or under < 0:
            return FAILED
        for group in range(first, last):
            lowest, highest = _range(s, group, open_words)
            if highest - lowest > min(over, under):
                for part in range(s.first_part[group], s.first_part[group + 1]):
                    rest = open_words[s.word[part]]
                    while rest:
                        bit = lowest_bit(rest)
                        rest &= rest - np.uint64(1)
                        weight = s.weights[part, bit]
                        if weight - lowest > over or highest - weight > under:
                            excluded[number] = members[s.word[part], bit]
                            number += 1
        if s.first_set[rule] < s.first_set[rule + 1]:
            allowed = every = np.uint64(0)
            for group in range(first, last):
                every |= open_words[s.word[group]]
            for index in range(s.first_set[rule], s.first_set[rule + 1]):
                values = s.sets[index]
                if values & ~allowed and not values & ~every:
                    possible = True
                    for group in range(first, last):
                        if not open_words[s.word[group]] & values:
                            possible = False
                            break
                    if possible:
                        allowed |= values
            if not allowed:
                return FAILED
            for group in range(first, last):
                rest = open_words[s.word[group]] & ~allowed
                while rest:
                    excluded[number] = members[s.word[group], lowest_bit(rest)]
                    number += 1
                    rest &= rest - np.uint64(1)
    return number


@njit(cache=True, nogil=True)
def _range(s, group, open_words):
    """The least and the greatest weight of a variable's open values."""
    lowest, highest = np.int64(1 << 62), np.int64(-1 << 62)
    for part in range(s.first_part[group], s.first_part[group + 1]):
        rest = open_words[s.word[part]]
        while rest:
            weight = s.weights[part, lowest_bit(rest)]
            lowest, highest = min(lowest, weight), max(highest, weight)
            rest &= rest - np.uint64(1)
    return lowest, highest
