"""The tables of graph colouring, from made-up runs."""

import numpy as np
import pytest

from oneofmany.data.graphs import SIZES
from oneofmany.evaluation.record import DataInfo
from oneofmany.report import Grid
from report.records import fake_evaluation, fake_record
from reproduction.graphs import SOLVABLE, graph_table
from reproduction.tests.our_records import settings


def evaluation(nodes, queries, right, kind="", **more):
    valid = np.arange(queries) < right
    name = f"colouring-3-size-{nodes}{kind}-test"
    total, givens = np.full(queries, -1), np.full(queries, 2)
    return fake_evaluation(valid, total, givens, task="colouring", size=nodes, name=name, checksum=name, **more)


def record(evaluations, seed=42, colours=3):
    train = DataInfo(f"colouring-{colours}-small-train", "feed", 1000)
    recipe = "colouring/minloss/equivariant"
    return settings(fake_record(recipe, seed, evaluations, network="equivariant", train=train))


def test_percentages_are_of_the_graphs_that_published_solvers_colour():
    published = dict(zip(SIZES, SOLVABLE[3], strict=True))
    queries = {nodes: published[nodes] - (nodes == 128) + 2 * (nodes == 256) for nodes in SIZES}
    found = {str(nodes): evaluation(nodes, queries[nodes], 1_000 + nodes) for nodes in SIZES}
    (row,) = graph_table(Grid.of([record(found)]), 3).rows
    of = {nodes: max(published[nodes], queries[nodes]) for nodes in SIZES}
    shares = [100 * (1_000 + nodes) / of[nodes] for nodes in SIZES]
    assert [cell.numbers["accuracy"] for cell in row[3:-1]] == pytest.approx(shares)
    assert of[128] == 2_781
    assert of[256] == 2_987
    assert row[-1].numbers["accuracy"] == pytest.approx(100 * (5_000 + sum(SIZES)) / sum(of.values()))
    assert row[0].commands == ()
    assert row[3].commands


def test_all_test_graphs_come_first_and_those_that_nobody_has_coloured_do_not_count():
    found = {"a": evaluation(256, 2_910, 2_000), "b": evaluation(256, 4_000, 2_500, "-all")}
    (row,) = graph_table(Grid.of([record(found)]), 3).rows
    assert row[7].numbers["accuracy"] == pytest.approx(100 * 2_500 / 2_985)
    several = {"starts": 8, "chosen": np.arange(4_000) < 2_990, "checked": np.arange(4_000) < 3_000}
    more = {"b": evaluation(256, 4_000, 2_500, "-all", **several)}
    rows = graph_table(Grid.of([record(more)]), 3).rows
    assert [row[7].numbers["accuracy"] * 3_000 / 100 for row in rows] == pytest.approx([2_500, 2_990, 3_000])


def test_starts_have_a_row_of_their_own_and_missing_sizes_no_sum():
    several = {"starts": 8, "chosen": np.arange(100) < 80, "checked": np.arange(100) < 90}
    found = {"a": evaluation(16, 100, 50), "b": evaluation(16, 100, 60, **several)}
    rows = graph_table(Grid.of([record(found)]), 3).rows
    assert [row[2].text for row in rows] == [
        "one trajectory",
        "one trajectory",
        "8 starts, the network chooses",
        "any of 8 starts, with the checker",
    ]
    assert [row[3].numbers["accuracy"] * 1_516 / 100 for row in rows] == pytest.approx([50, 60, 80, 90])
    assert all(cell.text == "" for row in rows for cell in row[4:])
    assert not graph_table(Grid.of([]), 5).filled


def test_networks_of_another_number_of_colours_are_left_out():
    assert not graph_table(Grid.of([record({"a": evaluation(16, 100, 50)}, colours=5)]), 3).filled


def test_seeds_are_one_row():
    right = {42: 50, 1729: 60, 3120: 70}
    records = [record({"a": evaluation(16, 100, n)}, seed) for seed, n in right.items()]
    (row,) = graph_table(Grid.of(records), 3).rows
    assert [cell.text for cell in row[:3]] == ["colouring/minloss/equivariant", "3", "one trajectory"]
    assert row[3].numbers["mean"] == pytest.approx(100 * 60 / 1_516)
    assert row[3].numbers["low"] < row[3].numbers["mean"] < row[3].numbers["high"]
    assert len(row[3].commands) == len({*row[3].commands}) >= 3
