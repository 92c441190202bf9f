"""Graph colouring as text: lines, DIMACS files, drawings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneofmany.cli.terminal import draw_boards
from oneofmany.problems import TASKS, TextError, colouring, read_queries
from oneofmany.problems.tasks.colouring import dimacs
from oneofmany.problems.tasks.task import NO_RELATIONS

TASK = TASKS["colouring"]


@st.composite
def graphs(draw):
    nodes, colours = draw(st.integers(1, 9)), draw(st.integers(1, 11))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node).filter(lambda e: e[0] < e[1]), max_size=12, unique=True))
    values = draw(st.lists(st.integers(0, colours), min_size=nodes, max_size=nodes))
    return colouring(nodes, colours), np.array(values, np.uint8), np.array(edges, np.int16).reshape(-1, 2)


def assert_same(again, problem, values, relations):
    assert again.problem is problem
    assert again.values.tolist() == values.tolist()
    assert sorted(again.relations.tolist()) == sorted(relations.tolist())


@given(graphs())
def test_what_is_written_and_drawn_is_read(case):
    for write in (TASK.format, dimacs, TASK.draw):
        assert_same(TASK.parse(write(*case)), *case)


@given(st.lists(graphs(), min_size=2, max_size=3))
def test_several_graphs(cases):
    for write, between in ((TASK.format, "\n"), (dimacs, ""), (dimacs, "\n"), (TASK.draw, "\n\n")):
        found = read_queries("colouring", between.join(write(*case) for case in cases))
        assert len(found) == len(cases)
        for again, case in zip(found, cases, strict=True):
            assert_same(again, *case)


def test_comments_in_front_of_a_dimacs_graph_are_its_own():
    files = ["c first\nc colours 4\np edge 2 1\ne 1 2\n", "c second\n\nc colours 5\np col 3 1\ne 2 3\nc the end\n"]
    found = read_queries("colouring", "".join(files))
    assert [(query.problem.variables, query.problem.values) for query in found] == [(2, 4), (3, 5)]


def test_commas_in_a_comment_are_no_csv_header():
    (query,) = read_queries("colouring", "\nc A random graph, drawn by hand, puzzle\nc\np edge 2 1\ne 1 2\n")
    assert query.relations.tolist() == [[0, 1]]


@given(graphs(), st.sampled_from([30, 100]))
def test_what_commands_print_is_read(case, width):
    problem, values, relations = case
    solutions = np.ones((2, problem.variables), np.uint8)
    drawn = draw_boards(TASK, problem, values, relations, solutions, width)
    assert_same(TASK.parse(f"2 solutions\n{drawn}"), *case)


def test_the_forms():
    line = TASK.parse("1-2, 2-3; 3-1;")
    assert (line.problem.variables, line.problem.values) == (3, 3)
    assert line.relations.tolist() == [[0, 1], [1, 2], [0, 2]]
    both_ways = TASK.parse("c a file\n\np col 4 2\ne 1 2\ne 2 1\n\ne 4 2\n")
    assert both_ways.problem is colouring(4, 3)
    assert both_ways.relations.tolist() == [[0, 1], [1, 3]]
    assert TASK.parse("c colors 5\np edge 2 0").problem is colouring(2, 5)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1-1", "node 1 is its own neighbour"),
        ("1-2 1=1 1=2", "node 1 has two colours, 1 and 2"),
        ("k=3 1-2 k=4", "the graph has two numbers of colours, 3 and 4"),
        ("n=3 1-2 n=4", "the graph has two numbers of nodes, 3 and 4"),
        ("p edge 3 2\ne 1 2\ne 2 4\n\n", "line 1, column 1: expected nodes from 1 to 3, got 4"),
        ("1-2 1=4", "node 1: expected a colour from 1 to 3, got 4"),
        ("n=2 1-3", "expected nodes from 1 to 2, got 3"),
        ("0-1", "expected nodes from 1 to 1, got 0"),
        ("1-2 red", "'red': expected an edge like 1-2, a colour like 1=2, k=3 or n=5"),
        ("k=3", "expected edges like 1-2, or a number of nodes like n=5"),
        ("k=0 1-2", "expected 1 to 255, got 0"),
        ("n=10001", "nodes: expected 1 to 10,000, got 10001"),
        ("p edge 3\ne 1 2", "'p edge 3': expected p edge NODES EDGES"),
        ("p edge 3 1\ne 1", "'e 1': expected e NODE NODE"),
    ],
)
def test_bad_texts(text, sentence):
    with pytest.raises(TextError, match=sentence.replace("(", r"\(")):
        TASK.parse(text)


def test_a_contradiction_is_named():
    query = TASK.parse("1-2 2-3 1=2 2=2")
    assert TASK.contradiction(query) == "the neighbours 1 and 2 have the same colour"
    assert TASK.contradiction(TASK.parse("1-2 1=2 2=1")) is None


def test_the_drawing():
    text = TASK.draw(colouring(10, 3), np.array([1] + [0] * 9), np.array([[0, 9], [0, 1], [-1, -1]]), np.ones(10, bool))
    assert text.split("\n")[:3] == ["3 colours", " 1  1  - 2 10", " 2  ·  - 1"]
    assert text.split("\n")[-1] == "10  ·  - 1"
    assert TASK.draw(colouring(1, 1), np.zeros(1, np.uint8), NO_RELATIONS) == "1 colour\n1  ·"
