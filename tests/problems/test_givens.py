"""Contradictory givens: against the checker and a literal reading, and in the words of the tasks."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oneofmany.problems import TASKS, Problem, Rule, conflicts, futoshiki, rules_kept
from oneofmany.problems.givens import describe


@st.composite
def cases(draw):
    """Random problems with random rules and relations, and values that may be blank."""
    R, V = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    choices = st.lists(st.integers(0, R * V - 1), min_size=1, max_size=5, unique=True).map(tuple)
    rules = draw(st.lists(st.builds(Rule, st.just("any"), choices, st.booleans()), max_size=4))
    problem = Problem("random", 1, R, V, tuple(rules), relation_kind="inequality")
    lowest = draw(st.integers(0, 1))
    values = draw(st.lists(st.integers(lowest, V), min_size=R, max_size=R))
    relations = draw(st.lists(st.tuples(st.integers(0, R - 1), st.integers(0, R - 1)), max_size=3, unique=True))
    return problem, np.array(values, np.uint8), np.array([*relations, (-1, -1)], np.int16)


def literally(problem, values, relations):
    """How many rules and relations the values break, one by one."""
    V = problem.values
    taken = {variable * V + int(value) - 1 for variable, value in enumerate(values) if value}
    broken = 0
    for rule in problem.rules:
        left = [c for c in rule.choices if c in taken or not values[c // V]]
        broken += len(taken & set(rule.choices)) > 1 or (rule.exact and not left)
    for a, b in relations.tolist():
        broken += a >= 0 and (values[a] or 1) >= (values[b] or V)
    return broken


@given(cases())
def test_against_the_literal_reading_and_the_checker(case):
    problem, values, relations = case
    found = conflicts(problem, values, relations)
    assert len(found) == literally(problem, values, relations)
    assert rules_kept(problem, values[None], relations[None]).tolist() == [not found]
    assert all(describe(problem, conflict) for conflict in found)
    if values.all():
        assert (
            rules_kept(problem, values[None]).tolist() == problem.check(torch.tensor(values[None]).long() - 1).tolist()
        )
        of_solver = problem.check(torch.tensor(values[None]).long() - 1, None, torch.tensor(relations[None]).long())
        assert (not found) == bool(of_solver)


def test_many_rows_at_once(monkeypatch):
    monkeypatch.setattr("oneofmany.problems.givens.AT_ONCE", 1000)
    problem = TASKS["sudoku"].problem(4)
    values = np.random.default_rng(0).integers(0, 5, (200, 16)).astype(np.uint8) * (np.arange(200) % 3 == 0)[:, None]
    kept = rules_kept(problem, values.astype(np.uint8))
    none = np.zeros((0, 2), np.int16)
    assert kept.tolist() == [not conflicts(problem, row.astype(np.uint8), none) for row in values]
    assert 0 < kept.sum() < 200


@pytest.mark.parametrize(
    ("task", "text", "sentence"),
    [
        ("sudoku", "." * 18 + "5......5." + "." * 54, "row 3 has two 5s"),
        ("sudoku", "7........" + "." * 36 + "7........7" + "." * 26, "column 1 has three 7s"),
        ("sudoku", "." * 60 + "8...." + "." * 5 + "8" + "." * 10, "box 9 has two 8s"),
        ("sudoku", "55" + "." * 79, "row 1 has two 5s; box 1 has two 5s"),
        (
            "sudoku",
            "123456123456" + "." * 24,
            "column 1 has two 1s; column 2 has two 2s; column 3 has two 3s; and 9 more",
        ),
        ("nqueens", "2 . . 2", "the queens of rows 1 and 4 attack each other in column 2"),
        ("nqueens", "1 . 3 . 5", "the queens of rows 1, 3 and 5 attack each other on a diagonal"),
        ("futoshiki", "1..1.....", "column 1 has two 1s"),
        ("futoshiki", "11.......", "row 1 has two 1s"),
        ("futoshiki", "3........ r1c1<r1c2", "the givens break the inequality r1c1<r1c2"),
        ("futoshiki", "21....... r1c1<r1c2", "the givens break the inequality r1c1<r1c2"),
        ("futoshiki", "12....... r1c1<r1c2", None),
        ("sudoku", "." * 81, None),
        ("nqueens", "1 3 . . .", None),
    ],
)
def test_in_the_words_of_the_task(task, text, sentence):
    assert TASKS[task].contradiction(TASKS[task].parse(text)) == sentence


def test_inequalities_of_the_problem_itself():
    problem = futoshiki(3, [(0, 1)])
    [conflict, *_] = conflicts(problem, np.array([2, 1, 0, 0, 0, 0, 0, 0, 0], np.uint8), np.zeros((0, 2), np.int16))
    assert TASKS["futoshiki"].explain(problem, conflict) == "the givens break the inequality r1c1<r1c2"
