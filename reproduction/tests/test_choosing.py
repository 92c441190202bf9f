"""The study of small networks: differences paired by seed, verdicts, and its tables."""

import numpy as np
import pytest

from oneofmany.report.grid import Grid
from reproduction.choosing import (
    KINDS,
    SMALL,
    choosing_answer,
    choosing_chart,
    difference,
    runs_of,
    small_boards,
    small_sequences,
    verdict,
)
from reproduction.publish import read_grid
from tests.report.records import fake_evaluation, fake_record

SEEDS = (42, 1729, 3120)


def runs(kind, objective, shares):
    """A run for every seed, with this share of 100 MS queries right; 50 OS queries are all right."""
    recipe = f"{kind.task}/{objective}/{kind.variant}"
    found = []
    for seed, share in zip(SEEDS, shares, strict=False):
        valid = np.r_[np.ones(50, bool), np.arange(100) < share]
        total = np.r_[np.ones(50, int), np.full(100, 2)]
        evaluation = fake_evaluation(valid, total, task=kind.task, name=kind.test)
        found.append(fake_record(recipe, seed, {kind.test: evaluation}, apart=SMALL))
    return found


def grid_of(kind, **shares):
    return Grid((), apart=tuple(record for name, own in shares.items() for record in runs(kind, name, own)))


def test_differences_are_paired_by_seed():
    kind = KINDS[1]
    grid = grid_of(kind, minloss=(80, 60, 70), naive=(50, 30, 40), ccloss=(70, 72), random=(90, 58, 70))
    of = runs_of(grid, kind)
    found = difference(of["minloss"], of["naive"])
    assert (found.mean, found.low, found.high) == pytest.approx((30, 30, 30))
    assert verdict(found) == "higher"
    assert verdict(difference(of["naive"], of["minloss"])) == "lower"
    assert verdict(difference(of["random"], of["minloss"])) == "undecided"
    assert difference(of["ccloss"], of["minloss"]) is None  # two seeds can agree by chance
    assert "MinLoss 70.0 %, Naive 40.0 %" in choosing_answer(grid)
    assert "MinLoss is better" in choosing_answer(grid)
    rows = {row[1].text: [cell.text for cell in row] for row in small_boards(grid).rows}
    assert rows["Naive"][-2:] == ["lower", "3"]
    assert rows["Random"][-2] == "undecided"
    assert rows["MinLoss"][-3:] == ["", "", "3"]


def test_few_seeds_decide_nothing():
    grid = grid_of(KINDS[2], minloss=(80, 80), naive=(10, 10))
    assert difference(*(runs_of(grid, KINDS[2])[name] for name in ("minloss", "naive"))) is None
    assert verdict(None) == "undecided"
    assert choosing_answer(grid) == ""
    assert len(small_sequences(grid).rows) == 2


def test_without_runs():
    assert choosing_answer(Grid(())) == ""
    assert choosing_chart(Grid(())) is None
    assert not small_boards(Grid(())).filled


def test_the_published_runs():
    """Every objective has the same seeds and updates, from a clean commit, and was tested on the same queries."""
    grid = read_grid()
    for kind in KINDS:
        of = runs_of(grid, kind)
        assert {"naive", "minloss", "random", "ccloss", "selectr"} <= of.keys()
        for own in of.values():
            assert [record.seed for record, _ in own] == sorted(SEEDS)
            assert not any(record.dirty for record, _ in own)
        every = [one for own in of.values() for one in own]
        assert len({evaluation.data.checksum for _, evaluation in every}) == 1
        assert len({record.data["train"].checksum for record, _ in every}) == 1
    chart = choosing_chart(grid)
    assert chart is not None
    assert "<svg" in chart.standalone_svg()
