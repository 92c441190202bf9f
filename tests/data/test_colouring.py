"""Graphs of the benchmark and others, with colourings."""

import random

import networkx
import numpy as np
import pytest

from oneofmany.cli import run
from oneofmany.data import Dataset
from oneofmany.data.benchmark import build_benchmark
from oneofmany.data.colouring import Effort, build_benchmark_colouring, build_colouring
from oneofmany.data.graphs import DEGREES, PARTS, SIZES, benchmark_graphs, clique_of, edges_for, random_graph
from oneofmany.exact import count
from oneofmany.files import FileError
from oneofmany.problems import colouring


def as_benchmark(nodes, edges, seed, number):
    """The first graphs as the benchmark's own code makes them."""
    random.seed(seed)
    return [networkx.gnm_random_graph(nodes, edges) for _ in range(number)]


@pytest.mark.parametrize("nodes", [3, 16, 32, 256])
def test_graphs_are_those_of_networkx(nodes):
    for degree in (0, 2, 4.4, 13.5, nodes):
        edges = edges_for(nodes, degree)
        rng = random.Random(7)
        for theirs in as_benchmark(nodes, edges, 7, 3):
            ours = random_graph(nodes, edges, rng)
            assert sorted(ours) == sorted(tuple(sorted(edge)) for edge in theirs.edges)


def test_the_benchmark_has_the_published_numbers_of_graphs():
    assert {part: 5 * 10 * number for part, (_, number) in PARTS.items() if part != "dev"} == {
        "train": 60_000,
        "test": 20_000,
    }
    assert [len(degrees) for degrees in DEGREES.values()] == [10, 10]
    made = list(benchmark_graphs(3, "test", (16,)))
    assert [(graphs.nodes, round(graphs.degree, 2)) for graphs in made[:2]] == [(16, 3.32), (16, 3.5)]
    theirs = as_benchmark(16, int(round(3.32 * 16 / 2)), 1, 400)  # noqa: RUF046 - as it is written there
    assert made[0].edges.shape == (400, 27, 2)
    for edges, graph in zip(made[0].edges.tolist(), theirs, strict=True):
        assert sorted(map(tuple, edges)) == sorted(tuple(sorted(edge)) for edge in graph.edges)


@pytest.mark.parametrize(
    ("colours", "nodes", "solvable"),
    [(3, 16, 1516), (5, 16, 2), (3, 32, 2059), (5, 32, 654)],
)
def test_published_numbers_of_solvable_graphs(colours, nodes, solvable):
    """Percentages of the benchmark are of these graphs; both numbers of nodes are searched to the end."""
    data = build_benchmark_colouring(colours, "test", (nodes,), effort=Effort(listed=1))
    assert data.built["counts"] == {str(nodes): [4_000, solvable, 4_000 - solvable, 0]}
    assert len(data) == solvable == (data.listed == 1).sum()


def check(data, clique=True):
    """Every listed solution is a colouring, and totals agree with the enumerator."""
    rows = np.repeat(np.arange(len(data)), data.listed)
    assert data.problem.check(data.solutions.astype(int) - 1, data.query[rows], data.relations[rows]).all()
    known = np.flatnonzero(data.total >= 0)
    assert (count(data.problem, data.query[known], data.relations[known]) == data.total[known]).all()
    for row in range(len(data)):
        assert len(np.unique(data.solutions_of(row), axis=0)) == data.listed[row]
        related = np.isin(np.arange(data.problem.variables), data.relations[row])
        given = (data.query[row] > 0) & related
        assert len(set(data.query[row][given].tolist())) == given.sum()  # a clique, or nothing
        assert given.any() == (clique and related.any())


def test_random_graphs_of_different_sizes(tmp_path):
    data = build_colouring(60, (5, 8, 20), 3, "train", seed=1, effort=Effort(listed=4))
    check(data)
    assert len(data) == 60
    assert data.problem is colouring(20, 3)
    assert data.listed.min() >= 1
    assert data.listed.max() == 4
    isolated = np.array([~np.isin(np.arange(20), edges) for edges in data.relations])
    assert (data.query[:, 8:] > 0)[isolated[:, 8:].all(1)].all()
    data.save(tmp_path / "a.safetensors")
    again = Dataset.load(tmp_path / "a.safetensors")
    assert again.header() == data.header()
    same = build_colouring(60, (5, 8, 20), 3, "train", seed=1, effort=Effort(listed=4), threads=1)
    assert same.header()["checksum"] == data.header()["checksum"]

    def texts(built):
        return {str(sorted(edges[edges[:, 0] >= 0].tolist())) for edges in built.relations}

    other = build_colouring(60, (5, 8, 20), 3, "test", seed=1, effort=Effort(listed=4))
    assert len(texts(data)) == 60
    assert not texts(data) & texts(other)
    check(build_colouring(5, (12,), 4, seed=2, clique=False, degrees=(6, 7)), clique=False)


def test_what_was_not_found_is_not_claimed():
    """One branch and one move leave most graphs of 256 nodes unknown, and the counts say so."""
    effort = Effort(listed=1, branches=1, moves=1, tries=1)
    data = build_colouring(20, (60,), 3, seed=1, degrees=(4.6, 4.6), effort=effort, unsolved=True)
    assert ((data.listed > 0) | (data.total <= 0)).all()
    assert (data.total == -1).any()
    assert not data.listed.all()
    better = build_colouring(20, (60,), 3, seed=1, degrees=(4.6, 4.6), unsolved=True)
    assert np.array_equal(better.query, data.query)
    assert (better.listed[data.listed > 0] > 0).all()
    assert (better.listed > 0).sum() > (data.listed > 0).sum()


def test_all_test_graphs_by_name(monkeypatch):
    monkeypatch.setitem(PARTS, "test", (1, 6))
    solvable, every = (build_benchmark(f"colouring-5-size-32{name}-test") for name in ("", "-all"))
    assert len(every) == 60 > len(solvable)
    rows = {query.tobytes() + edges.tobytes() for query, edges in zip(every.query, every.relations, strict=True)}
    assert all(q.tobytes() + e.tobytes() in rows for q, e in zip(solvable.query, solvable.relations, strict=True))


def test_a_clique():
    edges = np.array([[0, 1], [1, 2], [2, 3], [1, 3], [-1, -1]], np.int16)
    assert sorted(clique_of(5, edges, 3)) == [1, 2, 3]
    assert len(clique_of(5, edges, 2)) == 2
    assert clique_of(3, edges[:0], 3) == [0]


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(PARTS, "test", (1, 6))
    out = tmp_path / "test.safetensors"
    parts = tmp_path / ".test.safetensors.parts"
    options = ["data", "colouring", "--benchmark", "test", "--nodes", "16", "32", "--out", str(out)]
    with monkeypatch.context() as stopped:
        stopped.setattr("oneofmany.data.colouring.together", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run(options) == 130
    assert len(list(parts.iterdir())) == 20
    assert not out.exists()
    assert run(options) == 0
    said = capsys.readouterr().err
    assert not parts.exists()
    data = Dataset.load(out)
    graphs, solvable, unsolvable, unknown = data.built["counts"]["16"]
    assert (graphs, unknown) == (60, 0)
    assert f"16 nodes: 60 graphs, {solvable} solvable, {unsolvable} not, 0 unknown" in said
    check(data)
    direct = build_benchmark_colouring(3, "test", (16, 32))
    assert direct.header() == data.header()
    assert run([*options, "--listed", "0"]) == 2
    assert run(["data", "colouring", "--queries", "9", "--out", str(tmp_path / "x.safetensors")]) == 2
    assert run([*options[:-1], str(tmp_path / "x.safetensors"), "--queries", "9"]) == 2
    assert "leave out --queries" in capsys.readouterr().err


def test_parts_of_another_build_are_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(PARTS, "test", (1, 2))
    build_benchmark_colouring(3, "test", (16,), folder=tmp_path)
    with pytest.raises(FileError, match="is a part of another build: delete it"):
        build_benchmark_colouring(3, "test", (16,), folder=tmp_path, clique=False)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: build_benchmark_colouring(4, "test"), "colours: the benchmark has graphs for 3 and 5 colours, got 4"),
        (lambda: build_benchmark_colouring(3, "test", (17,)), "nodes: the benchmark has graphs of 16, 32"),
        (lambda: build_benchmark_colouring(3, "test", (16, 16)), "nodes: expected different numbers, got 16, 16"),
        (lambda: build_colouring(1, (5,), colours=0), "colours: expected 1 to 255, got 0"),
        (lambda: build_colouring(1, (5,), seed=-1), "seed: expected at least 0, got -1"),
        (lambda: build_colouring(0, (5,)), "queries and nodes: expected at least 1, got 0"),
        (lambda: build_colouring(1, (5,), degrees=(3, 2)), "degree: expected two rising numbers from 0, got 3 and 2"),
        (lambda: build_colouring(99, (3,), degrees=(1, 2)), "queries: asked for 99, but only .* different graphs"),
        (lambda: Effort(tries=0), "tries: expected at least 1, got 0"),
    ],
)
def test_bad_arguments(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.slow
@pytest.mark.parametrize("nodes", SIZES[:2])
@pytest.mark.parametrize("colours", [3, 5])
def test_no_graph_of_the_test_set_is_isomorphic_to_one_of_the_training_set(colours, nodes):
    """By a hash that is equal for isomorphic graphs: neighbourhoods of neighbourhoods, three times.

    Graphs with more edges than any graph with a colouring (Turan) are in neither data set.
    """
    share = nodes // colours
    most = (nodes**2 - (nodes % colours) * (share + 1) ** 2 - (colours - nodes % colours) * share**2) // 2

    def hashes(part):
        found = set()
        for graphs in benchmark_graphs(colours, part, (nodes,)):
            if graphs.edges.shape[1] > most:
                continue
            near = np.zeros((len(graphs.edges), nodes, nodes), np.int64)
            rows = np.arange(len(near))[:, None]
            near[rows, graphs.edges[..., 0], graphs.edges[..., 1]] = 1
            near |= near.transpose(0, 2, 1)
            label = near.sum(-1)
            with np.errstate(over="ignore"):
                for _ in range(3):
                    label = label * 1_000_003 + (near * (label * label * 7919 + label)[:, None]).sum(-1)
                    label ^= label >> 29
            found |= {np.sort(row).tobytes() for row in label}
        return found

    assert not hashes("train") & hashes("test")
