"""Rules: sets of choices with weights and bounds, and helpers that make them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, SupportsIndex

MOST = 2**31 - 1
"""Weights, bounds and all sums that a rule can have are at most this large."""


@dataclass(frozen=True)
class Rule:
    """A set of choices with whole-number weights and bounds: low <= the sum of the weights of the taken ones <= high.

    Without bounds exactly one choice is taken, or at most one with ``exact=False``; these two are the fastest. With
    ``low`` or ``high`` the bounds count, and ``exact`` does not: ``low=1`` is at least one, ``low=2, high=2`` exactly
    two.

    Rules of one kind are interchangeable under the symmetries of the problem (the rows and columns of a chess board
    are all of kind ``line``): networks over choices and rules share their weights within a kind.

    Args:
        kind: the name of the kind.
        choices: the choices, each once.
        exact: exactly one (True) or at most one (False) is taken. Of a rule with other bounds it is False.
        weights: one whole number per choice, not 0; None if every choice counts 1.
        low: the least sum; by default the least that there can be.
        high: the greatest sum; by default the greatest that there can be.
    """

    kind: str
    choices: tuple[int, ...]
    exact: bool = True
    weights: tuple[int, ...] | None = None
    low: int | None = None
    high: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or not self.kind:
            raise self._error("expected a name for its kind")
        choices = self._whole("choices", self.choices)
        if not choices or len(set(choices)) != len(choices):
            raise self._error(f"expected different choices, at least one, got {choices}")
        if min(choices) < 0 or max(choices) > MOST:
            raise self._error(f"expected choices from 0 to {MOST:,}, got {choices}")
        if not isinstance(self.exact, bool):
            raise self._error(
                f"exact is True (exactly one) or False (at most one), got {self.exact!r}; use low and high for other "
                "bounds"
            )
        weights = (1,) * len(choices) if self.weights is None else self._whole("weights", self.weights)
        if len(weights) != len(choices) or 0 in weights:
            raise self._error(f"expected {len(choices)} weights that are not 0, got {weights}")
        least, greatest = sum(w for w in weights if w < 0), sum(w for w in weights if w > 0)
        if self.low is None and self.high is None:
            if self.weights is not None:
                raise self._error("weights need bounds: give low, high or both")
            low, high = int(self.exact), 1
        else:
            low, high = self._whole(
                "low and high", (least if self.low is None else self.low, greatest if self.high is None else self.high)
            )
        if greatest - least > MOST:
            raise self._error(f"weights: expected numbers up to {MOST:,} in sum, got {weights}")
        if max(abs(low), abs(high)) > MOST:
            raise self._error(f"low and high: expected numbers up to {MOST:,}, got {low} and {high}")
        if low > high and None not in (self.low, self.high):
            raise self._error(f"expected low <= high, got {low} and {high}")
        _check_sum(f"a rule of kind {self.kind!r}", self.low, self.high, least, greatest)
        own = None if set(weights) == {1} else weights
        one = own is None and high == 1
        kept = {"choices": choices, "weights": own, "low": low, "high": high, "exact": one and low == 1}
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def linear(self) -> bool:
        """Whether the rule is neither exactly-one nor at-most-one."""
        return self.weights is not None or self.high != 1 or self.low not in (0, 1)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest sum."""
        return int(self.low or 0), int(self.high or 0)

    def weighed(self) -> Iterable[tuple[int, int]]:
        """Return the pairs (choice, weight)."""
        return zip(self.choices, self.weights or (1,) * len(self.choices), strict=True)

    def _whole(self, name: str, numbers: Any) -> tuple[int, ...]:
        try:
            listed: tuple[Any, ...] = tuple(numbers)
            if set(map(type, listed)) <= {int}:
                return listed
            return tuple(index(None if type(n) is bool else n) for n in listed)  # pyright: ignore[reportArgumentType]
        except TypeError:
            got = " ".join(repr(numbers).split())  # arrays have several lines
            raise self._error(f"{name}: expected whole numbers, got {got}") from None

    def _error(self, what: str) -> ValueError:
        return ValueError(f"a rule of kind {self.kind!r}: {what}")


def lines(kind: str, groups: Iterable[Iterable[Any]], exact: bool = True) -> list[Rule]:
    """Make one rule of this kind for every group of choices."""
    return [Rule(kind, tuple(int(choice) for choice in group), exact) for group in groups]


# ---- helpers: variables count from 0, and values from 1, as in queries ---------------------------------------------


def domain(kind: str, variable: int, allowed: Iterable[int], values: int) -> list[Rule]:
    """A variable takes one of the ``allowed`` values 1..V; ``values`` is V."""
    values = len(_upto(values))
    choices = tuple(sorted({_choice(variable, value, values) for value in _several("allowed values", allowed)}))
    if not choices:
        raise ValueError(f"a domain of kind {kind!r}: expected at least one allowed value, got none")
    return [Rule(kind, choices)]


def all_different(kind: str, variables: Sequence[int], values: int) -> list[Rule]:
    """No two of the variables take the same value; ``values`` is V. V variables take every value once."""
    values, variables = len(_upto(values)), _several("variables", variables)
    if len(variables) > values:
        raise ValueError(
            f"different values of kind {kind!r}: expected at most {values} variables, got {len(variables)}"
        )
    return [
        Rule(kind, tuple(_choice(variable, value, values) for variable in variables), len(variables) == values)
        for value in range(1, values + 1)
    ]


def total(
    kind: str,
    variables: Sequence[int],
    values: int,
    *,
    low: int | None = None,
    high: int | None = None,
    factors: Sequence[int] | None = None,
) -> list[Rule]:
    """The sum of the variables' values 1..V, each times its factor (1 by default), is from ``low`` to ``high``."""
    variables = _several("variables", variables)
    factors = (1,) * len(variables) if factors is None else _several("factors", factors)
    if len(factors) != len(variables):
        raise ValueError(f"factors: expected {len(variables)}, one per variable, got {len(factors)}")
    pairs = [(v, n, f * n) for v, f in zip(variables, factors, strict=True) for n in _upto(values)]
    choices = tuple(_choice(variable, value, values) for variable, value, _ in pairs)
    weights = tuple(weight for *_, weight in pairs)
    if all(isinstance(factor, SupportsIndex) for factor in factors):
        least, greatest = (sum(end(f, f * values) for f in factors) for end in (min, max))
        _check_sum(f"a sum of kind {kind!r}", low, high, least, greatest)
    return [Rule(kind, choices, weights=weights, low=low, high=high)]


def cage(kind: str, variables: Sequence[int], values: int, target: int) -> list[Rule]:
    """The variables take different values 1..V whose sum is ``target``: a cage of Killer Sudoku, a run of Kakuro.

    The rule of the sum has kind ``kind``, those of the different values ``kind-different``.
    """
    variables = _several("variables", variables)
    many, values = len(variables), len(_upto(values))
    different = all_different(f"{kind}-different", variables, values) if many > 1 else []
    # All at-most-one, also in a cage of V variables, so that networks can share weights between cages.
    different = [Rule(rule.kind, rule.choices, exact=False) for rule in different]
    least, greatest = many * (many + 1) // 2, many * (2 * values - many + 1) // 2
    _check_sum(f"a cage of kind {kind!r}", target, target, least, greatest)
    return total(kind, variables, values, low=target, high=target) + different


def implies(kind: str, choice: int, others: Sequence[int]) -> list[Rule]:
    """If a choice is taken, so is at least one of the ``others``."""
    others = _several("others", others)
    return [Rule(kind, (*others, choice), weights=(1,) * len(others) + (-1,), low=0)]


def forbid(kind: str, choices: Sequence[int]) -> list[Rule]:
    """Not all of the choices are taken; of two, at most one is."""
    choices = _several("choices", choices)
    return [Rule(kind, choices, low=0, high=len(choices) - 1)]


def table(kind: str, variables: Sequence[int], rows: Iterable[Sequence[int]], values: int) -> list[Rule]:
    """The variables together take one of the ``rows`` of values 1..V; ``values`` is V.

    For every beginning of a row there is one rule: if the first j variables take it, the next variable takes none of
    the values that no row continues with. So no variables are added, and there are at most as many rules as the rows
    have values. The first of them, about one variable, has kind ``kind-domain``.
    """
    values, variables = len(_upto(values)), _several("variables", variables)
    allowed = [_several("a row", row) for row in _several("rows", rows)]
    for variable in variables:
        _choice(variable, 1, values)  # raises if it is not a variable
    if not variables or len(set(variables)) != len(variables):
        raise ValueError(f"a table of kind {kind!r}: expected different variables, at least one, got {[*variables]}")
    if wrong := [row for row in allowed if len(row) != len(variables)]:
        raise ValueError(f"a table of kind {kind!r}: expected rows of {len(variables)} values, got {wrong[0]}")
    if not allowed:
        raise ValueError(f"a table of kind {kind!r}: expected at least one row, got none")
    for row in allowed:
        for value in row:
            _choice(0, value, values)  # raises if it is not a value
    allowed = sorted(set(allowed))
    rules = domain(f"{kind}-domain", variables[0], (row[0] for row in allowed), values)
    for j in range(1, len(variables)):
        following: dict[tuple[int, ...], set[int]] = {}
        for row in allowed:
            following.setdefault(row[:j], set()).add(row[j])
        for beginning, nexts in following.items():
            taken = [_choice(v, value, values) for v, value in zip(variables, beginning, strict=False)]
            excluded = [_choice(variables[j], value, values) for value in _upto(values) if value not in nexts]
            if excluded:
                rules.append(Rule(kind, (*taken, *excluded), low=0, high=j))
    return rules


def _check_sum(what: str, low: Any, high: Any, least: int, greatest: int) -> None:
    """Raise ValueError if no number from ``least`` to ``greatest`` is from ``low`` to ``high`` (None: no bound)."""
    if not all(bound is None or isinstance(bound, SupportsIndex) for bound in (low, high)):
        return  # the rule refuses it
    if (low is not None and low > greatest) or (high is not None and high < least):
        wanted = f"from {low} to {high}" if low != high else f"of {low}"
        wanted = f"at least {low}" if high is None else f"at most {high}" if low is None else wanted
        raise ValueError(f"{what}: expected a sum {wanted}, but it can only be {least} to {greatest}")


def _several(name: str, items: Any) -> tuple[Any, ...]:
    try:
        return tuple(items)
    except TypeError:
        raise ValueError(f"{name}: expected several, got {items!r}") from None


def _upto(values: int) -> range:
    """The values 1..V."""
    try:
        number = index(values)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f"values: expected their number, at least 1, got {' '.join(repr(values).split())}")
    return range(1, number + 1)


def _choice(variable: int, value: int, values: int) -> int:
    try:
        at, number = index(variable), index(value)
    except TypeError:
        raise ValueError(f"expected whole numbers, got variable {variable!r} and value {value!r}") from None
    if not 1 <= number <= values:
        raise ValueError(f"expected values from 1 to {values}, got {number}")
    if at < 0:
        raise ValueError(f"expected variables from 0, got {at}")
    return at * values + number - 1
