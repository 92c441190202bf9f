"""Reading and writing queries as text."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oneofmany.problems import TASKS
from oneofmany.problems.tasks.sudoku import of_size
from oneofmany.problems.tasks.task import NO_RELATIONS

futoshiki, nqueens, sudoku = TASKS["futoshiki"], TASKS["nqueens"], TASKS["sudoku"]


def queries(n, R):
    return st.lists(st.integers(0, n), min_size=R, max_size=R).map(lambda v: np.array(v, np.uint8))


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), queries(n, n))))
def test_nqueens_round_trip(case):
    n, values = case
    problem = nqueens.problem(n)
    again = nqueens.parse(nqueens.format(problem, values, NO_RELATIONS))
    assert again.problem is problem
    assert (again.values == values).all()


@given(st.sampled_from([1, 4, 6, 9, 16, 25]).flatmap(lambda n: st.tuples(st.just(n), queries(n, n * n))))
def test_sudoku_round_trip(case):
    n, values = case
    text = sudoku.format(of_size(n), values, NO_RELATIONS)
    again = sudoku.parse(text.replace(".", "0"))
    assert again.problem is of_size(n)
    assert (again.values == values).all()


@st.composite
def futoshiki_queries(draw, neighbours_only=False):
    n = draw(st.integers(2, 7))
    values = draw(queries(n, n * n))
    if neighbours_only:
        cells = np.arange(n * n).reshape(n, n)
        near = np.concatenate(
            [
                np.stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()], 1),
                np.stack([cells[:-1].ravel(), cells[1:].ravel()], 1),
            ]
        ).tolist()
        chosen = draw(st.lists(st.sampled_from(near), max_size=6, unique_by=tuple))
        pairs = [pair if draw(st.booleans()) else pair[::-1] for pair in chosen]
    else:
        cell = st.integers(0, n * n - 1)
        pairs = draw(st.lists(st.tuples(cell, cell).filter(lambda p: p[0] != p[1]), max_size=6, unique=True))
    return n, values, np.array(pairs, np.int16).reshape(-1, 2)


@given(futoshiki_queries())
def test_futoshiki_line_round_trip(case):
    n, values, relations = case
    again = futoshiki.parse(futoshiki.format(futoshiki.problem(n), values, relations))
    assert (again.values == values).all()
    assert (again.relations == relations).all()


@given(futoshiki_queries(neighbours_only=True))
def test_futoshiki_drawn_grid_round_trip(case):
    n, values, relations = case
    picture = futoshiki.draw(futoshiki.problem(n), values, relations, values > 0, lambda text, given: text)
    again = futoshiki.parse(picture)
    assert (again.values == values).all()
    assert sorted(again.relations.tolist()) == sorted(relations.tolist())


def test_futoshiki_signs():
    query = futoshiki.parse("1 < . > .\n^       v\n.   2   .\n\n.   . > 3\n")
    assert query.values.tolist() == [1, 0, 0, 0, 2, 0, 0, 0, 3]
    assert sorted(map(tuple, query.relations.tolist())) == [(0, 1), (0, 3), (2, 1), (5, 2), (8, 7)]


def test_futoshiki_repeated_relation_is_read_once():
    assert len(futoshiki.parse("0000 r1c1<r1c2 r1c2>r1c1 r1c1<r1c2").relations) == 1


def test_sudoku_letters():
    assert sudoku.parse("G" + "." * 255).values[0] == 16
    assert sudoku.parse("p" + "." * 624).values[0] == 25


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        (sudoku, "123", "got 3 characters"),
        (sudoku, "", "got 0 characters"),
        (sudoku, "5" + "." * 15, "'5' is not a value of size 4"),
        (sudoku, "x" + "." * 80, "'x' is not a value"),
        (sudoku, "." * 676, "676 characters"),
        (sudoku, "¹" + "." * 80, "not a value"),
        (nqueens, "", "empty line"),
        (nqueens, "1 2 5 .", "row 3 of 4 is '5'"),
        (nqueens, "1 0 . .", "row 2 of 4 is '0'"),
        (nqueens, "1 -1 . .", "'-1'"),
        (nqueens, "1 ² . .", "'²'"),
        (futoshiki, "  ", "empty text"),
        (futoshiki, "12345", "got 5 characters"),
        (futoshiki, "0000 r1c1<r3c1", "rows and columns from 1 to 2"),
        (futoshiki, "0000 r1c1<r1c1", "two different cells"),
        (futoshiki, "0000 r1c1=r1c2", "form like"),
        (futoshiki, "1 .\n. . .", "row 2 of the grid has 3 cells, expected 2"),
        (futoshiki, "1 .\n .  .", "are not aligned with"),
        (futoshiki, "1 <> .\n.    .", "expected < or >"),
        (futoshiki, "1 . <\n. .", "without a cell on each side"),
        (futoshiki, "1   .\n  ^\n.   .", "is not between two cells"),
        (futoshiki, "1   .\n.   .\n^", "is not between two cells"),
    ],
)
def test_bad_text(task, text, message):
    with pytest.raises(ValueError, match=message):
        task.parse(text)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@given(text=st.one_of(st.text(max_size=90), st.text(alphabet="0123456789.<>^v rc\n", max_size=60)))
@example(text="\x00")
@example(text="\n\n")
def test_any_text_is_read_or_refused_in_one_sentence(task, text):
    try:
        query = task.parse(text)
    except ValueError as error:
        assert str(error).count("\n") == 0 < len(str(error))  # noqa: PT017 - any text may be fine, too
    else:
        assert query.values.shape == (query.problem.variables,)
        assert query.values.max(initial=0) <= query.problem.values


def test_boards():
    board = nqueens.draw(nqueens.problem(4), np.array([2, 0, 1, 0]), NO_RELATIONS, np.ones(4, bool), lambda t, g: t)
    assert board.split("\n")[1:-1] == ["│ · Q · · │", "│ · · · · │", "│ Q · · · │", "│ · · · · │"]
    values = np.zeros(16, np.uint8)
    values[:4] = [1, 2, 3, 4]
    board = sudoku.draw(of_size(4), values, NO_RELATIONS, values > 2, lambda t, g: t if g else f"[{t}]")
    assert board.split("\n")[1] == "│ [1] [2] │ 3 4 │"
