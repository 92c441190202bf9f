"""Recipes: the settings and data of every published number, by name.

* ``TASK/OBJECTIVE``: the paper's network and literal settings.
* ``TASK/OBJECTIVE/large-batch``: the same number of queries in larger batches.
* ``TASK/OBJECTIVE/table-2``: the settings of our Table 2, chosen on dev from ``TASK/OBJECTIVE/tuning/POINT``.
* ``TASK/OBJECTIVE/equivariant``: our network.
* ``sudoku-hard/OBJECTIVE/equivariant``: our network on Sudokus that need much search.
* ``TASK/OBJECTIVE/transformer``: a recurrent Transformer that is given no rules.
* ``pairs/OBJECTIVE``: the same on your own imported fill-in data.
* ``sequences/OBJECTIVE``, ``sequences/OBJECTIVE/ctc``: an encoder-decoder, and CTC, on your own imported sequences.
* ``TASK/OBJECTIVE/tiny``: our network on small boards, a minute on a laptop.
* ``colouring/OBJECTIVE/equivariant``: our network on graphs; ``.../5-colours`` and ``.../long`` change the data.
* ``sequences/OBJECTIVE/cmudict``, ``sequences/OBJECTIVE/ctc/cmudict``: the same on pronunciations of English words.
* ``nqueens/OBJECTIVE/small``, ``nqueens/OBJECTIVE/small-transformer``, ``sequences/OBJECTIVE/small``,
  ``sequences/OBJECTIVE/small-ctc``: which objective for which network, on one CPU core.

A task of your own has the recipes ``TASK/OBJECTIVE/equivariant``, of a size for two CPU cores.

A longer name, ``TASK/OBJECTIVE/VARIANT/CHANGE``, is a control, an ablation or another experiment.
"""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache

from oneofmany.problems import TASKS, find_task
from oneofmany.recipes.ablations import ablation_recipes
from oneofmany.recipes.base import Recipe
from oneofmany.recipes.graphs import TASK as GRAPHS
from oneofmany.recipes.graphs import graph_recipes
from oneofmany.recipes.grid import tuning
from oneofmany.recipes.hard import hard_recipes
from oneofmany.recipes.ingredients import ingredient_recipes
from oneofmany.recipes.ours import our_recipes, own_task
from oneofmany.recipes.paper import SEEDS, paper_recipes
from oneofmany.recipes.paper import TASKS as PAPER_TASKS
from oneofmany.recipes.small import small_recipes
from oneofmany.recipes.table_2 import table_2_recipes
from oneofmany.recipes.without_rules import recipes_without_rules
from oneofmany.training.settings import OBJECTIVES, Settings

__all__ = ["SEEDS", "Recipe", "data_of", "matching", "recipe", "recipes", "tuning"]


def _table() -> dict[str, Recipe]:
    ours = {*PAPER_TASKS, GRAPHS}
    objectives = (*OBJECTIVES, "rules")
    own = [own_task(task, objective) for task in TASKS if task not in ours for objective in objectives]
    return _package() | {one.name: one for one in own}


@cache
def _package() -> dict[str, Recipe]:
    ours = (*our_recipes(), *hard_recipes(), *graph_recipes(), *recipes_without_rules(), *small_recipes())
    every = (*paper_recipes(), *table_2_recipes(), *ours, *ablation_recipes(), *ingredient_recipes())
    return {one.name: one for one in every}


def recipes() -> dict[str, Settings]:
    """The settings of all recipes, by name."""
    return {name: one.settings for name, one in _table().items()}


def recipe(name: str) -> Settings:
    """The settings of a recipe; an unknown name raises ValueError with the closest known name."""
    return _named(name).settings


def data_of(name: str) -> tuple[str, str]:
    """The names of a recipe's training and dev data, as in ``oneofmany.data.benchmark``; empty if it has none."""
    found = _named(name)
    return found.train, found.dev


def matching(pattern: str) -> list[str]:
    """The names of the recipes that match a pattern; ``*`` matches any part between two slashes."""
    parts = pattern.split("/")
    split = {name: name.split("/") for name in _table()}
    return [name for name, own in split.items() if len(own) == len(parts) and all(map(fnmatchcase, own, parts))]


def _named(name: str) -> Recipe:
    task = name.partition("/")[0]
    is_known = find_task(task) is not None  # it may be one of an installed package
    known = _table()
    if name in known:
        return known[name]
    close = get_close_matches(name, known, 1) if is_known or get_close_matches(task, TASKS, 1) else []
    hint = "the recipes are TASK/OBJECTIVE, for example nqueens/minloss; a task of your own needs its --task-file"
    hint = f"did you mean {close[0]!r}?" if close else hint
    raise ValueError(f"there is no recipe {name!r}: {hint}")
