"""Rules that every query brings of its own: graphs, cages, timetables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from oneofmany.problems.problem import Problem
from oneofmany.problems.rules import MOST, Rule

if TYPE_CHECKING:
    import torch
    from torch import Tensor

DTYPES = {
    "offsets": np.int64,
    "kind": np.int16,
    "low": np.int32,
    "high": np.int32,
    "first": np.int64,
    "choices": np.int32,
    "weights": np.int32,
}


@dataclass(frozen=True, eq=False)
class OwnRules:
    """The rules of Q queries, one query after the other; arrays of NumPy, or tensors of PyTorch on a device.

    Args:
        kinds: the names of the kinds of rules.
        offsets: int64 [Q+1], the rules of query q are offsets[q] to offsets[q+1].
        kind: int16 [G], the place of every rule's kind in ``kinds``.
        low: int32 [G], the least sum of the weights taken.
        high: int32 [G], the greatest sum.
        first: int64 [G+1], the choices of rule g are entries first[g] to first[g+1].
        choices: int32 [E].
        weights: int32 [E].
    """

    kinds: tuple[str, ...]
    offsets: Any
    kind: Any
    low: Any
    high: Any
    first: Any
    choices: Any
    weights: Any

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, queries: Iterable[Iterable[Rule]]) -> OwnRules:
        """Gather the rules of queries."""
        try:
            of_queries = [list(rules) for rules in queries]
        except TypeError:
            raise ValueError("rules of its own: expected a list of rules for every query") from None
        rules = [rule for of_query in of_queries for rule in of_query]
        if wrong := [rule for rule in rules if not isinstance(rule, Rule)]:
            why = "; helpers return lists of rules, to be joined with +" if isinstance(wrong[0], list) else ""
            raise ValueError(f"rules of its own: expected a Rule each, got a {type(wrong[0]).__name__}{why}")
        kinds = tuple(dict.fromkeys(rule.kind for rule in rules))
        pairs = [pair for rule in rules for pair in rule.weighed()]
        choices, weights = np.array(pairs, np.int32).reshape(-1, 2).T
        low, high = np.array([rule.bounds for rule in rules], np.int32).reshape(-1, 2).T
        return cls(
            kinds=kinds,
            offsets=_offsets([len(of_query) for of_query in of_queries]),
            kind=np.array([kinds.index(rule.kind) for rule in rules], np.int16),
            low=low.copy(),
            high=high.copy(),
            first=_offsets([len(rule.choices) for rule in rules]),
            choices=choices.copy(),
            weights=weights.copy(),
        )

    def rules(self, query: int) -> tuple[Rule, ...]:
        """Return the rules of one query."""
        made = []
        for g in range(int(self.offsets[query]), int(self.offsets[query + 1])):
            entries = slice(int(self.first[g]), int(self.first[g + 1]))
            choices, weights = (tuple(array[entries].tolist()) for array in (self.choices, self.weights))
            low, high = int(self.low[g]), int(self.high[g])
            made.append(Rule(self.kinds[int(self.kind[g])], choices, weights=weights, low=low, high=high))
        return tuple(made)

    def problems(self, problem: Problem) -> list[Problem]:
        """Return the problem of every query: ``problem`` with the query's rules. Queries of equal rules share one."""
        made: dict[bytes, Problem] = {}
        found = []
        for query in range(len(self)):
            part = self.take(np.array([query]))
            key = b"".join(getattr(part, name).tobytes() + b"|" for name in DTYPES)
            if key not in made:
                made[key] = problem.with_rules(self.rules(query))
            found.append(made[key])
        return found

    def take(self, rows: np.ndarray) -> OwnRules:
        """Return the rules of some of the queries, in the order of ``rows`` int64 [N] or any other index."""
        rows = np.arange(len(self))[rows]
        rules, counts = _places(self.offsets, rows)
        entries, sizes = _places(self.first, rules)
        taken = {name: getattr(self, name)[rules] for name in ("kind", "low", "high")}
        taken |= {name: getattr(self, name)[entries] for name in ("choices", "weights")}
        return replace(self, offsets=_offsets(counts), first=_offsets(sizes), **taken)

    def to(self, device: torch.device) -> OwnRules:
        """Return the same rules as int64 tensors on a device."""
        import torch

        placed = {name: torch.as_tensor(getattr(self, name), device=device).long() for name in DTYPES}
        return replace(self, **placed)

    def on_host(self) -> OwnRules:
        """Return the same rules as arrays of NumPy."""
        arrays = {name: getattr(self, name) for name in DTYPES}
        return replace(self, **{k: a if isinstance(a, np.ndarray) else a.cpu().numpy() for k, a in arrays.items()})

    def checked(self, problem: Problem) -> OwnRules:
        """Return the rules with the right types; raises ValueError unless they are rules of this problem's queries."""
        own = replace(self, **{name: np.ascontiguousarray(getattr(self, name), t) for name, t in DTYPES.items()})
        G, E = len(own.kind), len(own.choices)
        rising = all((np.diff(array) >= least).all() for array, least in ((own.offsets, 0), (own.first, 1)))
        shapes = {own.low.shape, own.high.shape} == {(G,)} and own.weights.shape == (E,) and own.first.shape == (G + 1,)
        ends = own.offsets[[0, -1]].tolist() == [0, G] and own.first[[0, -1]].tolist() == [0, E]
        if not (rising and shapes and ends):
            raise ValueError("rules of its own: offsets do not rise, or arrays have different lengths")
        unknown = sorted(set(own.kinds) - {*problem.own_kinds, *problem.own_sums})
        if unknown or own.kind.min(initial=0) < 0 or own.kind.max(initial=-1) >= len(own.kinds):
            raise ValueError(f"rules of its own: {problem.task} has no own_kinds or own_sums {unknown}")
        if own.choices.min(initial=0) < 0 or own.choices.max(initial=0) >= problem.choices:
            raise ValueError(f"rules of its own: expected choices from 0 to {problem.choices - 1}")
        rule = np.repeat(np.arange(G), np.diff(own.first))
        if len(np.unique(rule * problem.choices + own.choices)) < E or not own.weights.all():
            raise ValueError("rules of its own: a rule has a choice twice or a weight of 0")
        if (own.low > own.high).any() or np.abs(own.weights).sum(initial=0, dtype=np.float64) > MOST * max(G, 1):
            raise ValueError("rules of its own: a bound or a weight is too large")
        for k, kind in enumerate(own.kinds):
            linear = own.linear & (own.kind == k)
            if linear.any() and kind not in problem.own_sums:
                raise ValueError(f"rules of its own: kind {kind!r} has weights or bounds, so it must be in own_sums")
            ones = (own.kind == k) & ~own.linear
            meanings = set(own.low[ones].tolist())
            if meanings:  # with those of the rules that all queries share
                meanings |= {int(rule.exact) for rule in problem.rules if rule.kind == kind and not rule.linear}
                meanings |= {0} if kind == problem.relation_kind else set()
            if len(meanings) > 1 or (ones.any() and kind not in problem.own_kinds):
                raise ValueError(
                    f"rules of its own: rules of kind {kind!r} must be all exactly-one or all at-most-one, and in "
                    "own_kinds: split them into two kinds"
                )
        return own

    @property
    def linear(self) -> np.ndarray:
        """bool [G], True for rules that are neither exactly-one nor at-most-one (NumPy only)."""
        other = np.add.reduceat(self.weights != 1, self.first[:-1]) > 0 if len(self.kind) else np.zeros(0, bool)
        return other | (self.high != 1) | (self.low < 0) | (self.low > 1)

    # ---- on a device -----------------------------------------------------------------------------------------------

    @cached_property
    def most(self) -> tuple[int, int]:
        """The largest numbers of rules and of entries of a query; the host waits for them once."""
        rules, entries = (array[1:] - array[:-1] for array in (self.offsets, self.first[self.offsets]))
        return (int(rules.max()), int(entries.max())) if len(self) else (0, 0)

    def kept(self, taken: Tensor, rows: Tensor) -> Tensor:
        """Return which answers keep the rules of their queries, bool [B]; shapes depend on the data and B only.

        Args:
            taken: bool [B, C].
            rows: int64 [B], the queries; ``to`` must have put the rules on the same device.
        """
        import torch

        most_rules, most_entries = self.most
        if not most_rules:
            return torch.ones(len(rows), dtype=torch.bool, device=taken.device)
        first, end = (self.offsets[query][:, None] for query in (rows, rows + 1))
        begin = self.first[first]
        # Past the end of a query come entries of others; no sum over one of its rules goes so far.
        entry = (begin + torch.arange(most_entries, device=taken.device)).clamp_max(len(self.choices) - 1)
        running = (taken.gather(1, self.choices[entry]) * self.weights[entry]).cumsum(1)
        upto = torch.nn.functional.pad(running, (1, 0))  # the sum before every entry
        rule = first + torch.arange(most_rules, device=taken.device)
        real, rule = rule < end, rule.clamp_max(len(self.kind) - 1)
        bounds = ((self.first[place] - begin).clamp(0, most_entries) for place in (rule, rule + 1))
        before, after = (upto.gather(1, place) for place in bounds)
        sums = after - before
        return ((sums >= self.low[rule]) & (sums <= self.high[rule]) | ~real).all(1)


# ---- problems in one batch -----------------------------------------------------------------------------------------


def batch_key(problem: Problem) -> tuple[Any, ...]:
    """Return what problems must have in common to be answered in one batch (``together``)."""
    return problem.variables, problem.values, problem.relation, _of_variables(problem)


def together(problems: Sequence[Problem]) -> tuple[Problem, OwnRules]:
    """Return one problem for queries with a problem each, and the rules that each query then brings of its own.

    The problems have equal ``batch_key``s. The rules with which all of them begin are shared.
    """
    first, of_variables = problems[0], set(_of_variables(problems[0]))
    shared = len(first.rules)
    for problem in problems[1:]:
        pairs = zip(first.rules[:shared], problem.rules, strict=False)
        shared = next((place for place, (a, b) in enumerate(pairs) if a is not b and a != b), shared)
        shared = min(shared, len(problem.rules))
    own = [[rule for rule in problem.rules[shared:] if rule not in of_variables] for problem in problems]
    rest = tuple(rule for rule in first.rules[shared:] if rule in of_variables)
    kinds: dict[bool, dict[str, None]] = {False: {}, True: {}}
    for rule in (rule for rules in own for rule in rules):
        kinds[rule.linear][rule.kind] = None
    base = replace(first, rules=first.rules[:shared] + rest, own_kinds=tuple(kinds[False]), own_sums=tuple(kinds[True]))
    return base, OwnRules.of(own)


def _of_variables(problem: Problem) -> tuple[Rule, ...]:
    """The rules that a variable takes exactly one of its values."""
    V = problem.values

    def whole(rule: Rule) -> bool:
        least = min(rule.choices)
        return least % V == 0 and max(rule.choices) == least + V - 1

    return tuple(rule for rule in problem.rules if rule.exact and len(rule.choices) == V and whole(rule))


def _places(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places offsets[r] to offsets[r+1] of all rows r, one after the other, and their numbers [N]."""
    counts = offsets[rows + 1] - offsets[rows]
    before = offsets[rows] - (counts.cumsum() - counts)
    return np.repeat(before, counts) + np.arange(counts.sum()), counts


def _offsets(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
