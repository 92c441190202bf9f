"""Who runs a network: the engine for CPUs or PyTorch, with the same answers, and on how many threads."""

import numpy as np
import pytest
import torch

import oneofmany
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.equivariant.cpu import CpuNetwork
from oneofmany.networks.saved import SavedNetwork, save_network
from oneofmany.problems import TASKS, nqueens
from oneofmany.solving import Solver, load_network, running, threads_for
from trained import five_queens

QUERIES = [TASKS["nqueens"].parse(text) for text in (". . . . .", "1 . . . .", ". 4 . . .", "2 . . . .", ". . . 3 .")]


def answers(saved, monkeypatch, engine, **settings):
    if not engine:
        monkeypatch.setattr(running, "engine_of", lambda saved: None)
    made = Solver(saved, **settings).answer(QUERIES)
    monkeypatch.undo()
    return made


@pytest.mark.parametrize("settings", [{}, {"steps": 3, "patience": 0}, {"seed": 5, "batch_size": 2}, {"threads": 2}])
def test_the_engine_answers_as_torch_does(settings, monkeypatch):
    fast, slow = (answers(five_queens(), monkeypatch, engine, **settings) for engine in (True, False))
    assert [one.values.tolist() for one in fast] == [one.values.tolist() for one in slow]
    np.testing.assert_allclose(
        [one.log_probability for one in fast], [one.log_probability for one in slow], rtol=1e-3, atol=1e-4
    )


def test_the_engine_runs_equivariant_networks_in_float32_alone(tmp_path):
    assert isinstance(running.engine_of(five_queens()), CpuNetwork)
    problem, settings = nqueens(4), NetworkSettings(kind="nlm", depth=2, width=4)
    nlm = build_network(settings, problem)
    assert running.engine_of(SavedNetwork(nlm, settings, "nqueens", 4, {})) is None
    save_network(tmp_path / "nlm", nlm, settings, problem)
    settings = NetworkSettings(width=8)
    double = build_network(settings, problem).double()
    assert running.engine_of(SavedNetwork(double, settings, "nqueens", 4, {})) is None
    watched = build_network(settings, problem)
    watched.register_forward_hook(lambda *_: None)
    assert running.engine_of(SavedNetwork(watched, settings, "nqueens", 4, {})) is None
    assert isinstance(load_network(tmp_path / "nlm"), SavedNetwork)
    assert isinstance(load_network("nqueens").network, CpuNetwork)
    assert load_network("nqueens").card == oneofmany.load("nqueens").card


@pytest.mark.parametrize(("load", "threads"), [(0.0, 4), (1.4, 3), (2.6, 1), (40.0, 1)])
def test_the_engine_gets_the_idle_cores_and_torch_one(load, threads, monkeypatch):
    monkeypatch.setattr("oneofmany.exact.cores.usable_cores", lambda: 4)
    monkeypatch.setattr("os.getloadavg", lambda: (load, 9.0, 9.0), raising=False)
    assert threads_for(five_queens()) == threads
    settings = NetworkSettings(kind="nlm", depth=2, width=4)
    assert threads_for(SavedNetwork(build_network(settings, nqueens(4)), settings, "nqueens", 4, {})) == 1


def test_later_weights_are_used():
    settings = NetworkSettings(width=8, steps=3)
    network = build_network(settings, nqueens(5))
    solver = Solver(SavedNetwork(network, settings, "nqueens", 5, {}))
    before = solver.answer(QUERIES)
    with torch.no_grad():
        network.step.readout.mul_(3)
    assert solver.answer(QUERIES)[0].log_probability != before[0].log_probability


def test_torch_answers_with_the_threads_asked_for_and_keeps_its_own(monkeypatch):
    settings = NetworkSettings(kind="nlm", depth=2, width=4)
    network = build_network(settings, nqueens(4))
    seen = []
    network.register_forward_pre_hook(lambda *_: seen.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    query = TASKS["nqueens"].parse(". . . .")
    for threads in (1, 2):
        Solver(SavedNetwork(network, settings, "nqueens", 4, {}), threads=threads).answer([query])
    assert set(seen) == {1, 2}
    assert torch.get_num_threads() == before
    with pytest.raises(ValueError, match="threads: expected at least 1, got 0"):
        Solver(SavedNetwork(network, settings, "nqueens", 4, {}), threads=0)


def test_preparing_does_not_change_the_answers():
    solver = Solver(five_queens())
    expected = [one.values.tolist() for one in Solver(five_queens()).answer(QUERIES)]
    solver.prepare(QUERIES)
    solver.prepare([])
    assert [one.values.tolist() for one in solver.answer(QUERIES)] == expected
