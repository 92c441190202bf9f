"""The checker against literal readings of each puzzle's rules."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oneofmany.problems import Problem, Rule, futoshiki, nqueens, sudoku
from oneofmany.problems.tasks.colouring import colouring


def queens_valid(columns):
    n = len(columns)
    return len(set(columns)) == n and all(
        abs(columns[i] - columns[j]) != j - i for i in range(n) for j in range(i + 1, n)
    )


def latin_valid(grid):
    n = len(grid)
    return all(len(set(row)) == n for row in grid) and all(len(set(column)) == n for column in zip(*grid, strict=True))


def sudoku_valid(grid, box_rows, box_columns):
    n = len(grid)
    boxes = [
        [grid[r + i][c + j] for i in range(box_rows) for j in range(box_columns)]
        for r in range(0, n, box_rows)
        for c in range(0, n, box_columns)
    ]
    return latin_valid(grid) and all(len(set(box)) == n for box in boxes)


@given(st.integers(1, 7).flatmap(lambda n: st.permutations(range(n))))
def test_nqueens_permutations(columns):
    assert bool(nqueens(len(columns)).check(torch.tensor([columns]))) == queens_valid(columns)


def test_nqueens_all_assignments():
    everything = torch.cartesian_prod(*[torch.arange(5)] * 5)
    literal = [queens_valid(row) for row in everything.tolist()]
    assert nqueens(5).check(everything).tolist() == literal
    assert sum(literal) == 10


def test_latin_squares_of_order_three():
    everything = torch.cartesian_prod(*[torch.arange(3)] * 9)
    literal = [latin_valid([row[:3], row[3:6], row[6:]]) for row in everything.tolist()]
    assert futoshiki(3).check(everything).tolist() == literal
    assert sum(literal) == 12


@pytest.mark.parametrize(("box_rows", "box_columns"), [(2, 2), (2, 3), (3, 2), (3, 3), (1, 4)])
def test_sudoku(box_rows, box_columns):
    n = box_rows * box_columns
    shift = [(r % box_rows) * box_columns + r // box_rows for r in range(n)]
    grid = [[(shift[r] + c) % n for c in range(n)] for r in range(n)]
    assert sudoku_valid(grid, box_rows, box_columns)
    rng = np.random.default_rng(0)
    answers = [np.array(grid).ravel()]
    for _ in range(60):
        changed = np.array(grid)
        kind = rng.integers(4)
        if kind == 0:  # swap two rows: valid only inside a band
            a, b = rng.integers(n, size=2)
            changed[[a, b]] = changed[[b, a]]
        elif kind == 1:
            a, b = rng.integers(n, size=2)
            changed[:, [a, b]] = changed[:, [b, a]]
        elif kind == 2:
            changed = rng.permutation(n)[changed]
        else:
            changed[rng.integers(n), rng.integers(n)] = rng.integers(n)
        answers.append(changed.ravel())
    literal = [sudoku_valid(answer.reshape(n, n).tolist(), box_rows, box_columns) for answer in answers]
    assert sudoku(box_rows, box_columns).check(torch.tensor(np.array(answers))).tolist() == literal
    assert 0 < sum(literal) < len(literal) or n == 1


@given(st.integers(0, 2**32 - 1), st.sampled_from(["integers", "choices"]))
def test_numpy_arrays_are_checked_as_tensors_are(seed, form):
    rng = np.random.default_rng(seed)
    problem = futoshiki(2)
    answers = rng.integers(-1, 3, (40, 4)) if form == "integers" else rng.random((40, 4, 2)) < 0.5
    query, relations = rng.integers(0, 3, (40, 4)) * (rng.random((40, 4)) < 0.2), rng.integers(0, 4, (40, 1, 2))
    relations[rng.random(40) < 0.6] = -1
    expected = problem.check(*(torch.from_numpy(array) for array in (answers, query, relations)))
    small = query.astype(np.uint8), relations.astype(np.int16)
    assert problem.check(answers, *small).tolist() == expected.tolist()
    assert problem.check(answers).tolist() == problem.check(torch.from_numpy(answers)).tolist()


@given(st.permutations(range(4)), st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=4))
def test_relations(order, pairs):
    pairs = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]
    grid = [[(order[r] + c) % 4 for c in range(4)] for r in range(4)]
    answer = torch.tensor(grid).reshape(1, 16)
    relations = torch.tensor([[*pairs, (-1, -1)]])
    expected = all(answer[0, a] < answer[0, b] for a, b in pairs)
    assert bool(futoshiki(4).check(answer, relations=relations)) == expected
    assert bool(futoshiki(4, pairs).check(answer)) == expected


def test_relations_equal_the_comparison_for_every_pair_of_values():
    problem = futoshiki(4)
    for a in range(4):
        for b in range(4):
            taken = torch.zeros(16, 4, dtype=torch.bool)
            taken[0, a] = taken[1, b] = True
            members = problem.relation_members(torch.tensor([[[0, 1]]]))
            counts = taken.flatten()[members[0, 0]].sum(1)
            assert bool((counts <= 1).all()) == (a < b)


def test_givens_are_kept():
    solution = torch.tensor([[1, 3, 0, 2]])
    problem = nqueens(4)
    assert problem.check(solution, torch.tensor([[2, 0, 1, 0]])).all()
    assert not problem.check(solution, torch.tensor([[3, 0, 1, 0]])).any()
    assert not problem.check(solution, torch.tensor([[9, 0, 0, 0]])).any()  # a given that no value can keep


def test_values_outside_are_invalid_not_an_error():
    assert problem_check([[1, 3, 0, 2], [1, 3, 0, 4], [1, 3, 0, -1]]) == [True, False, False]


def problem_check(answers):
    return nqueens(4).check(torch.tensor(answers)).tolist()


def test_thresholded_choices_need_exactly_one_value_for_a_variable():
    choices = torch.nn.functional.one_hot(torch.tensor([[1, 3, 0, 2]]), 4).bool()
    none, several = choices.clone(), choices.clone()
    none[0, 0] = False
    several[0, 0, 0] = True
    assert [bool(nqueens(4).check(c)) for c in (choices, none, several)] == [True, False, False]


def test_variables_without_a_rule_of_their_own_still_take_one_value():
    problem = Problem("free", 1, variables=2, values=3, rules=(Rule("pair", (0, 3), exact=False),))
    assert problem.kinds == ("pair", "variable")
    both = torch.zeros(1, 2, 3, dtype=torch.bool)
    both[0, 0, :2] = both[0, 1, 2] = True
    assert not problem.check(both).any()


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (torch.zeros(2, 5, dtype=torch.int64), "expected integers"),
        (torch.zeros(2, 4), "float32"),
        (torch.zeros(2, 4, 5, dtype=torch.bool), "expected bool"),
    ],
)
def test_bad_answers(answers, message):
    with pytest.raises(ValueError, match=message):
        nqueens(4).check(answers)


def test_bad_queries_and_relations():
    answers = torch.zeros(2, 4, dtype=torch.int64)
    with pytest.raises(ValueError, match="query: expected shape"):
        nqueens(4).check(answers, torch.zeros(1, 4))
    with pytest.raises(ValueError, match="has no relations"):
        nqueens(4).check(answers, relations=torch.zeros(2, 1, 2, dtype=torch.int64))
    with pytest.raises(ValueError, match="relations: expected shape"):
        futoshiki(2).check(answers, relations=torch.zeros(1, 1, 2, dtype=torch.int64))


@pytest.mark.parametrize(
    "build",
    [
        lambda: nqueens(0),
        lambda: nqueens("8"),
        lambda: futoshiki(None),
        lambda: sudoku(9.0),
        lambda: sudoku("3", "3"),
        lambda: colouring("16"),
        lambda: futoshiki(26),
        lambda: futoshiki(3, [(0, 9)]),
        lambda: futoshiki(3, [(1, 1)]),
        lambda: nqueens([8]),
        lambda: nqueens(True),
        lambda: futoshiki(np.array([4])),
        lambda: futoshiki(3, [0, 1]),
        lambda: futoshiki(3, [(0, 1.5)]),
        lambda: futoshiki(3, None),
        lambda: colouring([16]),
        lambda: colouring(16, [3]),
        lambda: sudoku(True, 3),
        lambda: sudoku(3, 3, 3),
        lambda: sudoku(3, 3, box_rows=3),
        lambda: sudoku(6, 5),
        lambda: sudoku(0, 3),
        lambda: Problem("p", 1, 1, 2, (Rule("r", (0, 2)),)),
        lambda: Problem("p", 1, 1, 2, (Rule("r", (0, 0)),)),
        lambda: Problem("p", 1, 0, 2, ()),
    ],
)
def test_bad_problems(build):
    with pytest.raises(ValueError, match=r".+"):
        build()


def test_a_size_is_a_whole_number_whatever_was_built_before():
    """A cache takes 8 and 8.0 for the same number, and keeps the first."""
    for build in (nqueens, futoshiki, colouring):
        assert build(4).size == 4
        with pytest.raises(ValueError, match=r"got 4\.0"):
            build(4.0)
    assert [type(side) for side in sudoku(np.int64(2), np.int64(5)).options.values()] == [int] * 2


def test_kinds_follow_the_symmetries():
    assert nqueens(6).kinds == ("line", "diagonal")
    assert sudoku().kinds == ("cell", "line", "box")
    assert futoshiki(4).kinds == ("cell", "line", "inequality")


def test_sizes_are_named_alike():
    """The first argument of every builder is the size; a header's options give the same problem again."""
    for build in (nqueens, futoshiki, sudoku):
        assert build(9).size == build(size=9).size == 9
    assert sudoku() is sudoku(9) is sudoku(3, 3) is sudoku(9, box_rows=3) is sudoku(box_rows=3, box_columns=3)
    assert sudoku(6).options == {"box_rows": 2, "box_columns": 3}
    for problem in (sudoku(6), sudoku(3, 2), sudoku(6, box_columns=1), sudoku(25)):
        assert sudoku(problem.size, **problem.options) is problem
    with pytest.raises(ValueError, match="2 x 3 cells for size 9"):
        sudoku(9, box_rows=2, box_columns=3)
    with pytest.raises(ValueError, match="got 27"):
        sudoku(27)
