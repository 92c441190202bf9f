"""The small tuning grid of the paper's recipes: the same number of settings for every objective, compared on dev.

The paper tunes the share of MS queries in each phase, the weight decay, copyitr, the learning rate of the second phase
and the pre-training. Each objective gets the three settings (on Sudoku two) that matter most to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oneofmany.recipes.paper import literal
from oneofmany.training.settings import ObjectiveName, Settings

Point = Mapping[str, str]
"""Field -> value, both as text for the command line."""

_IN_UPDATES = {"selector_training.copy_interval"}
_TUNED: dict[str, dict[str, tuple[Point, ...]]] = {
    "nqueens": {
        "naive": tuple({"decay": value} for value in ("1e-4", "1e-5", "0")),
        "ccloss": tuple({"first.sampling": value} for value in ("uniform", "0.25", "0.5")),
        "iexplr": (
            {"pretraining": "unique", "second.sampling": "ms"},
            {"pretraining": "minloss", "second.sampling": "ms"},
            {"pretraining": "unique", "second.sampling": "0.5"},
        ),
        "selectr": (
            {"pretraining": "unique", "second.sampling": "ms", "selector_training.copy_interval": "2500"},
            {"pretraining": "minloss", "second.sampling": "ms", "selector_training.copy_interval": "2500"},
            {"pretraining": "unique", "second.sampling": "0.5", "selector_training.copy_interval": "1"},
        ),
    },
    "sudoku": {
        "naive": tuple({"decay": value} for value in ("1e-4", "1e-5")),
        "ccloss": tuple({"first.sampling": value} for value in ("uniform", "0.2")),
        # MinLoss is the better start on dev; the learning rates are the authors' two.
        "iexplr": tuple({"pretraining": "minloss", "second.lr": value} for value in ("1e-4", "2e-5")),
    },
}
# On Futoshiki the authors start from a MinLoss trained on more MS queries.
_TUNED["futoshiki"] = _TUNED["nqueens"] | {
    "ccloss": tuple({"first.sampling": value} for value in ("0.25", "0.5", "ms"))
}
_AS = {"random": "naive", "unique": "naive", "minloss": "ccloss", "selectr": "iexplr"}
"""Objective without its own grid -> the objective whose grid it uses."""


def points(task: str, objective: ObjectiveName) -> tuple[Point, ...]:
    """The settings that were tried for an objective with the paper's batches."""
    table = _TUNED[task]
    return table[objective if objective in table else _AS[objective]]


def tuning(settings: Settings) -> tuple[Point, ...]:
    """The tuning grid of one of the paper's recipes; intervals are converted to updates of the recipe's batch size."""
    if settings.network.kind not in ("nlm", "rrn"):
        raise ValueError(
            f"there is no tuning grid for {settings.recipe}: only the recipes with the paper's networks have one"
        )
    times = settings.first.batch // literal(settings.task, settings.objective).first.batch
    return tuple(
        {name: str(-(-int(value) // times)) if name in _IN_UPDATES else value for name, value in point.items()}
        for point in points(settings.task, settings.objective)
    )


def name_of(point: Point) -> str:
    """``decay=1e-4`` or ``pretraining=unique,second.sampling=ms``."""
    return ",".join(f"{field}={value}" for field, value in point.items())


def values_of(point: Point) -> dict[str, Any]:
    """Field -> value with the type of the settings."""
    return {field: int(value) if field in _IN_UPDATES else _number(value) for field, value in point.items()}


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value
