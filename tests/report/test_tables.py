"""Tables of any runs, against cases small enough to compute by hand."""

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest, t

from oneofmany.evaluation.record import DataInfo
from oneofmany.evaluation.scores import wilson
from oneofmany.report import Grid, cells, grid
from oneofmany.report.grid import variant_of
from oneofmany.report.plots import bins_of
from oneofmany.report.results import by_recipe, compared, every_run, other_data, several_starts, user_tables
from oneofmany.report.table import Cell, Column, Table

from .records import changed, fake_evaluation, fake_record
from .small_grid import MINLOSS, SELECTR, TOTAL, check_parts_of_a_grid, run, texts


def test_accuracy_by_recipe_has_the_mean_over_seeds_with_its_interval():
    (row,) = by_recipe(Grid.of(MINLOSS)).rows
    assert texts(row)[:2] == ["N-Queens", "nqueens/minloss"]
    for cell, shares in zip(row[2:5], ((50, 100, 50), (50, 25, 75), (50, 70, 60)), strict=True):
        half = t.ppf(0.975, 2) * np.std(shares, ddof=1) / math.sqrt(3)
        mean = np.mean(shares)
        low, high = max(mean - half, 0), min(mean + half, 100)
        assert cell.numbers == pytest.approx({"mean": mean, "low": low, "high": high})
        assert cell.text == f"{mean:.2f} [{low:.2f}, {high:.2f}]"
    assert texts(row)[5:] == ["3", "nqueens-test", "10", "123 s, CPU"]
    # With one seed the interval is that over the queries.
    (row,) = by_recipe(Grid.of(MINLOSS[:1])).rows
    low, high = (100 * end for end in wilson(5, 10))
    assert row[4].text == f"50.00 [{low:.1f}, {high:.1f}]"


@pytest.mark.parametrize("right", [999, 1000])
def test_seeds_that_do_not_differ_get_an_interval_over_queries(right):
    """Not 99.90 [99.90, 99.90]; the queries of the seeds are the same ones and count once."""

    def made(seed, right):
        evaluation = fake_evaluation(np.arange(1000) < right, np.ones(1000, int))
        return fake_record("nqueens/minloss", seed, {"nqueens-test": evaluation})

    def overall(records):
        return cells.with_interval(grid.over_runs(records, "overall"), ())

    runs = [made(seed, right) for seed in (1, 2, 3)]
    low, high = (100 * end for end in wilson(right, 1000))
    cell = overall(runs)
    assert cell.text == f"{right / 10:.2f} [{low:.2f}, {high:.2f}] (queries)"
    assert (cell.numbers["low"], cell.numbers["high"]) == pytest.approx((low, high))
    assert 0 <= low < high <= 100
    differ = overall([*runs[:2], made(3, 990)])
    assert "(queries)" not in differ.text
    assert differ.text.endswith("100.00]")
    assert 0 <= differ.numbers["low"] < differ.numbers["high"] == 100
    assert "(queries)" not in overall(runs[:1]).text


def test_seeds_that_do_not_differ_on_dev():
    about = {"dev": DataInfo("nqueens-dev", "dead", 500, ms_queries=100)}
    runs = [replace(fake_record("nqueens/minloss", seed, {}, dev=0.9), data=about) for seed in (1, 2)]
    low, high = (100 * end for end in wilson(450, 500))
    assert cells.with_interval(grid.over_dev(runs, "overall"), ()).text == f"90.00 [{low:.2f}, {high:.2f}] (queries)"


def test_objectives_are_compared_on_the_same_queries_and_seeds():
    (row,) = compared(Grid.of([*MINLOSS, *SELECTR])).rows
    assert texts(row)[:2] == ["N-Queens", "SelectR − MinLoss"]
    # 80 - 50 and 90 - 70 of the two seeds that both have.
    assert row[4].numbers["points"] == pytest.approx(25)
    assert row[4].numbers["high"] == pytest.approx(25 + t.ppf(0.975, 1) * 5)
    # Seed 42: queries 0-7 against 0, 1, 2, 6, 7.
    assert row[5].numbers["p"] == pytest.approx(binomtest(3, 3).pvalue)
    assert row[6].text == "2"
    assert not compared(Grid.of(MINLOSS)).rows
    other = run("selectr", 42, range(8), 0.6, checksum="other")
    assert not compared(Grid.of([*MINLOSS, other])).rows


def test_any_part_of_a_grid_makes_tables():
    check_parts_of_a_grid(user_tables)


def test_runs_without_evaluations_or_subsets():
    only_os = fake_record("nqueens/naive", 42, {"nqueens-test": fake_evaluation([True, False], [1, 1])})
    grid = Grid.of([only_os, fake_record("nqueens/unique", 42, {}, dev=None)])
    assert [texts(row)[0] for row in every_run(grid).rows] == ["nqueens/naive/42", "nqueens/unique/42"]
    assert [texts(row)[3] for row in by_recipe(grid).rows] == [""]
    for table in user_tables(grid):
        table.csv()


@pytest.mark.parametrize(
    ("recipe", "variant"),
    [
        ("nqueens/naive", ""),
        ("nqueens/naive-authors", "authors"),
        ("sudoku/unique/large-batch", "large-batch"),
        ("sudoku/unique-180k/large-batch", "180k/large-batch"),
        ("futoshiki/selectr/equivariant-flags", "equivariant-flags"),
        ("sudoku-hard/naive/equivariant", "hard/equivariant"),
    ],
)
def test_variants(recipe, variant):
    objective = "unique" if "unique" in recipe else "selectr" if "selectr" in recipe else "naive"
    task = recipe.split("/")[0].split("-")[0]
    assert variant_of(fake_record(recipe, 42, {}, objective=objective, task=task)) == variant


def test_starts_are_never_mixed():
    more = {"starts": 4, "steps": 32, "chosen": np.arange(10) < 8, "checked": np.arange(10) < 9}
    evaluation = fake_evaluation(np.arange(10) < 7, TOTAL, **more)
    grid = Grid.of(
        [fake_record("nqueens/minloss/equivariant", 42, {"nqueens-test": evaluation}, network="equivariant")]
    )
    (row,) = several_starts(grid).rows
    assert texts(row)[2:] == [
        "32 steps, 4 starts, by residual",
        "100.00",
        "25.00",
        "70.00",
        "100.00",
        "50.00",
        "80.00",
        "100.00",
        "75.00",
        "90.00",
        "1",
    ]
    assert [c.group for c in several_starts(grid).columns[3:12:3]] == [
        "one trajectory",
        "chosen without the rules",
        "chosen with the checker",
    ]
    # One trajectory alone enters the accuracy tables.
    assert by_recipe(grid).rows[0][4].numbers["accuracy"] == 70


def test_other_data():
    evaluations = {
        "nqueens-test": fake_evaluation(np.arange(10) < 7, TOTAL),
        "nqueens-size-14-test": fake_evaluation(np.arange(10) < 3, TOTAL, name="nqueens-size-14-test", size=14),
    }
    grid = Grid.of([fake_record("nqueens/minloss/equivariant", 42, evaluations, network="equivariant")])
    (row,) = other_data(grid).rows
    assert texts(row) == [
        "nqueens/minloss/equivariant",
        "nqueens-size-14-test",
        "14",
        "10",
        "",
        "50.00",
        "0.00",
        "30.00",
        "1",
    ]


def test_settings_are_tuned_on_dev():
    worse, better = (
        fake_record("nqueens/minloss", s, MINLOSS[0].evaluations, dev=d) for s, d in ((42, 0.4), (42, 0.6))
    )
    worse = changed(worse, decay=1e-5)
    unfinished = fake_record("nqueens/naive", 42, {}, finished=False)
    grid = Grid.of([worse, better, better, unfinished])
    assert grid.runs == (better,)
    assert sorted((name, why.split()[0], why.split()[-1]) for name, why in grid.left_out) == [
        ("nqueens/minloss/42", "it", "twice"),
        ("nqueens/minloss/42", "other", "dev"),
        ("nqueens/naive/42", "it", "finished"),
    ]
    several = [fake_record("nqueens/minloss", s, MINLOSS[0].evaluations, dev=0.1) for s in (1, 2)]
    several = [changed(record, decay=0) for record in several]
    assert [r.seed for r in Grid.of([better, *several]).runs] == [1, 2]


def test_csv_has_full_precision_and_markdown_keeps_its_cells():
    cells = (Cell("a|b\n<i>"), Cell("1.23 (4)", {"mean": 1.2345, "best": 4.0}, ("run --x",)), Cell())
    table = Table("t", "T", (Column("l"), Column("x", "OS"), Column("y")), (cells,))
    rows = list(csv.reader(io.StringIO(table.csv())))
    assert rows == [["l", "OS x mean", "OS x best", "y", "commands"], ["a|b\n<i>", "1.2345", "4.0", "", "run --x"]]
    assert "| a\\|b &lt;i> | 1.23 (4) |  |" in table.markdown()


def test_bins_against_counting():
    rng = np.random.default_rng(0)
    total = np.where(rng.random(3000) < 0.3, 1, rng.integers(2, 50, 3000))
    valid, givens = rng.random(3000) < 0.6, rng.integers(17, 35, 3000)
    bins = bins_of(fake_evaluation(valid, total, givens))
    assert [b.label for b in bins] == ["1", "2", "3", "4", "5", "6–10", "11–20", "21–30", "31–40", "41–49"]
    for b in bins:
        rows = [i for i in range(3000) if b.first <= total[i] <= b.last]
        assert (b.total, b.correct) == (len(rows), sum(bool(valid[i]) for i in rows))
        assert b.givens == pytest.approx(np.mean([givens[i] for i in rows]))


def test_a_setting_that_only_a_newer_version_has_does_not_set_runs_apart():
    newer = [changed(MINLOSS[0], spare_settled=False), changed(MINLOSS[1], decay=1e-4), MINLOSS[2]]
    grid = Grid.of(newer)
    assert [record.seed for record in grid.runs] == [42, 1729, 3120]
    assert not grid.left_out
    other = Grid.of([*newer[:2], changed(MINLOSS[2], decay=0.5)])
    assert [record.seed for record in other.runs] == [42, 1729]


def test_small_bins_are_joined_and_unknown_totals_left_out():
    total = np.array([1] * 5 + [2] * 40 + [3] * 10 + [7] * 12 + [-1] * 9)
    bins = bins_of(fake_evaluation(np.ones(len(total), bool), total))
    assert [(b.label, b.total) for b in bins] == [("1", 5), ("2–7", 62)]


@pytest.mark.parametrize("wrong", [None, "x", 3, [], {"os": 1}])
def test_a_record_that_was_selected_on_something_else(wrong):
    record = fake_record("nqueens/minloss", 1, {}, dev=0.5)
    assert grid.dev_score(changed(record, select_on=wrong)) == grid.dev_score(record) == 0.5
