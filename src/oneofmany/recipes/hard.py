"""Recipes for hard Sudokus, ``sudoku-hard/OBJECTIVE/equivariant``: our network on puzzles of all ratings.

``sudoku-hard/OBJECTIVE/equivariant-checker`` is trained with the rules checker too. The settings were not tuned; the
changes of MinLoss are for comparison on dev.
"""

from __future__ import annotations

from oneofmany.recipes.base import Recipe, changed
from oneofmany.recipes.ours import ours
from oneofmany.training.settings import CHOOSING, OBJECTIVES, ObjectiveName, Settings

DATA = ("sudoku-hard-train", "sudoku-extreme-dev")
LARGE_DATA = ("sudoku-size-16-train", "sudoku-size-16-dev")
MS_SHARE = 0.25
"""The share of MS queries in a batch, as in the data; a search ends at a second solution, so they count as easy."""
LONGER = {"network.steps": 32, "network.test_steps": 1024, "burn_in": (0, 32, 64, 160)}
"""More steps in training and at test time, and a longer burn-in, than for other Sudokus."""


def hard(objective: ObjectiveName, *, checker: bool = False) -> Settings:
    """Our network with longer trajectories and a curriculum over the rating."""
    settings = ours(
        "sudoku",
        objective,
        6_000,
        recipe=f"sudoku-hard/{objective}/equivariant{'-checker' * checker}",
        curriculum=(0.5, 0.8),
        reveal=0.3,
        discover=checker,
        spare_settled=objective in CHOOSING and not checker,
    )
    phases = {"first": settings.first, "second": settings.second}
    shares = {f"{name}.sampling": MS_SHARE for name, phase in phases.items() if phase.sampling == "uniform"}
    return changed(settings, LONGER | shares)


def hard_recipes() -> list[Recipe]:
    """All recipes for hard Sudokus."""
    made = {objective: Recipe(hard(objective), *DATA) for objective in OBJECTIVES}
    # The same number of steps in two windows, as many trained steps from states without burn-in, and no curriculum.
    changes = {
        "windows": {"network.steps": 16, "windows": 2},
        "carry": {"network.steps": 16, "windows": 4, "burn_in": (0,)},
        "no-curriculum": {"curriculum": None},
    }
    # 16x16 has no rating; fewer updates and smaller batches, since a board has 4,096 choices instead of 729.
    large = {"curriculum": None, "first.sampling": "uniform", "first.batch": 128}
    sizes = {
        "size-16": large | {"first.updates": 3_000, "evaluate_every": 300},
        "size-16-from-9": large
        | {
            "initial": "sudoku-hard",
            "first.updates": 1_000,
            "first.lr": 5e-4,
            "first.warmup": 100,
            "evaluate_every": 250,
        },
    }
    return [
        *made.values(),
        *(Recipe(hard(objective, checker=True), *DATA) for objective in CHOOSING),
        *(made["minloss"].changed(name, fields) for name, fields in changes.items()),
        *(made["minloss"].changed(name, fields, *LARGE_DATA) for name, fields in sizes.items()),
    ]
