"""The conformance test on our tasks, on a task outside the package, and on broken ones."""

import dataclasses
import runpy
from pathlib import Path

import numpy as np
import pytest

from oneofmany.data.listing import list_solutions
from oneofmany.problems import TASKS, OwnRules, Problem, Query, Rule, Task, cage, implies, table, total
from oneofmany.problems.tasks.task import NO_RELATIONS
from oneofmany.testing import check_task

EXAMPLE = Path(__file__).parents[2] / "examples" / "graph_colouring.py"


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("nqueens", [1, 2, 3, 4, 6, 8]),
        ("futoshiki", [1, 2, 3, 4]),
        ("sudoku", [1, 4, 6, 9]),
        ("colouring", [1, 2, 4]),
    ],
)
def test_our_tasks(name, sizes):
    check_task(TASKS[name], sizes)


def test_the_example_outside_the_package(capsys):
    assert len(EXAMPLE.read_text().splitlines()) <= 60
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "120 colourings with 3 colours" in capsys.readouterr().out


def test_a_task_whose_text_does_not_read_back_fails():
    broken = dataclasses.replace(TASKS["sudoku"], format=lambda problem, values, relations: "." * 16)
    with pytest.raises(AssertionError, match="read as other values"):
        check_task(broken, [4])


def test_a_task_with_another_name_fails():
    broken = dataclasses.replace(TASKS["nqueens"], problem=lambda n: Problem("other", n, 1, 2, ()))
    with pytest.raises(AssertionError, match="has task"):
        check_task(broken, [4])


def cages(size):
    """Four variables in two cages, a table, an implication and a count."""
    V = size
    rules = [
        *cage("cage", [0, 1], V, V + 1),
        *total("sum", [0, 2, 3], V, low=4, high=2 * V, factors=[1, 2, -1]),
        *table("table", [1, 2, 3], [(a, b, (a + b) % V + 1) for a in range(1, V + 1) for b in range(1, V + 1)], V),
        *implies("implies", 0, [V, 2 * V]),
        Rule("count", tuple(range(0, 4 * V, V)), low=0, high=2),
    ]
    return Problem("cages", size, 4, V, tuple(rules))


def read_cages(text):
    size, *values = text.split()
    return Query(cages(int(size)), np.array(values, np.uint8), NO_RELATIONS)


def write_cages(problem, values, relations, *_):
    return " ".join(map(str, [problem.size, *values]))


def test_rules_with_weights_and_bounds():
    check_task(Task("cages", cages, read_cages, write_cages, write_cages), [2, 3, 4, 5])


def test_a_task_whose_text_loses_relations_fails():
    for name in ("futoshiki", "colouring"):
        task = TASKS[name]
        broken = dataclasses.replace(task, format=lambda p, values, *_, own=task: own.format(p, values, NO_RELATIONS))
        with pytest.raises(AssertionError, match="read as other relations"):
            check_task(broken, [3])


def marked(size=3):
    """Every query names two variables of which exactly one takes the value 1."""
    return Problem("marked", size, size, 2, (), own_kinds=("mark",))


def read_marked(text):
    values, *ends = text.split()
    rules = [Rule("mark", tuple(2 * int(end) for end in ends))] if ends else []
    return Query(marked(len(values)).with_rules(rules), np.array(list(values), np.uint8), NO_RELATIONS)


def write_marked(problem, values, relations, *_):
    ends = [str(choice // 2) for rule in problem.rules if rule.kind == "mark" for choice in rule.choices]
    return " ".join(["".join(map(str, values)), *ends])


def build_marked(problem, queries, split, seed):
    own = OwnRules.of([[Rule("mark", (0, 2 + 2 * (row % 2)))] for row in range(queries)])
    return list_solutions(problem, np.zeros((queries, problem.variables), np.uint8), None, {}, seed=seed, own=own)


def test_rules_that_queries_bring_are_checked():
    task = Task("marked", marked, read_marked, write_marked, write_marked, build=build_marked)
    check_task(task, [3, 4])
    lost = dataclasses.replace(task, format=lambda problem, values, relations: "".join(map(str, values)))
    with pytest.raises(AssertionError, match="read as another problem"):
        check_task(lost, [3])

    def wrong(*arguments):
        built = build_marked(*arguments)
        return dataclasses.replace(built, total=built.total + 1)

    with pytest.raises(AssertionError, match="5 solutions are named, 4 found"):
        check_task(dataclasses.replace(task, build=wrong), [3])
