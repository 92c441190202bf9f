"""The space of a search: fields of a recipe and the values to try, from a TOML file::

decay = { values = [0.0, 1e-5, 1e-4] }

[first.lr]
low = 1e-4
high = 1e-2
log = true

[objectives.selectr.selector_training.lr]   # for one objective only
low = 1e-4
high = 1e-2
log = true
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oneofmany.files import FileError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

BUDGET = ("updates", "minutes", "evaluate_every", "seed", "objective", "pretrained")
"""Fields that would make budgets or comparisons unequal."""


@dataclass(frozen=True)
class Space:
    """Fields (``first.lr``) with their ranges or values, for all objectives and for single ones."""

    common: Mapping[str, Mapping[str, Any]]
    own: Mapping[str, Mapping[str, Mapping[str, Any]]]

    def of(self, objective: str) -> dict[str, BaseDistribution]:
        """The space of an objective, for Optuna."""
        return {
            name: _distribution(name, axis) for name, axis in {**self.common, **self.own.get(objective, {})}.items()
        }


def read_space(path: str | Path) -> Space:
    """Read a TOML file; ValueError names the field that cannot be understood."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{path} is not TOML: {error}") from None
    own = table.pop("objectives", {})
    space = Space(dict(_axes(table)), {name: dict(_axes(part)) for name, part in own.items()})
    for name, axis in [*space.common.items(), *(pair for part in space.own.values() for pair in part.items())]:
        if name.rpartition(".")[2] in BUDGET:
            raise ValueError(
                f"--space: {name} is the same for all trials, so that their budgets are equal: leave it out"
            )
        _check(name, axis)
    if not space.common and not space.own:
        raise ValueError(f"--space: {path} names no field")
    return space


def _axes(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, value in table.items():
        if not isinstance(value, dict):
            raise ValueError(f"--space: {before}{name}: expected low and high, or values, got {value!r}")
        if {"low", "high", "values"} & set(value):
            yield f"{before}{name}", value
        else:
            yield from _axes(value, f"{before}{name}.")


def _check(name: str, axis: Mapping[str, Any]) -> None:
    if "values" in axis:
        if set(axis) != {"values"} or not isinstance(axis["values"], list) or not axis["values"]:
            raise ValueError(f"--space: {name}: expected a list of values and nothing else, got {dict(axis)}")
        return
    low, high = axis.get("low"), axis.get("high")
    numbers = all(isinstance(bound, int | float) and not isinstance(bound, bool) for bound in (low, high))
    if not set(axis) <= {"low", "high", "log"} or low is None or high is None or not numbers or not low <= high:
        raise ValueError(f"--space: {name}: expected numbers low <= high, and log if wanted, got {dict(axis)}")
    if axis.get("log") and low <= 0:
        raise ValueError(f"--space: {name}: expected low > 0 with log, got {low}")


def _distribution(name: str, axis: Mapping[str, Any]) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if "values" in axis:
        return CategoricalDistribution(axis["values"])
    low, high, log = axis["low"], axis["high"], bool(axis.get("log", False))
    whole = isinstance(low, int) and isinstance(high, int)
    return IntDistribution(low, high, log) if whole else FloatDistribution(float(low), float(high), log)
