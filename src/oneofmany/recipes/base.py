"""A recipe: named settings and the data they are for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from oneofmany.training.settings import Settings


@dataclass(frozen=True)
class Recipe:
    """Settings and the names of the training and dev data, as in ``oneofmany.data.benchmark``; empty for your own data.

    A name is ``TASK/OBJECTIVE``, ``TASK/OBJECTIVE/VARIANT`` or ``TASK/OBJECTIVE/VARIANT/CHANGE``.
    """

    settings: Settings
    train: str
    dev: str

    @property
    def name(self) -> str:
        """The recipe's name, which is also in the settings of its runs."""
        return self.settings.recipe

    def changed(
        self, change: str, fields: Mapping[str, Any] | None = None, train: str | None = None, dev: str | None = None
    ) -> Recipe:
        """The recipe ``NAME/CHANGE``: this recipe with some fields (``first.lr``) or the data changed."""
        settings = replace(changed(self.settings, fields or {}), recipe=f"{self.name}/{change}")
        return Recipe(settings, train or self.train, dev or self.dev)


def usual(settings: Settings) -> Recipe:
    """The recipe with the usual data of its task."""
    return Recipe(settings, f"{settings.task}-train", f"{settings.task}-dev")


def changed(settings: Settings, fields: Mapping[str, Any]) -> Settings:
    """The settings with some fields changed; nested fields are written with a dot: ``{"first.lr": 1e-3}``."""
    own = {name: value for name, value in fields.items() if "." not in name}
    for name in dict.fromkeys(name.partition(".")[0] for name in fields if "." in name):
        inner = {field.partition(".")[2]: value for field, value in fields.items() if field.startswith(f"{name}.")}
        own[name] = replace(getattr(settings, name), **inner)
    return replace(settings, **own)
