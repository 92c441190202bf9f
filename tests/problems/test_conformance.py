"""The conformance test on our tasks, on a task outside the package, and on broken ones."""

import dataclasses
import runpy
from pathlib import Path

import pytest

from oneofmany.problems import TASKS, Problem
from oneofmany.testing import check_task

EXAMPLE = Path(__file__).parents[2] / "examples" / "graph_colouring.py"


@pytest.mark.parametrize(
    ("name", "sizes"), [("nqueens", [1, 2, 3, 4, 6, 8]), ("futoshiki", [1, 2, 3, 4]), ("sudoku", [1, 4, 6, 9])]
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
