"""A batch of queries with their listed solutions: the input of a network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from oneofmany.problems.own_rules import OwnRules
from oneofmany.problems.problem import Problem

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """Queries of one problem on one device.

    Args:
        query: int64 [B, R], 0 = blank, 1..V = given.
        solutions: int64 [B, K, R] listed solutions with values 0..V-1, padded.
        mask: bool [B, K], True for a listed solution, False for padding.
        total: int64 [B], how many solutions exist; -1 if unknown.
        problem: the problem of all queries.
        relations: int64 [B, M, 2], pairs (a, b) meaning variable a < variable b, or a != b if that is the problem's
            relation; -1 for padding; None if there are no relations.
        own: the rules that queries of the data bring of their own, on the device; None if there are none.
        rows: int64 [B], the queries' places in ``own``.
        most_related: the largest number of relations at a variable in the data, so that tables of relations as rules
            have the same shape for all of its batches. No query may have more. None if it is not known (set it so if
            you replace the relations): the host then waits for that of the batch.
    """

    query: Tensor
    solutions: Tensor
    mask: Tensor
    total: Tensor
    problem: Problem
    relations: Tensor | None = None
    own: OwnRules | None = None
    rows: Tensor | None = None
    most_related: int | None = None

    def __post_init__(self) -> None:
        if (self.own is None) != (self.rows is None):
            raise ValueError("own and rows: expected both or neither")

    def __len__(self) -> int:
        return len(self.query)

    def __getitem__(self, rows: slice | Tensor) -> Batch:
        """Return the batch of some of the queries."""
        relations = None if self.relations is None else self.relations[rows]
        return replace(
            self,
            query=self.query[rows],
            solutions=self.solutions[rows],
            mask=self.mask[rows],
            total=self.total[rows],
            relations=relations,
            rows=None if self.rows is None else self.rows[rows],
        )

    def problem_of(self, row: int) -> Problem:
        """Return the problem of one query, with the rules of its own if it has any."""
        if self.own is None or self.rows is None:
            return self.problem
        return self.problem.with_rules(self.own.on_host().rules(int(self.rows[row])))

    def check(self, answers: Tensor) -> Tensor:
        """Return which answers are solutions of their queries, bool [B]; answers are as in ``Problem.check``."""
        valid = self.problem.check(answers, self.query, self.relations)
        if self.own is not None and self.rows is not None:
            valid = valid & self.own.kept(self.problem.taken(answers).flatten(1), self.rows)
        return valid


def most_related(relations: Tensor, variables: int) -> int:
    """Return the largest number of relations at a variable of a query; the host waits for the device.

    Args:
        relations: integer [Q, M, 2], -1 for padding.
        variables: R, the number of variables.
    """
    import torch

    most = 0
    for part in relations.split(4096):  # so that memory does not grow with the data
        ends = torch.where(part >= 0, part.long(), variables).flatten(1)
        number = torch.zeros(len(part), variables + 1, dtype=torch.int64, device=part.device)
        number = number.scatter_add(1, ends, torch.ones_like(ends))[:, :-1]
        most = max(most, int(number.max()) if number.numel() else 0)
    return most
