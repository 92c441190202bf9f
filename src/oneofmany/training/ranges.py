"""Checks of single settings: the type of every field, and the range of every number, each in one sentence."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from oneofmany.networks.settings import MOST_STEPS


@dataclass(frozen=True)
class Range:
    """Numbers from ``least`` to ``most``; ``open_below`` and ``open_above`` leave out the ends themselves."""

    least: float = -math.inf
    most: float = math.inf
    open_below: bool = False
    open_above: bool = False

    def __contains__(self, value: float) -> bool:
        above = value > self.least if self.open_below else value >= self.least
        return above and (value < self.most if self.open_above else value <= self.most)

    def __str__(self) -> str:
        if not math.isfinite(self.most):
            return f"{'more than' if self.open_below else 'at least'} {self.least}"
        if not self.open_above:
            return f"{self.least} to {self.most}"
        return f"at least {self.least} and less than {self.most}"


FROM_0, FROM_1, POSITIVE, SHARE = Range(0), Range(1), Range(0, open_below=True), Range(0, 1.0)
LESS_THAN_1 = Range(0, 1, open_above=True)

PHASE = {
    "updates": FROM_0,
    "minutes": POSITIVE,
    "batch": Range(1, 1_000_000),
    "sampling": SHARE,
    "lr": POSITIVE,
    "decay": FROM_0,
    "warmup": FROM_0,
    "final_lr": SHARE,
    "stop_after": FROM_0,
}
RANGES: dict[str, Range] = {
    "seed": Range(),
    "listed": FROM_1,
    "shards": FROM_1,
    "network.width": FROM_1,
    "network.depth": FROM_1,
    "network.steps": Range(1, MOST_STEPS),
    "network.test_steps": Range(1, MOST_STEPS),
    "network.dropout": LESS_THAN_1,
    "network.hidden": FROM_1,
    "network.latent": FROM_0,
    "network.heads": FROM_1,
    "network.frames": FROM_1,
    "selector.width": FROM_1,
    "selector.depth": FROM_1,
    **{f"{phase}.{name}": values for phase in ("first", "second") for name, values in PHASE.items()},
    "selector_training.updates": FROM_0,
    "selector_training.lr": POSITIVE,
    "selector_training.decay": FROM_0,
    "selector_training.copy_interval": FROM_1,
    "temperature": POSITIVE,
    "epsilon": SHARE,
    "betas": LESS_THAN_1,
    "decay": FROM_0,
    "clip": POSITIVE,
    "largest_gradient": POSITIVE,
    "loss_scale": POSITIVE,
    "ema": Range(0, 0.999999),
    "reveal": SHARE,
    "burn_in": FROM_0,
    "windows": FROM_1,
    "curriculum": Range(0.05, 0.95),
    "repair": FROM_0,
    "follow_noise": FROM_0,
    "evaluate_every": FROM_1,
    "dev_queries": FROM_1,
    "threads": Range(1, 1024),  # PyTorch ends the process if the system cannot start them
    "log_every": FROM_1,
    "checkpoint_minutes": FROM_0,
    "largest_loss": POSITIVE,
}
"""Full name of a setting -> the numbers it may have. Every setting that is a number, or several, is listed."""


def check_fields(settings: Any) -> None:
    """Raise ValueError if a field of the settings has another type than its annotation, or a number is out of range."""
    check_types(settings)
    for name, value, _ in fields_of(settings):
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                continue
            # A whole number that no float holds is infinite too.
            if not (number.bit_length() < 1024 if isinstance(number, int) else math.isfinite(number)):
                raise ValueError(f"{name}: expected a finite number, got {number}")
            if number not in RANGES[name]:
                raise ValueError(f"{name}: expected {RANGES[name]}, got {number}")


def check_types(values: Any) -> None:
    """Raise ValueError if a field of a dataclass has another type than its annotation."""
    for name, value, hint in fields_of(values):
        if not _fits(value, hint):
            raise ValueError(f"{name}: expected {_words(hint)}, got {value!r}")


def fields_of(settings: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The full name, value and annotation of every field, those of nested settings included."""
    for name, hint in _hints(type(settings)).items():
        value = getattr(settings, name)
        if dataclasses.is_dataclass(value) and type(value) is hint:
            yield from fields_of(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value, hint


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in dataclasses.fields(kind)}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has the type of an annotation; a whole number is a float too, a bool is not a number."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if origin is tuple:
        each = inner[:1] * len(value) if inner[-1] is ... and isinstance(value, tuple) else inner
        return isinstance(value, tuple) and len(value) == len(each) and all(map(_fits, value, each))
    if origin is dict:
        return isinstance(value, dict) and all(_fits(one, inner[1]) for one in value.values())
    if hint is Any:
        return True
    if isinstance(value, bool) or hint is bool:
        return isinstance(value, bool) and hint is bool
    return isinstance(value, (int, float) if hint is float else hint)


WORDS = {int: "a whole number", float: "a number", str: "text", bool: "True or False", types.NoneType: "None"}


def _words(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return ", ".join(inner)
    if origin in (Union, types.UnionType):
        return " or ".join(map(_words, inner))
    if origin is tuple:
        return f"a list, each {_words(inner[0])}"
    return WORDS.get(hint, "an object")
