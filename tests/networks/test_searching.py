"""Search by noise: which start answers, what it costs, and that nothing else decides."""

import pytest
import torch

import oneofmany
from oneofmany.data import DeviceData
from oneofmany.data.sudoku import build_sudoku
from oneofmany.networks import EquivariantNetwork, predict
from oneofmany.networks.inference import trajectory
from oneofmany.networks.searching import search
from oneofmany.problems import sudoku

STEPS = 25


@pytest.fixture(scope="module")
def network():
    """The bundled network, of which a few steps are not enough for all queries."""
    return oneofmany.load("sudoku").network


@pytest.fixture(scope="module")
def batch():
    return next(DeviceData(build_sudoku(10, "test", seed=7, givens=(22, 26), ms_queries=4)).in_order(10))


def found(network, batch, starts=3, seed=3, **how):
    generator = torch.Generator().manual_seed(seed)
    return list(search(network, batch, starts=starts, steps=STEPS, generator=generator, **how))


@pytest.fixture(scope="module")
def one_by_one(network, batch):
    """What three whole starts give, without any stopping of a query by another start."""
    generator = torch.Generator().manual_seed(3)
    runs = []
    with torch.no_grad():
        for _ in range(3):
            noise = torch.randn(network.noise_shape(batch), generator=generator)
            runs.append(trajectory(network, batch, STEPS, noise, 8, tolerance=0.001))
    return runs


def test_the_first_settled_start_answers_or_else_the_smallest_residual(network, batch, one_by_one):
    results = found(network, batch)
    assert [one.starts for one in results] == [1, 2, 3]
    later = 0
    for result in results:
        for q in range(len(batch)):
            runs = one_by_one[: result.starts]
            settled = [i for i, run in enumerate(runs) if run.settled[q]]
            chosen = settled[0] if settled else min(range(len(runs)), key=lambda i: float(runs[i].residual[q]))
            assert int(result.start[q]) == chosen
            assert bool(result.settled[q]) == bool(settled)
            assert result.answers[q].tolist() == runs[chosen].logits[q].argmax(-1).tolist()
            assert float(result.residual[q]) == pytest.approx(float(runs[chosen].residual[q]), rel=1e-3, abs=1e-6)
            run = runs[: settled[0] + 1] if settled else runs
            assert int(result.steps[q]) == sum(int(one.steps[q]) for one in run)
            later += chosen > 0
    assert later > 0  # otherwise nothing was compared
    assert not results[-1].settled.all() or results[0].settled.sum() < results[-1].settled.sum()


@pytest.mark.parametrize("together", [1, 40])
def test_several_starts_at_once_give_the_same(network, batch, together):
    for one, other in zip(found(network, batch), found(network, batch, together=together), strict=True):
        assert torch.equal(one.answers, other.answers)
        assert torch.equal(one.start, other.start)
        assert torch.equal(one.steps, other.steps)


def test_a_smaller_tolerance_settles_later_or_never(network, batch):
    strict, loose = (found(network, batch, starts=1, patience=2, tolerance=t)[0] for t in (1e-5, 0.5))
    assert strict.settled.sum() < loose.settled.sum()
    assert (strict.residual[strict.settled] <= 1e-5).all()
    both = strict.settled & loose.settled
    assert (strict.steps[both] >= loose.steps[both]).all()
    with_patience = predict(network, batch, steps=STEPS, patience=8, generator=torch.Generator().manual_seed(3))
    everything = found(network, batch, starts=1, tolerance=1.0)[0]
    assert torch.equal(everything.answers, with_patience.answers)


def test_a_perturbed_state_continues_from_the_last_one(network, batch):
    """Without noise in the state a restart is only more steps."""
    first, second = found(network, batch, starts=2, restart="perturbed", scale=0.0, patience=10)
    longer = next(
        search(network, batch, starts=1, steps=2 * STEPS, patience=10, generator=torch.Generator().manual_seed(3))
    )
    open_rows = ~first.settled
    assert open_rows.any()
    assert torch.equal(second.answers[first.settled], first.answers[first.settled])
    # A restart begins to wait again, so it can settle some steps later than one long run.
    assert (second.steps[second.settled] >= longer.steps[second.settled]).all()
    assert (second.settled & longer.settled).sum() > first.settled.sum() or not longer.settled[open_rows].any()
    moved = found(network, batch, starts=2, restart="perturbed", scale=1.0)[1]
    assert torch.equal(moved.answers[first.settled], first.answers[first.settled])


def test_starts_run_ahead_in_powers_of_two(network, batch, monkeypatch):
    sizes = []

    def counted(network, some, **how):
        sizes.append(len(some))
        return trajectory(network, some, **how | {"steps": 2})

    monkeypatch.setattr("oneofmany.networks.searching.trajectory", counted)
    results = found(network, batch[:2], starts=7, together=1000)
    assert [one.starts for one in results] == [1, 2, 3, 4, 5, 6, 7]
    assert sizes == [2, 2, 4, 6]


def test_a_search_ends_when_it_is_told_to(network, batch):
    assert found(network, batch, stop=lambda: True) == []
    asked = iter([False] * 3 + [True] * 9)
    (result,) = found(network, batch, stop=lambda: next(asked))
    assert result.starts == 1
    assert int(result.steps.max()) == 1 + 2 * 8


def test_after_all_have_settled_nothing_runs(batch):
    network = EquivariantNetwork(sudoku(), width=8)
    calls = []
    network.register_forward_hook(lambda *_: calls.append(1))
    first, second = found(network, batch, starts=2, tolerance=1.0, patience=2)
    if bool(first.settled.all()):
        assert torch.equal(first.steps, second.steps)
    before = len(calls)
    easy = next(DeviceData(build_sudoku(2, "test", seed=1, givens=(60, 60), ms_queries=0)).in_order(2))
    results = found(oneofmany.load("sudoku").network, easy, starts=3)
    assert results[0].settled.all()
    assert [one.starts for one in results] == [1, 2, 3]
    assert torch.equal(results[0].steps, results[2].steps)
    assert len(calls) == before


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"starts": 0}, "starts: expected at least 1"),
        ({"patience": 0}, "patience: expected at least 1"),
        ({"tolerance": 0.0}, "tolerance: expected more than 0"),
        ({"scale": -1.0}, "scale: expected at least 0"),
        ({"restart": "again"}, "restart: expected noise or perturbed, got 'again'"),
    ],
)
def test_bad_arguments(network, batch, how, message):
    with pytest.raises(ValueError, match=message):
        found(network, batch, **how)
