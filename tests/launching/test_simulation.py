"""The simulation of a sweep: exact where it can be calculated, and sound with many jobs and disturbances."""

import numpy as np
import pytest

from oneofmany.launching.simulation import Scenario, simulate

QUIET = Scenario(jobs=100, workers=10, minutes=60, spread=0, failures=0, preemptions=0, restart=1)


def test_without_disturbance_it_can_be_calculated():
    found = simulate(QUIET)
    assert (found.finished, found.failed, found.restarts, found.lost) == (100, 0, 0, 0)
    assert found.makespan == pytest.approx(10 * 61)
    assert found.work == pytest.approx(6000)
    assert found.efficiency == pytest.approx(60 / 61)
    assert found.tail == pytest.approx(0)
    # 7 checkpoints of a run in 61 minutes: every 10 minutes, and the last one.
    assert found.megabytes_per_second == pytest.approx(10 * 7 * 2 / (61 * 60))
    assert found.metadata_per_second == pytest.approx(10 * 2 / 15)


def test_more_workers_than_jobs_only_wait():
    found = simulate(Scenario(jobs=3, workers=64, spread=0, failures=0, preemptions=0, restart=0, minutes=60))
    assert found.makespan == pytest.approx(60)
    assert found.efficiency == pytest.approx(3 / 64)


def test_a_hundred_thousand_jobs_with_failures_and_preemption():
    many = Scenario(jobs=100_000, workers=512, minutes=30, failures=2, preemptions=10, retries=20)
    found = simulate(many, seed=1)
    assert found.finished + found.failed == 100_000
    assert found.failed == 0
    # Interruptions come at their rates, and a kill loses half of the time between two checkpoints at most on average.
    hours = found.makespan / 60 * many.workers
    assert found.restarts == pytest.approx(hours * 12 / 24, rel=0.1)
    kills = found.restarts * 2 / 12
    assert 0 < found.lost <= kills * many.checkpoint / 2 * 1.1
    assert 0.8 < found.efficiency < 1
    expected = 100_000 * 30 * np.exp(0.5**2 / 2)
    assert found.work == pytest.approx(expected, rel=0.02)


def test_what_makes_a_sweep_worse():
    base = Scenario(jobs=2000, workers=64, failures=5, preemptions=0, retries=100)
    plain = simulate(base)
    rare = simulate(Scenario(**vars(base) | {"checkpoint": 120.0}))
    assert rare.lost > 2 * plain.lost
    assert rare.makespan > plain.makespan
    stragglers = simulate(Scenario(**vars(base) | {"spread": 1.5}))
    assert stragglers.tail > 2 * plain.tail
    few = simulate(Scenario(**vars(base) | {"retries": 0}))
    assert few.failed > 0
    assert few.finished + few.failed == 2000


def test_bad_scenarios_are_named():
    with pytest.raises(ValueError, match="expected positive jobs, workers"):
        Scenario(jobs=0)
    with pytest.raises(ValueError, match="nothing negative"):
        Scenario(failures=-1)
