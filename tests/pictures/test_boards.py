"""Boards as pictures: what is given, answered and broken can be told apart, in SVG and PNG."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from oneofmany.cli import run
from oneofmany.exact import solve
from oneofmany.files import FileError
from oneofmany.pictures import Board, boards_png, boards_svg, save_boards
from oneofmany.pictures.boards import shapes_of
from oneofmany.pictures.graphs import node_places
from oneofmany.pictures.shapes import Outline, Words
from oneofmany.problems import Problem, Rule, cage, read_queries, sudoku

QUERIES = {
    "nqueens": "3 . . . . . 2 .",
    "sudoku": "1.........2.4...",
    "futoshiki": ".2.............. r1c2<r1c3 r3c1<r2c1 r1c1<r4c4",
}


def query_of(task):
    (query,) = read_queries(task, QUERIES[task])
    return query


def answered(task, wrong=False):
    """The first solution as a board, or the solution with its last blank changed."""
    query = query_of(task)
    values = solve(query.problem, query.values[None], query.relations[None]).of(0)[0].copy()
    if wrong:
        last = np.flatnonzero(query.values == 0)[-1]
        values[last] = values[last] % query.problem.values + 1
    return Board(query.problem, values, query.relations, query.values > 0)


def symbols(board):
    """The colours of the symbols that stand for values."""
    _, _, shapes = shapes_of(board)
    if board.problem.task == "nqueens":
        return [shape.fill for shape in shapes if isinstance(shape, Outline) and len(shape.points) == 7]
    return [shape.fill for shape in shapes if isinstance(shape, Words) and len(shape.text) == 1]


@pytest.mark.parametrize("task", QUERIES)
def test_givens_answers_and_broken_rules_have_their_own_colours(task):
    given = int((query_of(task).values > 0).sum())
    query = query_of(task)
    assert symbols(Board(query.problem, query.values, query.relations)) == ["ink"] * given
    solved = answered(task)
    assert solved.solved
    assert sorted(symbols(solved)) == ["ink"] * given + ["right"] * (len(query.values) - given)
    broken = answered(task, wrong=True)
    assert not broken.solved
    assert {"wrong", "muted", "ink"} == set(symbols(broken))
    assert "break a rule" in broken.words


def test_broken_cells_are_those_of_the_rule():
    query = query_of("nqueens")
    attacked = Board(query.problem, np.array([3, 3, 0, 0, 0, 0, 0, 0], np.uint8))
    assert attacked.broken[0] == {0, 1}
    (one,) = read_queries("futoshiki", "4............... r1c1<r1c2")
    assert Board(one.problem, one.values, one.relations).broken == ({0, 1}, {(0, 1)})
    unbroken = [shape for shape in shapes_of(Board(query.problem, query.values))[2] if "wrong" in str(shape)]
    assert unbroken == []


@pytest.mark.parametrize("task", QUERIES)
def test_svg_is_whole_and_names_what_it_shows(task):
    text = boards_svg([[answered(task), answered(task, wrong=True)]])
    tree = ElementTree.fromstring(text)
    assert tree.attrib["role"] == "img"
    assert "solved" in tree.attrib["aria-label"]
    assert "prefers-color-scheme:dark" in text
    used = set(re.findall(r"var\(--(\w+)\)", text))
    assert used <= set(re.findall(r"--(\w+):", text))
    assert not re.findall(r"(?:href|src)=", text)


def test_a_title_cannot_become_markup():
    query = query_of("nqueens")
    text = boards_svg([[Board(query.problem, query.values, title="<script>&")]])
    ElementTree.fromstring(text)
    assert "<script" not in text


def test_png_has_the_size_and_the_colours_of_its_mode():
    from matplotlib.image import imread

    board = answered("sudoku")
    light, dark = (imread(io.BytesIO(boards_png([[board]], dark=dark))) for dark in (False, True))
    assert light.shape == dark.shape
    assert light.shape[0] == light.shape[1] == 2 * (4 * 40 + 28)
    assert light[0, 0, 0] == 1
    assert dark[0, 0, 0] < 0.1
    assert np.array_equal(imread(io.BytesIO(boards_png([[board]]))), light)


def test_a_task_of_your_own_has_rows_of_values():
    problem = Problem("mine", 2, 2, 3, (Rule("column", (0, 3), exact=False),))
    _, _, shapes = shapes_of(Board(problem, np.array([1, 2], np.uint8)))
    assert [shape.text for shape in shapes if isinstance(shape, Words)] == ["1", "2"]


def test_files(tmp_path):
    board = answered("nqueens")
    save_boards(tmp_path / "a.svg", [[board]])
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    with pytest.raises(FileError, match="exists"):
        save_boards(tmp_path / "a.svg", [[board]])
    with pytest.raises(ValueError, match=r"\.svg or \.png"):
        save_boards(tmp_path / "a.gif", [[board]])
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_show_writes_pictures(tmp_path, capsys):
    svg, png = tmp_path / "boards.svg", tmp_path / "boards.png"
    assert run(["show", "nqueens", QUERIES["nqueens"], "--svg", str(svg), "--png", str(png), "--solutions", "2"]) == 0
    assert capsys.readouterr().out == f"{svg}\n{png}\n"
    assert "solution 1" in svg.read_text()
    assert png.read_bytes().startswith(b"\x89PNG")
    assert run(["show", "nqueens", QUERIES["nqueens"], "--svg", str(svg)]) == 2
    assert "exists" in capsys.readouterr().err
    assert run(["show", "nqueens", QUERIES["nqueens"], "--svg", str(tmp_path / "boards.gif")]) == 2
    assert "ends in .svg" in capsys.readouterr().err
    # Givens that contradict each other are marked.
    assert run(["show", "nqueens", "3 3 . . . . . .", "--svg", str(svg), "--force"]) == 0
    assert "2 of them break a rule" in svg.read_text()


# ---- graphs ----------------------------------------------------------------------------------------------------------

CYCLE = "k=3 1-2 2-3 3-4 4-5 5-1"


def test_neighbours_are_drawn_close_together():
    places = node_places(6, read_queries("colouring", "1-2 2-3 3-4 4-5 5-6")[0].relations)
    length = np.sqrt(((places[:, None] - places[None]) ** 2).sum(-1))
    assert np.allclose(length, np.abs(np.arange(6)[:, None] - np.arange(6)), atol=0.3)  # a path is nearly straight
    cycle = node_places(5, read_queries("colouring", CYCLE)[0].relations)
    sides = np.sqrt(((cycle - np.roll(cycle, 1, 0)) ** 2).sum(-1))
    assert np.allclose(sides, sides[0], rtol=1e-3)
    for nodes, edges in ((1, "n=1"), (2, "n=2"), (2, "1-2"), (4, "n=4 1-2")):
        found = node_places(nodes, read_queries("colouring", edges)[0].relations)
        assert found.shape == (nodes, 2)
        assert len(np.unique(found.round(3), axis=0)) == nodes


def test_a_graph_shows_colours_givens_and_broken_edges():
    (query,) = read_queries("colouring", f"{CYCLE} 1=1")

    def board(values):
        return Board(query.problem, np.array(values, np.uint8), query.relations, query.values > 0)

    _, _, shapes = shapes_of(board([1, 2, 1, 2, 3]))
    assert [shape.text for shape in shapes if isinstance(shape, Words)] == ["1", "2", "1", "2", "3"]
    assert [shape.bold for shape in shapes if isinstance(shape, Words)] == [True, False, False, False, False]
    assert not any(shape.stroke == "wrong" for shape in shapes if isinstance(shape, Outline))
    _, _, shapes = shapes_of(board([1, 1, 2, 3, 2]))
    broken = [shape for shape in shapes if isinstance(shape, Outline) and shape.stroke == "wrong"]
    assert [shape.closed for shape in broken] == [False, True, True]  # an edge and its two ends
    svg = boards_svg([[board([1, 1, 2, 3, 2])]])
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert ".f-paper{" in svg
    assert svg == boards_svg([[board([1, 1, 2, 3, 2])]])
    assert ".f-paper{" not in boards_svg([[answered("sudoku")]])


def test_nodes_that_only_larger_graphs_have_are_not_drawn():
    (query,) = read_queries("colouring", "n=5 1-2 4=1 5=1")
    _, _, shapes = shapes_of(Board(query.problem, query.values, query.relations))
    assert sum(isinstance(shape, Outline) and shape.fill == "paper" for shape in shapes) == 3


def test_cages_have_their_sums():
    plain = sudoku(4)
    problem = Problem("killer", 4, 16, 4, (*plain.rules, *cage("cage", [0, 1, 4], 4, 7)), plain.options)
    _, _, before = shapes_of(Board(plain, np.zeros(16, np.uint8)))
    _, _, shapes = shapes_of(Board(problem, np.zeros(16, np.uint8)))
    added = [shape for shape in shapes if shape not in before]
    assert [shape.text for shape in added if isinstance(shape, Words)] == ["7"]
    assert sum(isinstance(shape, Outline) for shape in added) == 8  # the sides of an L of three cells


def test_sums_that_cross_are_in_front_of_their_rows_and_columns():
    problem = Problem("kakuro", 3, 9, 9, (), own_kinds=("run-different",), own_sums=("run",))
    runs = {(1, 2): 3, (4, 5): 7, (1, 4): 4, (2, 5): 6}  # the 2 x 2 cells in the upper right corner
    query = problem.with_rules(rule for cells, total in runs.items() for rule in cage("run", cells, 9, total))
    values = np.array([1, 0, 0, 1, 3, 0, 1, 1, 1], np.uint8)
    board = Board(query, values)
    assert board.absent == {0, 3, 6, 7, 8}
    wide, high, shapes = shapes_of(board)
    words = {shape.text: shape for shape in shapes if isinstance(shape, Words) and shape.text != "3"}
    assert {text: shape.fill for text, shape in words.items()} == {"7": "paper", "4": "muted", "6": "muted"}
    assert all(0 < shape.x < wide and 0 < shape.y < high for shape in words.values())
    assert words["7"].x < words["4"].x < words["6"].x
    assert words["4"].y == words["6"].y < words["7"].y
    threes = [shape for shape in shapes if isinstance(shape, Words) and shape.text == "3"]
    assert sorted(shape.fill for shape in threes) == ["ink", "paper"]  # a given and a sum; black cells have no value
    assert "1 of 4 filled in" in board.words
    assert ".f-paper{" in boards_svg([[board]])


def test_numbers_of_a_magic_square_are_not_letters():
    problem = Problem("magic", 4, 16, 16, ())
    _, _, shapes = shapes_of(Board(problem, np.arange(1, 17, dtype=np.uint8)))
    assert [shape.text for shape in shapes if isinstance(shape, Words)] == [str(n) for n in range(1, 17)]
    letters = shapes_of(Board(sudoku(16), np.arange(256, dtype=np.uint8) % 16 + 1))[2]
    assert "G" in {shape.text for shape in letters if isinstance(shape, Words)}


def test_relations_of_any_grid_are_drawn():
    """As signs between neighbours, as words otherwise, also beside cages."""
    rules = tuple(cage("cage", [0, 3], 3, 4))
    problem = Problem("own", 3, 9, 3, rules, relation_kind="less")
    values = np.array([1, 2, 3, 3, 1, 2, 2, 3, 1], np.uint8)
    relations = np.array([(0, 1), (4, 8), (-1, -1)], np.int16)
    _, _, plain = shapes_of(Board(problem, values))
    _, high, shapes = shapes_of(Board(problem, values, relations))
    assert {shape.text for shape in shapes if isinstance(shape, Words)} >= {"4", "r2c2 < r3c3"}
    signs = [shape for shape in shapes if isinstance(shape, Outline) and len(shape.points) == 3]
    assert [(shape.stroke, shape.points[1]) for shape in signs] == [("ink", (35.0, 20.0))]
    assert len(shapes) > len(plain)
    assert high > 3 * 40


def test_the_solution_is_the_only_one(tmp_path):
    for query, title in ((". . . .", "solution 1"), ("2 . . .", "the solution")):
        assert run(["show", "nqueens", query, "--svg", str(tmp_path / "one.svg"), "--solutions", "1", "--force"]) == 0
        assert f">{title}<" in (tmp_path / "one.svg").read_text()
