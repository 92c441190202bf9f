"""All objectives with given rules and without: the table, the spreads and the figure."""

import re
from dataclasses import replace

import numpy as np
import pytest

from oneofmany.report.grid import OBJECTIVES, TASKS, Grid
from report.records import fake_evaluation, fake_record
from reproduction.given_rules import (
    GIVEN,
    LEARNED,
    given_rules,
    given_rules_answer,
    given_rules_chart,
    half,
    measured_tasks,
    spread,
)

SEEDS = (42, 1729, 3120)
SIZES = {"nqueens-test": 11, "nqueens-same-size-test": 10, "futoshiki-test": 6, "futoshiki-same-size-test": 5}
MADE_UP = dict(zip(OBJECTIVES, (20, 35, 60, 70, 75, 68, 66), strict=True))


def runs(task, variant, test, shares, seeds=SEEDS, apart=""):
    """A run for each objective and seed: this share of 100 MS queries is right, and all of 50 OS queries."""
    found = []
    for name, share in shares.items():
        for place, seed in enumerate(seeds):
            valid = np.r_[np.ones(50, bool), np.arange(100) < share + place]
            recipe, total = f"{task}/{name}/{variant}", np.r_[np.ones(50, int), np.full(100, 3)]
            command = f"oneofmany evaluate runs/{recipe}/{seed} data/{test}.safetensors"
            evaluation = fake_evaluation(
                valid, total, task=task, size=SIZES.get(test, 9), name=test, checksum=test, command=command
            )
            network = "equivariant" if variant.startswith("equivariant") else "transformer"
            found.append(replace(fake_record(recipe, seed, {test: evaluation}, network=network), apart=apart))
    return found


def without_rules(task, shares=MADE_UP, seeds=SEEDS):
    test = "sudoku-test" if task == "sudoku" else f"{task}-same-size-test"
    return runs(task, "transformer", test, shares, seeds, "experiments/no-rules")


def with_rules(task, seeds=SEEDS[:1], test=None, variant="equivariant", apart=""):
    shares = {name: 90 + place for place, name in enumerate(OBJECTIVES)}
    return runs(task, variant, test or f"{task}-test", shares, seeds, apart)


def test_the_spread_is_the_best_minus_the_worst_objective():
    grid = Grid.of([*without_rules("nqueens"), *with_rules("nqueens")])
    found = spread(half(grid, "nqueens", LEARNED), OBJECTIVES)
    assert found.best == ("minloss", pytest.approx(76))
    assert found.worst == ("naive", pytest.approx(21))
    assert found.points == pytest.approx(55)
    assert found.found.mean == pytest.approx(55)
    text = given_rules_answer(grid)
    assert (
        "* **N-Queens**: without rules 55.00 points (MinLoss 76.00 %, Naive 21.00 %; paired by seed "
        "+55.00 [+55.00, +55.00]; 1 of 5 within a point of the best), I-ExplR 69.00 %, SelectR 67.00 %;" in text
    )
    # One seed has no interval.
    given = "with given rules 4.00 points (MinLoss 94.00 %, Naive 90.00 %; 2 of 5 within a point of the best), "
    assert f"{given}I-ExplR 95.00 %, SelectR 96.00 %." in text
    assert "best minus worst of the 5 objectives with one phase" in text
    assert "larger than 0" in text
    assert text.endswith("(figures/given-rules.svg)")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"augment": True}, ", symmetries in training"),
        ({"augment": True, "reveal": 0.8}, ", symmetries and revealed cells in training"),
        ({"augment": False, "reveal": 0.0}, ""),
    ],
)
def test_the_table_says_what_helped_a_network_without_rules(fields, said):
    made = runs("sudoku", "transformer/augmented", "sudoku-test", MADE_UP)
    told = [replace(record, settings={**record.settings, **fields}) for record in made]
    rows = given_rules(Grid.of(told)).rows
    assert {row[1].text for row in rows} == {f"not given (Transformer{said})"}


def test_only_objectives_of_both_halves_are_compared():
    some = {name: MADE_UP[name] for name in ("random", "minloss", "iexplr")}
    text = given_rules_answer(Grid.of([*without_rules("sudoku", some), *with_rules("sudoku")]))
    both = "with given rules 3.00 points (MinLoss 94.00 %, Random 91.00 %; 1 of 2 within a point of the best), "
    assert f"{both}I-ExplR 95.00 %, SelectR 96.00 %." in text
    alone = given_rules_answer(Grid.of(without_rules("sudoku", some)))
    assert "without rules 40.00 points" in alone
    assert "with given rules" not in alone.splitlines()[0]


def test_a_row_names_its_test_set():
    grid = Grid.of([*without_rules("futoshiki"), *with_rules("futoshiki"), *with_rules("sudoku")])
    rows = [[cell.text for cell in row] for row in given_rules(grid).rows]
    assert len(rows) == 14  # Sudoku was not trained without rules
    assert rows[0][:4] == ["Futoshiki", "given (our network)", "Naive", "futoshiki-test (6x6)"]
    assert rows[7][:4] == ["Futoshiki", "not given (Transformer)", "Naive", "futoshiki-same-size-test (5x5)"]
    assert rows[0][7:9] == ["50,000", "1"]
    assert given_rules(grid).rows[11][5].numbers["mean"] == pytest.approx(76)
    # At the training size where that was tested with as many objectives.
    more = Grid.of([*without_rules("futoshiki"), *with_rules("futoshiki", test="futoshiki-same-size-test")])
    assert given_rules(more).rows[0][3].text == "futoshiki-same-size-test (5x5)"


def test_sudoku_with_rules_may_be_the_runs_of_equal_updates():
    short = with_rules("sudoku", SEEDS, variant="equivariant/alike", apart="experiments/alike")
    one = [record for record in with_rules("sudoku") if record.objective in ("minloss", "naive")]
    found = half(Grid.of([*one, *short]), "sudoku", GIVEN)
    assert {record.recipe for record, _ in found["minloss"]} == {"sudoku/minloss/equivariant/alike"}


def test_the_figure_has_a_panel_for_every_task():
    grid = Grid.of([record for task in TASKS for record in (*without_rules(task), *with_rules(task))])
    chart = given_rules_chart(grid)
    assert list(chart.draw.keywords["tasks"]) == list(TASKS)
    assert chart.draw.keywords["tasks"] == measured_tasks(grid)
    svg = chart.standalone_svg()
    assert svg.count("rules given") == svg.count("rules not given") == 1
    assert int(re.search(r' width="(\d+)"', svg)[1]) < 480
    assert len(chart.commands) == 2 * (63 + 21)


def test_without_runs():
    """The runs with given rules alone do not make the comparison."""
    for grid in (Grid.of([]), Grid.of(with_rules("nqueens")), Grid.of(without_rules("nqueens", {"naive": 1}))):
        assert given_rules_answer(grid) == ""
        assert given_rules_chart(grid) is None
        assert not given_rules(grid).filled
