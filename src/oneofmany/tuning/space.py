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

import io
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oneofmany.files import FileError
from oneofmany.training.settings import Settings

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

BUDGET = ("updates", "minutes", "stop_after", "evaluate_every", "dev_queries", "select_on", "seed", "pretrained")
BUDGET += ("recipe", "task", "objective")
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

    def check(self, objective: str, resolve: Callable[[Sequence[str]], Settings]) -> None:
        """Raise ValueError if a field does not exist, or if one of its values or bounds cannot be.

        Args:
            objective: whose space it is.
            resolve: the settings of the objective with fields changed, as arguments of ``oneofmany train``.
        """
        known = set(_names(resolve(())))
        for name, axis in {**self.common, **self.own.get(objective, {})}.items():
            if name not in known:
                close = get_close_matches(name, known, 1)
                hint = f"did you mean {close[0]}?" if close else "see `oneofmany train RECIPE --help`"
                raise ValueError(f"--space: {name} is not a field of {objective}: {hint}")
            for value in axis.get("values") or (axis["low"], axis["high"]):
                try:
                    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                        resolve(as_arguments(name, value))
                except (ValueError, SystemExit) as error:
                    why = f": {error}" if isinstance(error, ValueError) else ""
                    raise ValueError(f"--space: {name} of {objective} cannot be {value!r}{why}") from None


def as_arguments(name: str, value: Any) -> list[str]:
    """A field and its value as arguments of ``oneofmany train``."""
    return [f"--{name}", *str(value).split()]


def _names(settings: Any, before: str = "") -> Iterator[str]:
    """The names of all fields, also of those inside of others."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            yield from _names(value, f"{before}{field.name}.")
        else:
            yield f"{before}{field.name}"


def read_space(path: str | Path) -> Space:
    """Read a TOML file; ValueError names the field that cannot be understood."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{path} is not TOML: {error}") from None
    own = _table("objectives", table.pop("objectives", {}))
    parts = {name: dict(_axes(_table(f"objectives.{name}", part))) for name, part in own.items()}
    space = Space(dict(_axes(table)), parts)
    for name, axis in [*space.common.items(), *(pair for part in space.own.values() for pair in part.items())]:
        if name.rpartition(".")[2] in BUDGET:
            raise ValueError(
                f"--space: {name} is the same for all trials, so that their budgets are equal: leave it out"
            )
        _check(name, axis)
    if not space.common and not any(space.own.values()):
        raise ValueError(f"--space: {path} names no field")
    return space


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"--space: {name}: expected low and high, or values, got {value!r}")
    return value


def _axes(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for written, value in table.items():
        name = f"{before}{written.replace('-', '_')}"  # both are options of ``oneofmany train``
        if {"low", "high", "values"} & set(_table(name, value)):
            yield name, value
        else:
            yield from _axes(value, f"{name}.")


def _check(name: str, axis: Mapping[str, Any]) -> None:
    if "values" in axis:
        values = axis["values"]
        plain = isinstance(values, list) and all(isinstance(value, str | int | float) for value in values)
        if set(axis) != {"values"} or not plain or not values:
            raise ValueError(
                f"--space: {name}: expected a list of values and nothing else, got {dict(axis)}: a value of several "
                'numbers is a text such as "0 16 32"'
            )
        return
    low, high, log = axis.get("low"), axis.get("high"), axis.get("log", False)
    numbers = all(isinstance(bound, int | float) and not isinstance(bound, bool) for bound in (low, high))
    known = set(axis) <= {"low", "high", "log"} and isinstance(log, bool)
    if not known or low is None or high is None or not numbers or not -math.inf < low <= high < math.inf:
        raise ValueError(f"--space: {name}: expected numbers low <= high, and log = true if wanted, got {dict(axis)}")
    if log and low <= 0:
        raise ValueError(f"--space: {name}: expected low > 0 with log, got {low}")


def _distribution(name: str, axis: Mapping[str, Any]) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if "values" in axis:
        return CategoricalDistribution(axis["values"])
    low, high, log = axis["low"], axis["high"], axis.get("log", False)
    whole = isinstance(low, int) and isinstance(high, int)
    return IntDistribution(low, high, log) if whole else FloatDistribution(float(low), float(high), log)
