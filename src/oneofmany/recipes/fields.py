"""Recipes with some of their fields changed, as the arguments of ``oneofmany train`` say it."""

from __future__ import annotations

from collections.abc import Sequence

from oneofmany.recipes import recipe
from oneofmany.training.settings import Settings


def resolve(name: str, fields: Sequence[str]) -> Settings:
    """The settings of a recipe with fields such as ``["--first.lr", "0.01"]`` changed.

    An unknown field exits with the closest name, as the command does; a bad value raises ValueError.
    """
    import tyro

    class Unchecked(Settings):
        """Values are checked after all are read, so that what is wrong with them is one sentence."""

        def __post_init__(self) -> None:
            pass

    config = (tyro.conf.FlagConversionOff,)
    default = Unchecked(**vars(recipe(name)))
    given = tyro.cli(Unchecked, default=default, prog=f"oneofmany train {name}", args=list(fields), config=config)
    return Settings(**vars(given))
