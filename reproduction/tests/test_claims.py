"""Claims: verdicts of the paper's numbers, runs that reverse them, and runs that decide nothing."""

import numpy as np
import pytest

from oneofmany.report import Grid
from report.records import fake_evaluation, fake_grid, fake_history, fake_record
from reproduction.claims import CLAIMS, FAILS, HOLDS, UNKNOWN, Finding, _all, check_claims
from reproduction.paper import TABLE_2

UNPUBLISHED = ("All models get worse", "SelectR is the most robust", "That is because", "At first")


def test_the_papers_numbers_keep_its_claims():
    for checked in check_claims(Grid.of([])):
        expected = UNKNOWN if checked.claim.startswith(UNPUBLISHED) else HOLDS
        assert checked.papers.verdict == expected, checked.claim


def test_nothing_holds_without_runs():
    checked = check_claims(Grid.of([]))
    assert len(checked) == len(CLAIMS) == 15
    assert {claim.ours.verdict for claim in checked} == {UNKNOWN}


def find(records, start):
    return next(claim.ours for claim in check_claims(Grid.of(records)) if claim.claim.startswith(start))


def result(task, objective, os, ms, seed=42):
    """A run with these numbers of 100 OS and of 100 MS queries right."""
    valid = np.concatenate([np.arange(100) < os, np.arange(100) < ms])
    total = np.repeat([1, 2], 100)
    name = f"{task}-test"
    return fake_record(f"{task}/{objective}", seed, {name: fake_evaluation(valid, total, task=task)})


def test_order_of_means():
    runs = [result(task, o, 50, ms) for task in ("nqueens", "futoshiki", "sudoku") for o, ms in
            (("minloss", 60), ("selectr", 70), ("iexplr", 65))]  # fmt: skip
    assert find(runs, "SelectR is better than MinLoss in").verdict == HOLDS
    assert find(runs[:-3], "SelectR is better than MinLoss in").verdict == UNKNOWN
    assert find(runs, "I-ExplR is worse").verdict == HOLDS
    turned = [*runs[:-3], result("sudoku", "minloss", 50, 80), *runs[-2:]]
    found = find(turned, "SelectR is better than MinLoss in")
    assert found.verdict == FAILS
    assert any("Sudoku" in line and "(not so)" in line for line in found.evidence)
    # Two of three are enough here, and two that hold decide while the third is missing.
    assert find(turned, "I-ExplR is better").verdict == HOLDS
    assert find(runs[:6], "I-ExplR is better").verdict == HOLDS
    assert find(runs[:3], "I-ExplR is better").verdict == UNKNOWN


def test_one_reversed_pair_refutes_a_whole_row():
    runs = [result("nqueens", "unique", 90, 90), result("nqueens", "minloss", 50, 50)]
    assert find(runs, "All multiplicity-aware").verdict == FAILS


def test_seeds():
    runs = [result(t, o, 50, ms + s, seed=s) for t in ("nqueens", "futoshiki", "sudoku")
            for o, ms in (("minloss", 60), ("selectr", 70)) for s in (1, 2, 3)]  # fmt: skip
    assert find(runs, "SelectR is better than MinLoss for each").verdict == HOLDS
    assert find(
        [*runs[:-1], result("sudoku", "selectr", 50, 10, seed=3)], "SelectR is better than MinLoss for"
    ).verdict == (FAILS)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, HOLDS), (0.2, FAILS), (2.0, FAILS)])
def test_exploratory_share_at_first(factor, verdict):
    runs = []
    for task in ("nqueens", "futoshiki", "sudoku"):
        history = fake_history(np.random.default_rng(0), "selectr", (0.9, 0.9), joint=True)
        shares = history["exploratory_all_loss"]
        history["exploratory_all_loss"] = [None if s is None else s * factor for s in shares]
        runs.append(fake_record(f"{task}/selectr", 42, {}, history=history))
    assert find(runs, "At first").verdict == verdict


def test_more_solutions():
    total = np.repeat([1, 2, 8, 15], 100)

    def curve(objective, *right):
        valid = np.concatenate([np.arange(100) < r for r in right])
        return fake_record(f"sudoku/{objective}", 42, {"sudoku-test": fake_evaluation(valid, total, task="sudoku")})

    falling = [curve("unique", 90, 60, 40, 20), curve("minloss", 90, 80, 60, 50), curve("selectr", 90, 85, 80, 75)]
    assert find(falling, "All models get worse").verdict == HOLDS
    assert find(falling, "SelectR is the most robust").verdict == HOLDS
    assert find(falling[1:], "SelectR is the most robust").verdict == UNKNOWN
    rising = [*falling[:2], curve("selectr", 60, 70, 80, 90)]
    assert find(rising, "All models get worse").verdict == FAILS
    weak = [*falling[:2], curve("selectr", 90, 60, 40, 10)]
    assert find(weak, "SelectR is the most robust").verdict == FAILS


def test_verdicts_of_parts():
    assert _all([("a", True), ("b", True)]) == Finding(HOLDS, ("a", "b"))
    assert _all([("a", True), ("b", None)]).verdict == UNKNOWN
    assert _all([("a", False), ("b", None)]) == Finding(FAILS, ("a (not so)", "b"))
    assert _all([("a", True), ("b", None), ("c", False)], enough=2).verdict == UNKNOWN
    assert _all([("a", True), ("b", False), ("c", False)], enough=2).verdict == FAILS


def published(task, objective):
    return tuple(TABLE_2[task, objective, subset].mean / 100 for subset in ("os", "ms"))


def test_a_whole_grid_near_the_papers_values():
    verdicts = [claim.ours.verdict for claim in check_claims(Grid.of(fake_grid(shares=published)))]
    assert UNKNOWN not in verdicts
    assert verdicts[0] == HOLDS
