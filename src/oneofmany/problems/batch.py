"""What a network sees: a batch of queries of one problem, with their listed solutions."""

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
        mask: bool [B, K], which listed solutions are real.
        total: int64 [B], all solutions that exist; -1 where unknown.
        problem: the problem that all of these belong to.
        relations: int64 [B, M, 2], pairs (a, b) meaning variable a < variable b, -1 for padding; None without.
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
        """The batch of some of the queries."""
        relations = None if self.relations is None else self.relations[rows]
        return replace(
            self,
            query=self.query[rows],
            solutions=self.solutions[rows],
            mask=self.mask[rows],
            total=self.total[rows],
            relations=relations,
        )
