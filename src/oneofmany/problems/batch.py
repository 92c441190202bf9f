"""A batch of queries of one problem with their listed solutions: the input of a network."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from oneofmany.problems.problem import Problem


@dataclass(frozen=True, eq=False)
class Batch:
    """Queries of one problem on one device.

    Args:
        query: int64 [B, R], 0 = blank, 1..V = given.
        solutions: int64 [B, K, R] listed solutions with values 0..V-1, padded.
        mask: bool [B, K], True for a listed solution, False for padding.
        total: int64 [B], how many solutions exist; -1 if unknown.
        problem: the problem of all queries.
        relations: int64 [B, M, 2], pairs (a, b) meaning variable a < variable b, -1 for padding; None if there are no
            relations.
    """

    query: Tensor
    solutions: Tensor
    mask: Tensor
    total: Tensor
    problem: Problem
    relations: Tensor | None = None

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
        )
