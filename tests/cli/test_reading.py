"""Every format of docs/reading.md, read by the commands."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from oneofmany.cli import run
from oneofmany.problems import TASKS, TextError, read_queries

PAGE = (Path(__file__).parents[2] / "docs" / "reading.md").read_text()

PUZZLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
SOLVED = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
SMALL = "1....2....3....4"
ROWS = [PUZZLE[at : at + 9] for at in range(0, 81, 9)]
GROUPS = [[row[:3], row[3:6], row[6:]] for row in ROWS]
LARGE = [1, 0, 16, 10, *[0] * 251, 9]


def banded(lines, border):
    return "\n".join([*lines[:3], border, *lines[3:6], border, *lines[6:]])


def barred(left, bar, right, gap):
    return [left + bar.join(gap.join(group) for group in groups) + right for groups in GROUPS]


def large(symbols, blank="."):
    cells = [blank if value == 0 else symbols[value - 1] for value in LARGE]
    return ["".join(cells[at : at + 16]) for at in range(0, 256, 16)]


def of(*lines):
    return "\n".join(lines) + "\n"


def queen_rows(gap, queen, blank):
    return [gap.join(queen if (r, c) in ((2, 4), (6, 1)) else blank for c in range(10)) for r in range(10)]


SDK = of("#A The author", "#D A description", "#B 2026-11-16", *ROWS)
STATE = of("#A The author", "[Puzzle]", *ROWS, "[State]", *[SOLVED[at : at + 9] for at in range(0, 81, 9)])
SS = of(" *-----------*", banded(barred(" |", "|", "|", ""), " |---+---+---|"), " *-----------*")
HODOKU = of(
    ".-------.-------.-------.",
    banded(barred("| ", " | ", " |", " "), ":-------+-------+-------:"),
    "'-------'-------'-------'",
)
CELLS = of("+---" * 9 + "+", *(f"| {' | '.join(row)} |\n{'+---' * 9}+" for row in ROWS))
NUMBERS = [" ".join(str(value or ".") for value in LARGE[at : at + 16]) for at in range(0, 256, 16)]

SUDOKU = {
    "one line": [PUZZLE, PUZZLE.replace(".", "0"), of(PUZZLE)],
    "a line for each row": [of(*ROWS), "\n".join(ROWS)],
    "spaces between cells": [of(*(" ".join(row) for row in ROWS)), of(*(" ".join(group) for group in GROUPS))],
    "commas between cells": [
        of(*(",".join(row).replace(".", "") for row in ROWS)),
        of(*(", ".join(row) for row in ROWS)),
        of(*(";".join(row).replace(".", "") for row in ROWS)),
        of(*("\t".join(row).replace(".", "") for row in ROWS)),
    ],
    "brackets and quotes": [
        str([[int(cell) for cell in row.replace(".", "0")] for row in ROWS]),
        str([[*row] for row in ROWS]).replace("'", '"'),
        ",\n".join(str([*row]) for row in ROWS),
        str(np.array([[int(cell) for cell in row.replace(".", "0")] for row in ROWS])),
        f'"{PUZZLE}"',
    ],
    "drawn by our commands": [TASKS["sudoku"].draw(*vars(TASKS["sudoku"].parse(PUZZLE)).values())],
    "drawn with bars and dashes": [
        of(banded(barred("", " | ", "", " "), "------+-------+------")),
        of(banded(barred("", "|", "", ""), "-----------")),
        of(banded(barred("", "|", "", ""), "---------")),
        of(banded(barred("|", "|", "|", ""), "|===|===|===|")),
        HODOKU,
        CELLS,
    ],
    "`.ss`": [SS],
    "`.sdk`": [SDK, STATE],
    "CSV with a header": [
        of("quizzes,solutions", f"{PUZZLE},{SOLVED}"),
        of("puzzle", PUZZLE),
        of("id,puzzle,solution,clues,difficulty", f"1,{PUZZLE},{SOLVED},30,2.2"),
        of("source,question,answer,rating", f'"a, ""list""",{PUZZLE},{SOLVED},7'),
        of("Puzzle;Solution", f"{PUZZLE};{SOLVED}"),
        of("answer\tpuzzle", f"{SOLVED}\t{PUZZLE}"),
        'puzzle,solution\n"' + "\n".join(ROWS) + f'",{SOLVED}\n',
    ],
    "spaces as blanks": [
        of(*(row.replace(".", " ") for row in ROWS)),
        SS.replace(".", " "),
        CELLS.replace(".", " "),
        of(banded(barred("| ", " | ", " |", " "), "|-------+-------+-------|")).replace(".", " "),
        of(*(line.rstrip() for line in banded(barred("", " | ", "", " "), "---").replace(".", " ").split("\n"))),
    ],
}
BIG = {
    "numbers": [
        of(*NUMBERS),
        " ".join(NUMBERS),
        of(*(row.replace(" ", ",") for row in NUMBERS)),
        of(*(row.replace(".", "00") for row in NUMBERS)),
    ],
    "letters for 16 and 25": [
        of(*large("123456789ABCDEFG")),
        "".join(large("123456789abcdefg", "0")),
        of(*large("0123456789ABCDEF")),
        of(*large("ABCDEFGHIJKLMNOP")),
    ],
}
QUEENS = {
    "columns": [". . 5 . . . 2 . . .", "0 0 5 0 0 0 2 0 0 0", "_ _ 5 _ _ _ 2 _ _ _"],
    "columns with commas": [",,5,,,,2,,,", "., ., 5, ., ., ., 2, ., ., .", "[0, 0, 5, 0, 0, 0, 2, 0, 0, 0]"],
    "columns in one word": ["..5...2...", "xx5xxx2xxx"],
    "board": [
        *(of(*queen_rows(" ", "Q", blank)) for blank in ".-*"),
        *(of(*queen_rows("", "q", blank)) for blank in "._ "),
        of(*(f"|{row}|" for row in queen_rows("|", "Q", " "))),
        of(*(f"| {row} |\n{'+---' * 10}+" for row in queen_rows(" | ", "♛", " "))),
        TASKS["nqueens"].draw(*vars(TASKS["nqueens"].parse("..5...2...")).values()),
    ],
}
FUTOSHIKI = {
    "line": [
        "1........ r1c1<r1c2 r2c1>r1c1 r3c3<r1c2",
        "1..|...|... r1c2>r1c1, r2c1>r1c1, r1c2>r3c3",
        "1........ r1c1 < r1c2 r2c1> r1c1; r3c3 <r1c2",
    ],
    "drawn grid with other relations": [
        of("1 < .   .", "^", ".   .   .", "", ".   .   .", "r3c3<r1c2"),
        of("1<. .", "∧", ". . .", ". . .", "R1C2>R3C3"),
    ],
}
PLAIN_FUTOSHIKI = {
    "rows": [of(".1.", "...", "3.."), of(". 1 .", ". . .", "3 . .")],
    "drawn grid": [of(".   1   .", "", ".   .   .", "", "3   .   .")],
}
GRAPHS = {
    "line": ["k=3 n=5 1-2 2-3 1=2", "n=5 1-2 2-3 1=2", "1=2 2-1, 3-2 n=5"],
    "DIMACS (`.col`)": [of("c a comment", "p edge 5 2", "e 1 2", "e 2 3", "n 1 2")],
    "drawn": [TASKS["colouring"].draw(*vars(TASKS["colouring"].parse("k=3 n=5 1-2 2-3 1=2")).values())],
}
CASES = [
    (task, name, text, expected)
    for task, expected, formats in (
        ("sudoku", PUZZLE, SUDOKU),
        ("sudoku", "".join(large("123456789ABCDEFG")), BIG),
        ("nqueens", ". . 5 . . . 2 . . .", QUEENS),
        ("futoshiki", "1........ r1c1<r1c2 r1c1<r2c1 r3c3<r1c2", FUTOSHIKI),
        ("futoshiki", ".1....3..", PLAIN_FUTOSHIKI),
        ("colouring", "k=3 n=5 1-2 2-3 1=2", GRAPHS),
    )
    for name, texts in formats.items()
    for text in texts
]
FOR_ALL = {  # each has a test below
    "blanks",
    "several boards",
    "comments, headings",
    "line ends, encoding",
    "output of `show` and `solve --boards`",
    "standard input",
}


@pytest.fixture
def queries_of(call):
    """The queries that ``solve`` reads, in the form in which it writes them, by their first line."""

    def read(task, argument, *options):
        code, out, err = call("solve", task, argument, "--exact", "--json", *options)
        assert code in (0, 1), err  # 1: the query has no solution
        return [(record["line"], record["query"]) for record in map(json.loads, out.splitlines())]

    return read


def test_every_row_of_the_page_is_tested():
    rows = set(re.findall(r"^\| (.*?) \| .* \|$", PAGE, re.MULTILINE)) - {"format"}
    assert rows == {name for _, name, _, _ in CASES} | FOR_ALL


@pytest.mark.parametrize(("task", "name", "text", "expected"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_formats(queries_of, tmp_path, monkeypatch, task, name, text, expected):
    """A file, standard input and the command line give the same query."""

    def same(found):
        assert len(found) == 1
        one, other = TASKS[task].parse(found[0][1]), TASKS[task].parse(expected)
        assert one.problem is other.problem
        assert one.values.tolist() == other.values.tolist()
        assert sorted(one.relations.tolist()) == sorted(other.relations.tolist())

    file = tmp_path / "query.txt"
    file.write_text(text)
    same(queries_of(task, file))
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    same(queries_of(task, "-"))
    same(queries_of(task, text))


@pytest.mark.parametrize("command", ["count", "show", "solve"])
def test_commands_read_the_same(call, tmp_path, monkeypatch, command):
    file = tmp_path / "puzzles.csv"
    file.write_text(of("id,quizzes", f"1,{PUZZLE}", f"2,{SMALL}"))
    options = ["--exact"] if command == "solve" else []
    outs = [call(command, "sudoku", file, *options)]
    for argument in (["-"], []):
        monkeypatch.setattr("sys.stdin", io.StringIO(file.read_text()))
        outs.append(call(command, "sudoku", *argument, *options))
    outs.append(call(command, "sudoku", file.read_text(), *([*options, "--json"] if options else [])))
    assert [code for code, _, _ in outs] == [0] * 4
    assert outs[0][1] == outs[1][1] == outs[2][1]
    if command == "count":
        assert outs[0][1] == outs[3][1] == "1\n2\n"


@pytest.mark.parametrize("blank", [*".0_x*?-·"])
def test_blanks(queries_of, blank):
    assert queries_of("sudoku", of(*ROWS).replace(".", blank)) == [(1, PUZZLE)]
    assert queries_of("sudoku", PUZZLE.replace(".", blank)) == [(1, PUZZLE)]
    assert queries_of("nqueens", ". 1 . 2".replace(".", blank)) == [(1, ". 1 . 2")]
    assert queries_of("nqueens", ".1.2".replace(".", blank)) == [(1, ". 1 . 2")]
    assert queries_of("futoshiki", f"{blank}1{blank}{blank} r1c1<r1c2") == [(1, ".1.. r1c1<r1c2")]
    assert queries_of("futoshiki", f"{blank} > 1\n{blank}   {blank}") == [(1, ".1.. r1c2<r1c1")]


def test_several_boards(queries_of, tmp_path):
    file = tmp_path / "boards.txt"
    file.write_text(of(*ROWS, "", *ROWS, *ROWS, "", PUZZLE, SMALL, "", "", SS, "1...", "..1.", ".1..", "...1"))
    found = queries_of("sudoku", file)
    assert [query for _, query in found] == [PUZZLE] * 4 + [SMALL, PUZZLE, "1.....1..1.....1"]
    assert [line for line, _ in found] == [1, 11, 20, 30, 31, 35, 48]
    file.write_text(
        of(". Q . .", ". . . .", "Q . . .", ". . . .", "", "2 . . .", "....", "", ".Q..", "...Q", "Q...", "....")
    )
    assert [query for _, query in queries_of("nqueens", file)] == ["2 . 1 .", "2 . . .", ". . . .", "2 4 1 ."]
    file.write_text(of(". < .", "v", "1   .", "r1c1<r2c2", ".   .", ". > .", "", ".... r1c1<r1c2"))
    assert [query for _, query in queries_of("futoshiki", file)] == [
        "..1. r1c1<r1c2 r2c1<r1c1 r1c1<r2c2",
        ".... r2c2<r2c1",
        ".... r1c1<r1c2",
    ]


def test_comments_line_ends_and_byte_order_mark(queries_of, tmp_path):
    file = tmp_path / "q.txt"
    for end in (b"\n", b"\r\n", b"\r"):
        lines = ["# a list", f"{PUZZLE} # easy", "  # nothing", PUZZLE, "", *ROWS[:4], "#inside", *ROWS[4:]]
        file.write_bytes(b"\xef\xbb\xbf" + end.join(line.encode() for line in lines))
        assert queries_of("sudoku", file) == [(2, PUZZLE), (4, PUZZLE), (6, PUZZLE)]
    lines = ["quizzes,solutions", "# comment", f"{PUZZLE},{SOLVED}"]
    file.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(line.encode() for line in lines))
    assert queries_of("sudoku", file) == [(3, PUZZLE)]
    file.write_text(of("// a list", "Grid 01", *ROWS, "  % more", "Puzzle #2:", *ROWS, "Sudoku no. 3", PUZZLE))
    assert queries_of("sudoku", file) == [(3, PUZZLE), (14, PUZZLE), (24, PUZZLE)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8"])
def test_a_file_and_standard_input_have_the_same_encodings(queries_of, tmp_path, monkeypatch, encoding):
    content = ("\ufeff" * (encoding == "utf-16-le") + of(*ROWS)).encode(encoding)
    (tmp_path / "q.txt").write_bytes(content)
    assert queries_of("sudoku", tmp_path / "q.txt") == [(1, PUZZLE)]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), "ascii", "surrogateescape"))
    assert queries_of("sudoku", "-") == [(1, PUZZLE)]


def test_what_is_not_text_is_refused(call, tmp_path, monkeypatch):
    content = b"1\xff\n" + PUZZLE.encode()
    (tmp_path / "q").write_bytes(content)
    assert call("count", "sudoku", tmp_path / "q") == (
        2,
        "",
        f"oneofmany: {tmp_path / 'q'} cannot be read: it is not text\n",
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8", "surrogateescape"))
    assert call("count", "sudoku", "-") == (2, "", "oneofmany: standard input cannot be read: it is not text\n")
    code, _, err = call("count", "sudoku", tmp_path)
    assert code == 2
    assert f"'{tmp_path}' is a folder, not a file, and not a query" in err
    assert call("count", "nqueens", ".") == (0, "1\n", "")  # the name of a folder, too


def test_a_bad_row_of_a_csv_file_is_named_and_the_others_are_read(call, tmp_path):
    file = tmp_path / "q.csv"
    file.write_text(of("id,puzzle", f"1,{PUZZLE}", "2", "3,", f"4,{PUZZLE[1:]}", f"5,{PUZZLE}"))
    code, out, err = call("count", "sudoku", file)
    assert (code, out) == (2, "1\n1\n")
    for said, line, why in zip(err.splitlines(), (3, 4, 5), ("puzzle is missing", "no query", "80 cells"), strict=True):
        assert said.startswith(f"oneofmany: {file}: line {line}, column ")
        assert why in said


def test_several_boards_with_spaces_as_blanks(queries_of, tmp_path):
    file = tmp_path / "q.txt"
    spaced = [row.replace(".", " ") for row in ROWS]
    file.write_text(of(*spaced, *spaced, "", *spaced, "# next", *spaced, "", SS.replace(".", " ")))
    assert [query for _, query in queries_of("sudoku", file)] == [PUZZLE] * 5
    full = ["1 2 3 4", "3 4 1 2", "2 1 4 3", "4 3 2 1"]  # seven of them are lines of as many characters
    file.write_text(of(*full * 7))
    assert [query for _, query in queries_of("sudoku", file)] == ["1234341221434321"] * 7


@pytest.mark.parametrize(
    ("task", "queries"),
    [
        ("sudoku", [SMALL, PUZZLE, "." * 36]),
        ("nqueens", [".", ". . . . . .", "2 . . ."]),
        ("futoshiki", ["." * 16 + " r1c1<r4c4 r1c2<r1c1 r3c3<r4c3", "." * 9, "1..."]),
    ],
)
def test_output_reads_back(call, queries_of, tmp_path, task, queries):
    source, printed = tmp_path / "queries.txt", tmp_path / "printed.txt"
    source.write_text("\n".join(queries))
    for command in (["show", task, source, "--solutions", 5], ["solve", task, source, "--exact", "--boards"]):
        printed.write_text(call(*command)[1])
        found = [query for _, query in queries_of(task, printed)]
        assert [sorted(query.split()) for query in found] == [sorted(query.split()) for query in queries]
    printed.write_text(call("solve", task, source, "--exact", "--boards", "--all", "--limit", 30)[1])
    assert len(queries_of(task, printed)) == len(queries)


def test_sizes(call, queries_of):
    text = of(*["1..............."] * 16)
    code, _, err = call("count", "sudoku", text)
    assert code == 2
    assert "16 queries of size 4 or rows of size 16: say which with --size 4 or --size 16" in err
    assert len(queries_of("sudoku", text, "--size", 4)) == 16
    assert call("count", "sudoku", text, "--size", 16) == (0, "0\n", "")
    assert call("count", "sudoku", ".........", "--size", 3) == (0, "12\n", "")
    for task, wrong in (
        ("sudoku", PUZZLE),
        ("nqueens", ". . ."),
        ("futoshiki", "0000 r1c1<r1c2"),
        ("futoshiki", ". .\n. ."),
    ):
        code, out, err = call("count", task, wrong, "--size", 5)
        assert (code, out) == (2, "")
        assert "5" in err
    assert call("count", "sudoku", PUZZLE, "--size", 0)[0] == 2
    assert call("count", "sudoku", "." * 26 + "\n", "--size", 26)[0] == 2


def test_box_shapes_are_read_from_the_drawing():
    text = of("1 . | . . | . .", ". . | . . | . .", ". . | . . | . .", "----+-----+----", *[". . | . . | . ."] * 3)
    assert read_queries("sudoku", text)[0].problem.options == {"box_rows": 3, "box_columns": 2}
    text = of(*["1 . . | . . ."] * 2, "------+------", *[". . . | . . ."] * 2, "------+------", *[". . . | . . ."] * 2)
    assert read_queries("sudoku", text)[0].problem.options == {"box_rows": 2, "box_columns": 3}
    text = of(*["|".join(row) for row in ROWS])
    assert read_queries("sudoku", text)[0].problem.options == {"box_rows": 3, "box_columns": 3}
    with pytest.raises(TextError, match="expected boxes of one size"):
        read_queries("sudoku", of(*["...|..|...."] * 9))


BAD = [
    ("sudoku", of(*ROWS[:4], "53..7...", *ROWS[5:]), 5, 1, "the row has 8 cells, but the row above has 9"),
    ("sudoku", of(*ROWS[:8]), 1, 1, "the board has 8 rows of 9 cells, expected 9 rows"),
    ("sudoku", of(*ROWS[:8], "", *ROWS), 1, 1, "the board has 8 rows of 9 cells"),
    ("sudoku", of(*ROWS[:2], "..z......", *ROWS[3:]), 3, 3, "'z' is not a value of size 9"),
    ("sudoku", of(PUZZLE, f"{PUZZLE}."), 2, 1, "the line has 82 cells"),
    ("sudoku", of("a,puzzle", f"7,{PUZZLE}", f"7,{PUZZLE[:-1]}Z"), 3, 83, "'Z' is not a value of size 9"),
    ("sudoku", of("a,puzzle", f'"7,",{PUZZLE[:-1]}Z'), 2, 86, "'Z' is not a value of size 9"),
    ("sudoku", of("a,puzzle", "7"), 2, 1, "the puzzle is missing"),
    ("sudoku", of("grid,answer", f"{PUZZLE},{SOLVED}"), 1, 1, "expected one of puzzle, quizzes or question"),
    ("sudoku", of(f"{PUZZLE},{SOLVED}"), 1, 1, "name the columns in the first line"),
    ("sudoku", of("[State]", *ROWS), 1, 1, "expected [Puzzle]"),
    (
        "sudoku",
        of(*NUMBERS[:3], NUMBERS[3].replace(".", "17", 1), *NUMBERS[4:]),
        4,
        1,
        "'17' is not a value of size 16",
    ),
    ("sudoku", "X" + "." * 624, 1, 1, "X can be a blank or the value 24"),
    ("sudoku", "solution 1\n" + PUZZLE, 1, 1, "there is no query before this solution"),
    ("sudoku", "." * 1_000_001, 1, 1, "expected at most 1,000,000"),
    ("nqueens", of(". Q . .", ". . . .", "Q . Q .", ". . . ."), 3, 5, "two queens"),
    ("nqueens", of(". Q . .", ". . . .", "Q . 3 .", ". . . ."), 3, 5, "'3' is not a cell"),
    ("nqueens", of(". Q . .", ". . . .", "Q . . ."), 1, 1, "3 rows of 4 cells"),
    ("nqueens", of("0 1 0 0", "0 0 0 1", "1 0 0 0", "0 0 1 0"), 1, 1, "write Q for a queen"),
    ("nqueens", of("0 1 0 0", "0 0 0 0", "0 0 0 0", "0 0 0 0"), 1, 1, "write Q for a queen "),
    ("nqueens", of("|Q| |.|.|", "|.|.|Q|.|", "|.|.|.|.|", "|.|.|.|.|"), 1, 4, "' ' is not a cell"),
    ("sudoku", of("|1| |.|4|", "|.|.|.|.|", "|.|.|.|.|", "|.|.|.|.|"), 1, 4, "' ' is not a value of size 4"),
    ("nqueens", ". x . .", 1, 1, "the blanks . and x"),
    ("nqueens", "..7..", 1, 3, "row 3 of 5 is '7'"),
    ("nqueens", ". " * 256, 1, 1, "the board has 256 columns"),
    ("futoshiki", of(". < .", "^", ".   5"), 3, 5, "'5' is not a value of size 2"),
    ("futoshiki", of("....", "... r1c1<r1c2"), 2, 1, "n*n cells"),
    ("futoshiki", ".... r1c1<r1c2 r1c1", 1, 16, "relation 'r1c1'"),
    ("futoshiki", "v", 1, 1, "no row above it"),
]


@pytest.mark.parametrize(("task", "text", "line", "column", "message"), BAD, ids=[message for *_, message in BAD])
def test_errors_name_file_line_and_column(call, tmp_path, task, text, line, column, message):
    file = tmp_path / "q.txt"
    file.write_text(text)
    code, _, err = call("count", task, file)
    assert code == 2
    assert err.startswith(f"oneofmany: {file}: line {line}, column {column}: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_file_of_bad_lines_names_the_first_ones(call, tmp_path):
    file = tmp_path / "q.txt"
    file.write_text("Z" * 81 + "\n" + PUZZLE + "\n" + ("Z" * 81 + "\n") * 99)
    code, out, err = call("count", "sudoku", file)
    assert (code, out) == (2, "1\n")
    assert err.count("\n") == 21
    assert "line 1, column 1: 'Z' is not a value" in err.splitlines()[0]
    assert "80 more queries cannot be read" in err.splitlines()[-1]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("character", [*".-*Q<v1,|+ x[r;\t%/'#", "| ", "\t1"])
def test_time_is_linear_in_the_text(task, character):
    """Long lines of any character are read or refused at once; a quadratic reader would take minutes each."""
    for text in (character * 200_000, (character * 20 + "\n") * 500, (character + "\n") * 1000):
        for _, query in TASKS[task].read(text):
            assert isinstance(query, TextError) or isinstance(query.values, np.ndarray)


def test_a_source_without_an_end(monkeypatch, capsys):
    monkeypatch.setattr("oneofmany.cli.reading.MOST_PIPED", 1000)
    monkeypatch.setattr("sys.stdin", io.StringIO("." * 1001))
    for source, name in (("/dev/zero", "/dev/zero"), ("-", "standard input")):
        assert run(["count", "sudoku", source]) == 2
        said = capsys.readouterr().err
        assert said == f"oneofmany: {name} has more than 1,000 characters: save them as a file first\n"


def test_a_file_may_be_larger_than_a_pipe(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("oneofmany.cli.reading.MOST_PIPED", 10)
    (tmp_path / "puzzles.txt").write_text(f"{PUZZLE}\n")
    assert run(["count", "sudoku", str(tmp_path / "puzzles.txt")]) == 0
    assert capsys.readouterr().out == "1\n"
