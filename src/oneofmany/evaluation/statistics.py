"""Statistics over seeds, and for two networks on the same queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from oneofmany.evaluation.scores import wilson

SMALLEST_P = 1e-300
"""Smaller p-values are printed as a bound."""


@dataclass(frozen=True)
class SeedSummary:
    """A summary of one number per seed.

    Args:
        mean: over the seeds.
        standard_error: sample standard deviation (n - 1) / sqrt(n); None with one seed.
        low: lower end of the interval of the mean, not clipped to 0..1; None with one seed.
        high: upper end.
        best: the value of the seed with the best dev accuracy, not the best value.
        over: what the interval is over: ``seeds`` (Student's t) or, if the seeds do not differ, ``queries`` (Wilson).
    """

    mean: float
    standard_error: float | None
    low: float | None
    high: float | None
    best: float
    over: Literal["seeds", "queries"] = "seeds"


@dataclass(frozen=True)
class Gain:
    """The gain of one method over another, paired by seed.

    Args:
        each: the gain by seed.
        mean: over the seeds.
        standard_error: of the mean; None with one seed.
        low: lower end of the t interval of the mean (paired by seed); None with one seed.
        high: upper end.
    """

    each: dict[int, float]
    mean: float
    standard_error: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class TTest:
    """p-values of a t test of a mean against a bound.

    Args:
        two_sided: of the hypothesis that the mean equals the bound.
        greater: one-sided; small if the mean is above the bound.
        less: one-sided; small if the mean is below the bound.
    """

    two_sided: float
    greater: float
    less: float


@dataclass(frozen=True)
class McNemar:
    """Two networks on the same queries.

    Args:
        only_first: number of queries that only the first answered correctly.
        only_second: number of queries that only the second answered correctly.
        p: two-sided exact p-value of the hypothesis that both are equally good.
    """

    only_first: int
    only_second: int
    p: float


def over_seeds(values: Sequence[float], dev: Sequence[float], level: float = 0.95) -> SeedSummary:
    """Summarise one value per seed; ``dev`` holds the dev accuracy of the same seeds (ties: the first is best)."""
    if len(dev) != len(values):
        raise ValueError(f"dev: expected {len(values)} values, one per seed, got {len(dev)}")
    mean, standard_error, low, high = _interval(values, level)
    return SeedSummary(mean, standard_error, low, high, float(values[int(np.argmax(_finite("dev", dev)))]))


def over_seeds_or_queries(
    shares: Sequence[float], dev: Sequence[float], queries: Sequence[int | None] = ()
) -> SeedSummary:
    """Summarise one share per seed in percent; ``dev`` and the result are as in ``over_seeds``.

    If the seeds do not differ and ``queries``, the number of queries of each seed, is known, the interval is Wilson's
    over the queries. They are not pooled, because the seeds share them.
    """
    found = over_seeds([100 * share for share in shares], dev)
    fewest = min(filter(None, queries), default=0)
    if len(shares) == 1 or len(set(shares)) > 1 or not fewest:
        return found
    low, high = wilson(round(shares[0] * fewest), fewest)
    return replace(found, low=100 * low, high=100 * high, over="queries")


def gain(values: Mapping[int, float], baseline: Mapping[int, float], level: float = 0.95) -> Gain:
    """Return the differences ``values - baseline``; both map the same seeds to values."""
    if set(values) != set(baseline):
        raise ValueError(f"baseline: expected the seeds {sorted(values)}, got {sorted(baseline)}")
    each = {seed: values[seed] - baseline[seed] for seed in values}
    return Gain(each, *_interval(list(each.values()), level))


def t_test(values: Sequence[float], bound: float = 0.0) -> TTest | None:
    """Test the mean of one value per seed (a paired difference: ``gain(...).each``) against a bound.

    Return None if there is no test: with one value, or if all values are equal.
    """
    array = _finite("values", values)
    if len(set(array.tolist())) == 1:
        return None
    from scipy.stats import t

    statistic, freedom = (array.mean() - bound) / (array.std(ddof=1) / np.sqrt(len(array))), len(array) - 1
    ends = [t.sf(abs(statistic), freedom) * 2, t.sf(statistic, freedom), t.cdf(statistic, freedom)]
    return TTest(*(_positive(float(p)) for p in ends))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number by Holm's method; those at or below a level are rejected at that level."""
    array = np.asarray(p_values, float)
    if not ((array > 0) & (array <= 1)).all():
        raise ValueError(f"p_values: expected numbers above 0 and at most 1, got {list(p_values)}")
    order = np.argsort(array, kind="stable")
    raised = np.maximum.accumulate(array[order] * np.arange(len(array), 0, -1))
    adjusted = np.empty_like(array)
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted.tolist()


def p_text(p: float) -> str:
    """``0.0123``, or ``< 1e-300`` for what is too small to print; never 0."""
    return f"{p:.3g}" if p >= SMALLEST_P else f"< {SMALLEST_P:.0e}"


def mcnemar(first: np.ndarray, second: np.ndarray) -> McNemar:
    """McNemar's exact test: a binomial test over the queries that exactly one network answered correctly.

    Args:
        first: bool [Q], which queries the first network answered correctly.
        second: bool [Q], which queries the second network answered correctly.
    """
    from scipy.stats import binomtest

    for name, array in {"first": first, "second": second}.items():
        if array.dtype != bool or array.ndim != 1:
            raise ValueError(f"{name}: expected bool [Q], got {array.dtype} {list(array.shape)}")
    if len(first) != len(second):
        raise ValueError(f"second: expected {len(first)} queries, as many as first, got {len(second)}")
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    apart = only_first + only_second
    return McNemar(only_first, only_second, _positive(float(binomtest(only_first, apart).pvalue)) if apart else 1.0)


def _interval(values: Sequence[float], level: float) -> tuple[float, float | None, float | None, float | None]:
    """Mean, standard error and both ends of the t interval."""
    array = _finite("values", values)
    if not 0 < level < 1:
        raise ValueError(f"level: expected a share between 0 and 1, got {level}")
    mean, n = float(array.mean()), len(array)
    if n == 1:
        return mean, None, None, None
    from scipy.stats import t

    standard_error = float(array.std(ddof=1) / np.sqrt(n))
    half = float(t.ppf((1 + level) / 2, n - 1)) * standard_error
    return mean, standard_error, mean - half, mean + half


def _positive(p: float) -> float:
    """A p-value that rounding made 0 becomes the smallest positive number."""
    return float(np.clip(p, np.finfo(float).tiny, 1.0))


def _finite(name: str, values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, float)
    if not len(array) or not np.isfinite(array).all():
        raise ValueError(f"{name}: expected at least one number, all finite, got {list(values)}")
    return array
