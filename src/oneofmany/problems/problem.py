"""A problem: choices, rules, and one checker for every task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeVar

import numpy as np

from oneofmany.problems.rules import Rule

if TYPE_CHECKING:  # torch takes seconds to load, and the checker also takes NumPy arrays
    import torch
    from torch import Tensor

Array = TypeVar("Array", "Tensor", np.ndarray)
"""A tensor of PyTorch or an array of NumPy; what is made of it is of the same library."""


@dataclass(frozen=True, eq=False)
class LinearRules:
    """The rules of a problem that are neither exactly-one nor at-most-one, one after the other.

    Args:
        rules: int64 [L], their places in ``Problem.rules``.
        first: int64 [L+1], the choices of rule l are entries first[l] to first[l+1].
        choices: int64 [E].
        weights: int64 [E].
        low: int64 [L], the least sum of the weights taken.
        high: int64 [L], the greatest sum.
    """

    rules: np.ndarray
    first: np.ndarray
    choices: np.ndarray
    weights: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def sums(self, taken: Any) -> Any:
        """Return the sums of the weights taken, int64 [B, L], from bool or int64 numbers [B, C]."""
        return self.sums_of(taken[:, self.choices] * self.weights)

    def sums_of(self, entries: Any) -> Any:
        """Return the sums int64 [B, L] over the entries [B, E] of every rule."""
        running = entries.cumsum(1)  # differences of whole numbers are exact, and no rule is empty
        upto = running[:, self.first[1:] - 1]
        upto[:, 1:] -= running[:, self.first[1:-1] - 1]
        return upto


@dataclass(frozen=True, eq=False)
class Problem:
    """The choices and rules of a task at one size.

    Choice ``variable * values + value`` says that ``variable`` takes ``value`` (values count from 0 here; in queries
    and files 0 is blank and values count from 1). Every variable takes exactly one value: that rule is added with kind
    ``variable`` if ``rules`` does not list it.

    Args:
        task: name of the task, for example ``sudoku``.
        size: the task's size, for example 9.
        variables: R, the number of variables.
        values: V, the number of values that a variable can take.
        rules: the rules that hold for every query.
        options: other arguments of the task's builder (a Sudoku's box shape).
        relation_kind: the kind of the rules that a query's relations imply; None if the task has no relations.
        relation: what a relation (a, b) means: ``<``, variable a is less than variable b, or ``!=``, they differ.
        own_kinds: the kinds of exactly-one and at-most-one rules that queries bring of their own.
        own_sums: the kinds of other rules, with weights and bounds, that queries bring of their own.
    """

    task: str
    size: int
    variables: int
    values: int
    rules: tuple[Rule, ...]
    options: dict[str, Any] = field(default_factory=dict)
    relation_kind: str | None = None
    relation: Literal["<", "!="] = "<"
    own_kinds: tuple[str, ...] = ()
    own_sums: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("size", "variables", "values"):
            if not isinstance(number := getattr(self, name), SupportsIndex):
                raise ValueError(f"a problem's {name}: expected a whole number, got {number!r}")
            object.__setattr__(self, name, int(number))
        if self.variables < 1 or not 1 <= self.values <= 255:
            sizes = f"{self.variables} and {self.values}"
            raise ValueError(f"a problem needs at least 1 variable and 1 to 255 values, got {sizes}")
        if self.relation not in ("<", "!="):
            raise ValueError(f"relation: expected '<' or '!=', got {self.relation!r}")
        for name in ("own_kinds", "own_sums"):
            if isinstance(kinds := getattr(self, name), str) or not isinstance(kinds, Iterable):
                raise ValueError(f"{name}: expected several names, as in ('edge',), got {kinds!r}")
            object.__setattr__(self, name, tuple(kinds))
        if not isinstance(self.rules, Iterable):
            raise ValueError(f"rules: expected a tuple of rules, got {self.rules!r}")
        object.__setattr__(self, "rules", tuple(self.rules))
        for rule in self.rules:
            if not isinstance(rule, Rule):
                why = "; helpers return lists of rules, to be joined with +" if isinstance(rule, list) else ""
                raise ValueError(f"rules: expected a Rule each, got a {type(rule).__name__}{why}")
            if min(rule.choices) < 0 or max(rule.choices) >= self.choices:
                raise ValueError(
                    f"a rule of kind {rule.kind!r} names a choice outside 0..{self.choices - 1}: {rule.choices}"
                )
        listed = {frozenset(rule.choices) for rule in self.rules if rule.exact}
        missing = tuple(
            Rule("variable", own)
            for own in (tuple(range(v * self.values, (v + 1) * self.values)) for v in range(self.variables))
            if frozenset(own) not in listed
        )
        object.__setattr__(self, "rules", self.rules + missing)

    @property
    def choices(self) -> int:
        """The number of choices, C = R * V."""
        return self.variables * self.values

    @cached_property
    def has_rules(self) -> bool:
        """Whether answers can be checked: any relation, or any rule but that a variable takes exactly one value."""
        of_variable = {frozenset(range(v * self.values, (v + 1) * self.values)) for v in range(self.variables)}
        of_queries = self.relation_kind is not None or self.own_kinds or self.own_sums
        return bool(of_queries) or any(
            not rule.exact or frozenset(rule.choices) not in of_variable for rule in self.rules
        )

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the static rules, in order of first appearance, then those of relations and of own rules."""
        related = () if self.relation_kind is None else (self.relation_kind,)
        return tuple(dict.fromkeys([*(rule.kind for rule in self.rules), *related, *self.own_kinds, *self.own_sums]))

    @cached_property
    def kinds_of_ones(self) -> frozenset[str]:
        """The kinds of the exactly-one and at-most-one rules, with those of own rules."""
        return frozenset((*(rule.kind for rule in self.rules if not rule.linear), *self.own_kinds))

    @cached_property
    def kinds_of_sums(self) -> frozenset[str]:
        """The kinds of all other rules, with those of own rules."""
        return frozenset((*(rule.kind for rule in self.rules if rule.linear), *self.own_sums))

    @cached_property
    def members(self) -> np.ndarray:
        """int64 [G, widest rule]: the choices of every rule, padded with -1."""
        return _table([rule.choices for rule in self.rules])

    @cached_property
    def exact(self) -> np.ndarray:
        """bool [G]: True for exactly-one rules, False for all others."""
        return np.array([rule.exact for rule in self.rules])

    @cached_property
    def ones(self) -> tuple[np.ndarray, np.ndarray]:
        """The exactly-one and at-most-one rules: int64 [N] their places in ``rules``, int64 [N, W] their choices."""
        if self.linear is None:
            return np.arange(len(self.rules)), self.members
        places = [place for place, rule in enumerate(self.rules) if not rule.linear]
        return np.array(places), _table([self.rules[place].choices for place in places])

    @cached_property
    def linear(self) -> LinearRules | None:
        """The other rules; None if there are none."""
        rules = [place for place, rule in enumerate(self.rules) if rule.linear]
        if not rules:
            return None
        pairs = [list(self.rules[place].weighed()) for place in rules]
        choices, weights = np.array([pair for of_rule in pairs for pair in of_rule]).T.copy()
        low, high = np.array([self.rules[place].bounds for place in rules]).T.copy()
        first = np.concatenate([[0], np.cumsum([len(of_rule) for of_rule in pairs])])
        return LinearRules(np.array(rules), first, choices, weights, low, high)

    @cached_property
    def kind(self) -> np.ndarray:
        """int64 [G]: index of every rule's kind in ``kinds``."""
        return np.array([self.kinds.index(rule.kind) for rule in self.rules])

    @cached_property
    def _placed(self) -> dict[torch.device, tuple[Tensor, Tensor, LinearRules | None]]:
        return {}

    def same_as(self, other: Problem) -> bool:
        """Return whether both have the same choices and rules."""
        parts = ("task", "size", "variables", "values", "rules", "relation_kind", "relation", "own_kinds", "own_sums")
        return self is other or all(getattr(self, part) == getattr(other, part) for part in parts)

    def __repr__(self) -> str:
        extra = "".join(f", {name}={value}" for name, value in self.options.items())
        return f"Problem({self.task} {self.size}{extra}: {self.variables} variables of {self.values} values)"

    def with_rules(self, rules: Iterable[Rule]) -> Problem:
        """Return this problem with more rules: those of one query."""
        return replace(self, rules=(*self.rules, *rules))

    # ---- relations -------------------------------------------------------------------------------------------------

    def relation_members(self, relations: Array) -> Array:
        """Return the at-most-one rules that relations imply, one for every value d.

        For a < b they are {a >= d} and {b <= d}; for a != b they are {a = d} and {b = d}.

        Args:
            relations: int64 [B, M, 2] variable pairs (a, b), -1 for padding.

        Returns:
            int64 [B, M, V, V+1], or [B, M, V, 2] for !=, choices of every rule; -1 where the relation is padding.
        """
        V, library = self.values, _library(relations)
        d = _arange(V, relations)[:, None]
        if self.relation == "!=":
            return library.where(relations[..., None, :] < 0, -1, relations[..., None, :] * V + d)
        slot = _arange(V + 1, relations)[None, :]
        # The first V-d slots are a's values d..V-1, the other d+1 are b's values 0..d.
        of_a = slot < V - d
        value = library.where(of_a, d + slot, slot - (V - d))
        variable = library.where(of_a, relations[..., 0, None, None], relations[..., 1, None, None])
        members = variable * V + value
        return library.where(relations[..., 0, None, None] < 0, -1, members)

    # ---- the checker -----------------------------------------------------------------------------------------------

    def check(self, answers: Array, query: Array | None = None, relations: Array | None = None) -> Array:
        """Return which answers are solutions: those that keep the givens and satisfy every rule.

        Args:
            answers: integer [B, R] full assignments with values 0..V-1 (anything outside is invalid), or
                bool [B, R, V] thresholded choices (none or several values for a variable is invalid).
            query: integer [B, R], 0 = blank, 1..V = given; None checks the rules alone.
            relations: integer [B, M, 2] pairs (a, b), -1 for padding.

        Returns:
            bool [B].
        """
        checked: Any = self._check(answers, query, relations)
        return checked

    def _check(self, answers: Any, query: Any, relations: Any) -> Any:
        taken = self.taken(answers)
        flat = taken.reshape(len(taken), self.choices)
        members, exact, linear = self._on(flat)
        counts = (flat[:, members.clip(0)] & (members >= 0)).sum(-1)
        valid = _library(flat).where(exact, counts == 1, counts <= 1).all(1)
        if linear is not None:
            sums = linear.sums(flat)
            valid &= ((sums >= linear.low) & (sums <= linear.high)).all(1)
        if answers.ndim == 2:
            valid &= ((answers >= 0) & (answers < self.values)).all(1)
        if query is not None:
            self._same_shape("query", query, taken)
            given = _int64(query) - 1
            kept = _gather(taken, 2, given.clip(0, self.values - 1)[..., None])[..., 0]
            valid &= ((given < 0) | (kept & (given < self.values))).all(1)
        if relations is not None and relations.shape[1]:
            if self.relation_kind is None:
                raise ValueError(f"{self.task} has no relations, but relations {list(relations.shape)} were given")
            if relations.ndim != 3 or relations.shape[0] != len(taken) or relations.shape[2] != 2:
                raise ValueError(f"relations: expected shape [{len(taken)}, M, 2], got {list(relations.shape)}")
            members = self.relation_members(_int64(relations))
            flat_members = members.reshape(len(taken), math.prod(members.shape[1:]))
            picked = (_gather(flat, 1, flat_members.clip(0)) & (flat_members >= 0)).reshape(members.shape)
            valid &= (picked.sum(-1) <= 1).reshape(len(taken), relations.shape[1] * self.values).all(1)
        return valid

    def _on(self, like: Any) -> tuple[Any, Any, Any]:
        """The rules where the array is, copied there once: a CUDA graph cannot contain the transfer.

        Returns the members of ``ones``, whether they are exactly-one, and ``linear``.
        """
        places, members = self.ones
        if isinstance(like, np.ndarray):
            return members, self.exact[places], self.linear
        if like.device not in self._placed:
            import torch

            def place(array: np.ndarray) -> Tensor:
                return torch.as_tensor(array, device=like.device)

            linear = self.linear and replace(
                self.linear, **{name: place(array) for name, array in vars(self.linear).items()}
            )
            self._placed[like.device] = place(members), place(self.exact[places]), linear
        return self._placed[like.device]

    def taken(self, answers: Any) -> Any:
        """Return the choices that answers take, bool [B, R, V], from what ``check`` takes."""
        library = _library(answers)
        shape = [self.variables, self.values]
        if answers.dtype == library.bool:
            if answers.ndim != 3 or list(answers.shape[1:]) != shape:
                raise ValueError(f"answers: expected bool [B, {shape[0]}, {shape[1]}], got {list(answers.shape)}")
            return answers
        if not _is_integer(answers):
            raise ValueError(f"answers: expected integers [B, R] or bool [B, R, V], got {answers.dtype}")
        if answers.ndim != 2 or answers.shape[1] != shape[0]:
            raise ValueError(f"answers: expected integers [B, {shape[0]}], got {list(answers.shape)}")
        return _int64(answers)[..., None] == _arange(self.values, answers)

    def _same_shape(self, name: str, given: Any, taken: Any) -> None:
        if list(given.shape) != list(taken.shape[:2]):
            raise ValueError(f"{name}: expected shape {list(taken.shape[:2])}, got {list(given.shape)}")


# ---- what NumPy and PyTorch call differently -----------------------------------------------------------------------


def _library(array: Any) -> Any:
    """NumPy or PyTorch, whichever the array is of."""
    if isinstance(array, np.ndarray):
        return np
    import torch

    return torch


def _arange(number: int, like: Any) -> Any:
    if isinstance(like, np.ndarray):
        return np.arange(number)
    return _library(like).arange(number, device=like.device)


def _int64(array: Any) -> Any:
    return array.astype(np.int64) if isinstance(array, np.ndarray) else array.long()


def _is_integer(array: Any) -> bool:
    if isinstance(array, np.ndarray):
        return array.dtype.kind in "iu"
    return not array.is_floating_point() and not array.is_complex()


def _gather(array: Any, axis: int, index: Any) -> Any:
    if isinstance(array, np.ndarray):
        return np.take_along_axis(array, index, axis)
    return array.gather(axis, index)


def _table(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """int64 [N, longest row], padded with -1."""
    table = np.full((len(rows), max((len(row) for row in rows), default=0)), -1, np.int64)
    for out, row in zip(table, rows, strict=True):
        out[: len(row)] = row
    return table
