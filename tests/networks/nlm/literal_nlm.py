"""The Neural Logic Machine as its paper defines it (Dong et al. 2019): slow and easy to check.

Breadth 2. In each layer an arity sees its own predicates, the expanded ones of the arity below and the max and min of
the arity above; binary predicates also with their objects swapped. Then follow one linear map and a sigmoid.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def reduce_objects(x: Tensor, exclude_self: bool) -> Tensor:
    """[.., n, C] -> [.., 2 C]: max and min over the last object axis, side by side for every channel."""
    n = x.shape[-2]
    high = low = x
    if exclude_self:
        itself = torch.eye(n, dtype=torch.bool, device=x.device)[:, :, None]
        high, low = x.masked_fill(itself, 0.0), x.masked_fill(itself, 1.0)
    both = torch.stack([high.max(-2).values, low.min(-2).values], -1)
    return both.flatten(-2)


class LiteralLayer(nn.Module):
    def __init__(self, nullary: int, unary: int, binary: int, width: int) -> None:
        super().__init__()
        self.nullary = nn.Linear(nullary + 2 * unary, width)
        self.unary = nn.Linear(nullary + unary + 2 * binary, width)
        self.binary = nn.Linear(2 * (unary + binary), width)

    def forward(self, n: Tensor, u: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        objects = u.shape[1]
        nullary = torch.cat([n, reduce_objects(u, False)], -1)
        expanded = n[:, None].expand(-1, objects, -1)
        unary = torch.cat([expanded, u, reduce_objects(b, True)], -1)
        binary = torch.cat([u[:, :, None].expand(-1, -1, objects, -1), b], -1)
        binary = torch.cat([binary, binary.transpose(1, 2)], -1)
        return self.nullary(nullary).sigmoid(), self.unary(unary).sigmoid(), self.binary(binary).sigmoid()


class LiteralNLM(nn.Module):
    """nullary [B, N], unary [B, n, U], binary [n, n, P] or [B, n, n, P] -> [B, n], or [B] from a nullary readout."""

    def __init__(
        self,
        nullary: int,
        unary: int,
        binary: int,
        depth: int = 30,
        width: int = 8,
        residual: bool = True,
        readout: str = "unary",
    ) -> None:
        super().__init__()
        self.residual, self.readout_on = residual, readout
        dims = [nullary, unary, binary]
        self.layers = nn.ModuleList()
        for _ in range(depth):
            self.layers.append(LiteralLayer(*dims, width))
            dims = [d + width for d in dims] if residual else [width] * 3
        self.readout = nn.Linear(dims[1] if readout == "unary" else dims[0], 1)

    def forward(self, nullary: Tensor, unary: Tensor, binary: Tensor) -> Tensor:
        state = (nullary, unary, binary.expand(len(unary), *binary.shape[-3:]))
        for layer in self.layers:
            new = layer(*state)
            state = tuple(torch.cat(both, -1) for both in zip(state, new, strict=True)) if self.residual else new
        return self.readout(state[1] if self.readout_on == "unary" else state[0]).squeeze(-1)


def literal_binary(task: str, size: int) -> Tensor:
    """[n, n, P] binary predicates of a task, object by object."""
    if task == "nqueens":
        cells = [(r, c) for r in range(size) for c in range(size)]

        def related(a, b):
            return a[0] == b[0], a[1] == b[1], a[0] - a[1] == b[0] - b[1], a[0] + a[1] == b[0] + b[1]
    else:
        cells = [(r, c, d) for r in range(size) for c in range(size) for d in range(size)]

        def related(a, b):
            same_digit = a[2] == b[2]
            return a[:2] == b[:2], a[0] == b[0] and same_digit, a[1] == b[1] and same_digit

    return torch.tensor([[related(a, b) for b in cells] for a in cells], dtype=torch.float32)


def literal_unary(task: str, size: int, query: list[int], relations: list[tuple[int, int]] = ()) -> Tensor:
    """[n, U] unary inputs of one query (0 blank, 1..V given), with relations (a, b), cell a < cell b, side by side."""
    values = size
    prior = [[float(given == value + 1)] for given in query for value in range(values)]
    if task == "nqueens":
        return torch.tensor(prior)
    greater, less = set(), set()
    for a, b in relations:
        left, right = min(a, b), max(a, b)
        assert right == left + 1
        assert left // size == right // size
        (less if a == left else greater).add(left)
    return torch.tensor(
        [
            prior[cell * values + d] + [float(cell in greater), float(cell in less)]
            for cell in range(size * size)
            for d in range(values)
        ]
    )
