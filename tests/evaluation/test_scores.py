"""Shares with their intervals, against two other implementations."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from oneofmany.evaluation import Score, wilson

counts = st.integers(1, 100_000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))


@given(counts=counts, level=st.floats(0.5, 0.999))
def test_wilson(counts, level):
    low, high = wilson(*counts, level)
    assert 0 <= low <= counts[0] / counts[1] <= high <= 1
    interval = binomtest(*counts).proportion_ci(level, method="wilson")
    assert (low, high) == pytest.approx((interval.low, interval.high), abs=1e-12)
    assert (low, high) == pytest.approx(proportion_confint(*counts, 1 - level, method="wilson"), abs=1e-12)


def test_the_ends_are_reached():
    assert wilson(0, 7)[0] == 0
    assert wilson(7, 7)[1] == 1


def test_score():
    # By hand: z = 1.959964, z² = 3.841459; (8 + z²/2 ± z sqrt(8 * 2 / 10 + z²/4)) / (10 + z²).
    score = Score(8, 10)
    assert score.accuracy == 0.8
    assert (score.low, score.high) == pytest.approx((0.490162, 0.943318), abs=1e-6)
    assert json.loads(json.dumps(score.as_dict())) == {
        "correct": 8,
        "total": 10,
        "accuracy": 0.8,
        "low": score.low,
        "high": score.high,
    }


def test_a_share_of_nothing():
    assert Score(0, 0).as_dict() == {"correct": 0, "total": 0, "accuracy": None, "low": None, "high": None}
    with pytest.raises(ValueError, match="total: expected at least 1, got 0"):
        wilson(0, 0)


@pytest.mark.parametrize(("correct", "total"), [(3, 2), (-1, 2), (0, -1)])
def test_bad_counts(correct, total):
    with pytest.raises(ValueError, match="correct: expected 0 to"):
        Score(correct, total)
    with pytest.raises(ValueError, match="correct: expected 0 to"):
        wilson(correct, total)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_bad_level(level):
    with pytest.raises(ValueError, match="level"):
        wilson(1, 2, level)
