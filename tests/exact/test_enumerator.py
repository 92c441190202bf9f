"""The enumerator against brute force, known counts and another solver."""

import csv
import json
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oneofmany.data.latin import latin_squares
from oneofmany.exact import count, solve
from oneofmany.problems import Problem, Rule, futoshiki, nqueens, sudoku


def brute_force(problem, query, relations):
    everything = torch.tensor(list(product(range(problem.values), repeat=problem.variables)))
    n = len(everything)
    query = torch.as_tensor(query).expand(n, -1)
    relations = torch.as_tensor(relations, dtype=torch.int64).expand(n, -1, -1)
    return everything[problem.check(everything, query, relations if relations.shape[1] else None)] + 1


@st.composite
def small_cases(draw):
    """Random problems with random rules, and a query of each."""
    R, V = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    choices = st.lists(st.integers(0, R * V - 1), min_size=1, max_size=5, unique=True).map(tuple)
    rules = draw(st.lists(st.builds(Rule, st.just("any"), choices, st.booleans()), max_size=4))
    problem = Problem("random", 1, R, V, tuple(rules), relation_kind="inequality")
    query = draw(st.lists(st.integers(0, V), min_size=R, max_size=R))
    variable = st.integers(0, R - 1)
    relations = draw(st.lists(st.tuples(variable, variable), max_size=3, unique=True))
    return problem, np.array([query], np.uint8), np.array([relations], np.int16).reshape(1, -1, 2)


@given(small_cases())
def test_brute_force(case):
    problem, query, relations = case
    expected = brute_force(problem, query, relations)
    found = solve(problem, query, relations)
    assert found.total.tolist() == [len(expected)] == count(problem, query, relations).tolist()
    assert sorted(found.solutions.tolist()) == sorted(expected.tolist())


def test_rules_of_more_than_64_choices():
    wide = Problem("wide", 1, 3, 80, (Rule("all", tuple(range(240)), exact=False),))
    assert count(wide, np.zeros((1, 3), np.uint8)).tolist() == [0]  # three variables, at most one choice in all
    pairs = Problem("wide", 1, 2, 80, (Rule("some", tuple(range(70)) + tuple(range(80, 150)), exact=False),))
    assert count(pairs, np.zeros((1, 2), np.uint8)).tolist() == [80 * 80 - 70 * 70]
    exactly = Problem("wide", 1, 2, 80, (Rule("some", tuple(range(70)) + tuple(range(80, 150))),))
    assert count(exactly, np.zeros((1, 2), np.uint8)).tolist() == [2 * 70 * 10]


def test_nqueens_totals(reference):
    known = json.loads(reference("known_counts.json").read_text())["A000170_n_queens"]["values"]
    assert [int(count(nqueens(n), np.zeros((1, n), np.uint8))[0]) for n in range(1, 13)] == known[1:13]


def test_latin_squares(reference):
    known = json.loads(reference("known_counts.json").read_text())["A002860_latin_squares"]["values"]
    assert [int(count(futoshiki(n), np.zeros((1, n * n), np.uint8))[0]) for n in range(1, 6)] == list(
        map(int, known[:5])
    )


def test_small_counts_without_the_reference():
    assert [int(count(nqueens(n), np.zeros((1, n), np.uint8))[0]) for n in range(1, 9)] == [1, 0, 0, 2, 10, 4, 40, 92]
    assert count(sudoku(2, 2), np.zeros((1, 16), np.uint8)).tolist() == [288]
    assert count(futoshiki(4), np.zeros((1, 16), np.uint8)).tolist() == [576]


def test_sudoku_count_vectors(reference):
    with reference("sudoku_count_vectors.csv").open() as file:
        rows = list(csv.DictReader(file))
    queries = np.array([[int(c.replace(".", "0")) for c in row["puzzle"]] for row in rows], np.uint8)
    assert len(rows) == 43
    assert count(sudoku(), queries).tolist() == [int(row["solution_count"]) for row in rows]


def test_seventeen_clues(sudoku17):
    assert (count(sudoku(), sudoku17, limit=2) == 1).all()
    sample = sudoku17[::997]
    fewer = without_each_given(sample)
    assert len(fewer) == 17 * len(sample)
    assert (count(sudoku(), fewer, limit=2) == 2).all()


@pytest.mark.slow
def test_seventeen_clues_without_any_one(sudoku17):
    fewer = without_each_given(sudoku17)
    assert len(fewer) == 835_567
    assert (count(sudoku(), fewer, limit=2) == 2).all()


def without_each_given(puzzles):
    rows, cells = np.nonzero(puzzles)
    fewer = puzzles[rows]
    fewer[np.arange(len(rows)), cells] = 0
    return fewer


# ---- another solver ------------------------------------------------------------------------------------------------


def count_by_cp_sat(problem, query, relations):
    """All solutions by OR-Tools, from the same rules, with relations as inequalities between variables."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    taken = [model.new_bool_var(f"c{c}") for c in range(problem.choices)]
    for rule in problem.rules:
        add = model.add_exactly_one if rule.exact else model.add_at_most_one
        add(taken[c] for c in rule.choices)
    V = problem.values
    for variable, value in enumerate(query):
        if value:
            model.add(taken[variable * V + int(value) - 1] == 1)
    for a, b in relations:
        if a >= 0:
            model.add(
                sum(v * taken[int(a) * V + v] for v in range(V)) < sum(v * taken[int(b) * V + v] for v in range(V))
            )

    class Counter(cp_model.CpSolverSolutionCallback):
        number = 0

        def on_solution_callback(self):
            self.number += 1

    solver, counter = cp_model.CpSolver(), Counter()
    solver.parameters.enumerate_all_solutions = True
    solver.parameters.num_workers = 1
    solver.solve(model, counter)
    return counter.number


def random_query(solution, rng, shown):
    return np.where(rng.random(len(solution)) < shown, solution, 0).astype(np.uint8)


@pytest.mark.parametrize("seed", range(4))
def test_counts_agree_with_cp_sat(seed):
    rng = np.random.default_rng(seed)
    cases = []
    for problem, shown in ((nqueens(9), 0.3), (sudoku(), 0.36), (sudoku(2, 3), 0.4), (sudoku(4, 4), 0.6)):
        solution = solve(problem, np.zeros((1, problem.variables), np.uint8), limit=1, seed=seed).solutions[0]
        cases.append((problem, random_query(solution, rng, shown), np.zeros((0, 2), np.int16)))
    square = latin_squares(6, 1, rng)[0]
    pairs = rng.permutation([(a, a + 1) for a in range(36) if a % 6 < 5])[:8]
    relations = np.array([(a, b) if square[a] < square[b] else (b, a) for a, b in pairs], np.int16)
    cases.append((futoshiki(6), random_query(square, rng, 0.35), relations))
    # Givens that contradict each other have no solution.
    cases.append((nqueens(6), np.array([1, 1, 0, 0, 0, 0], np.uint8), np.zeros((0, 2), np.int16)))
    for problem, query, relations in cases:
        assert int(count(problem, query[None], relations[None])[0]) == count_by_cp_sat(problem, query, relations), (
            problem
        )


# ---- limits, order, sampling ---------------------------------------------------------------------------------------


def test_limit_and_first_solutions():
    empty = np.zeros((1, 8), np.uint8)
    assert count(nqueens(8), empty, limit=10).tolist() == [10]
    found = solve(nqueens(8), empty, limit=7)
    assert found.total.tolist() == [7]
    assert len(np.unique(found.solutions, axis=0)) == 7


def test_contradictory_givens_are_no_error():
    queries = np.array([[1, 1, 0, 0], [1, 2, 0, 0], [2, 0, 0, 0]], np.uint8)
    found = solve(nqueens(4), queries)
    assert found.total.tolist() == [0, 0, 1]
    assert found.of(2).tolist() == [[2, 4, 1, 3]]
    assert not len(found.of(0))


def test_contradictory_relations():
    cycle = np.array([[(0, 1), (1, 2), (2, 0)]], np.int16)
    assert count(futoshiki(4), np.zeros((1, 16), np.uint8), cycle).tolist() == [0]


def test_threads_and_chunks_change_nothing():
    rng = np.random.default_rng(0)
    boards = solve(nqueens(8), np.zeros((1, 8), np.uint8)).solutions
    queries = np.where(rng.random((1500, 8)) < 0.5, boards[rng.integers(92, size=1500)], 0).astype(np.uint8)
    one, two = (solve(nqueens(8), queries, keep=2, seed=5, threads=threads) for threads in (1, 2))
    assert (one.total == two.total).all()
    assert (one.solutions == two.solutions).all()


def test_order_depends_on_the_seed_alone():
    empty = np.zeros((3, 6), np.uint8)
    first, again, other = (solve(nqueens(6), empty, seed=seed).solutions.tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(first) == sorted(other)


def test_a_kept_sample_is_fair():
    """Chi-squared over 4000 samples of 3 of the 10 boards of 5 queens, and over which of them is listed first."""
    copies, keep = 4000, 3
    boards = solve(nqueens(5), np.zeros((1, 5), np.uint8)).solutions
    found = solve(nqueens(5), np.zeros((copies, 5), np.uint8), keep=keep, seed=11)
    assert found.total.tolist() == [10] * copies
    index = {board.tobytes(): i for i, board in enumerate(boards)}
    which = np.array([index[board.tobytes()] for board in found.solutions]).reshape(copies, keep)
    assert all(len(set(row)) == keep for row in which.tolist())
    for picked in (which.ravel(), which[:, 0]):
        counts = np.bincount(picked, minlength=10)
        chi_squared = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
        assert chi_squared < 33.7  # 9 degrees of freedom, p = 1e-4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"queries": np.zeros((1, 5), np.uint8)}, r"queries: expected integers \[Q, 4\]"),
        ({"queries": np.zeros((1, 4))}, "float64"),
        ({"queries": np.full((1, 4), 5)}, "expected values 0 to 4, got 5"),
        ({"queries": np.full((1, 4), -1)}, "expected values 0 to 4"),
        ({"queries": np.zeros((1, 4), int), "relations": np.zeros((1, 1, 2), int)}, "nqueens has none"),
        ({"queries": np.zeros((1, 4), int), "limit": 0}, "limit: expected at least 1"),
        ({"queries": np.zeros((1, 4), int), "limit": 2.5}, "a whole number, got 2.5"),
        ({"queries": np.zeros((1, 4), int), "limit": "3"}, "a whole number, got '3'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        count(nqueens(4), **arguments)


def test_bad_keep():
    with pytest.raises(ValueError, match="keep"):
        solve(nqueens(4), np.zeros((1, 4), int), keep=2)


def test_no_queries():
    assert count(nqueens(4), np.zeros((0, 4), np.uint8)).shape == (0,)
    assert solve(nqueens(4), np.zeros((0, 4), np.uint8)).solutions.shape == (0, 4)


# ---- ending early --------------------------------------------------------------------------------------------------

HARD = np.zeros((1, 64), np.uint8)  # 64 queens: the search never ends


def test_a_time_limit_ends_a_search_and_says_so():
    easy = np.zeros((1, 64), np.uint8)
    easy[0, :2] = 1, 2  # two queens on a diagonal
    found = solve(nqueens(64), np.concatenate([easy, HARD]), limit=10**9, keep=0, seconds=0.1)
    assert found.finished.tolist() == [True, False]
    assert found.total[0] == 0
    with pytest.raises(ValueError, match="seconds: expected more than 0, got 0"):
        solve(nqueens(4), np.zeros((1, 4), np.uint8), seconds=0)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_limit_of_branches_gives_the_same_everywhere(threads):
    queries = np.zeros((300, 8), np.uint8)
    queries[:, 0] = np.arange(300) % 9
    queries[150:, 1] = np.arange(150) // 9 % 9
    every = solve(nqueens(8), queries, threads=threads)
    assert every.finished.all()
    some = [solve(nqueens(8), queries, branches=30, threads=number) for number in (threads, 3)]
    assert (some[0].total == some[1].total).all()
    assert (some[0].solutions == some[1].solutions).all()
    assert 0 < some[0].finished.sum() < 300
    assert (some[0].total == every.total)[some[0].finished].all()
    assert (some[0].total <= every.total).all()
    assert some[0].total.sum() < every.total.sum()


def test_a_limit_of_branches_is_exact():
    """The flag is looked at every 64 branches, but any number of branches can be the limit."""
    blank = np.zeros((1, 8), np.uint8)
    found = [solve(nqueens(8), blank, branches=branches) for branches in range(-1, 300)]
    totals = np.array([int(one.total[0]) for one in found])
    assert totals[0] == totals[1] == 0
    more = np.flatnonzero(np.diff(totals)) % 64
    assert (np.diff(totals) >= 0).all()
    assert len(set(more.tolist())) > 20
    unfinished = [one for one in found if not one.finished[0]]
    assert found[: len(unfinished)] == unfinished


@pytest.mark.parametrize("room", [1, 7, 1024])
@pytest.mark.parametrize("settings", [{}, {"seed": 3}, {"seed": 3, "keep": 5}, {"limit": 4}, {"limit": 4, "seed": 1}])
def test_solutions_do_not_depend_on_how_many_are_listed_at_once(monkeypatch, room, settings):
    queries = np.zeros((9, 8), np.uint8)
    queries[:, 0] = range(9)
    usual = solve(nqueens(8), queries, **settings)
    monkeypatch.setattr("oneofmany.exact.enumerator.ROOM", room)
    other = solve(nqueens(8), queries, **settings)
    assert (usual.total == other.total).all()
    assert (usual.offsets == other.offsets).all()
    assert (usual.solutions == other.solutions).all()


def test_long_searches_of_one_thread_are_finished_on_another(monkeypatch):
    monkeypatch.setattr("oneofmany.exact.enumerator.SHORT", 1000)
    assert solve(nqueens(9), np.zeros((3, 9), np.uint8), threads=1).total.tolist() == [352] * 3


def test_ctrl_c_ends_a_search():
    code = """
import numpy as np, os, signal, sys, threading
from oneofmany.exact import count
from oneofmany.problems import nqueens
count(nqueens(4), np.zeros((1, 4), np.uint8))
threading.Timer(0.6, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    count(nqueens(64), np.zeros((1, 64), np.uint8), limit=2**62)
except KeyboardInterrupt:
    sys.exit(7)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=300).returncode == 7
