"""Boards as text and in links, random boards and the rules that a board breaks, under Node."""

import numpy as np
import pytest

from oneofmany.exact import count
from oneofmany.problems import TASKS, rules_kept
from oneofmany.problems.givens import conflicts

from .engines import PLAYED

SUDOKU = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
DRAWN = "1 < .   . > .\n^       v    \n.   .   .   .\n\n. > .   .   .\n            ^\n.   .   3   ."
TEXTS = {
    "sudoku line": ("sudoku", SUDOKU),
    "sudoku rows": ("sudoku", "\n".join(SUDOKU[i : i + 9].replace("0", ".") for i in range(0, 81, 9))),
    "sudoku 4": ("sudoku", "1...\n..3.\n.4..\n...2"),
    "sudoku drawing": ("sudoku", "1 . | . .\n. . | 3 .\n----+----\n. 4 | . .\n. . | . 2"),
    "sudoku 16": ("sudoku", "G" + "." * 254 + "1"),
    "queens line": ("nqueens", "3.5...2."),
    "queens columns": ("nqueens", "3 . . 10 . . 2 . . ."),
    "queens board": ("nqueens", ".Q..\n....\n....\n..Q."),
    "futoshiki line": ("futoshiki", "1..............2 r1c1<r1c2 r3c3>r3c4"),
    "futoshiki drawing": ("futoshiki", DRAWN),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_read_as_oneofmany_solve_reads_them(node, name):
    task, text = TEXTS[name]
    [found] = node.ask("read", [{"task": task, "text": text}])
    query = TASKS[task].parse(text)
    assert found["size"] == query.problem.size
    assert found["values"] == query.values.tolist()
    assert sorted(found["relations"]) == sorted(query.relations.tolist())


def test_what_cannot_be_read_is_said_in_a_sentence(node):
    texts = [("sudoku", ""), ("sudoku", "12345"), ("sudoku", "5" + "." * 15), ("nqueens", "QQ..\n....\n....\n...."),
             ("nqueens", "..."), ("futoshiki", ". . .\n. . .\n. . ."), ("sudoku", "hello, world!"),
             ("sudoku", "34 " * 16), ("nqueens", ". . AB . . . . . . . . ."), ("sudoku", "1" * 10_000)]  # fmt: skip
    found = [one["error"] for one in node.ask("read", [{"task": task, "text": text} for task, text in texts])]
    for sentence in found:
        assert sentence.endswith("."), found
        assert "undefined" not in sentence
    assert found[1] == "The text has 5 cells: expected 16, 36, 81 or 256."
    assert found[4] == "The text has 3 rows: expected 4 to 20, each with a column or . for blank."


def test_the_task_of_a_text_is_guessed(node):
    sixteen = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n" + ". " * 16 * 15
    texts = {SUDOKU: "sudoku", sixteen: "sudoku", "2 4 1 3": "nqueens", "1 . . 15 . . . . . . . . . . 3 .": "nqueens",
             "1<2": "futoshiki", "Q...": "nqueens", "hello": None}  # fmt: skip
    assert node.ask("guess", [{"text": text} for text in texts]) == [*texts.values()]


def test_texts_that_hold_no_link_of_a_board(node):
    link = "see https://example.org/play.html#sudoku/4/1...............  "
    broken = [
        "#%E0%A4%A/4/....",
        "#toString/4/....",
        "#__proto__/4/....",
        "#sudoku/4/................/0-1",
        "#sudoku/4/1",
    ]
    broken += ["#nqueens/99/1", "#futoshiki/4/................/0-0", "#futoshiki/4/................/0-16", ""]
    found, *none = node.ask("linked", [{"text": text} for text in (link, *broken)])
    assert found == {"task": "sudoku", "size": 4, "values": [1, *[0] * 15], "relations": []}
    assert none == [None] * len(broken)


def test_links_hold_the_board(node):
    boards = [
        {"task": "nqueens", "size": 20, "values": [20, *[0] * 18, 1], "relations": []},
        {"task": "sudoku", "size": 9, "values": [int(cell) for cell in SUDOKU], "relations": []},
        {"task": "futoshiki", "size": 5, "values": [0, 5, *[0] * 23], "relations": [[0, 1], [7, 2], [24, 0]]},
    ]
    for board, found in zip(boards, node.ask("link", boards), strict=True):
        assert found["board"] == board
        assert found["hash"].startswith(f"#{board['task']}/{board['size']}/")


SIZES = {"nqueens": (4, 8, 13, 20), "sudoku": (4, 6, 9, 16), "futoshiki": (4, 6, 9)}


@pytest.mark.parametrize("task", PLAYED)
def test_random_boards_have_a_solution_and_blanks(node, task):
    asked = [{"task": task, "size": size, "seed": seed} for size in SIZES[task] for seed in range(4)]
    several = set()
    for one, board in zip(asked, node.ask("random", asked), strict=True):
        problem = TASKS[task].problem(one["size"])
        values = np.array([board["values"]], np.uint8)
        relations = np.array(board["relations"], np.int16).reshape(1, -1, 2)
        assert 0 < (values > 0).mean() < 0.75
        assert bool(len(board["relations"])) == (task == "futoshiki")
        total = count(problem, values, relations, limit=60)[0]
        assert total >= 1
        several.add(bool(total > 1))
    assert node.ask("random", asked[:1]) == node.ask("random", asked[:1])
    assert several == {True, False}


def test_broken_rules_are_those_of_the_checker(node):
    rng = np.random.default_rng(0)
    cases, expected = [], []
    for task, size in (("nqueens", 6), ("sudoku", 4), ("futoshiki", 4)):
        problem = TASKS[task].problem(size)
        values = rng.integers(0, size + 1, (60, problem.variables)).astype(np.uint8)
        values[rng.random(values.shape) < 0.5] = 0
        relations = np.array([[0, 1], [5, 4]] if task == "futoshiki" else [], np.int16).reshape(-1, 2)
        for row in values:
            cases.append({"task": task, "size": size, "values": row.tolist(), "relations": relations.tolist()})
            found = conflicts(problem, row, relations)
            expected.append(sum(bool(one.taken) or one.relation is not None for one in found) > 0)
        assert rules_kept(problem, np.zeros((1, problem.variables), np.uint8))[0]
    found = [rules > 0 for rules in node.ask("broken", cases)]
    assert [one for one, direct in zip(found, expected, strict=True) if direct and not one] == []
    assert any(found)
    assert not all(found)
