"""Every kind of rule: the enumerator against CP-SAT, the checkers and the givens against the enumerator."""

from itertools import product

import numpy as np
import pytest
import torch
from random_rules import count_by_cp_sat, random_case

from oneofmany.exact import count, solve
from oneofmany.problems import Problem, Rule, all_different, cage, conflicts, rules_kept, total
from oneofmany.problems.givens import describe


def agree_with_cp_sat(seeds):
    pytest.importorskip("ortools", reason="OR-Tools is not installed")
    several = 0
    for seed in seeds:
        problem, query, relations, statements = random_case(seed)
        ours = int(count(problem, query[None], relations[None])[0])
        assert ours == count_by_cp_sat(problem, query, relations, statements), f"seed {seed}: {problem.rules}"
        several += ours > 1
    assert several > len(seeds) / 4


def test_counts_agree_with_cp_sat():
    agree_with_cp_sat(range(200))


@pytest.mark.slow
def test_many_counts_agree_with_cp_sat():
    agree_with_cp_sat(range(1000, 11_000))


@pytest.mark.parametrize("seed", range(60))
def test_checkers_givens_and_enumerator_agree(seed):
    problem, query, relations, _ = random_case(seed, most=300)
    every = np.array(list(product(range(problem.values), repeat=problem.variables)))
    queries, pairs = (np.broadcast_to(x, (len(every), *x.shape)) for x in (query, relations))
    valid = problem.check(every, queries, pairs)
    tensors = (torch.from_numpy(np.array(array)) for array in (every, queries, pairs))
    assert (problem.check(*tensors).numpy() == valid).all()
    choices = torch.nn.functional.one_hot(torch.from_numpy(every), problem.values).bool()
    assert (problem.check(choices).numpy() == problem.check(every)).all()
    found = solve(problem, query[None], relations[None])
    assert sorted(found.solutions.tolist()) == (every[valid] + 1).tolist()
    values = (every + 1).astype(np.uint8)
    assert (rules_kept(problem, values, pairs) == problem.check(every, None, pairs)).all()
    if conflicts(problem, query, relations):
        assert not valid.any()
        assert all(describe(problem, conflict) for conflict in conflicts(problem, query, relations))
    blank = np.where(np.random.default_rng(seed).random(values.shape) < 0.5, 0, values).astype(np.uint8)
    kept = rules_kept(problem, blank, pairs)
    assert kept[problem.check(every, None, pairs)].all()
    assert kept.tolist() == [not conflicts(problem, row, relations) for row in blank]


def test_magic_squares():
    rows = np.arange(9).reshape(3, 3)
    groups = [*rows, *rows.T, rows.diagonal(), rows[:, ::-1].diagonal()]
    sums = [rule for group in groups for rule in total("line", group.tolist(), 9, low=15, high=15)]
    problem = Problem("magic", 3, 9, 9, tuple(all_different("square", range(9), 9) + sums))
    assert count(problem, np.zeros((1, 9), np.uint8)).tolist() == [8]


def test_values_in_more_than_one_word():
    sums = total("sum", [0, 1], 100, low=150, high=150)
    assert count(Problem("wide", 1, 2, 100, tuple(sums)), np.zeros((1, 2), np.uint8)).tolist() == [51]
    both = tuple(cage("sum", [0, 1], 100, 150))
    assert count(Problem("wide", 1, 2, 100, both), np.zeros((1, 2), np.uint8)).tolist() == [50]


def test_the_order_in_which_a_variable_lists_its_values_does_not_matter():
    own = (Rule("own", (2, 0, 1)), Rule("own", (3, 4, 5)))
    for rules in (cage("cage", [0, 1], 3, 4), total("sum", [0, 1], 3, low=4, high=4)):
        usual, other = (Problem("order", 1, 2, 3, (*own[:n], *rules)) for n in (0, 2))
        query = np.zeros((1, 2), np.uint8)
        assert sorted(solve(usual, query).solutions.tolist()) == sorted(solve(other, query).solutions.tolist())


def test_contradictory_givens_are_named():
    problem = Problem("cages", 1, 3, 9, tuple(cage("cage", [0, 1, 2], 9, 8)))
    none = np.zeros((0, 2), np.int16)
    [conflict] = conflicts(problem, np.array([7, 0, 0], np.uint8), none)
    assert describe(problem, conflict) == "the givens make the sum of a rule of kind 'cage' at least 9, expected 8"
    edges = Problem("edges", 1, 2, 3, (), relation_kind="edge", relation="!=")
    [conflict] = conflicts(edges, np.array([2, 2], np.uint8), np.array([(0, 1)], np.int16))
    assert describe(edges, conflict) == "the givens break the relation variable 1 != variable 2"


def test_rules_of_a_query_of_its_own():
    problem = Problem("free", 1, 2, 3, ())
    assert count(problem.with_rules(cage("cage", [0, 1], 3, 4)), np.zeros((1, 2), np.uint8)).tolist() == [2]
    assert problem.with_rules([]).same_as(problem)
