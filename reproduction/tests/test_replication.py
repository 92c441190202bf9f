"""What an exact replication would score, against an integral and at limits where the answer is known."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, norm

from reproduction import paper
from reproduction.replication import Expected, agrees, exact_replication


def chance(error):
    """Probability that two means agree: the difference is normal, our variance with three seeds is chi-squared."""

    def at(x):
        allowed = max(2.0, 2 * np.hypot(error, error * np.sqrt(x / 2)))
        return chi2.pdf(x, 2) * (2 * norm.cdf(allowed / (error * np.sqrt(2))) - 1)

    return quad(at, 0, 60, limit=200, points=[2 * max(0.0, 1 / error**2 - 1)] if error < 1 else None)[0]


def test_the_simulation_is_the_integral():
    # Overall follows from OS and MS, which cannot always give its published standard error exactly.
    expected = exact_replication()
    integral = sum(map(chance, paper.STANDARD_ERRORS.values()))
    assert expected.mean == pytest.approx(integral, abs=0.3)
    assert expected.low < expected.mean < expected.high <= len(paper.TABLE_2)
    assert exact_replication() is expected
    exact_replication.cache_clear()
    assert exact_replication() == expected


@pytest.mark.parametrize("error", [0.01, 100.0])
def test_limits(monkeypatch, error):
    monkeypatch.setattr(paper, "STANDARD_ERRORS", dict.fromkeys(paper.TABLE_2, error))
    exact_replication.cache_clear()
    found = exact_replication(2000)
    exact_replication.cache_clear()
    if error < 1:
        assert found == Expected(63.0, 63, 63)  # two points are far more than the noise
    else:
        # Two points are nothing; OS and MS are as the integral says, overall is near.
        assert found.mean / 63 == pytest.approx(chance(error), abs=0.03)


def test_the_rule_is_that_of_the_table():
    points, ours = np.array([1.9, 2.1, 2.1, -6.0]), np.array([0.0, 0.0, 1.0, 3.0])
    assert agrees(points, 0.5, ours).tolist() == [True, False, True, True]
