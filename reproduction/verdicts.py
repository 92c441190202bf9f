"""Verdicts of three values: tests of comparisons, the p-value of a claim, and Holm's method over all claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from oneofmany.evaluation.statistics import gain, holm, p_text, t_test
from oneofmany.report.table import signed

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
PUBLISHED, UNPUBLISHED = "as published", "none published"
"""Instead of a verdict for the paper's numbers, which have no runs to test."""
LEVEL = 0.05


@dataclass(frozen=True)
class Comparison:
    """A number that a claim says to be above a bound (or below it), with its test.

    Args:
        label: what is compared.
        estimate: None if there is no number.
        low: lower end of the uncorrected 95 % interval; None if there is no interval.
        high: upper end.
        for_claim: one-sided p-value, small if the number is on the claimed side; 1 without a test.
        against_claim: one-sided p-value, small if it is on the other side; 1 without a test.
        unit: ``points`` for differences, ``%`` for shares.
        about: what else a reader must know: the bound, or what the test is over.
        group: of comparisons with the same group, only the one with the weakest support is shown.
        given_networks: the test is over queries, so it says nothing about other seeds.
    """

    label: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    for_claim: float = 1.0
    against_claim: float = 1.0
    unit: str = "points"
    about: str = ""
    group: str = ""
    given_networks: bool = False

    def __str__(self) -> str:
        """``N-Queens MS, Unique − Naive: +11.53 [−2.10, +25.16], p = 0.07``."""
        if self.estimate is None:
            return f"{self.label}: –"
        number = signed if self.unit == "points" else "{:.2f}".format
        text = f"{self.label}: {number(self.estimate)}" + ("" if self.unit == "points" else f" {self.unit}")
        if self.low is not None and self.high is not None:
            text += f" [{number(self.low)}, {number(self.high)}], p = {p_text(self.p)}".replace("= <", "<")
        return text + (f" ({self.about})" if self.about else "")

    @property
    def p(self) -> float:
        """Two-sided."""
        return min(1.0, 2 * min(self.for_claim, self.against_claim))

    def reversed(self) -> Comparison:
        """The same numbers for a claim in the other direction."""
        return replace(self, for_claim=self.against_claim, against_claim=self.for_claim)


@dataclass(frozen=True)
class Finding:
    """A verdict and what it rests on.

    Args:
        verdict: one of the three, or ``as published``.
        comparisons: all of them.
        p: two-sided p-value of the claim; None without one.
        adjusted: the same after Holm's method over all claims.
        uncorrected: the verdict by ``p`` instead of ``adjusted``.
    """

    verdict: str
    comparisons: tuple[Comparison, ...]
    p: float | None = None
    adjusted: float | None = None
    uncorrected: str = ""

    @property
    def given_networks(self) -> bool:
        """Whether all comparisons are about given networks."""
        return all(one.given_networks for one in self.comparisons)

    @property
    def measured(self) -> bool:
        """Whether there is any number."""
        return any(one.estimate is not None for one in self.comparisons)

    @property
    def evidence(self) -> tuple[str, ...]:
        """The comparisons in words; of each group the weakest."""
        shown: dict[str, Comparison] = {}
        for one in self.comparisons:
            key = one.group or str(one)
            if key not in shown or _weakness(one) > _weakness(shown[key]):
                shown[key] = one
        return tuple(map(str, shown.values()))

    @property
    def p_values(self) -> str:
        """``p = 0.0012, Holm 0.018``; empty without a test."""
        if self.p is None or self.adjusted is None:
            return ""
        return f"p = {p_text(self.p)}, Holm {p_text(self.adjusted)}".replace("= <", "<")


def _weakness(one: Comparison) -> tuple[float, float]:
    return one.for_claim, -np.inf if one.estimate is None else -one.estimate


def over_seeds(
    label: str,
    each: Mapping[int, float],
    bound: float = 0.0,
    *,
    below: bool = False,
    unit: str = "points",
    group: str = "",
) -> Comparison:
    """Compare one number per seed with a bound by Student's t; with one seed, or equal ones, there is no test.

    Args:
        label: what is compared.
        each: seed -> number; empty without runs.
        bound: what the claim says the number exceeds.
        below: the claim says that the number is below the bound instead.
        unit: ``points`` or ``%``.
        group: see ``Comparison``.
    """
    about = f"claimed: {'below' if below else 'above'} {bound:g}" if bound else ""
    if not each:
        return Comparison(label, unit=unit, about=about, group=group)
    found, test = gain(each, dict.fromkeys(each, 0.0)), t_test(list(each.values()), bound)
    if test is None:
        return Comparison(label, found.mean, unit=unit, about=about, group=group)
    low, high = found.low, found.high
    if unit == "%" and low is not None and high is not None:
        low, high = max(low, 0.0), min(high, 100.0)
    sides = (test.less, test.greater) if below else (test.greater, test.less)
    return Comparison(label, found.mean, low, high, *sides, unit=unit, about=about, group=group)


def over_queries(label: str, values: np.ndarray | None, about: str = "") -> Comparison:
    """Compare given networks: the mean of one contrast per query with 0, in points.

    Differences of two networks (-1, 0 or 1 for each query) get McNemar's exact test, other contrasts a t test.

    Args:
        label: what is compared.
        values: int [Q], such as the first network right (0 or 1) minus the second; None without runs.
        about: which networks.
    """
    from scipy.stats import binomtest

    if values is None or not len(values):
        return Comparison(label, about=about)
    test = t_test(values.tolist())
    if test is None:
        return Comparison(label, 100 * float(values.mean()), about=about)
    found = gain(dict(enumerate((100.0 * values).tolist())), dict.fromkeys(range(len(values)), 0.0))
    greater, less = test.greater, test.less
    if np.isin(values, (-1, 0, 1)).all():
        first, apart = int((values > 0).sum()), int((values != 0).sum())
        tails = [float(binomtest(first, apart, alternative=side).pvalue) for side in ("greater", "less")]
        greater, less = (max(tail, np.finfo(float).tiny) for tail in tails)
    return Comparison(label, found.mean, found.low, found.high, greater, less, about=about, given_networks=True)


def judge(claims: Iterable[tuple[Sequence[Comparison], int | None]], level: float = LEVEL) -> list[Finding]:
    """Judge all claims together.

    A claim is (its comparisons, how many of them it needs; None: all). Supported: that many are shown to be on the
    claimed side. Contradicted: so many are shown to be on the other side that it cannot be true. The p-value of a
    claim is twice the smaller p-value of these two partial conjunctions, and Holm's method corrects it for the number
    of claims.
    """
    sides = []
    for comparisons, enough in claims:
        n = len(comparisons)
        needed = n if enough is None else enough
        support = _at_least([one.for_claim for one in comparisons], needed)
        against = _at_least([one.against_claim for one in comparisons], n - needed + 1)
        sides.append((tuple(comparisons), support, against))
    p_values = [min(1.0, 2 * min(support, against)) for _, support, against in sides]
    found = []
    for (comparisons, support, against), p, adjusted in zip(sides, p_values, holm(p_values), strict=True):
        shown = SUPPORTED if support < against else CONTRADICTED
        verdict, plain = (shown if value <= level else UNDECIDED for value in (adjusted, p))
        found.append(Finding(verdict, comparisons, p, adjusted, plain))
    return found


def _at_least(p_values: Sequence[float], count: int) -> float:
    """Small if at least ``count`` are shown (partial conjunction by Bonferroni); for all of them, the largest."""
    return min(1.0, (len(p_values) - count + 1) * sorted(p_values)[count - 1])


def published(comparisons: Sequence[Comparison]) -> Finding:
    """The paper's numbers, without a verdict: there are no runs to test."""
    known = tuple(one for one in comparisons if one.estimate is not None)
    return Finding(PUBLISHED if known else UNPUBLISHED, known)
