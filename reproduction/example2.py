"""Example 2 of the paper: where each objective leaves the decision boundary of a logistic regression on ten points."""

from __future__ import annotations

import torch

from oneofmany.objectives import CCLoss, MinLoss, Naive, Objective

POINTS = ((1.0, (1,), 5), (-1.0, (0, 1), 4), (-2.0, (1,), 1))
"""(x, its right labels, how many such points)."""
START = (0.1, 0.0)
"""Slope and offset at first: the boundary is at 0."""


def boundaries(rate: float = 2.0, updates: int = 200) -> dict[str, tuple[float, float]]:
    """Objective -> (slope, offset) after gradient descent from ``START``."""
    return {
        name: _train(objective, rate, updates)
        for name, objective in {"minloss": MinLoss(), "naive": Naive(), "ccloss": CCLoss()}.items()
    }


def _train(objective: Objective, rate: float, updates: int) -> tuple[float, float]:
    x = torch.tensor([x for x, _, count in POINTS for _ in range(count)], dtype=torch.float64)
    solutions = torch.tensor([[[labels[0]], [labels[-1]]] for _, labels, count in POINTS for _ in range(count)])
    mask = torch.tensor([[True, len(labels) > 1] for _, labels, count in POINTS for _ in range(count)])
    theta = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    for _ in range(updates):
        score = theta[0] * x + theta[1]
        logits = torch.stack([torch.zeros_like(score), score], -1)[:, None]
        (gradient,) = torch.autograd.grad(objective(logits, solutions, mask), theta)
        theta = (theta - rate * gradient).detach().requires_grad_()
    slope, offset = theta.tolist()
    return slope, offset
