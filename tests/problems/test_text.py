"""Reading and writing queries as text."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oneofmany.cli.terminal import draw_boards
from oneofmany.problems import TASKS, TextError, read_queries
from oneofmany.problems import sudoku as sudoku_of
from oneofmany.problems.tasks.sudoku import box_shape
from oneofmany.problems.tasks.task import NO_RELATIONS, SYMBOLS

futoshiki, nqueens, sudoku = TASKS["futoshiki"], TASKS["nqueens"], TASKS["sudoku"]


def queries(n, R):
    """Random values, from no blanks to blanks only; lists of hundreds of cells are slow to draw one by one."""

    def some(seed, most, given):
        rng = np.random.default_rng(seed)
        return np.where(rng.random(R) < given, rng.integers(1, most + 1, R), 0).astype(np.uint8)

    return st.builds(some, st.integers(0, 2**32), st.integers(1, n), st.sampled_from([0, 0.1, 0.5, 1]))


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
    text = sudoku.format(sudoku_of(n), values, NO_RELATIONS)
    again = sudoku.parse(text.replace(".", "0"))
    assert again.problem is sudoku_of(n)
    assert (again.values == values).all()


@st.composite
def futoshiki_queries(draw):
    n = draw(st.integers(1, 7))
    cell = st.integers(0, n * n - 1)
    pairs = st.tuples(cell, cell).filter(lambda p: p[0] != p[1])
    near = pairs.filter(lambda p: abs(p[0] - p[1]) in (1, n))
    listed = draw(st.lists(pairs | near, max_size=9, unique=True)) if n > 1 else []
    return futoshiki.problem(n), draw(queries(n, n * n)), np.array(listed, np.int16).reshape(-1, 2)


@st.composite
def sudoku_queries(draw):
    rows, columns = draw(st.sampled_from([(r, c) for r in range(1, 6) for c in range(1, 6)]))
    problem = sudoku_of(rows, columns)
    return problem, draw(queries(problem.size, problem.variables)), NO_RELATIONS


@st.composite
def nqueens_queries(draw):
    problem = nqueens.problem(draw(st.integers(1, 30)))
    return problem, draw(queries(problem.size, problem.size)), NO_RELATIONS


ANY_QUERY = st.one_of(futoshiki_queries(), sudoku_queries(), nqueens_queries())


def assert_same(again, problem, values, relations):
    assert again.problem is problem
    assert (again.values == values).all()
    assert sorted(again.relations.tolist()) == sorted(relations.tolist())


@given(futoshiki_queries())
def test_futoshiki_line_round_trip(case):
    again = futoshiki.parse(futoshiki.format(*case))
    assert_same(again, *case)
    assert (again.relations == case[2]).all()


@given(ANY_QUERY)
def test_every_drawing_reads_back(case):
    problem, values, relations = case
    task = TASKS[problem.task]
    picture = task.draw(problem, values, relations, values > 0, lambda text, given: text)
    assert_same(task.parse(picture), *case)
    bare = "\n".join(line.rstrip() for line in picture.split("\n"))  # as an editor may save it
    assert_same(task.parse(bare), *case)


@given(st.lists(ANY_QUERY, min_size=1, max_size=4), st.integers(1, 4), st.integers(0, 150))
def test_boards_that_a_command_prints_read_back(cases, answers, width):
    """A query and its solutions side by side, with captions: the queries are read."""
    kind = cases[0][0].task
    cases = [case for case in cases if case[0].task == kind]
    text = ""
    for problem, values, relations in cases:
        rng = np.random.default_rng(width)
        solutions = rng.integers(1, problem.values + 1, (answers, problem.variables)).astype(np.uint8)
        drawn = draw_boards(TASKS[kind], problem, values, relations, solutions, width)
        end = "... and 1,284 more\n\n" if width % 2 else ""
        text += f"line 3, valid (from the network)\n{drawn.plain}{end}"
    again = read_queries(kind, text)
    assert len(again) == len(cases)
    for query, case in zip(again, cases, strict=True):
        assert_same(query, *case)


@given(st.sampled_from([4, 6, 9, 12, 16, 25]), st.data())
def test_a_sudoku_in_any_layout(n, data):
    """The same board in every layout and with every blank is the same query."""
    values = data.draw(queries(n, n * n))
    if n == 16 and values.max() <= 4:  # sixteen lines of 4x4 boards, too
        values[0] = 16
    blank = data.draw(st.sampled_from([*".0_x*?-"]))
    symbols = [blank if v == 0 else SYMBOLS[v - 1] for v in values]
    rows = [symbols[at : at + n] for at in range(0, n * n, n)]
    rows_, columns = box_shape(n)
    barred = ["|".join("".join(row[at : at + columns]) for at in range(0, n, columns)) for row in rows]
    border = "+".join("-" * columns for _ in range(rows_))
    bands = [barred[at : at + rows_] for at in range(0, n, rows_)]
    numbers = [[blank if v == 0 else str(v) for v in values[at : at + n]] for at in range(0, n * n, n)]
    layouts = {
        "one line": "".join(symbols),
        "lower case": "".join(symbols).lower(),
        "rows": "\n".join("".join(row) for row in rows),
        "spaced": "\n".join(" ".join(row) for row in rows),
        "commas": "\n".join(",".join(row) for row in rows),
        "empty fields": "\n".join(",".join("" if cell == blank else cell for cell in row) for row in rows),
        "bars": "\n".join(barred),
        "borders": f"\n{border}\n".join("\n".join(band) for band in bands),
        "bands": "\n\n".join("\n".join(band) for band in bands),
        "numbers": "\n".join(" ".join(row) for row in numbers),
        "numbers, commas": "\n".join(", ".join(row) for row in numbers),
        "spaces": "\n".join("".join(" " if cell == blank else cell for cell in row) for row in rows),
    }
    for text in layouts.values():
        for end in ("\n", "\r\n", "\r"):
            again = sudoku.parse("\ufeff# a comment\n" * (end == "\n") + text.replace("\n", end) + end)
            assert_same(again, sudoku_of(n), values, NO_RELATIONS)


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
        (sudoku, "123", "line 1, column 1: the line has 3 cells"),
        (sudoku, "", "got an empty text"),
        (sudoku, "5" + "." * 15, "'5' is not a value of size 4"),
        (sudoku, ".." + "z" + "." * 78, "line 1, column 3: 'z' is not a value"),
        (sudoku, "." * 676, "676 cells"),
        (sudoku, "¹" + "." * 80, "not a value"),
        (nqueens, "", "got an empty text"),
        (nqueens, "1 2 5 .", "row 3 of 4 is '5'"),
        (nqueens, "1 0 . .", "the blanks . and 0: use one of them"),
        (nqueens, "1 . 00 .", "line 1, column 5: row 3 of 4 is '00'"),
        (nqueens, "1 -1 . .", "'-1'"),
        (nqueens, "1 ² . .", "'²'"),
        (futoshiki, "  ", "empty text"),
        (futoshiki, "12345", "the line has 5 cells"),
        (futoshiki, "0000 r1c1<r3c1", "rows and columns from 1 to 2"),
        (futoshiki, "0000 r1c1<r1c1", "two different cells"),
        (futoshiki, "0000 r1c1=r1c2", "form like"),
        (futoshiki, "1 .\n. . .", "line 2, column 1: the row has 3 cells, but the row above has 2"),
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


PIECES = [
    *[
        "\n",
        "\n\n",
        "\r\n",
        " ",
        "   ",
        "\t",
        ",",
        "|",
        "│",
        "-",
        "+",
        "*",
        "#",
        '"',
        "0",
        "x",
        "Q",
        "<",
        ">",
        "v",
        "^",
    ],
    *["[Puzzle]", "[State]", "puzzle,solution\n", "query", "solution 1", "... and 3 more", "r1c1<r1c2", "12\n21\n"],
    *["12..", "....", ". . . .", ".Q..", "." * 9, "." * 16, "1" * 16, "10 11 12 ", "---", "---+---", "┌──┐", "│ · │"],
]


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@given(
    text=st.one_of(
        st.text(max_size=90),
        st.text(alphabet="0123456789.<>^v rc\n", max_size=60),
        st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    )
)
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
    try:
        found = list(task.read(text))
    except TextError as error:
        assert 1 <= error.line <= text.count("\n") + text.count("\r") + 1  # noqa: PT017 - any text may be fine, too
    else:
        for line, query in found:
            assert 1 <= line <= text.count("\n") + text.count("\r") + 1
            assert isinstance(query, TextError) or query.values.shape == (query.problem.variables,)


def test_boards():
    board = nqueens.draw(nqueens.problem(4), np.array([2, 0, 1, 0]), NO_RELATIONS, np.ones(4, bool), lambda t, g: t)
    assert board.split("\n")[1:-1] == ["│ · Q · · │", "│ · · · · │", "│ Q · · · │", "│ · · · · │"]
    values = np.zeros(16, np.uint8)
    values[:4] = [1, 2, 3, 4]
    board = sudoku.draw(sudoku_of(4), values, NO_RELATIONS, values > 2, lambda t, g: t if g else f"[{t}]")
    assert board.split("\n")[1] == "│ [1] [2] │ 3 4 │"
