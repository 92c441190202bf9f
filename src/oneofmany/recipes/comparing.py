"""Compare a run with the recipe that its settings name."""

from __future__ import annotations

from typing import Any

from oneofmany.recipes import recipe, recipes
from oneofmany.training.phases import phases_of, pretrainings
from oneofmany.training.settings import TWO_PHASES, Settings, differences, from_json, to_json

ASIDE = frozenset(
    {
        "seed",
        "pretrained",  # a path
        # These do not change what is trained:
        "device",
        "threads",
        "capture",
        "compile",
        "log_every",
        "checkpoint_minutes",
    }
)
"""Settings that are not part of a recipe."""


def departures(settings: dict[str, Any]) -> list[str]:
    """The differences between the settings of a record and its recipe: ``first.lr: 0.001 there, 0.002 here``.

    Settings without effect in the run are ignored: the selector's without SelectR, a second phase without updates, and
    the first phase of a run that started from another run. That other run's recipe has to be the pre-training.
    """
    run = from_json(settings)
    unused = ASIDE | _unused(run)
    named = recipe(run.recipe)
    ours, theirs = ({name: value for name, value in to_json(one).items() if name not in unused} for one in (run, named))
    starts = [_recipe_in(path) for path in run.pretrained]
    trained = [phase for start in starts if start for phase in phases_of(recipe(start))]
    if starts and trained != pretrainings(named):
        return [*differences(ours, theirs), f"pretrained: {', '.join(run.pretrained)} is not its pre-training"]
    return differences(ours, theirs)


def _recipe_in(path: str) -> str | None:
    """The recipe of a run folder named ``.../RECIPE/SEED``; None if there is no such recipe."""
    parts = path.split("/")[:-1]
    names = ("/".join(parts[place:]) for place in range(len(parts)))
    return next((name for name in names if name in recipes()), None)


def _unused(run: Settings) -> set[str]:
    unused = set()
    if run.objective != "selectr":
        unused |= {"selector", "selector_training"}
    if run.objective not in TWO_PHASES and not run.second.updates:
        unused |= {"second", "pretraining"}
    if run.pretrained:
        unused |= {"first", "pretraining"}
    return unused
