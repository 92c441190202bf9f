"""The commands as a user runs them: results on stdout, the rest on stderr, exit codes 0, 1 and 2."""

import errno
import json
import os
import subprocess
import sys

import pytest

from oneofmany.cli import COMMANDS
from oneofmany.data.dataset import Dataset
from oneofmany.evaluation import read_record


def every_command(tree=COMMANDS, path=()):
    for name, place in tree.items():
        if isinstance(place, dict):
            yield from every_command(place, (*path, name))
        else:
            yield (*path, name)


@pytest.mark.parametrize("command", list(every_command()), ids="-".join)
def test_help_has_an_example(call, command):
    code, out, _ = call(*command, "--help")
    assert code == 0
    assert "Example: oneofmany " + " ".join(command) in out


def test_overview(call):
    code, out, _ = call("--help")
    assert code == 0
    assert all(name in out for name in COMMANDS)
    assert call()[0] == 2
    assert call("data")[0] == 2
    code, _, err = call("cuont", "sudoku", "x")
    assert code == 2
    assert "did you mean 'count'?" in err
    assert call("--version")[1].startswith("0.")


def test_importing_the_package_is_light():
    code = "import sys, oneofmany; sys.exit(any(m in sys.modules for m in ('numba', 'matplotlib', 'tyro', 'torch')))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_data_and_show(call, tmp_path):
    path = tmp_path / "q.safetensors"
    code, out, err = call("data", "nqueens", "--size", 8, "--blanks", 4, "--out", path)
    assert (code, out) == (0, "")
    assert "6,040 queries" in err
    code, out, _ = call("data", "show", path, "--json")
    about = json.loads(out)
    assert code == 0
    assert (about["task"], about["size"], about["queries"], about["ms_queries"]) == ("nqueens", 8, 6040, 392)
    assert about["solution_counts"] == {"1": 5648, "2": 384, "3": 8}
    assert about["solutions_per_ms_query"] == round((2 * 384 + 3 * 8) / 392, 4)
    assert about["checksum"].startswith("sha256:")
    assert about["largest_hamming_distance"] == 4
    code, out, _ = call("data", "show", path)
    assert code == 0
    assert "392 (6.49 %)" in out
    assert "largest Hamming distance" in out
    code, out, _ = call("show", path, "--ms", "--number", 1)
    assert code == 0
    assert "2 solutions" in out
    assert out.count("solution 2") == 1
    assert call("show", path, "--rows", 99999)[0] == 2
    code, out, _ = call("data", "export", path, "--out", tmp_path / "q.parquet")
    assert code == 0
    assert (tmp_path / "q.parquet").stat().st_size > 1000


def test_data_of_the_other_tasks(call, tmp_path):
    futoshiki, sudoku = tmp_path / "f.safetensors", tmp_path / "s.safetensors"
    arguments = ["--size", 4, "--blanks", 8, "--inequalities", 2, "--queries", 20, "--split", "dev", "--seed", 4]
    assert call("data", "futoshiki", *arguments, "--out", futoshiki)[0] == 0
    assert len(Dataset.load(futoshiki)) == 20
    code, _, err = call("data", "sudoku", "--size", 4, "--split", "train", "--queries", 12, "--out", sudoku)
    assert code == 0
    assert "12 of 12" in err  # progress as plain lines
    assert call("show", futoshiki)[0] == call("show", sudoku)[0] == 0


def test_benchmark_data(call, tmp_path):
    folder = tmp_path / "data"
    code, _, err = call("data", "benchmark", "--out", folder, "--only", "futoshiki-dev", "nqueens-dev")
    assert code == 0, err
    assert sorted(p.name for p in folder.iterdir()) == ["futoshiki-dev.safetensors", "nqueens-dev.safetensors"]
    code, _, err = call("data", "benchmark", "--out", folder, "--only", "futoshiki-dev")
    assert code == 0
    assert "exists and is kept" in err
    assert call("data", "benchmark", "--out", folder, "--only", "chess")[0] == 2


def test_import(call, tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"input": "....", "output": "1234"}\n{"input": "....", "output": "4321"}\n')
    code, out, _ = call("data", "import", pairs, "--out", tmp_path / "p.safetensors")
    assert code == 0
    assert "2 pairs of 1 inputs" in out
    code, out, _ = call("show", tmp_path / "p.safetensors")
    assert code == 0
    assert "2 listed solutions" in out
    assert "4 3 2 1" in out
    pairs.write_text('{"input": "2...", "output": "1234"}\n')
    code, out, err = call("data", "import", pairs, "--out", tmp_path / "bad.safetensors")
    assert (code, out) == (2, "")
    assert "pair 1" in err
    assert not (tmp_path / "bad.safetensors").exists()


def test_count(call, tmp_path):
    file = tmp_path / "q.txt"
    file.write_text("2 . . .\n\n. . . .\n1 . . .\n. . . . . . . .\n")
    assert call("count", "nqueens", file) == (0, "1\n2\n0\n92\n", "")
    code, out, err = call("count", "nqueens", file, "--limit", 2)
    assert (code, out) == (0, "1\n2\n0\n2\n")
    assert "line 3 has 2 solutions or more" in err
    assert "line 5 has 2 solutions or more" in err


def test_count_answers_the_good_lines_and_names_the_bad(call, tmp_path):
    file = tmp_path / "q.txt"
    file.write_text("1" + "." * 15 + "\ngarbage\n" + "." * 16 + "\n5" + "." * 15 + "\n")
    code, out, err = call("count", "sudoku", file)
    assert (code, out) == (2, "72\n288\n")
    assert "q.txt: line 2, column 1: " in err
    assert "q.txt: line 4, column 1: '5' is not a value of size 4" in err


def test_rate(call, tmp_path):
    file = tmp_path / "puzzles.txt"
    singles = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
    hard = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
    file.write_text(f"{singles}\n{hard}\n{'.' * 81}\n11{'.' * 79}\n")
    code, out, err = call("rate", "sudoku", file)
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert [row[1:] for row in rows] == [["30", "1"], ["21", "1"], ["0", "2+"], ["2", "0"]]
    assert float(rows[0][0]) == float(rows[3][0]) == 0 < 200 < float(rows[1][0]) < 350
    assert call("rate", "sudoku", file, "--seed", 0)[1] == out != call("rate", "sudoku", file, "--seed", 1)[1]
    about = [json.loads(line) for line in call("rate", "sudoku", file, "--json")[1].splitlines()]
    assert [one["line"] for one in about] == [1, 2, 3, 4]
    assert about[0] == {"line": 1, "rating": 0.0, "givens": 30, "solutions": 1}
    assert [one["solutions"] for one in about] == [1, 1, 2, 0]


def test_rate_names_what_it_cannot_rate(call, tmp_path):
    file = tmp_path / "puzzles.txt"
    file.write_text("1..." * 4 + "\n123\n" + "." * 81 + "\n")
    code, out, err = call("rate", "sudoku", file)
    assert code == 2
    assert len(out.splitlines()) == 1
    assert "line 1: only 9x9 Sudokus have a rating, got 4x4" in err
    assert "line 2, column" in err
    code, _, err = call("rate", "nqueens", file)
    assert code == 2
    assert "only sudoku has a rating, got 'nqueens'" in err


def test_hard_sudokus(call, tmp_path):
    file = tmp_path / "hard.safetensors"
    command = ("data", "sudoku", "--rating", 2, 50, "--split", "dev", "--queries", 6)
    code, _, err = call(*command, "--ms-queries", 2, "--out", file)
    assert code == 0
    assert "6 queries, 2 of them with several solutions" in err
    assert Dataset.load(file).built["rating"] == [2, 50]
    for extra in (("--size", 4), ("--givens", 20, 30), ("--split-by", "puzzle"), ("--clues", "list.txt")):
        code, _, err = call(*command, "--out", "x", *extra)
        assert code == 2
        assert "leave out --clues, --size, --givens and --split-by" in err
    code, _, err = call("data", "sudoku", "--pairs", "--split", "dev", "--queries", 6, "--out", "x")
    assert code == 2
    assert "--pairs says how puzzles are rated" in err


def test_count_futoshiki_in_both_forms(call, tmp_path):
    file = tmp_path / "q.txt"
    file.write_text("0000 r1c1<r1c2\n....\n\n. < .\n\n.   .\n")
    # A drawn grid ends at an empty line, so it is drawn without one.
    file.write_text("0000 r1c1<r1c2\n....\n\n. < .\n    v\n.   .\n\n1   2\n.   .\n")
    assert call("count", "futoshiki", file) == (0, "1\n2\n1\n1\n", "")


def test_show_text(call, tmp_path):
    code, out, _ = call("show", "nqueens", "2 . . .")
    assert code == 0
    assert out.startswith("1 solution\n")
    code, out, _ = call("show", "sudoku", "." * 16)
    assert "288 solutions" in out
    assert "... and 284 more" in out
    file = tmp_path / "q.txt"
    file.write_text("2 . . .\ny\n")
    code, out, err = call("show", "nqueens", file)
    assert code == 2
    assert "1 solution" in out
    assert "line 2" in err
    assert call("show", "nqueens")[0] == 2
    assert call("show", "chess", "1")[0] == 2
    code, out, _ = call("show", "nqueens", "1 1 . .")
    assert code == 0
    assert out.startswith("0 solutions")


def test_demo(call, tmp_path, monkeypatch):
    """The whole demo, with real training: MinLoss and SelectR are at least 20 points above Naive on MS queries."""
    folder = tmp_path / "demo"
    code, out, err = call("demo", "--out", folder)
    assert code == 0, err
    assert "naive: no valid answer" in out
    assert "minloss: a valid answer" in out
    assert (folder / "report.html").stat().st_size > 100_000
    ms = {}
    for trained in (folder / "runs" / "nqueens").iterdir():
        [evaluation] = read_record(trained / "tiny" / "42").evaluations.values()
        ms[trained.name] = evaluation.scores.ms.accuracy
    assert min(ms["minloss"], ms["selectr"]) >= ms["naive"] + 0.2, ms
    code, again, _ = call("demo", "--out", folder)  # nothing is trained again
    assert (code, again) == (0, out)
    (folder / "report.html").unlink()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, _, err = call("demo", "--out", folder)
    assert code == 0
    assert "no report is written: jinja2 is needed for the HTML report and is not installed: pip install" in err
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["count", "chess", "x"], "task: expected one of nqueens, futoshiki, sudoku, colouring, got 'chess'"),
        (["count", "sudoku", "missing.txt"], "'missing.txt' is neither a file nor a query"),
        (["data", "show", "missing"], "missing is not a file"),
        (["data", "nqueens", "--size", "8", "--blanks", "9", "--out", "x"], "blanks: expected 0 to 8"),
        (["data", "nqueens", "--size", "8", "--blanks", "4", "--out", "none/x"], "none is not a directory"),
        (["data", "sudoku", "--clues", "no", "--split", "dev", "--queries", "9", "--out", "x"], "no cannot be read"),
        (["data", "benchmark", "--out", "d", "--clues", "missing"], "missing is not a file"),
    ],
)
def test_bad_input_is_one_sentence(call, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments_of_the_command_line(call):
    code, _, err = call("data", "nqueens", "--size", "eight", "--blanks", 4, "--out", "x")
    assert code == 2
    assert "size" in err
    code, _, err = call("data", "nqueens", "--sise", 8, "--blanks", 4, "--out", "x")
    assert code == 2
    assert "--size" in err


def test_empty_files(call, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    code, _, err = call("count", "sudoku", empty)
    assert code == 2
    assert "contains no query" in err
    empty.write_bytes(b"\xff\xfe\x00")
    assert call("count", "sudoku", empty)[0] == 2


def test_out_that_exists_is_refused_before_any_work(call, tmp_path, monkeypatch):
    path = tmp_path / "mine"
    path.write_text("mine")
    monkeypatch.setattr("oneofmany.data.nqueens.build_nqueens", None)  # would fail if it were called
    code, _, err = call("data", "nqueens", "--size", 10, "--blanks", 5, "--out", path)
    assert code == 2
    assert "--force" in err
    assert path.read_text() == "mine"


def test_a_full_disk_is_exit_code_1(call, tmp_path, monkeypatch):
    def full(path, content):
        with path.open("wb") as file:
            file.write(content[:100])
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    code, out, err = call("data", "nqueens", "--size", 6, "--blanks", 3, "--out", tmp_path / "x")
    assert (code, out) == (1, "")
    assert err.endswith("No space left on device\n")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system to fill")
def test_a_file_system_that_is_really_full(call, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        code, out, err = call("data", "nqueens", "--size", 8, "--blanks", 4, "--out", small / "x")
        assert (code, out) == (1, "")
        assert "No space left on device" in err
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_folder_that_cannot_be_written(call):
    code, out, err = call("data", "nqueens", "--size", 6, "--blanks", 3, "--out", "/proc/x.safetensors")
    assert (code, out) == (2, "")
    assert "/proc cannot be written" in err


def test_a_reader_that_goes_away():
    command = f"{sys.executable} -m oneofmany count nqueens /dev/stdin --limit 1 2>/dev/null | head -n 1"
    result = subprocess.run(
        ["bash", "-c", f"yes '2 . . .' | head -n 20000 | {command}"], capture_output=True, text=True
    )
    assert result.stdout == "1\n"
    assert "Traceback" not in result.stderr
