"""Recipes: the settings of every published experiment and of ours, by name.

``TASK/OBJECTIVE`` has the paper's network and literal settings, ``TASK/OBJECTIVE/large-batch`` the same queries in
larger batches. ``TASK/OBJECTIVE/table-2`` made our Table 2, out of what was tried on dev:
``TASK/OBJECTIVE/tuning/POINT``. ``TASK/OBJECTIVE/equivariant`` has our network, ``TASK/OBJECTIVE/tiny`` takes a minute
on a laptop. A name that goes on is a change of that recipe: a control, an ablation, an experiment.
"""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache

from oneofmany.recipes.ablations import ablation_recipes
from oneofmany.recipes.base import Recipe
from oneofmany.recipes.grid import tuning
from oneofmany.recipes.ours import our_recipes
from oneofmany.recipes.paper import SEEDS, paper_recipes
from oneofmany.recipes.table_2 import table_2_recipes
from oneofmany.training.settings import Settings

__all__ = ["SEEDS", "Recipe", "data_of", "matching", "recipe", "recipes", "tuning"]


@cache
def _table() -> dict[str, Recipe]:
    every = (*paper_recipes(), *table_2_recipes(), *our_recipes(), *ablation_recipes())
    return {one.name: one for one in every}


def recipes() -> dict[str, Settings]:
    """The settings of all recipes by name."""
    return {name: one.settings for name, one in _table().items()}


def recipe(name: str) -> Settings:
    """The settings of a recipe; ValueError with the closest name where there is none."""
    return _named(name).settings


def data_of(name: str) -> tuple[str, str]:
    """The names of a recipe's training and dev data, as in ``oneofmany.data.benchmark``."""
    found = _named(name)
    return found.train, found.dev


def matching(pattern: str) -> list[str]:
    """The names of the recipes that fit a pattern, whose ``*`` stands for any part between two slashes."""
    parts = pattern.split("/")
    split = {name: name.split("/") for name in _table()}
    return [name for name, own in split.items() if len(own) == len(parts) and all(map(fnmatchcase, own, parts))]


def _named(name: str) -> Recipe:
    known = _table()
    if name in known:
        return known[name]
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else "the recipes are TASK/OBJECTIVE, for example nqueens/minloss"
    raise ValueError(f"there is no recipe {name!r}: {hint}")
