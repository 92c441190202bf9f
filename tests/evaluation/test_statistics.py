"""Statistics over seeds and between networks, against scipy, statsmodels and the literal formula."""

import subprocess
import sys
from math import comb

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW

from oneofmany import evaluation
from oneofmany.evaluation import gain, holm, mcnemar, over_seeds, p_text, t_test

shares = st.lists(st.integers(0, 10_000).map(lambda n: n / 10_000), min_size=2, max_size=8)


@given(values=shares, level=st.floats(0.5, 0.99))
def test_over_seeds(values, level):
    found = over_seeds(values, values, level)
    assert found.mean == pytest.approx(sum(values) / len(values))
    assert found.standard_error == pytest.approx(scipy.stats.sem(values), abs=1e-15)
    assert (found.low, found.high) == pytest.approx(DescrStatsW(values).tconfint_mean(1 - level), abs=1e-12)
    assert found.best == max(values)


def test_three_seeds_by_hand():
    found = over_seeds([0.6, 0.9, 0.75], [0.8, 0.7, 0.8])
    assert found.mean == pytest.approx(0.75)
    assert found.standard_error == pytest.approx(0.15 / 3**0.5)
    assert found.high - found.mean == pytest.approx(4.302653 * 0.15 / 3**0.5, abs=1e-6)
    assert found.best == 0.6  # the first of those best on dev, although another has the best value


def test_one_seed_has_no_error():
    found = over_seeds([0.5], [0.4])
    assert (found.mean, found.standard_error, found.low, found.high, found.best) == (0.5, None, None, None, 0.5)


@given(pairs=st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=2, max_size=6))
def test_gain_is_paired(pairs):
    values = {seed: one / 1000 for seed, (one, _) in enumerate(pairs)}
    # The order of the seeds must not matter.
    baseline = {seed: other / 1000 for seed, (_, other) in reversed(list(enumerate(pairs)))}
    found = gain(values, baseline)
    differences = [one - other for one, other in pairs]
    assert found.each == pytest.approx({seed: d / 1000 for seed, d in enumerate(differences)}, abs=1e-12)
    assert found.mean == pytest.approx(sum(differences) / len(pairs) / 1000, abs=1e-12)
    assert found.standard_error == pytest.approx(scipy.stats.sem(differences) / 1000, abs=1e-12)
    if len(set(differences)) > 1:  # the reference cannot do without any spread
        interval = scipy.stats.ttest_rel([a for a, _ in pairs], [b for _, b in pairs]).confidence_interval()
        assert (found.low, found.high) == pytest.approx((interval.low / 1000, interval.high / 1000), abs=1e-9)


@given(table=st.lists(st.integers(0, 60), min_size=4, max_size=4))
def test_mcnemar(table):
    both, only_first, only_second, neither = table
    first = np.repeat([True, True, False, False], table)
    second = np.repeat([True, False, True, False], table)
    found = mcnemar(first, second)
    assert (found.only_first, found.only_second) == (only_first, only_second)
    n = only_first + only_second
    tail = sum(comb(n, k) for k in range(min(only_first, only_second) + 1)) / 2**n
    assert found.p == pytest.approx(min(1, 2 * tail))
    if n:
        expected = reference_mcnemar([[both, only_first], [only_second, neither]], exact=True).pvalue
        assert found.p == pytest.approx(expected)
    assert mcnemar(second, first).p == pytest.approx(found.p)


@given(
    values=st.lists(st.integers(-1000, 1000), min_size=2, max_size=6).filter(lambda v: len(set(v)) > 1),
    bound=st.integers(-50, 50),
)
def test_t_test(values, bound):
    found = t_test(values, bound)
    sides = ("two-sided", "greater", "less")
    expected = [scipy.stats.ttest_1samp(values, bound, alternative=side).pvalue for side in sides]
    assert [found.two_sided, found.greater, found.less] == pytest.approx(expected, rel=1e-6)
    paired = gain(dict(enumerate(values)), dict.fromkeys(range(len(values)), 0.0))
    assert t_test(list(paired.each.values()), bound) == found


def test_no_t_test_without_spread():
    assert t_test([3.0]) is None
    assert t_test([0.1, 0.1, 0.1]) is None


@given(p=st.lists(st.floats(1e-300, 1), min_size=1, max_size=20), level=st.floats(0.001, 0.5))
def test_holm(p, level):
    rejected, adjusted, *_ = multipletests(p, level, method="holm")
    assert holm(p) == pytest.approx(adjusted)
    if min(abs(x - level) for x in adjusted) > 1e-9:  # rounding decides otherwise
        assert [x <= level for x in holm(p)] == list(rejected)


def test_no_p_is_zero():
    assert [p_text(p) for p in (1.0, 0.0531, 2.07e-5, 1.19e-26)] == ["1", "0.0531", "2.07e-05", "1.19e-26"]
    assert p_text(1e-305) == p_text(0.0) == "< 1e-300"
    many = np.ones(2000, bool)
    assert mcnemar(many, ~many).p > 0
    assert t_test([1.0, 1.0 + 1e-15] * 200).greater > 0
    assert holm([mcnemar(many, ~many).p]) != [0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: over_seeds([0.5, 0.6], [0.5]), "dev: expected 2 values, one per seed, got 1"),
        (lambda: over_seeds([], []), "values: expected at least one number, all finite"),
        (lambda: over_seeds([float("nan")], [1]), "values: expected .* finite"),
        (lambda: over_seeds([1], [float("nan")]), "dev: expected .* finite"),
        (lambda: over_seeds([1, 2], [1, 2], 95), "level: expected a share"),
        (lambda: holm([0.5, 0.0]), "p_values: expected numbers above 0 and at most 1"),
        (lambda: gain({1: 0.5}, {2: 0.5}), r"baseline: expected the seeds \[1\], got \[2\]"),
        (lambda: mcnemar(np.ones(3, bool), np.ones(2, bool)), "second: expected 3 queries"),
        (lambda: mcnemar(np.ones(3), np.ones(3, bool)), r"first: expected bool \[Q\], got float64 \[3\]"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("module", "needs"), [("accuracy", ["torch"]), ("predictions", []), ("statistics", [])])
def test_what_the_modules_load(module, needs):
    heavy = {"torch", "scipy", "numba", "pandas", "statsmodels", "rich", "tyro", "matplotlib", "jinja2"}
    program = f"import sys, oneofmany.evaluation.{module}; print(sorted({heavy} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == str(needs)


def test_every_public_name_is_there():
    for name in evaluation.__all__:
        assert getattr(evaluation, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        evaluation.nothing  # noqa: B018
