"""A problem: choices, rules, and one checker for every task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Rule:
    """A set of choices of which exactly one, or at most one, is taken.

    Rules of one kind are interchangeable under the symmetries of the problem (the rows and columns of a chess board
    are all of kind ``line``): networks over choices and rules share their weights within a kind.
    """

    kind: str
    choices: tuple[int, ...]
    exact: bool = True


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
        relation_kind: the kind of the rules that a query's relations a < b imply; None if the task has no relations.
    """

    task: str
    size: int
    variables: int
    values: int
    rules: tuple[Rule, ...]
    options: dict[str, Any] = field(default_factory=dict)
    relation_kind: str | None = None

    def __post_init__(self) -> None:
        if self.variables < 1 or not 1 <= self.values <= 255:
            raise ValueError(
                f"a problem needs at least 1 variable and 1 to 255 values, got {self.variables} and {self.values}"
            )
        for rule in self.rules:
            if not rule.choices or len(set(rule.choices)) != len(rule.choices):
                raise ValueError(f"a rule of kind {rule.kind!r} has no choices or repeated ones: {rule.choices}")
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
        object.__setattr__(self, "rules", tuple(self.rules) + missing)

    @property
    def choices(self) -> int:
        """The number of choices, C = R * V."""
        return self.variables * self.values

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the static rules, in order of first appearance, then the kind of the relations."""
        static = tuple(dict.fromkeys(rule.kind for rule in self.rules))
        return static if self.relation_kind in (None, *static) else (*static, self.relation_kind)

    @cached_property
    def members(self) -> np.ndarray:
        """int64 [G, widest rule]: the choices of every rule, padded with -1."""
        width = max(len(rule.choices) for rule in self.rules)
        table = np.full((len(self.rules), width), -1, np.int64)
        for row, rule in zip(table, self.rules, strict=True):
            row[: len(rule.choices)] = rule.choices
        return table

    @cached_property
    def exact(self) -> np.ndarray:
        """bool [G]: True for exactly-one rules, False for at-most-one rules."""
        return np.array([rule.exact for rule in self.rules])

    @cached_property
    def kind(self) -> np.ndarray:
        """int64 [G]: index of every rule's kind in ``kinds``."""
        return np.array([self.kinds.index(rule.kind) for rule in self.rules])

    @cached_property
    def _placed(self) -> dict[torch.device, tuple[Tensor, Tensor]]:
        return {}

    def same_as(self, other: Problem) -> bool:
        """Return whether both have the same choices and rules."""
        return self is other or (
            (self.task, self.size, self.variables, self.values, self.rules, self.relation_kind)
            == (other.task, other.size, other.variables, other.values, other.rules, other.relation_kind)
        )

    def __repr__(self) -> str:
        extra = "".join(f", {name}={value}" for name, value in self.options.items())
        return f"Problem({self.task} {self.size}{extra}: {self.variables} variables of {self.values} values)"

    # ---- relations -------------------------------------------------------------------------------------------------

    def relation_members(self, relations: Tensor) -> Tensor:
        """Return the rules that relations imply: a < b is, for every value d, at most one of {a >= d} and {b <= d}.

        Args:
            relations: int64 [B, M, 2] variable pairs (a, b), -1 for padding.

        Returns:
            int64 [B, M, V, V+1] choices of every rule; -1 where the relation is padding.
        """
        V = self.values
        d = torch.arange(V, device=relations.device)[:, None]
        slot = torch.arange(V + 1, device=relations.device)[None, :]
        # The first V-d slots are a's values d..V-1, the other d+1 are b's values 0..d.
        of_a = slot < V - d
        value = torch.where(of_a, d + slot, slot - (V - d))
        variable = torch.where(of_a, relations[..., 0, None, None], relations[..., 1, None, None])
        members = variable * V + value
        return torch.where(relations[..., 0, None, None] < 0, -1, members)

    # ---- the checker -----------------------------------------------------------------------------------------------

    def check(self, answers: Tensor, query: Tensor | None = None, relations: Tensor | None = None) -> Tensor:
        """Return which answers are solutions: those that keep the givens and satisfy every rule.

        Args:
            answers: integer [B, R] full assignments with values 0..V-1 (anything outside is invalid), or
                bool [B, R, V] thresholded choices (none or several values for a variable is invalid).
            query: integer [B, R], 0 = blank, 1..V = given; None checks the rules alone.
            relations: int64 [B, M, 2] pairs a < b, -1 for padding.

        Returns:
            bool [B].
        """
        taken = self._taken(answers)
        valid = torch.ones(len(taken), dtype=torch.bool, device=taken.device)
        if answers.dtype != torch.bool:
            valid &= ((answers >= 0) & (answers < self.values)).all(1)
        flat = taken.flatten(1)
        members, exact = self._on(flat.device)
        counts = self._count(flat, members)
        valid &= torch.where(exact, counts == 1, counts <= 1).all(1)
        if query is not None:
            self._same_shape("query", query, taken)
            given = query.long() - 1
            kept = taken.gather(2, given.clamp(0, self.values - 1)[..., None])[..., 0]
            valid &= ((given < 0) | (kept & (given < self.values))).all(1)
        if relations is not None and relations.shape[1]:
            if self.relation_kind is None:
                raise ValueError(f"{self.task} has no relations, but relations {list(relations.shape)} were given")
            if relations.ndim != 3 or relations.shape[0] != len(taken) or relations.shape[2] != 2:
                raise ValueError(f"relations: expected shape [{len(taken)}, M, 2], got {list(relations.shape)}")
            members = self.relation_members(relations.long()).flatten(1)
            picked = (flat.gather(1, members.clamp_min(0)) & (members >= 0)).view(*relations.shape[:2], self.values, -1)
            valid &= (picked.sum(-1) <= 1).flatten(1).all(1)
        return valid

    def _on(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """``members`` and ``exact`` on a device, copied there once: a CUDA graph cannot contain the transfer."""
        if device not in self._placed:
            self._placed[device] = (
                torch.as_tensor(self.members, device=device),
                torch.as_tensor(self.exact, device=device),
            )
        return self._placed[device]

    def _taken(self, answers: Tensor) -> Tensor:
        shape = [self.variables, self.values]
        if answers.dtype == torch.bool:
            if answers.ndim != 3 or list(answers.shape[1:]) != shape:
                raise ValueError(f"answers: expected bool [B, {shape[0]}, {shape[1]}], got {list(answers.shape)}")
            return answers
        if answers.is_floating_point() or answers.is_complex():
            raise ValueError(f"answers: expected integers [B, R] or bool [B, R, V], got {answers.dtype}")
        if answers.ndim != 2 or answers.shape[1] != shape[0]:
            raise ValueError(f"answers: expected integers [B, {shape[0]}], got {list(answers.shape)}")
        return answers.long()[..., None] == torch.arange(self.values, device=answers.device)

    def _same_shape(self, name: str, given: Tensor, taken: Tensor) -> None:
        if list(given.shape) != list(taken.shape[:2]):
            raise ValueError(f"{name}: expected shape {list(taken.shape[:2])}, got {list(given.shape)}")

    @staticmethod
    def _count(flat: Tensor, members: Tensor) -> Tensor:
        """Count the choices of every rule that are taken: bool [B, C], int64 [G, W] -> int64 [B, G]."""
        return (flat[:, members.clamp_min(0)] & (members >= 0)).sum(-1)


def lines(kind: str, groups: Iterable[Iterable[Any]], exact: bool = True) -> list[Rule]:
    """Make one rule of this kind for every group of choices."""
    return [Rule(kind, tuple(int(choice) for choice in group), exact) for group in groups]
