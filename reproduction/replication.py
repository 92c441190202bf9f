"""What an exact replication of Table 2 would be expected to score by our rule of agreement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import sqrt

import numpy as np

from oneofmany.report.grid import OBJECTIVES, TASKS
from reproduction import paper

LEAST = 2.0
"""Points that two means may always differ by."""


@dataclass(frozen=True)
class Expected:
    """The number of means that agree: the mean of the simulated replications and the range of 95 % of them."""

    mean: float
    low: int
    high: int


def agrees(points: np.ndarray, published: float, ours: np.ndarray) -> np.ndarray:
    """Whether means differ by at most ``LEAST`` points or two standard errors of their difference.

    Args:
        points: float [D], the differences.
        published: the paper's standard error.
        ours: float [D], the standard errors of the replications.
    """
    return np.abs(points) <= np.maximum(LEAST, 2 * np.hypot(published, ours))


@cache
def exact_replication(draws: int = 10_000, seed: int = 0) -> Expected:
    """Simulate replications: both sides have the same true means, and the published standard errors are the true ones.

    Both draw as many seeds as the paper has, normal, on OS and MS queries. Overall follows from these two with the test
    set's share of MS queries; their correlation is the one that gives overall its published standard error. The
    tolerance uses the published standard error and that of the drawn seeds, as for our runs.
    """
    rng, count = np.random.default_rng(seed), np.zeros(draws, int)
    seeds = len(paper.SEEDS)
    for task in TASKS:
        share = paper.TABLE_1[f"{task}-test"].ms_percent / 100
        for objective in OBJECTIVES:
            error = {subset: paper.STANDARD_ERRORS[task, objective, subset] for subset in ("os", "ms", "overall")}
            # [ours or the paper's, draw, seed]; the true means cancel in the difference.
            one, other = rng.normal(0, sqrt(seeds), (2, 2, draws, seeds))
            a, b = (1 - share) * error["os"], share * error["ms"]
            r = np.clip((error["overall"] ** 2 - a * a - b * b) / (2 * a * b), -1, 1)
            drawn = {"os": error["os"] * one, "ms": error["ms"] * (r * one + sqrt(1 - r * r) * other)}
            drawn["overall"] = (1 - share) * drawn["os"] + share * drawn["ms"]
            for subset, (ours, theirs) in drawn.items():
                own = ours.std(-1, ddof=1) / sqrt(seeds)
                count += agrees(ours.mean(-1) - theirs.mean(-1), error[subset], own)
    low, high = np.quantile(count, (0.025, 0.975), method="nearest")
    return Expected(float(count.mean()), int(low), int(high))
