"""What rules with weights and bounds tell the choices, in plain PyTorch.

The network's belief gives an expected sum. A rule tells every value of its variables the weight of that value and how
much is then left to the bounds, if the other variables add what is expected of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from oneofmany.networks.equivariant.plain import sum_rows
from oneofmany.networks.equivariant.rules import FEATURES
from oneofmany.networks.equivariant.tables import SumTables


def beliefs(logits: Tensor, values: int) -> Tensor:
    """Return the probabilities [R, B, V] of logits [C, B]."""
    return logits.float().unflatten(0, (-1, values)).softmax(1).transpose(1, 2)


def sum_features(belief: Tensor, tables: SumTables) -> Tensor:
    """Return what the rules tell every choice, by kind: [R, B, V] -> [kinds, C, B, features]."""
    at = sum_rows(belief.contiguous(), tables.of_groups)
    own = (at * tables.weights).sum(-1, keepdim=True)
    others = sum_rows(sum_rows(own, tables.of_rules), tables.to_groups) - own
    weight = tables.weights.expand_as(at)
    above, below = tables.high - others - weight, others + weight - tables.low
    told = torch.stack(
        [weight, *(x / (1 + x.abs()) for x in (above, below)), *((-x).relu() for x in (above, below))], -1
    )
    flat = told.flatten(2)
    by_kind = torch.stack([sum_rows(flat, spread) for spread in tables.spread])
    return by_kind.unflatten(3, (-1, FEATURES)).transpose(2, 3).flatten(1, 2)
