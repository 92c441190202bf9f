"""Recipes: the settings of every published experiment and of ours, by name.

``TASK/OBJECTIVE`` is the paper's network and settings, ``TASK/OBJECTIVE/large-batch`` the same queries in larger
batches, ``TASK/OBJECTIVE/equivariant`` our network, ``TASK/OBJECTIVE/tiny`` a minute on a laptop.
"""

from __future__ import annotations

from difflib import get_close_matches

from oneofmany.recipes.ours import our_recipes
from oneofmany.recipes.paper import SEEDS, paper_recipes, tuning
from oneofmany.training.settings import Settings

__all__ = ["SEEDS", "data_of", "recipe", "recipes", "tuning"]


def recipes() -> dict[str, Settings]:
    """All recipes by name."""
    return paper_recipes() | our_recipes()


def recipe(name: str) -> Settings:
    """The settings of a recipe; ValueError with the closest name where there is none."""
    known = recipes()
    if name in known:
        return known[name]
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else "the recipes are TASK/OBJECTIVE, for example nqueens/minloss"
    raise ValueError(f"there is no recipe {name!r}: {hint}")


def data_of(name: str) -> tuple[str, str]:
    """The names of a recipe's training and dev data, as in ``oneofmany.data.benchmark``."""
    task = name.split("/")[0]
    if name.endswith("/tiny"):
        return f"{task}-tiny-train", f"{task}-tiny-dev"
    return "sudoku-os-train" if "180k" in name else f"{task}-train", f"{task}-dev"
