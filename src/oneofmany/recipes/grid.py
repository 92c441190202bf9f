"""The short tuning grid of the paper's recipes, chosen from on dev: equally many settings for every objective.

The paper tunes the share of MS queries in each phase, the weight decay, copyitr, the second phase's rate, and what to
start from; of these, each objective gets the three settings (on Sudoku two) that matter most to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oneofmany.recipes.paper import literal
from oneofmany.training.settings import ObjectiveName, Settings

Point = Mapping[str, str]
"""Field -> value, both as the command line takes them."""

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
        # From MinLoss, which is the better start on dev there; the authors' two rates.
        "iexplr": tuple({"pretraining": "minloss", "second.lr": value} for value in ("1e-4", "2e-5")),
    },
}
# The authors start from MinLoss that was trained on more MS queries there.
_TUNED["futoshiki"] = _TUNED["nqueens"] | {
    "ccloss": tuple({"first.sampling": value} for value in ("0.25", "0.5", "ms"))
}
_AS = {"random": "naive", "unique": "naive", "minloss": "ccloss", "selectr": "iexplr"}
"""Objective -> the one whose grid it has, where it has none of its own."""


def points(task: str, objective: ObjectiveName) -> tuple[Point, ...]:
    """The settings that were tried for an objective with the paper's batches."""
    table = _TUNED[task]
    return table[objective if objective in table else _AS[objective]]


def tuning(settings: Settings) -> tuple[Point, ...]:
    """The tuning grid of a paper's recipe; intervals are counted in updates of the recipe's batches."""
    if settings.network.kind not in ("nlm", "rrn"):
        raise ValueError(f"there is no tuning grid for {settings.recipe}: only for the paper's networks")
    times = settings.first.batch // literal(settings.task, settings.objective).first.batch
    return tuple(
        {name: str(-(-int(value) // times)) if name in _IN_UPDATES else value for name, value in point.items()}
        for point in points(settings.task, settings.objective)
    )


def name_of(point: Point) -> str:
    """``decay=1e-4`` or ``pretraining=unique,second.sampling=ms``."""
    return ",".join(f"{field}={value}" for field, value in point.items())


def values_of(point: Point) -> dict[str, Any]:
    """Field -> value as the settings have it."""
    return {field: int(value) if field in _IN_UPDATES else _number(value) for field, value in point.items()}


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value
