"""Givens that contradict each other: which rules and relations values break, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from oneofmany.problems.problem import Problem
from oneofmany.problems.rules import MOST, Rule

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
AT_ONCE = 2**24
"""Members of rules that are looked up at once."""


@dataclass(frozen=True)
class Conflict:
    """A rule or a relation that the givens break.

    Args:
        rule: the rule; None for a relation.
        taken: the choices of the rule that are given: two or more, or none if an exactly-one rule has none left.
        relation: the variables (a, b) of a relation; None for a rule.
        sums: for a rule with other bounds, the least and the greatest sum that the givens leave; None for others.
    """

    rule: Rule | None
    taken: tuple[int, ...] = ()
    relation: tuple[int, int] | None = None
    sums: tuple[int, int] | None = None


def rules_kept(problem: Problem, values: np.ndarray, relations: np.ndarray | None = None) -> np.ndarray:
    """Return which rows of values break no rule and no relation, bool [B].

    A row without blanks breaks nothing exactly if it is a solution of the rules (``Problem.check``).

    Args:
        problem: the problem of all rows.
        values: uint8 [B, R], 0 = blank, 1..V.
        relations: int [B, M, 2] pairs (a, b), -1 for padding.
    """
    kept = np.ones(len(values), bool)
    part = max(1, AT_ONCE // problem.ones[1].size)
    for first in range(0, len(values), part):
        taken, left = _counted(problem, values[first : first + part])
        kept[first : first + part] = ((taken <= 1) & (left > 0)).all(1)
    if (linear := problem.linear) is not None:
        least, greatest = _sums(problem, values)
        kept &= ((least <= linear.high) & (greatest >= linear.low)).all(1)
    if relations is not None and relations.shape[1]:
        kept &= ~_broken(problem, values, relations).any(1)
    return kept


def conflicts(problem: Problem, values: np.ndarray, relations: np.ndarray) -> list[Conflict]:
    """Return every rule and relation that the values of one query break: values uint8 [R], relations int16 [M, 2]."""
    taken, left = _counted(problem, values[None])
    chosen = set(_choices(problem, values))
    places: list[tuple[int, tuple[int, int] | None]]
    places = [(g, None) for g in problem.ones[0][(taken[0] > 1) | (left[0] == 0)].tolist()]
    if (linear := problem.linear) is not None:
        (least,), (greatest,) = _sums(problem, values[None])
        broken = np.flatnonzero((least > linear.high) | (greatest < linear.low))
        places += [(int(linear.rules[i]), (int(least[i]), int(greatest[i]))) for i in broken]
    found = [
        Conflict(rule, tuple(choice for choice in rule.choices if choice in chosen), sums=sums)
        for rule, sums in ((problem.rules[g], sums) for g, sums in sorted(places, key=lambda place: place[0]))
    ]
    unkept = relations[_broken(problem, values[None], relations[None])[0]] if len(relations) else relations
    return found + [Conflict(None, relation=(int(a), int(b))) for a, b in unkept]


def describe(problem: Problem, conflict: Conflict) -> str:
    """Describe a conflict of any task: variables and values count from 1."""
    if conflict.relation is not None:
        a, b = conflict.relation
        return f"the givens break the relation variable {a + 1} {problem.relation} variable {b + 1}"
    assert conflict.rule is not None
    if conflict.sums is not None:
        (least, greatest), (low, high) = conflict.sums, conflict.rule.bounds
        reached = f"at least {least}" if least > high else f"at most {greatest}"
        wanted = f"{low}" if low == high else f"{low} to {high}"
        return f"the givens make the sum of a rule of kind {conflict.rule.kind!r} {reached}, expected {wanted}"
    if not conflict.taken:
        return f"the givens leave no choice for a rule of kind {conflict.rule.kind!r}"
    each = (divmod(choice, problem.values) for choice in conflict.taken)
    listed = " and ".join(f"variable {variable + 1} = {value + 1}" for variable, value in each)
    return f"the givens {listed} break a rule of kind {conflict.rule.kind!r}"


def number_word(n: int) -> str:
    """Return a small number as a word."""
    return NUMBERS[n] if n < len(NUMBERS) else str(n)


def _choices(problem: Problem, values: np.ndarray) -> list[int]:
    given = np.flatnonzero(values)
    return (given * problem.values + values[given] - 1).tolist()


def _counted(problem: Problem, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count, for every rule of ``ones`` int64 [B, N], the choices that are taken and those that could be.

    At-most-one rules need none: for them the second number is at least 1.
    """
    taken = values[:, :, None] == np.arange(1, problem.values + 1)
    could = (taken | (values == 0)[:, :, None]).reshape(len(values), -1)
    places, members = problem.ones
    real = members >= 0
    counts = [(flat[:, members] & real).sum(-1) for flat in (taken.reshape(len(values), -1), could)]
    return counts[0], np.maximum(counts[1], ~problem.exact[places])


def _sums(problem: Problem, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest sum of every linear rule, whatever the blanks take: int64 [B, L] each."""
    linear = problem.linear
    assert linear is not None
    taken = (values[:, :, None] == np.arange(1, problem.values + 1)).reshape(len(values), -1)
    blank = values[:, linear.choices // problem.values] == 0
    sums = linear.sums(taken)
    least, greatest = (sums + linear.sums_of(blank * part) for part in _of_blanks(problem))
    return least, greatest


@lru_cache(maxsize=64)
def _of_blanks(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """What a blank variable adds to the sum of a linear rule, at least and at most: int64 [E] each.

    It takes one of its values, so it adds one weight, or nothing if it has values outside of the rule. The numbers
    stand at the first entry of every variable of a rule; the others are 0.
    """
    linear = problem.linear
    assert linear is not None
    rule = np.repeat(np.arange(len(linear.rules)), np.diff(linear.first))
    _, first, group, size = np.unique(
        rule * problem.variables + linear.choices // problem.values,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    parts = []
    for better, worst in ((np.minimum, MOST), (np.maximum, -MOST)):
        best = np.full(len(first), worst)
        better.at(best, group, linear.weights)
        part = np.zeros(len(rule), np.int64)
        part[first] = np.where(size < problem.values, better(best, 0), best)
        parts.append(part)
    return parts[0], parts[1]


def _broken(problem: Problem, values: np.ndarray, relations: np.ndarray) -> np.ndarray:
    """bool [B, M]: the relations that cannot hold, whatever the blanks take."""
    low, high = np.maximum(values, 1), np.where(values == 0, problem.values, values)
    ends = np.maximum(relations, 0).astype(np.int64)
    (a_low, b_low), (a_high, b_high) = ([np.take_along_axis(x, ends[..., i], 1) for i in (0, 1)] for x in (low, high))
    broken = a_low >= b_high
    if problem.relation == "!=":
        broken = (a_low == a_high) & (b_low == b_high) & (a_low == b_low)
    return (relations[..., 0] >= 0) & broken
