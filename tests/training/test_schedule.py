"""Learning rates and early stopping: against PyTorch's scheduler, and at their end points."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oneofmany.training.schedule import Schedule
from oneofmany.training.settings import PhaseSettings

# Few distinct values and many equal ones in a row, so that both plateaus and improvements are frequent.
ACCURACIES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.502, 0.9, 0.901, 0.99, 1.0]), st.integers(1, 12)), max_size=12
).map(lambda runs: [value for value, times in runs for _ in range(times)])


@given(ACCURACIES, st.sampled_from([5e-3, 1e-3, 5e-4]))
def test_plateau_against_pytorch(accuracies, lr):
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr)
    oracle = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, "min", factor=0.2, patience=7, threshold=0.01, threshold_mode="rel", min_lr=0.01 * lr
    )
    schedule = Schedule(PhaseSettings(updates=1000, lr=lr, schedule="plateau"))
    for accuracy in accuracies:
        oracle.step(1 - accuracy)
        assert not schedule.evaluated(accuracy)
        assert schedule.lr(500, 0.5) == pytest.approx(optimiser.param_groups[0]["lr"], rel=1e-9)


@given(ACCURACIES, st.integers(0, 25), st.sampled_from(["constant", "plateau"]))
def test_stops_after_so_many_evaluations_without_improvement(accuracies, patience, kind):
    schedule = Schedule(PhaseSettings(updates=1000, schedule=kind, stop_after=patience))
    best, since = float("inf"), 0
    for accuracy in accuracies:
        improved = 1 - accuracy < 0.99 * best
        best, since = (1 - accuracy, 0) if improved else (best, since + 1)
        assert schedule.evaluated(accuracy) == (since > patience)


def test_without_stop_after_nothing_stops():
    schedule = Schedule(PhaseSettings(updates=1000, schedule="plateau"))
    assert not any(schedule.evaluated(0.5) for _ in range(200))
    assert schedule.lr(0, 0.0) == pytest.approx(0.01 * PhaseSettings().lr)


def test_warm_up_rises_to_the_rate_and_stays():
    schedule = Schedule(PhaseSettings(updates=100, lr=0.2, warmup=4))
    assert [schedule.lr(update, update / 100) for update in range(6)] == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.2, 0.2])
    assert Schedule(PhaseSettings(updates=100, lr=0.2)).lr(0, 0.0) == 0.2


def test_cosine_end_points():
    schedule = Schedule(PhaseSettings(updates=100, lr=0.2, schedule="cosine", final_lr=0.1))
    assert schedule.lr(0, 0.0) == pytest.approx(0.2)
    assert schedule.lr(50, 0.5) == pytest.approx(0.2 * (0.1 + 0.9 / 2))
    assert schedule.lr(100, 1.0) == schedule.lr(101, 1.7) == pytest.approx(0.02)
    rates = [schedule.lr(update, update / 100) for update in range(101)]
    assert rates == sorted(rates, reverse=True)


@given(ACCURACIES, ACCURACIES)
def test_a_restored_schedule_goes_on_as_before(before, after):
    phase = PhaseSettings(updates=1000, schedule="plateau", stop_after=20)
    one, other = Schedule(phase), Schedule(phase)
    for accuracy in before:
        one.evaluated(accuracy)
    other.restore(json.loads(json.dumps(one.state())))
    for accuracy in after:
        assert one.evaluated(accuracy) == other.evaluated(accuracy)
        assert one.lr(7, 0.1) == other.lr(7, 0.1)
