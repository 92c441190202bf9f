"""Encode a query as predicates of a Neural Logic Machine. Objects are choices; the predicates are the paper's.

N-Queens: HasQueenPrior(cell); same row, column, diagonal, anti-diagonal. Futoshiki: IsPresentPrior(cell, digit) and two
flags, greater and less; same cell, same row and digit, same column and digit. Every binary predicate holds between an
object and itself.

The flags are set on the first cell of a relation, for all its digits: *greater* if it is greater than its right-hand
neighbour, *less* if less. The right-hand cell has no flag. The flags do not encode the second cell of a relation: the
paper's data has horizontal neighbours only, and other pairs would look the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from oneofmany.problems import Batch, Problem

Relations = Literal["horizontal", "any"]
"""Relations that the flags may encode: horizontal neighbours only (others are an error), or any two cells, with the
flag on the one that comes first in reading order."""


@dataclass(frozen=True)
class StaticPredicates:
    """The predicates shared by all queries of a problem.

    Args:
        binary: [n, n, P] binary predicates.
        relations: int64 [S, 2] relations that are part of the problem; None if there are none.
    """

    binary: Tensor
    relations: Tensor | None


class Predicates:
    """The predicates of one task.

    Args:
        task: ``nqueens`` or ``futoshiki``.
        relations: which relations of a Futoshiki the flags may encode.
    """

    def __init__(self, task: str, relations: Relations = "horizontal") -> None:
        if task not in ("nqueens", "futoshiki"):
            raise ValueError(f"task: expected nqueens or futoshiki, which have predicates for an NLM, got {task!r}")
        if relations not in ("horizontal", "any"):
            raise ValueError(f"relations: expected 'horizontal' or 'any', got {relations!r}")
        self.task = task
        self.relations = relations
        self.flags = 2 if task == "futoshiki" else 0
        self.binary = 3 if task == "futoshiki" else 4
        self._static: dict[tuple[object, ...], StaticPredicates] = {}

    def static(self, problem: Problem, device: torch.device, dtype: torch.dtype) -> StaticPredicates:
        """Return binary predicates and relations of a problem, built once per size, device and dtype."""
        inequalities = problem.options.get("inequalities", ())
        key = (problem.size, inequalities, device, dtype)
        if key not in self._static:
            n = problem.size
            choice = torch.arange(problem.choices, device=device)
            if self.task == "nqueens":
                row, column = choice // n, choice % n
                classes = [row, column, row - column, row + column]
            else:
                cell, digit = choice // n, choice % n
                classes = [cell, cell // n * n + digit, cell % n * n + digit]
            binary = torch.stack([one[:, None] == one for one in classes], -1).to(dtype)
            pairs = torch.tensor(inequalities, device=device) if inequalities else None
            self._static[key] = StaticPredicates(binary, pairs)
        return self._static[key]

    def check(self, batch: Batch, device: torch.device) -> None:
        """Raise ValueError unless the batch is of this task and on this device."""
        problem, query, relations = batch.problem, batch.query, batch.relations
        if problem.task != self.task:
            raise ValueError(f"batch: expected queries of {self.task}, which the network was built for, got {problem}")
        if query.ndim != 2 or query.shape[1] != problem.variables or not len(query):
            raise ValueError(f"query: expected shape [B, {problem.variables}] with B > 0, got {list(query.shape)}")
        given = {"query": query} if relations is None else {"query": query, "relations": relations}
        for name, tensor in given.items():
            if tensor.dtype != torch.int64:
                raise ValueError(f"{name}: expected int64, got {tensor.dtype}")
            if tensor.device != device:
                raise ValueError(f"{name}: expected device {device}, where the network is, got {tensor.device}")
        if relations is not None:
            if not self.flags and relations.numel():
                raise ValueError(f"relations: {self.task} has none, got shape {list(relations.shape)}")
            if relations.ndim != 3 or relations.shape[0] != len(query) or relations.shape[2] != 2:
                raise ValueError(f"relations: expected shape [{len(query)}, M, 2], got {list(relations.shape)}")
        # Reading values makes the host wait for the device, which compiled functions and captured graphs cannot do.
        if not (torch.compiler.is_compiling() or (query.is_cuda and torch.cuda.is_current_stream_capturing())):
            self._check_values(batch, device)

    def _check_values(self, batch: Batch, device: torch.device) -> None:
        problem = batch.problem
        if ((batch.query < 0) | (batch.query > problem.values)).any():
            raise ValueError(
                f"query: expected 0 to {problem.values}, got {int(batch.query.min())} to {int(batch.query.max())}"
            )
        pairs = self._pairs(batch, device) if self.flags else None
        if pairs is not None and (why := self._untellable(problem, pairs)):
            raise ValueError(why)

    def accepts(self, problem: Problem, relations: np.ndarray | None = None) -> str | None:
        """Return None if the flags can encode these relations [.., 2] and the problem's own, else the reason."""
        if not self.flags:
            return None
        own = np.array(problem.options.get("inequalities", ()), np.int64).reshape(-1, 2)
        given = own if relations is None else np.concatenate([own, relations.reshape(-1, 2)])
        return self._untellable(problem, torch.from_numpy(given))

    def _untellable(self, problem: Problem, pairs: Tensor) -> str | None:
        """Why the flags cannot encode relations int64 [.., 2], -1 for padding; None if they can."""
        n = problem.size
        low, high = pairs.amin(-1), pairs.amax(-1)
        if (high >= problem.variables).any():
            return f"relations: expected cells from 0 to {problem.variables - 1}, got {int(high.max())}"
        neighbours = (high == low + 1) & (high % n > 0)
        wrong = (low >= 0) & ~neighbours
        if self.relations == "horizontal" and wrong.any():
            a, b = pairs[wrong][0].tolist()
            return (
                f"relations: expected horizontal neighbours, the only ones that the two flags can encode "
                f"(relations='any' allows others), got cells {a} and {b}"
            )
        return None

    def _pairs(self, batch: Batch, device: torch.device) -> Tensor | None:
        """int64 [B, M, 2] relations of the queries and of the problem, -1 for padding; None if there are none."""
        static = self.static(batch.problem, device, torch.float32).relations
        if static is None:
            return batch.relations
        static = static.expand(len(batch.query), -1, -1)
        return static if batch.relations is None else torch.cat([batch.relations, static], 1)

    def flag_inputs(self, batch: Batch, dtype: torch.dtype) -> Tensor:
        """Return [B, n, flags]: greater and less, repeated for the digits of a cell; no flags for N-Queens."""
        B, R, V = len(batch.query), batch.problem.variables, batch.problem.values
        device = batch.query.device
        # The extra column is for padding.
        flags = torch.zeros(B, self.flags, R + 1, dtype=dtype, device=device)
        pairs = self._pairs(batch, device) if self.flags else None
        if pairs is not None:
            smaller, larger = pairs.unbind(-1)
            less = (smaller < larger).long()
            place = torch.where(smaller < 0, R, torch.minimum(smaller, larger)) + less * (R + 1)
            flags = flags.flatten(1).scatter(1, place, 1.0).view(B, 2, R + 1)
        return flags[..., :R, None].expand(-1, -1, -1, V).flatten(2).mT

    def prior(self, batch: Batch, dtype: torch.dtype) -> Tensor:
        """Return [B, n, 1]: 1 if the choice is given."""
        values = torch.arange(1, batch.problem.values + 1, device=batch.query.device)
        return (batch.query[..., None] == values).flatten(1)[..., None].to(dtype)


def task_of(task: str | Problem) -> str:
    """Return the name of a task given by name or by one of its problems."""
    return task.task if isinstance(task, Problem) else task
