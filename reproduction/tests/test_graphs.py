"""The tables of graph colouring, from made-up runs."""

from dataclasses import replace

import numpy as np
import pytest

from oneofmany.data.graphs import SIZES
from oneofmany.evaluation.record import DataInfo
from oneofmany.report import Grid
from oneofmany.training.settings import OBJECTIVES
from report.records import fake_evaluation, fake_record
from reproduction.experiments import PAIRS
from reproduction.graph_objectives import objectives_answer, objectives_table
from reproduction.graphs import SOLVABLE, density_table, graph_answer, graph_chart, graph_table
from reproduction.solvable import solvable_graphs
from reproduction.tests.our_records import settings

RECIPE = "colouring/minloss/equivariant-checker/wide-small"


def evaluation(nodes, queries, right, kind="", **more):
    valid = np.arange(queries) < right
    name = f"colouring-3-size-{nodes}{kind}-test"
    total, givens = np.full(queries, -1), np.full(queries, 2)
    return fake_evaluation(valid, total, givens, task="colouring", size=nodes, name=name, checksum=name, **more)


def record(evaluations, seed=42, colours=3, recipe=RECIPE):
    train = DataInfo(f"colouring-{colours}-small-train", "feed", 1000)
    return settings(fake_record(recipe, seed, evaluations, network="equivariant", train=train))


def our_rows(records, colours=3):
    """The rows of the table that are not published numbers."""
    return [row for row in graph_table(Grid.of(records), colours).rows if not row[0].text.endswith("published")]


def test_percentages_are_of_the_graphs_that_published_solvers_colour():
    published = dict(zip(SIZES, SOLVABLE[3], strict=True))
    queries = {nodes: published[nodes] - (nodes == 128) + 2 * (nodes == 256) for nodes in SIZES}
    found = {str(nodes): evaluation(nodes, queries[nodes], 1_000 + nodes) for nodes in SIZES}
    (row,) = our_rows([record(found)])
    of = {nodes: max(published[nodes], queries[nodes]) for nodes in SIZES}
    shares = [100 * (1_000 + nodes) / of[nodes] for nodes in SIZES]
    assert [cell.numbers["accuracy"] for cell in row[3:8]] == pytest.approx(shares)
    assert of[128] == 2_781
    assert of[256] == 2_987
    assert row[8].numbers["accuracy"] == pytest.approx(100 * (5_000 + sum(SIZES)) / sum(of.values()))
    assert row[0].commands == ()
    assert row[3].commands


def test_all_test_graphs_come_first_and_those_that_nobody_has_coloured_do_not_count():
    found = {"a": evaluation(256, 2_910, 2_000), "b": evaluation(256, 4_000, 2_500, "-all")}
    (row,) = our_rows([record(found)])
    assert row[7].numbers["accuracy"] == pytest.approx(100 * 2_500 / 2_985)
    several = {"starts": 8, "chosen": np.arange(4_000) < 2_990, "checked": np.arange(4_000) < 3_000}
    more = {"b": evaluation(256, 4_000, 2_500, "-all", **several)}
    rows = our_rows([record(more)])
    assert [row[7].numbers["accuracy"] * 3_000 / 100 for row in rows] == pytest.approx([2_500, 2_990, 3_000])


def test_ways_to_answer_have_rows_of_their_own_and_missing_sizes_no_sum():
    several = {"starts": 8, "chosen": np.arange(100) < 80, "checked": np.arange(100) < 90, "patience": 8}
    found = {
        "a": evaluation(16, 100, 50, steps=256),
        "b": evaluation(16, 100, 60, steps=1024, **several),
        "c": evaluation(16, 100, 55, steps=4096, patience=8),
    }
    rows = our_rows([record(found)])
    assert [row[2].text for row in rows] == [
        "one trajectory, 256 steps",
        "one trajectory, at most 4,096 steps",
        "one trajectory, at most 1,024 steps",
        "8 starts, the network chooses",
        "any of 8 starts, with the checker",
    ]
    assert [row[3].numbers["accuracy"] * 1_516 / 100 for row in rows] == pytest.approx([50, 55, 60, 80, 90])
    assert all(cell.text == "" for row in rows for cell in row[4:])
    assert not graph_table(Grid.of([]), 5).filled


def test_the_first_of_several_starts_is_not_shown_twice():
    several = {"starts": 8, "chosen": np.arange(100) < 80, "checked": np.arange(100) < 90, "patience": 32}
    found = {
        "a": evaluation(16, 100, 60, steps=1024, patience=32),
        "b": evaluation(16, 100, 60, steps=1024, **several),
    }
    assert [row[2].text for row in our_rows([record(found)])] == [
        "one trajectory, at most 1,024 steps",
        "8 starts, the network chooses",
        "any of 8 starts, with the checker",
    ]


def test_short_runs_of_objectives_have_a_table_of_their_own():
    right = dict(zip((*OBJECTIVES, "rules"), (10, 20, 30, 80, 90, 70, 60, 40), strict=True))
    records = [
        record({str(n): evaluation(n, 100, number) for n in (16, 32)}, recipe=f"colouring/{objective}/equivariant")
        for objective, number in right.items()
    ]
    grid = Grid.of(records)
    assert our_rows(records) == []
    rows = objectives_table(grid, 3).rows
    assert [row[0].text for row in rows[:3]] == ["MinLoss", "CC-Loss", "I-ExplR"]
    assert rows[0][2].numbers["accuracy"] == pytest.approx(100 * 90 / 1_516)
    assert rows[0][3].numbers["accuracy"] == pytest.approx(100 * 90 / 2_059)
    assert "Naive **0.5**; without listed solutions, with the loss from the rules, **1.9** (one seed)" in (
        objectives_answer(grid)
    )
    assert objectives_answer(Grid.of(records[1:])) == ""


def test_networks_of_another_number_of_colours_are_left_out():
    assert not graph_table(Grid.of([record({"a": evaluation(16, 100, 50)}, colours=5)]), 3).filled


def test_seeds_are_one_row():
    right = {42: 50, 1729: 60, 3120: 70}
    records = [record({"a": evaluation(16, 100, n)}, seed) for seed, n in right.items()]
    (row,) = our_rows(records)
    assert [cell.text for cell in row[:3]] == [
        RECIPE,
        "3",
        "one trajectory, 1 steps",
    ]
    assert row[3].numbers["mean"] == pytest.approx(100 * 60 / 1_516)
    assert row[3].numbers["low"] < row[3].numbers["mean"] < row[3].numbers["high"]
    assert len(row[3].commands) == len({*row[3].commands}) >= 3


def test_runs_of_the_earlier_network_are_rows_of_their_own_and_never_the_answer():
    right = [300] * 10
    earlier = replace(record(whole(right, steps=1024)), apart=PAIRS)
    (row,) = our_rows([earlier])
    assert row[0].text == f"{RECIPE}, earlier network"
    assert f"`{RECIPE}`, earlier network, one seed" in graph_answer(Grid.of([earlier]))
    grid = Grid.of([earlier, record(whole([100] * 10, steps=1024))])
    rows = [row for row in graph_table(grid, 3).rows if not row[0].text.endswith("published")]
    assert [row[0].text for row in rows] == [
        RECIPE,
        f"{RECIPE}, earlier network",
    ]
    assert "earlier" not in graph_answer(grid)


def whole(right, **more):
    """Evaluations of all test graphs of every size; ``right`` are the graphs of every mean degree that are coloured."""
    coloured = (np.arange(400) < np.array(right)[:, None]).ravel()
    names = {nodes: f"colouring-3-size-{nodes}-all-test" for nodes in SIZES}
    more |= {"task": "colouring", "seconds": 2.0}
    return {
        name: fake_evaluation(coloured, np.full(4_000, -1), size=nodes, name=name, checksum=name, **more)
        for nodes, name in names.items()
    }


def test_by_mean_degree():
    right = [400, 390, 300, 250, 200, 150, 100, 50, 10, 0]
    grid = Grid.of([record(whole(right, steps=1024, patience=8))])
    table = density_table(grid, 3)
    network = [row for row in table.rows if row[1].text == "network"]
    assert [row[0].text for row in network] == list(map(str, SIZES))
    for row in network:
        assert [cell.numbers["share"] for cell in row[2:]] == pytest.approx([number / 4 for number in right])
    searched = {
        int(row[0].text): [cell.numbers[""] * 4 for cell in row[2:]] for row in table.rows if row[1].text == "searches"
    }
    assert searched == {nodes: pytest.approx(counts) for nodes, counts in solvable_graphs()[3].items()}
    assert not density_table(Grid.of([]), 3).filled
    (row,) = our_rows([record(whole(right, steps=1024, patience=8))])
    assert row[-1].text == "10"
    share = 100 * sum(right) * len(SIZES) / sum(max(number, sum(right)) for number in SOLVABLE[3])
    assert f"**{share:.1f} %** (one trajectory, at most 1,024 steps)" in graph_answer(grid)
    chart = graph_chart(grid)
    assert chart is not None
    assert chart.commands


def test_searches_colour_at_most_what_published_solvers_do_on_small_graphs():
    for colours, of in solvable_graphs().items():
        for nodes, counts in of.items():
            published = dict(zip(SIZES, SOLVABLE[colours], strict=True))[nodes]
            assert len(counts) == 10
            assert sum(counts) <= published
            if nodes <= 32:  # these were searched exhaustively
                assert sum(counts) == published
