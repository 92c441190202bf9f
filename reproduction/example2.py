"""Example 2 of the paper: the decision boundary of a logistic regression on ten points, by objective."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from oneofmany.objectives import CCLoss, MinLoss, Naive, Objective
from oneofmany.pictures.themes import Chart, Theme
from oneofmany.report.figures import legend
from oneofmany.report.grid import name_of

POINTS = ((1.0, (1,), 5), (-1.0, (0, 1), 4), (-2.0, (1,), 1))
"""(x, its right labels, number of points)."""
START = (0.1, 0.0)
"""Initial slope and offset: the boundary is at 0."""


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


def example_chart() -> Chart:
    """Example 2: the final decision boundaries of MinLoss and of other objectives."""
    return Chart(
        "example-2",
        "Example 2: MinLoss in a local minimum",
        "Logistic regression on ten points, of which four (x = −1) may have either label. From slope 0.1 and offset 0, "
        "MinLoss ends with its boundary at −0.55, as in the paper, and is wrong at x = −2.",
        partial(_draw_example, ends=boundaries()),
    )


def _draw_example(figure: Any, theme: Theme, ends: dict[str, tuple[float, float]]) -> None:
    axes = figure.add_subplot()
    line = np.linspace(-3, 2, 300)
    starting = 1 / (1 + np.exp(-(START[0] * line + START[1])))
    axes.plot(line, starting, color=theme["ink"], linestyle="--", linewidth=1.2, label="start: boundary at 0")
    axes.axvline(0, color=theme["ink"], linestyle="--", linewidth=1)
    for objective, (slope, offset) in ends.items():
        boundary = -offset / slope
        inside = line[0] < boundary < line[-1]
        says = f"boundary at {boundary:.2f}".replace("-", "−") if inside else "label 1 everywhere"
        curve = 1 / (1 + np.exp(-(slope * line + offset)))
        axes.plot(line, curve, color=theme[objective], label=f"{name_of(objective)}: {says}")
        if inside:
            axes.axvline(boundary, color=theme[objective], linewidth=1)
    for x, labels, count in POINTS:
        for label in labels:
            axes.scatter(x, label, s=50 + 25 * count, color=theme["right" if label else "wrong"], zorder=3)
            axes.annotate(
                f"{count}×", (x, label), textcoords="offset points", xytext=(0, 10), ha="center", fontsize=9.5
            )
    axes.set(xlabel="x", ylabel="probability of label 1", ylim=(-0.09, 1.2), xlim=(-3, 2))
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.grid(axis="x", visible=False)
    legend(figure, axes, columns=2)
