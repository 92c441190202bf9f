"""Queries with rules of their own in one batch of the solver: the answers of every query alone."""

from collections import Counter

import numpy as np
import pytest
import torch

from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.saved import SavedNetwork
from oneofmany.problems import Problem, Query, cage, futoshiki, nqueens, rules_kept, sudoku
from oneofmany.problems.own_rules import batch_key, together
from oneofmany.problems.tasks.task import NO_RELATIONS
from oneofmany.solving import Solver, running
from oneofmany.solving.answers import in_batches
from structures import cages, coloured, edges, graphs


def network_for(problem):
    settings = NetworkSettings(width=8, steps=6)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = build_network(settings, problem).eval()
    return SavedNetwork(network, settings, problem.task, problem.size, {})


def queries_of(data):
    return [Query(data.problem_of(row), data.query[row], NO_RELATIONS) for row in range(len(data))]


@pytest.mark.parametrize("engine", [True, False])
@pytest.mark.parametrize("make", [graphs, cages])
def test_a_batch_answers_as_each_query_alone(make, engine, monkeypatch):
    if not engine:
        monkeypatch.setattr(running, "engine_of", lambda saved: None)
    data = make(23, seed=4)
    saved, queries = network_for(data.problem), queries_of(data)
    for options in ({}, {"starts": 3, "patience": 0}):
        solver = Solver(saved, batch_size=8, **options)
        together = solver.answer(queries)
        alone = [solver.answer([query])[0] for query in queries]
        assert [one.values.tolist() for one in together] == [one.values.tolist() for one in alone]
        assert [one.valid for one in together] == [one.valid for one in alone]
        np.testing.assert_allclose(
            [one.log_probability for one in together], [one.log_probability for one in alone], rtol=1e-3, atol=1e-4
        )
    assert list(map(len, in_batches(queries, 8, solver.mixes))) == [8, 8, 7]
    each = solver.distinct(queries, 2, tries=3)
    one_by_one = [solver.distinct([query], 2, tries=3)[0] for query in queries]
    assert [{a.values.tobytes() for a in found} for found in each] == [
        {a.values.tobytes() for a in found} for found in one_by_one
    ]
    for query, answer in zip(queries, together, strict=True):
        assert answer.valid == bool(rules_kept(query.problem, answer.values[None])[0])


def test_graphs_of_different_sizes_get_the_answers_of_pytorch(monkeypatch):
    """Relations a != b: the engine of CPUs and PyTorch, in batches of graphs of one size."""
    queries = []
    for size in (9, 7, 8):
        data = coloured(9, seed=size, sizes=[size])
        pairs = [relations[relations[:, 0] >= 0] for relations in data.relations]
        queries += [Query(data.problem, values, own) for values, own in zip(data.query, pairs, strict=True)]
    saved, queries = network_for(queries[0].problem), queries[::2] + queries[1::2]
    assert running.engine_of(saved) is not None
    found = Solver(saved, batch_size=8).answer(queries)
    monkeypatch.setattr(running, "engine_of", lambda saved: None)
    expected = Solver(saved, batch_size=8).answer(queries)
    assert [one.values.tolist() for one in found] == [one.values.tolist() for one in expected]
    assert [one.valid for one in found] == [one.valid for one in expected]
    for query, answer in zip(queries, found, strict=True):
        assert answer.valid == bool(rules_kept(query.problem, answer.values[None], query.relations[None])[0])


def test_batches_of_a_problem_stay_as_they_are():
    """Other problems fill the last batch of a problem, and never divide its queries otherwise."""
    a, b, c = (Problem("graph", 4, 4, 3, tuple(edges([pair], 3))) for pair in ((0, 1), (1, 2), (2, 3)))
    other = Problem("graph", 5, 5, 3, ())
    blank = {
        problem: Query(problem, np.zeros(problem.variables, np.uint8), NO_RELATIONS) for problem in (a, b, c, other)
    }
    queries = [blank[problem] for problem in (a, b, other, a, a, c, a, a, b, b)]
    mixed = list(in_batches(queries, 4, mixed=True))
    assert sorted(row for rows in mixed for row in rows) == list(range(10))
    assert [0, 3, 4, 6] in mixed
    assert [7, 1, 8, 9] in mixed
    assert [5] in mixed
    assert [2] in mixed
    assert all(len({batch_key(queries[row].problem) for row in rows}) == 1 for rows in mixed)
    apart = list(in_batches(queries, 4, mixed=False))
    assert apart == [[0, 3, 4, 6], [7], [1, 8, 9], [2], [5]]
    related = Query(futoshiki(3), np.zeros(9, np.uint8), np.array([[0, 1]], np.int16))
    plain = Query(futoshiki(3), np.zeros(9, np.uint8), NO_RELATIONS)
    assert list(in_batches([related, plain], 1, mixed=True)) == [[0], [1]]


@pytest.mark.parametrize(
    "problems",
    [
        [sudoku(2, 2).with_rules(cage("cage", cells, 4, 5)) for cells in ([0, 1], [2, 3], [5, 6])],
        [Problem("graph", 4, 4, 3, tuple(edges(pairs, 3))) for pairs in ([(0, 1)], [], [(1, 2), (0, 1)])],
        [nqueens(4), nqueens(4)],
    ],
)
def test_problems_together_have_the_rules_of_each(problems):
    assert len({batch_key(problem) for problem in problems}) == 1
    shared, own = together(problems)
    for row, problem in enumerate(problems):
        assert Counter(shared.with_rules(own.rules(row)).rules) == Counter(problem.rules)
    assert own.checked(shared) is not own
