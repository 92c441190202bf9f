"""What a network without rules sees of a query: its givens, its relations, and which variable is which."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oneofmany.problems import Batch, Problem


class Embedding(nn.Module):
    """Embeds the variables of a query: the given value, a learned position, and the partners in its relations.

    Relations are part of the query, not rules: variable a of a relation a < b sees that it is "smaller than b", and b
    that it is "larger than a". What that means is learned.

    Args:
        problem: fixes the number of variables and values.
        width: channels of a variable.
    """

    def __init__(self, problem: Problem, width: int) -> None:
        super().__init__()
        self.values = problem.values
        self.given = nn.Parameter(torch.randn(problem.values + 1, width) * 0.5)
        self.position = nn.Parameter(torch.randn(problem.variables, width) * 0.5)
        self.relations = None
        if problem.relation_kind is not None:
            self.relations = nn.Parameter(torch.randn(2, problem.variables, width) * 0.5)

    def forward(self, batch: Batch) -> Tensor:
        """Return float [B, R, width]."""
        # Products with one-hot rows: their gradient has one order of sums, unlike that of a lookup.
        given = one_hot(batch.query, self.values + 1).to(self.given.dtype) @ self.given
        embedded = given + self.position
        if self.relations is not None and batch.relations is not None and batch.relations.shape[1]:
            smaller = self._smaller(batch.relations, len(self.position))
            embedded = embedded + smaller @ self.relations[0] + smaller.transpose(1, 2) @ self.relations[1]
        return embedded

    def _smaller(self, relations: Tensor, variables: int) -> Tensor:
        """[B, R, R]: 1 where variable a < variable b."""
        a, b = relations.unbind(-1)
        cells = torch.where(a < 0, variables * variables, a * variables + b)
        flat = torch.zeros(len(relations), variables * variables + 1, device=relations.device, dtype=self.given.dtype)
        return flat.scatter(1, cells, 1.0)[:, :-1].unflatten(1, (variables, variables))


def one_hot(values: Tensor, number: int) -> Tensor:
    """Return bool [.., number] from values [..]; unlike PyTorch's function, it never waits for the device."""
    return values[..., None] == torch.arange(number, device=values.device)


def check_batch(batch: Batch, variables: int, values: int, device: torch.device) -> None:
    """Raise ValueError unless a batch has this many variables and values, on this device."""
    problem, query = batch.problem, batch.query
    if (problem.variables, problem.values) != (variables, values) or query.shape[1:] != (variables,):
        raise ValueError(f"batch: expected {variables} variables of {values} values, got {problem}")
    if query.dtype != torch.int64 or query.device != device:
        raise ValueError(f"query: expected int64 on the network's device {device}, got {query.dtype} on {query.device}")
