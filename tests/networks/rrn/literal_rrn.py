"""The RRN as defined: a loop over edges, every layer per edge. Slow and easy to check."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def edge_list(box_rows: int, box_columns: int, distinct: bool) -> list[tuple[int, int]]:
    """(sender, receiver) of every edge: all pairs of a row, then of a column, then of a box."""
    n = box_rows * box_columns
    rows = [[r * n + c for c in range(n)] for r in range(n)]
    columns = [[r * n + c for r in range(n)] for c in range(n)]
    boxes = [
        [(top + r) * n + left + c for r in range(box_rows) for c in range(box_columns)]
        for top in range(0, n, box_rows)
        for left in range(0, n, box_columns)
    ]
    edges = [(i, j) for unit in rows + columns + boxes for i in unit for j in unit if i != j]
    return sorted(set(edges)) if distinct else edges


def mlp(inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, width),
    )


class LiteralRRN(nn.Module):
    """Logits [T, B, R, V + 1] of every step.

    ``forward`` takes the dropout masks of every step as a tensor [T, B, edges, width] of factors (0 or 1 / keep rate),
    or a probability to draw them with ``nn.functional.dropout``, or 0.
    """

    def __init__(
        self,
        box_rows: int,
        box_columns: int,
        distinct: bool = False,
        latent: int = 0,
        palm: bool = False,
        width: int = 96,
    ) -> None:
        super().__init__()
        n = box_rows * box_columns
        self.n = n
        edges = edge_list(box_rows, box_columns, distinct or palm)
        self.register_buffer("senders", torch.tensor([i for i, _ in edges]))
        self.register_buffer("receivers", torch.tensor([j for _, j in edges]))
        self.register_buffer("row_of", torch.tensor([cell // n for cell in range(n * n)]))
        self.register_buffer("column_of", torch.tensor([cell % n for cell in range(n * n)]))
        self.digit = nn.Embedding(n + 1, 16)
        self.row = nn.Embedding(n, 16)
        self.column = nn.Embedding(n, 16)
        self.latent = nn.Parameter(torch.randn(latent)) if latent else None
        self.input = mlp(48 + latent, width)
        self.message = mlp(2 * width, width)
        self.post = mlp(2 * width, width) if palm else None
        self.lstm = nn.LSTMCell(width if palm else 2 * width, width, bias=palm)
        self.output = nn.Linear(width, n + 1)

    def forward(self, query: Tensor, steps: int, drop: Tensor | float = 0.0) -> Tensor:
        B, R = query.shape
        parts = [self.digit(query)]
        parts.append(self.row(self.row_of).expand(B, -1, -1))
        parts.append(self.column(self.column_of).expand(B, -1, -1))
        if self.latent is not None:
            parts.append(self.latent.expand(B, R, -1))
        x = self.input(torch.cat(parts, -1))
        h = x
        hidden = torch.zeros_like(x).flatten(0, 1)
        c = torch.zeros_like(hidden)
        logits = []
        for t in range(steps):
            messages = self.message(torch.cat((h[:, self.senders], h[:, self.receivers]), -1))
            if isinstance(drop, Tensor):
                messages = messages * drop[t]
            elif drop:
                messages = nn.functional.dropout(messages, drop)
            arriving = torch.zeros_like(h).index_add(1, self.receivers, messages)
            new = torch.cat((x, arriving), -1)
            if self.post is not None:
                new = self.post(new)
            hidden, c = self.lstm(new.flatten(0, 1), (hidden, c))
            h = hidden.view(B, R, -1)
            logits.append(self.output(h))
        return torch.stack(logits)
