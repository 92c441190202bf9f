"""Scores of graphs by nodes and mean degree, and a run on graphs from training to the table."""

import json

import numpy as np
import pytest

from oneofmany.cli import run
from oneofmany.data import Dataset
from oneofmany.data.colouring import Effort, build_colouring
from oneofmany.data.graphs import degrees_of, nodes_of
from oneofmany.data.nqueens import build_nqueens
from oneofmany.evaluation import Outcomes, load_predictions
from oneofmany.evaluation.by_graph import by_graph


def outcomes(data, valid, **others):
    Q = len(data)
    numbers = {name: np.zeros(Q) for name in ("listed", "cells", "confidence", "steps", "givens", "multiple")}
    return Outcomes(np.ones_like(data.query), valid, total=data.total, **numbers, **others)


@pytest.fixture(scope="module")
def graphs():
    data = build_colouring(40, (5, 9), 3, seed=1, degrees=(2, 5), unsolved=True, effort=Effort(listed=3))
    assert not data.listed.all()
    return data


def test_nodes_and_degrees(graphs):
    for row in range(len(graphs)):
        edges = graphs.relations[row][graphs.relations[row][:, 0] >= 0]
        used = set(edges.ravel().tolist()) | set(np.flatnonzero(graphs.query[row] == 0).tolist())
        assert nodes_of(graphs.query, graphs.relations)[row] == max(used) + 1
        assert degrees_of(graphs.query, graphs.relations)[row] == pytest.approx(2 * len(edges) / (max(used) + 1))


@pytest.mark.parametrize("by", ["nodes", "degree"])
def test_scores_are_of_solvable_graphs(graphs, by):
    rng = np.random.default_rng(0)
    valid = (rng.random(len(graphs)) < 0.5) & (graphs.listed > 0)
    chosen, checked = valid & (rng.random(len(graphs)) < 0.5), valid | ((graphs.listed > 0) & (rng.random(40) < 0.5))
    found = by_graph(graphs, outcomes(graphs, valid, chosen=chosen, checked=checked), by)
    nodes, degree = nodes_of(graphs.query, graphs.relations), degrees_of(graphs.query, graphs.relations)
    for one in found:
        own = np.ones(len(graphs), bool) if one["nodes"] is None else nodes == one["nodes"]
        if one.get("degree") is not None:
            own &= np.abs(degree - one["degree"]) < 0.006
        assert one["graphs"] == own.sum()
        for name, right in (("one", valid), ("chosen", chosen), ("checked", checked)):
            assert (one[name]["correct"], one[name]["total"]) == (right[own].sum(), (own & (graphs.listed > 0)).sum())
    assert sum(one["graphs"] for one in found[:-1]) == found[-1]["graphs"] == 40


def test_a_graph_that_only_the_network_colours_counts(graphs):
    unsolved = np.flatnonzero(graphs.listed == 0)[0]
    valid = np.arange(len(graphs)) == unsolved
    (*_, every) = by_graph(graphs, outcomes(graphs, valid))
    assert (every["one"]["correct"], every["one"]["total"]) == (1, 1 + (graphs.listed > 0).sum())
    assert every["chosen"] is every["checked"] is None


def test_other_data_is_refused(graphs):
    queens = build_nqueens(6, 3, 5)
    with pytest.raises(ValueError, match="by: expected graphs"):
        by_graph(queens, outcomes(queens, np.ones(5)))
    with pytest.raises(ValueError, match="outcomes: expected those of 40 queries, got 3"):
        by_graph(graphs, outcomes(graphs.take(np.arange(3)), np.ones(3)))


def test_a_run_on_graphs(tmp_path, capsys, monkeypatch):
    """Data, training, evaluation and the table by commands alone; the network learns to colour small graphs."""
    monkeypatch.chdir(tmp_path)
    small = ["--nodes", "4", "5", "--degree", "1.5", "2.5"]
    for split, number in (("train", "60"), ("dev", "8"), ("test", "12")):
        out = ["--split", split, "--out", f"{split}.safetensors"]
        assert run(["data", "colouring", *small, "--queries", number, *out]) == 0
    fields = ["--first.updates", "120", "--evaluate-every", "60", "--log-every", "10", "--ema", "0.9"]
    files = ["--train", "train.safetensors", "--dev", "dev.safetensors", "--out", "run"]
    assert run(["train", "colouring/minloss/tiny", *files, *fields, "--network.steps", "4"]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert losses[-1] < losses[0] / 2
    capsys.readouterr()
    assert run(["evaluate", "run", "test.safetensors", "--by", "nodes"]) == 0
    table = capsys.readouterr().out
    assert "12 graphs, equivariant network" in table
    assert [line.split()[0] for line in table.splitlines()[1:]] == ["nodes", "4", "5", "all"]
    assert run(["evaluate", "run", "test.safetensors", "--starts", "2", "--by", "degree", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["by"]
    found, _ = load_predictions(tmp_path / "run" / "predictions" / "test-starts2.safetensors")
    assert rows[-1]["checked"]["correct"] == found.checked.sum()
    assert found.valid.mean() > 0.9
    data = Dataset.load("test.safetensors")
    assert (data.problem.check(found.answers.astype(int) - 1, data.query, data.relations) == found.valid).all()
    assert run(["evaluate", "run", "test.safetensors", "--starts", "2", "--by", "nodes"]) == 0
    assert "chosen with the checker" in capsys.readouterr().out
