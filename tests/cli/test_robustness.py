"""Commands under hostile input and odd surroundings: one sentence, no traceback, nothing lost."""

import io
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from oneofmany.cli import run
from oneofmany.cli.terminal import progress
from oneofmany.cli.text import prepare_streams, printable, sentence
from oneofmany.data import Dataset
from oneofmany.data.nqueens import build_nqueens
from oneofmany.problems import Problem

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def call(call, monkeypatch, tmp_path):
    """Run a command in a folder of its own: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    return call


# ---- input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", [".", "299", "1"])
def test_more_queens_than_fit(call, tmp_path, field):
    (tmp_path / "q.txt").write_text(" ".join([field] * 300) + "\n2 . . .\n")
    code, out, err = call("count", "nqueens", "q.txt")
    assert (code, out) == (2, "1\n")
    assert "255" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("deep.json", ["record", "deep.json", "--out", "records"]),
        ("deep.json", ["report", "deep.json", "--out", "report.html"]),
        ("deep.json", ["compare", "deep.json", "deep.json", "data.safetensors"]),
        ("deep.jsonl", ["data", "import", "deep.jsonl", "--out", "data"]),
        ("config.json", ["train", "--resume", "."]),
        ("config.json", ["record", ".", "--out", "records"]),
        ("config.json", ["sweep", "nqueens/minloss/tiny", "--train", "x", "--dev", "x", "--out", "."]),
    ],
)
def test_json_nested_without_end(call, tmp_path, name, arguments):
    folder = tmp_path / "nqueens/minloss/tiny/42" if arguments[0] == "sweep" else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(DEEP)
    build_nqueens(4, 2, seed=1).save(tmp_path / "data.safetensors")
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert "is damaged" in err or "is not JSON" in err
    assert err.count("\n") == 1


def test_a_damaged_parquet_file(call, tmp_path):
    pytest.importorskip("pyarrow")
    build_nqueens(6, 3, seed=1).save(tmp_path / "data.safetensors")
    assert call("data", "export", "data.safetensors", "--pairs", "--out", "good.parquet")[0] == 0
    good, generator = (tmp_path / "good.parquet").read_bytes(), np.random.default_rng(1)
    refused = 0
    for damage in range(60):
        content = bytearray(good)
        for place in generator.integers(0, len(good), damage % 3 + 1):
            content[place] = generator.integers(0, 256)
        (tmp_path / "bad.parquet").write_bytes(content)
        code, _, err = call("data", "import", "bad.parquet", "--task", "nqueens", "--out", "mine", "--force")
        assert code in (0, 2)
        if code:
            refused += 1
            assert "bad.parquet" in err
            assert err.count("\n") == 1
    assert refused > 20


HOSTILE = "[red]x[/nothing] \x1b]0;title\x07\x1b[2J\x9b31m\r:smile: \u202e"


def test_names_in_files_cannot_control_the_terminal(call, tmp_path):
    problem = Problem(HOSTILE, 4, 4, 4, ())
    data = replace(build_nqueens(4, 2, seed=1), problem=problem, built={HOSTILE: HOSTILE, "none": None})
    data.save(tmp_path / "data.safetensors")
    code, out, _ = call("data", "show", "data.safetensors")
    assert code == 0
    shown = "[red]x[/nothing]\\x1b]0;title\\x07\\x1b[2J\\x9b31m\\r:smile:\\u202e"
    assert "".join(out.split()).count(shown) == 3
    code, _, err = call("train", "nqueens/minloss/tiny", "--train", "data.safetensors", "--dev", "data.safetensors")
    assert code == 2
    assert "is of task [red]x[/nothing] \\x1b]0;" in err
    assert not {"\x1b", "\x9b", "\r", "\x07", "\u202e"} & set(out + err)


def test_printable():
    assert printable("a\tb\nÄ│█ [x]") == "a\tb\nÄ│█ [x]"
    assert printable("\x00\x1b\x7f\x85\r") == "\\x00\\x1b\\x7f\\x85\\r"
    assert sentence("one \n  two\n") == "one two"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--threads", 0], "threads: expected 1 to 1024, got 0"),
        (["--threads", 100000], "threads: expected 1 to 1024, got 100000"),
        (["--loss-scale", 0], "loss_scale: expected more than 0, got 0.0"),
        (["--loss-scale", -1], "loss_scale: expected more than 0, got -1.0"),
        (["--first.batch", 1000000000], "first.batch: expected 1 to 1000000, got 1000000000"),
        (["--network.dropout", 2], "network.dropout: expected at least 0 and less than 1, got 2.0"),
        (["--first.warmup", -5], "first.warmup: expected at least 0, got -5"),
        (["--betas", 2, 3], "betas: expected at least 0 and less than 1, got 2.0"),
        (["--decay", -1], "decay: expected at least 0, got -1.0"),
        (["--network.width", 0], "network.width: expected at least 1, got 0"),
        (["--network.test-steps", 0], "network.test_steps: expected 1 to 10000, got 0"),
    ],
)
def test_numbers_that_cannot_be(call, tmp_path, changes, message):
    build_nqueens(6, 3, seed=1).save(tmp_path / "data.safetensors")
    own = ["--train", "data.safetensors", "--dev", "data.safetensors", "--out", "run"]
    assert call("train", "nqueens/minloss/tiny", *own, *changes) == (2, "", f"oneofmany: {message}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["data.safetensors"]


@pytest.mark.parametrize(
    "error", ["CUDA out of memory. Tried to allocate 2.00 GiB", "can't allocate memory: you tried to allocate 4 bytes"]
)
def test_memory_that_pytorch_does_not_get(call, monkeypatch, error):
    def fail(*_):
        raise RuntimeError(error)

    monkeypatch.setattr("oneofmany.cli.train.split_arguments", fail)
    expected = "oneofmany: not enough memory: use a smaller batch or less data\n"
    assert call("train", "nqueens/minloss/tiny") == (1, "", expected)


# ---- surroundings ----------------------------------------------------------------------------------------------------


@pytest.fixture
def printed(monkeypatch, tmp_path):
    """Run a command whose stdout has this encoding: (exit code, bytes)."""
    monkeypatch.chdir(tmp_path)

    def run_command(encoding, *arguments):
        stream = io.TextIOWrapper(io.BytesIO(), encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        prepare_streams()
        code = run(list(arguments))
        stream.flush()
        return code, stream.buffer.getvalue()

    return run_command


def test_an_encoding_without_boards(printed):
    code, shown = printed("ascii", "show", "nqueens", "2 . . .")
    assert code == 0
    assert shown.startswith(b"1 solution\n")
    assert shown == printed("utf-8", "show", "nqueens", "2 . . .")[1].decode().encode("ascii", "replace")


def test_a_file_name_that_is_not_text(printed, tmp_path):
    """It is printed byte for byte, so that the next program finds the file."""
    build_nqueens(6, 3, seed=1).save(tmp_path / "data.safetensors")
    own = ["--train", "data.safetensors", "--dev", "data.safetensors", "--first.updates", "1", "--device", "cpu"]
    code, shown = printed("utf-8", "train", "nqueens/minloss/tiny", *own, "--out", "r\udcffn")
    assert code == 0
    assert shown.startswith(b"r\xffn: dev ")
    code, shown = printed("utf-8", "record", "r\udcffn", "--out", "r\udcfe", "--allow-dirty")
    assert (code, shown) == (0, b"r\xfe/nqueens-minloss-tiny-42.json\n")


def test_closed_streams(tmp_path):
    """A data file must not get the number of a closed stream, into which libraries may print."""
    data = tmp_path / "data.safetensors"
    arguments = f"data sudoku --size 4 --split train --queries 12 --out {data}"
    made = subprocess.run(["bash", "-c", f"{sys.executable} -m oneofmany {arguments} <&- >&- 2>&-"])
    assert made.returncode == 0
    assert len(Dataset.load(data)) == 12


def test_a_closed_stdin(call, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    prepare_streams()
    assert call("count", "nqueens", "-") == (2, "", "oneofmany: standard input contains no query\n")
    sys.stdin.close()


def test_a_progress_bar_is_one_line_on_80_columns(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    with progress() as tell:
        tell("puzzles of the list with [red]quite a long name, and more of it", 123_456_789, 987_654_321)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err).replace("\r", "\n").split("\n")
    shown = [line for line in lines if line.strip()]
    assert all("/987654321" in line and line.startswith("puzzles of the list") for line in shown)
    assert 0 < max(map(len, shown)) <= 80


@pytest.mark.parametrize("text", ["|\x1e", "|", "||\n||", "| |\x1f\n"])
def test_bars_without_cells(call, tmp_path, text):
    path = tmp_path / "bars.txt"
    path.write_text(text)
    code, out, err = call("solve", "nqueens", path, "--exact")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
