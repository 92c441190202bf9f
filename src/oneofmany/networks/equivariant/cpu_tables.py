"""The rules of one or several structures as arrays of one shape, as the kernels of the CPU engine take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from oneofmany.networks.equivariant.rules import RuleArrays, rule_arrays, sum_arrays, sum_kinds
from oneofmany.problems import Problem

_SHARED: WeakKeyDictionary[Problem, Tables] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class RuleRows:
    """Exactly-one and at-most-one rules of S structures with C choices and G rules each, sorted by kind.

    Args:
        kinds: (kind, number of rules) in the order of the rules.
        members: int32 [S, G, W], each rule's choices.
        sizes: int32 [S, G], how many of ``members`` are choices; 0 for a rule that a structure does not have.
        rules: int32 [S, C, D], each choice's rules; D is a multiple of ``cpu_kernels.AT_ONCE``.
        spread: float32 [S, C, D], the weights of their answers, 0 for padding.
    """

    kinds: tuple[tuple[str, int], ...]
    members: np.ndarray
    sizes: np.ndarray
    rules: np.ndarray
    spread: np.ndarray


class Tables:
    """The rules of S structures: problems with the same variables and values, perhaps with relations a != b.

    Every kind has as many rows as the structure with most rules of it; the others have rules of size 0 there.

    Args:
        structures: problems, each with the relations a != b of a query, int [M, 2] with -1 for padding, or None.
    """

    def __init__(self, structures: Sequence[tuple[Problem, np.ndarray | None]]) -> None:
        from oneofmany.networks.equivariant.cpu_kernels import AT_ONCE

        first = structures[0][0]
        self.variables, self.values, self.choices = first.variables, first.values, first.choices
        arrays = [rule_arrays(problem, unequal) for problem, unequal in structures]
        most: dict[str, int] = {}
        for name, count in (pair for one in arrays for pair in one.kinds):
            most[name] = max(count, most.get(name, 0))
        ends = np.cumsum(list(most.values()))
        begin = dict(zip(most, (ends - list(most.values())).tolist(), strict=True))
        S, C = len(arrays), self.choices
        width, degree = (max(getattr(one, name).shape[1] for one in arrays) for name in ("members", "rules"))
        degree += -degree % AT_ONCE
        members, sizes = np.zeros((S, ends[-1], width), np.int32), np.zeros((S, ends[-1]), np.int32)
        rules, spread = np.zeros((S, C, degree), np.int32), np.zeros((S, C, degree), np.float32)
        for s, one in enumerate(arrays):
            row = _rows(one, begin)
            members[s, row, : one.members.shape[1]] = one.members
            sizes[s, row] = one.real.sum(1)
            rules[s, :, : one.rules.shape[1]] = row[one.rules]
            spread[s, :, : one.spread.shape[1]] = one.spread
        self.rows = RuleRows(tuple(most.items()), members, sizes, rules, spread)
        linear = any(problem.linear is not None for problem, _ in structures)
        self.sums = Sums([problem for problem, _ in structures]) if linear else None


class Sums:
    """The rules with weights and bounds of S problems, padded: those of problem s are the first ``rules[s]``.

    A group is a variable of a rule; the groups of rule l are ``first[s, l]`` to ``first[s, l + 1]``.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.kinds = tuple(dict.fromkeys(kind for problem in problems for kind in sum_kinds(problem)))
        parts = [_sums(problem, self.kinds) for problem in problems]
        self.rules = np.array([len(part["low"]) for part in parts], np.int32)
        self.first, self.variable, self.weights, self.share, self.low, self.high, self.kind = (
            _stacked([part[name] for part in parts])
            for name in ("first", "variable", "weights", "share", "low", "high", "kind")
        )


def tables_of(problems: Sequence[Problem], relations: np.ndarray | None) -> tuple[Tables, np.ndarray | None]:
    """Return the tables of B queries, and which structure each query has, int32 [B]; None if they share one.

    Args:
        problems: the problem of every query; at least one.
        relations: int [B, M, 2], the relations of the queries, -1 for padding.
    """
    first = problems[0]
    unequal = relations if relations is not None and relations.shape[1] and first.relation != "<" else None
    if unequal is None and all(problem is first for problem in problems):
        if first not in _SHARED:
            _SHARED[first] = Tables([(first, None)])
        return _SHARED[first], None
    structures: dict[tuple[int, bytes], tuple[Problem, np.ndarray | None]] = {}
    keys = []
    for row, problem in enumerate(problems):
        pairs = None if unequal is None else unequal[row]
        keys.append((id(problem), b"" if pairs is None else pairs.tobytes()))
        structures.setdefault(keys[-1], (problem, pairs))
    place = {key: number for number, key in enumerate(structures)}
    return Tables(list(structures.values())), np.array([place[key] for key in keys], np.int32)


def _rows(arrays: RuleArrays, begin: dict[str, int]) -> np.ndarray:
    """The rows int64 [G] of the rules of one structure, if the rows of each kind begin there."""
    return np.concatenate([begin[name] + np.arange(count) for name, count in arrays.kinds])


def _sums(problem: Problem, kinds: Sequence[str]) -> dict[str, np.ndarray]:
    linear = problem.linear
    if linear is None:
        empty = np.zeros(0, np.float32)
        whole = dict.fromkeys(("variable", "kind"), np.zeros(0, np.int32)) | {"first": np.zeros(1, np.int32)}
        return whole | dict.fromkeys(("share", "low", "high"), empty) | {"weights": np.zeros((0, problem.values))}
    rule = np.repeat(np.arange(len(linear.rules)), np.diff(linear.first))
    sums = sum_arrays(problem, rule, linear.choices, linear.weights, linear.low, linear.high)
    kind = np.array([kinds.index(problem.rules[place].kind) for place in linear.rules])
    pair = sums.variable * len(kinds) + kind[sums.rule]
    sizes = np.bincount(sums.rule, minlength=len(kind))
    return {
        "first": np.concatenate([[0], np.cumsum(sizes)]),
        "variable": sums.variable,
        "weights": sums.weights,
        "share": 1 / np.bincount(pair)[pair],  # of each kind the mean over the variable's groups
        "low": sums.low,
        "high": sums.high,
        "kind": kind,
    }


def _stacked(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays [N, ..] as one array [S, most, ..], int32 or float32, padded with 0."""
    kind = np.float32 if parts[0].dtype.kind == "f" else np.int32
    made = np.zeros((len(parts), max(len(part) for part in parts), *parts[0].shape[1:]), kind)
    for row, part in zip(made, parts, strict=True):
        row[: len(part)] = part
    return made
