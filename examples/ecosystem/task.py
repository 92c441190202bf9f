"""The toy task of these examples: two digits whose sum ends in the given digit. Every query has ten right answers."""

import torch
from torch import Tensor, nn

QUERIES = torch.arange(10)
ANSWERS = torch.tensor([[[a, (q - a) % 10] for a in range(10)] for q in range(10)])  # [B,K,R]


def network() -> nn.Module:
    """A network over the query, with logits [B,R,V] of two digits."""
    return nn.Sequential(nn.Embedding(10, 64), nn.ReLU(), nn.Linear(64, 20), nn.Unflatten(-1, (2, 10)))


def right(answers: Tensor) -> int:
    """How many of the ten answers [B,R] are right."""
    return int((answers.sum(-1) % 10 == QUERIES).sum())
