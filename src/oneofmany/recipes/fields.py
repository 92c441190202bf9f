"""Recipes with some fields changed by arguments of ``oneofmany train``."""

from __future__ import annotations

from collections.abc import Sequence

from oneofmany.recipes import recipe
from oneofmany.training.settings import Settings


def resolve(name: str, fields: Sequence[str], base: Settings | None = None) -> Settings:
    """The settings of a recipe, or of ``base``, with fields such as ``["--first.lr", "0.01"]`` changed.

    An unknown field exits with the closest name, as the command does; a bad value raises ValueError.
    """
    import tyro

    # tyro would print a ValueError of the check as a usage message; checked afterwards, it is one sentence.
    class Unchecked(Settings):
        """Train this recipe. Every field is an option; the defaults below are those of the recipe."""

        def __post_init__(self) -> None:
            pass

    config = (tyro.conf.FlagConversionOff,)
    default = Unchecked(**vars(base or recipe(name)))
    given = tyro.cli(Unchecked, default=default, prog=f"oneofmany train {name}", args=list(fields), config=config)
    return Settings(**vars(given))
