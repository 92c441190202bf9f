"""``oneofmany solve`` and ``oneofmany doctor`` as a user runs them."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.saved import save_network
from oneofmany.problems import TASKS, futoshiki, nqueens, sudoku
from trained import SETTINGS, five_queens

PUZZLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
SOLVED = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
TWO_QUEENS = "the queens of rows 1 and 2 attack each other on a diagonal"
ALONE = ("--answer", "network")
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="session")
def queens(tmp_path_factory):
    """A weights file that answers 5-queens."""
    path = tmp_path_factory.mktemp("weights") / "queens.safetensors"
    save_network(path, five_queens().network, SETTINGS, nqueens(5), {})
    return path


def untrained(folder, problem, **settings):
    settings = NetworkSettings(**{"width": 4, "depth": 2, "steps": 3} | settings)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = build_network(settings, problem)
    path = folder / f"{problem.task}-{settings.kind}.safetensors"
    save_network(path, network, settings, problem, {})
    return path


@pytest.fixture
def write(tmp_path):
    """A file of these lines."""

    def write_file(*lines):
        path = tmp_path / "queries.txt"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write_file


def keeps_the_rules(task, query, solution):
    given, answer = TASKS[task].parse(query), TASKS[task].parse(solution)
    assert all(g in (0, a) for g, a in zip(given.values, answer.values, strict=True))
    return bool(given.problem.check(torch.tensor(answer.values[None]).long() - 1))


def test_one_query_is_drawn(call, queens):
    code, out, err = call("solve", "nqueens", "3 . . . .", "--weights", queens)
    assert code == 0
    assert out.splitlines()[0].split(" (")[0] == "valid, 2 solutions"
    assert "from the network, confidence " in out
    assert out.count("Q") == 6  # one in the query, five in the answer
    assert "1 query: 1 " in err
    assert "a query" in err.splitlines()[-1]


def test_a_file_gives_one_answer_a_line(call, queens, write):
    queries = ["3 . . . .", ". . . . . .", "1 2 . . .", ". 2 . . ."]
    code, out, err = call("solve", "nqueens", write(*queries), "--weights", queens, *ALONE)
    assert code == 1
    lines = [line.split("\t") for line in out.splitlines()]
    assert lines.pop(2) == ["1 2 . . .", "no solution", "-", "exact", "line 3", f"no solution: {TWO_QUEENS}"]
    queries.pop(2)
    assert [line[4] for line in lines] == ["line 1", "line 2", "line 4"]
    for query, (solution, state, sure, source, _, number) in zip(queries, lines, strict=True):
        assert len(solution.split()) == len(query.split())
        assert state in ("valid", "invalid")
        assert 0 <= float(sure) <= 1
        assert source == "network"
        assert number == "solutions not counted"
    assert "4 queries" in err
    assert "1 with contradictory givens" in err


def test_boards_of_a_file(call, write):
    code, out, _ = call("solve", "sudoku", write(PUZZLE, "." * 16), "--exact", "--boards")
    assert code == 0
    assert "line 1, valid, unique solution (from the enumerator" in out
    assert "line 2, valid, 288 solutions (from the enumerator" in out
    assert out.count("solution 1") == 2


def fits(value, schema):
    """Whether a value fits a JSON schema with types and enumerations."""
    kinds = {"integer": int, "number": (int, float), "string": str, "boolean": bool, "null": type(None)}
    types = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    right = any(isinstance(value, kinds[t]) and (t == "boolean" or not isinstance(value, bool)) for t in types)
    return value in schema["enum"] if "enum" in schema else right


def test_json_keeps_its_documented_schema(call, queens, write):
    page = (DOCS / "solving.md").read_text()
    [schema] = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL) if "$schema" in block]
    queries = ["3 . . . .", "1 2 . . .", ". . . . . . ."]
    queries += [" ".join("." * 64)]
    commands = [[], ["--distinct", 2], ["--all"], ["--all", "--limit", 1], ["--limit", 0], ALONE]
    states = set()
    for arguments in [[*one, "--weights", queens] for one in commands] + [["--answer", "exact"]]:
        code, out, _ = call("solve", "nqueens", write(*queries), *arguments, "--json", "--seconds", 0.3)
        assert code == 1
        records = [json.loads(line) for line in out.splitlines()]
        assert {record["query"] for record in records} == set(queries)
        for record in records:
            assert list(record) == list(schema["properties"]) == schema["required"]
            wrong = {name: value for name, value in record.items() if not fits(value, schema["properties"][name])}
            assert not wrong
            assert record["valid"] == (record["state"] == "valid")
            states.add(record["state"])
            if record["solution"]:
                assert record["valid"] == keeps_the_rules("nqueens", record["query"], record["solution"])
    assert states == {"valid", "invalid", "no solution", "no answer"} == set(schema["properties"]["state"]["enum"])


def test_exact(call, write):
    code, out, err = call("solve", "sudoku", write(PUZZLE, "11" + "." * 14), "--exact")
    assert code == 1
    first, second = out.splitlines()
    assert first == f"{SOLVED}\tvalid\t-\texact\tline 1\tunique solution"
    assert second.startswith("11..............\tno solution\t-\texact\tline 2\tno solution: row 1 has two 1s")
    assert "2 queries: 1 valid, 1 without a solution; 1 from the enumerator, 1 with contradictory givens" in err
    code, out, _ = call("solve", "nqueens", "1 . . .", "--exact")
    assert code == 1
    assert "there is no solution" in out
    assert "solution 1" not in out
    code, out, _ = call("solve", "nqueens", "1 . . .", "--exact", "--json")
    assert json.loads(out)["solution"] is None


def test_both_is_the_default_and_says_who_answered(call, tmp_path, write):
    weights = untrained(tmp_path, nqueens(5))
    queries = ["3 . . . .", "3 1 4 2 .", "1 1 . . .", ". . . . . .", "1 . . ."]
    code, out, _ = call("solve", "nqueens", write(*queries), "--weights", weights, *ALONE)
    assert code == 1
    own = [line.split("\t") for line in out.splitlines()]
    outputs = set()
    for arguments in ([], ["--fallback", "exact"], ["--answer", "both"]):
        code, out, err = call("solve", "nqueens", write(*queries), "--weights", weights, *arguments)
        assert code == 1
        outputs.add(re.sub(r"\t0[.]\d+", "", out))
    assert len(outputs) == 1
    for query, before, after in zip(queries, own, (line.split("\t") for line in out.splitlines()), strict=True):
        assert after[1] == ("no solution" if query in ("1 1 . . .", "1 . . .") else "valid")
        assert after[3] == ("network" if before[1] == "valid" else "exact")
        assert after[1] == "no solution" or keeps_the_rules("nqueens", query, after[0])
    exact = sum(line[1] == "invalid" for line in own)
    assert exact >= 2  # an untrained network
    assert f"{exact} from the enumerator" in err
    assert call("solve", "nqueens", write(queries[0]), "--weights", weights)[0] == 0


def test_bad_input_wins_over_no_solution(call, write):
    assert call("solve", "nqueens", write("1 1 . . .", "garbage", "3 . . . ."), "--exact")[0] == 2
    assert call("solve", "nqueens", write("1 1 . . .", "3 . . . ."), "--exact")[0] == 1


def test_a_time_limit(call, write):
    hard = " ".join("." * 64)
    code, out, err = call("solve", "nqueens", write(hard, "1 1"), "--exact", "--seconds", 0.5)
    assert code == 1
    assert [line.split("\t")[1] for line in out.splitlines()] == ["no answer", "no solution"]
    assert "1 without an answer in time" in err
    code, out, err = call("count", "nqueens", write(hard, "3 . . . ."), "--seconds", 0.5)
    assert code == 1
    assert out.splitlines()[1] == "2"
    assert "line 1 has at least" in err
    code, out, err = call("solve", "nqueens", hard, "--exact", "--seconds", 0)
    assert (code, err) == (2, "oneofmany: --seconds: expected more than 0, got 0.0\n")


def test_ctrl_c_in_an_endless_search(write):
    command = ["solve", "nqueens", str(write(" ".join("." * 64))), "--exact"]
    code = f"""
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell start with it ignored
from oneofmany.cli import main
from oneofmany.solving import prepare
prepare()
threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT]).start()
main({command!r})
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert result.returncode == 130
    assert result.stderr == "oneofmany: stopped\n"


def test_distinct(call, queens, write):
    file = write("3 . . . .", "1 1 . . .")
    code, out, _ = call("solve", "nqueens", file, "--weights", queens, "--distinct", 2, "--fallback", "exact")
    assert code == 1
    lines = [line.split("\t") for line in out.splitlines()]
    assert {line[0] for line in lines[:2]} == {"3 1 4 2 5", "3 5 2 4 1"}
    assert [line[4] for line in lines] == ["line 1", "line 1", "line 2"]
    assert lines[2][1] == "no solution"
    code, out, _ = call("solve", "nqueens", ". . . . .", "--exact", "--distinct", 4, "--json")
    assert len({json.loads(line)["solution"] for line in out.splitlines()}) == 4


def test_all_solutions_with_their_probability(call, queens, write):
    code, out, err = call("solve", "nqueens", write("3 . . . .", "1 1 . . ."), "--weights", queens, "--all", "--json")
    assert code == 1
    *records, none = map(json.loads, out.splitlines())
    assert {record["solution"] for record in records} == {"3 1 4 2 5", "3 5 2 4 1"}
    assert sum(record["share"] for record in records) == pytest.approx(1)
    assert (none["solution"], none["share"]) == (None, None)
    assert "the network gives" in err
    code, out, _ = call("solve", "nqueens", "3 . . . .", "--weights", queens, "--all", "--starts", 1)
    assert code == 0
    assert out.count("share") == 2
    code, out, err = call("solve", "nqueens", write(". . . . ."), "--exact", "--all", "--limit", 4)
    assert code == 0
    assert len(out.splitlines()) == 4
    assert "line 1 has more than 4 solutions: listing stopped at 4" in err


def test_standard_input(call, monkeypatch):
    for arguments in ([], ["-"]):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{PUZZLE}\n\n{PUZZLE}\n"))
        code, out, _ = call("solve", "sudoku", *arguments, "--exact")
        assert code == 0
        assert [line.split("\t")[0] for line in out.splitlines()] == [SOLVED] * 2
        assert out.endswith("line 3\tunique solution\n")


def test_a_bad_line_among_good_ones(call, queens, write):
    code, out, err = call("solve", "nqueens", write("3 . . . .", "garbage", ". . . . ."), "--weights", queens)
    assert code == 2
    assert [line.split("\t")[4] for line in out.splitlines()] == ["line 1", "line 3"]
    assert "queries.txt: line 2, column 1: row 1 of 7 is 'g'" in err
    code, out, err = call("solve", "nqueens", write("garbage"), "--weights", queens)
    assert (code, out) == (2, "")
    assert "line 1, column 1: " in err


def test_networks_that_are_bound_to_a_size(call, tmp_path, write):
    weights = untrained(tmp_path, sudoku(2, 2), kind="rrn")
    file = write("." * 16, PUZZLE, "1" + "." * 15)
    code, out, err = call("solve", "sudoku", file, "--weights", weights)
    assert code == 0
    assert out.splitlines()[1].split("\t")[3:] == ["exact", "line 2", "unique solution"]
    assert "note: line 2 is left to the enumerator: the network is bound to sudoku 4" in err
    code, out, err = call("solve", "sudoku", file, "--weights", weights, *ALONE)
    assert code == 2
    assert [line.split("\t")[4] for line in out.splitlines()] == ["line 1", "line 3"]
    assert "line 2: the network is bound to sudoku 4" in err
    code, out, err = call("solve", "sudoku", PUZZLE, "--weights", weights, *ALONE)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_a_network_that_thresholds_shows_blanks(call, tmp_path, write):
    weights = untrained(tmp_path, futoshiki(3), kind="nlm")
    code, out, _ = call("solve", "futoshiki", write("." * 9 + " r1c1<r1c2"), "--weights", weights, *ALONE)
    assert code == 1
    solution, state, *_ = out.split("\t")
    assert "." in solution.split()[0]
    assert state == "invalid"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nqueens", "3 . . . .", *ALONE],
            "no bundled network for nqueens: name a weights file or a run with",
        ),
        (["chess", "1"], "task: expected one of nqueens"),
        (["sudoku", "missing.txt", "--exact"], "'missing.txt' is neither a file nor a query"),
        (
            ["nqueens", "3 .", "--exact", "--weights", "x"],
            "exact uses only the enumerator: leave out --weights",
        ),
        (["nqueens", ". .", "--exact", "--starts", "2", "--steps", "3"], "leave out --steps and --starts"),
        (["nqueens", ". .", "--weights", "x", "--all", "--distinct", "2"], "leave out --distinct and --answer network"),
        (["nqueens", ". .", "--exact", *ALONE], "--answer (network) and --exact (exact) contradict each other"),
        (["nqueens", ". .", "--exact", "--fallback", "exact"], "--exact (exact) and --fallback (both) contradict"),
        (["nqueens", ". .", *ALONE, "--all"], "leave out --distinct and --answer network"),
        (["nqueens", ". .", "--weights", "QUEENS", "--patience", "-1"], "patience: expected at least 0, got -1"),
        (["nqueens", ". .", "--exact", "--limit", "-1"], "--limit: expected at least 0, got -1"),
        (["nqueens", ". .", "--weights", "none"], "none is neither a file, a run folder nor a bundled network"),
        (["nqueens", ". .", "--exact", "--json", "--boards"], "choose one of them"),
        (["nqueens", ". .", "--exact", "--distinct", "0"], "--distinct: expected at least 1, got 0"),
        (["nqueens", ". .", "--weights", "QUEENS", "--device", "meta"], "--device: expected cpu, cuda or mps"),
        (["nqueens", ". .", "--weights", "QUEENS", "--device", "cuda:99"], "--device: cuda:99 cannot be used here"),
        (["nqueens", ". .", "--weights", "QUEENS", "--steps", "0"], "steps: expected at least 1, got 0"),
        (["nqueens", ". .", "--weights", "QUEENS", "--batch", "0"], "batch size: expected at least 1, got 0"),
        (
            ["sudoku", "." * 16, "--weights", "QUEENS", *ALONE],
            "no weights for rules of kind cell and box",
        ),
        (["sudoku", "EMPTY", "--exact"], "contains no query"),
    ],
)
def test_bad_input_is_one_sentence(call, tmp_path, monkeypatch, queens, arguments, message):
    monkeypatch.setattr("oneofmany.solving.bundled", lambda task: tmp_path / task)
    (tmp_path / "empty.txt").write_text("\n \n")
    places = {"QUEENS": queens, "EMPTY": tmp_path / "empty.txt"}
    code, out, err = call("solve", *(places.get(argument, argument) for argument in arguments))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_run_folder_and_a_bundled_network(call, tmp_path, monkeypatch, queens):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "weights.safetensors").write_bytes(queens.read_bytes())
    assert call("solve", "nqueens", "3 . . . .", "--weights", folder)[0] == 0
    monkeypatch.setattr("oneofmany.solving.bundled", lambda task: folder / "weights.safetensors")
    assert call("solve", "nqueens", "3 . . . .")[0] == 0
    monkeypatch.setattr("oneofmany.solving.bundled", lambda task: folder / "none")
    code, _, err = call("solve", "nqueens", "3 . . . .")
    assert code == 0
    assert "note: there is no bundled network for nqueens, so only the enumerator answers" in err


def test_doctor(call, tmp_path, monkeypatch, queens):
    monkeypatch.setattr("oneofmany.solving.bundled", lambda task: tmp_path / f"{task}.safetensors")
    (tmp_path / "nqueens.safetensors").write_bytes(queens.read_bytes())
    code, out, _ = call("doctor", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["versions"]["torch"] == torch.__version__
    assert facts["enumerator"]["microseconds_per_sudoku"] > 0
    assert facts["training_step"]["cpu"]["milliseconds"] > 0
    assert facts["weights"]["sudoku"] == {"bundled": False}
    assert facts["weights"]["nqueens"]["size"] == 5
    (tmp_path / "nqueens.safetensors").write_bytes(b"[damaged]")
    code, out, _ = call("doctor")
    assert code == 1
    assert "weights of nqueens    does not work" in out
    assert "weights of sudoku     not bundled" in out


def test_doctor_where_torch_is_missing():
    code = """
import sys
class Missing:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'")
sys.meta_path.insert(0, Missing())
from oneofmany.cli import run
sys.exit(run(["doctor"]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    broken = [line.split("  ")[0] for line in result.stdout.splitlines() if "No module named 'torch'" in line]
    assert broken == ["CPU", "CUDA", "training step, cpu"]  # the enumerator and the bundled networks need no torch
    assert "Traceback" not in result.stderr
