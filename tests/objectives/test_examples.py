"""The examples run as scripts and show what their docstrings say."""

import runpy
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return __import__


@pytest.fixture
def run_script(monkeypatch, capsys):
    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run


CENTRE = pytest.approx([0.5, 0.5], abs=1e-6)


def is_a_solution(end):
    first, second = end.tolist()
    return abs(first - second) > 0.98


def test_example_1(example):
    xor = example("example1_xor")
    centre = torch.zeros(2, dtype=torch.float64)
    for name, objective in xor.OBJECTIVES.items():
        slope = xor.gradient(objective, centre)
        assert (slope.norm() == 0) == (name != "MinLoss"), name
    for start in ((0.5, 0.5), (0.9, 0.6), (0.7, 0.7)):
        assert xor.descend(xor.OBJECTIVES["Naive"], start).tolist() == CENTRE
    for name in ("CCLoss", "IExplR"):
        objective = xor.OBJECTIVES[name]
        # A saddle point: it is left from every start with unequal probabilities, however near ...
        for start in ((0.501, 0.5), (0.4999, 0.5001), (0.2, 0.1)):
            assert is_a_solution(xor.descend(objective, start)), (name, start)
        # ... but reached from starts with equal ones.
        for start in ((0.5, 0.5), (0.05, 0.05)):
            assert xor.descend(objective, start).tolist() == CENTRE, (name, start)
    for start in ((0.5, 0.5), (0.7, 0.7), (0.9, 0.6)):
        assert is_a_solution(xor.descend(xor.OBJECTIVES["MinLoss"], start)), start


def test_example_1_is_a_saddle_for_ccloss_and_a_minimum_for_naive(example):
    xor = example("example1_xor")
    solutions, mask = xor.SOLUTIONS, xor.MASK

    def curvature(objective):
        def value(position):
            logits = torch.stack([torch.zeros_like(position), position], dim=-1).unsqueeze(0)
            return objective(logits, solutions, mask)

        hessian = torch.autograd.functional.hessian(value, torch.zeros(2, dtype=torch.float64))
        return torch.linalg.eigvalsh(hessian).tolist()

    low, high = curvature(xor.OBJECTIVES["CCLoss"])
    assert low < 0 < high
    assert min(curvature(xor.OBJECTIVES["Naive"])) > 0


def test_example_1_as_a_script(run_script):
    output = run_script("example1_xor.py")
    assert [line.split()[0] for line in output.splitlines()[3:]] == ["Naive", "CCLoss", "IExplR", "MinLoss"]


def test_example_2(run_script, tmp_path, example):
    picture = tmp_path / "example2.png"
    output = run_script("example2_logistic_regression.py", "--out", str(picture))
    rows = {}
    for line in output.splitlines():
        if line.endswith(" of 10"):
            name, start = line[:30].strip(), line[30:50].strip()
            boundary, correct = line[50:].replace(" of 10", "").split()[2:]
            rows[name, start] = float(boundary), int(correct)
    starts = {"(0.1, 0)", "MinLoss's optimum"}
    assert {start for _, start in rows} == starts
    for start in starts:
        assert rows["MinLoss", start] == (pytest.approx(-0.55, abs=0.005), 9)
        assert rows["Naive", start] == (pytest.approx(-1.45, abs=0.005), 9)
        for name in ("IExplR, temperature 1", "CCLoss", "SelectR, fresh selector"):
            assert rows[name, start][1] == 10, name
        for name in ("IExplR, temperature 0.05", "SelectR, pre-trained selector"):
            assert rows[name, start] == (pytest.approx(-0.55, abs=0.01), 9), name
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_example_2_minloss_misclassifies_the_point_at_minus_two_with_small_learning_rates(example):
    module = example("example2_logistic_regression")
    for rate, updates in ((1.0, 250), (4.0, 100)):
        end = module.train(module.MinLoss(), module.PAPERS_START, rate=rate, updates=updates)
        assert end.boundary == pytest.approx(-0.55, abs=0.005)
        assert end.correct == 9
        slope, offset = end.theta
        assert slope * -2 + offset < 0


def test_example_2_without_matplotlib(monkeypatch, capsys, example):
    module = example("example2_logistic_regression")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    module.draw({}, "nowhere.png")
    assert "nowhere.png not drawn: this needs matplotlib" in capsys.readouterr().out
    assert not Path("nowhere.png").exists()


def test_lemmas(example):
    lemmas = example("lemmas")
    assert len(lemmas.all_grids()) == 288
    rows = lemmas.measure(queries=60, seed=3)
    assert {row["error"] for row in rows} >= {0.0, 1.0}
    for row in rows:
        # Lemma 1, exactly and for every prediction; Lemma 2 with all solutions listed.
        assert row["naive"] - row["error"] == pytest.approx(row["others"], abs=1e-12)
        assert row["minloss"] == pytest.approx(row["error"], abs=1e-12)
        assert row["minloss_some_listed"] >= row["minloss"]
    # The counter-example: every prediction is right, but not every right answer is listed.
    always_right = rows[-1]
    assert always_right["error"] == 0
    assert always_right["minloss_some_listed"] > 0.1


def test_lemmas_as_a_script(run_script):
    assert "Lemma 2" in run_script("lemmas.py")


def test_selectr_loop_is_short_and_learns(run_script):
    output = run_script("selectr_loop.py")
    assert "trained with SelectR: 10 of 10 right" in output
    naive = output.split("trained with Naive:")[1].split()[0]
    assert int(naive) <= 5
    source = (EXAMPLES / "selectr_loop.py").read_text().splitlines()
    start, end = (source.index(f"# --8<-- [{mark}:loop]") for mark in ("start", "end"))
    assert len(source[start + 1 : end]) <= 25


def test_selectr_loop_takes_both_losses_before_either_update(example):
    """The first steps of both networks use gradients at the initial values."""
    module = example("selectr_loop")
    torch.manual_seed(0)
    network = module.make_network()
    seen = []

    class Watching(torch.optim.SGD):
        def step(self, closure=None):
            seen.append([p.detach().clone() for p in network.parameters()])
            return super().step(closure)

    before = [p.detach().clone() for p in network.parameters()]
    original, torch.optim.Adam = torch.optim.Adam, Watching  # pyright: ignore[reportAttributeAccessIssue]
    try:
        module.train_with_selectr(network, module.QUERIES, module.SOLUTIONS, module.MASK, updates=1)
    finally:
        torch.optim.Adam = original
    assert len(seen) == 2
    assert all(torch.equal(a, b) for snapshot in seen for a, b in zip(snapshot, before, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(network.parameters(), before, strict=True))
