"""A task of the user's goes through all commands, and whatever is wrong with its file is one sentence."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from oneofmany.cli.completion import commands
from oneofmany.data import Dataset
from oneofmany.problems import TASKS, check_source, find_task, use_task_file
from oneofmany.testing import check_task

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = ["--first.updates", "4", "--evaluate-every", "2", "--log-every", "2", "--threads", "1", "--device", "cpu"]
QUERY = "1...." + "." * 20


@pytest.fixture
def call(call, monkeypatch, tmp_path):
    """Run a command in a folder, as a new process would, which knows no task file: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    ours = dict(TASKS)

    def run_command(*arguments):
        TASKS.clear()
        TASKS.update(ours)
        return call(*arguments)

    return run_command


def test_a_newcomers_task_goes_through_all_commands(call):
    def own(*arguments):
        code, out, err = call(*arguments, "--task-file", "mine.py")
        assert code == 0, err
        return out, err

    assert call("new-task", "mine")[0] == 0
    text = Path("mine.py").read_text()
    assert len(text.splitlines()) <= 60
    code, _, err = call("new-task", "mine")
    assert (code, "exists" in err, Path("mine.py").read_text()) == (2, True, text)
    for split, seed in (("train", 1), ("dev", 2), ("test", 3)):
        build = ["data", "build", "mine", "--split", split, "--queries", 40, "--seed", seed, "--size", 4]
        own(*build, "--out", f"{split}.safetensors")
    own("show", "test.safetensors", "--number", 1)
    own("data", "export", "test.safetensors", "--pairs", "--out", "test.parquet")
    out, _ = own("data", "import", "test.parquet", "--task", "mine", "--out", "again.safetensors")
    assert "pairs of 40 inputs" in out
    files = ["--train", "train.safetensors", "--dev", "dev.safetensors", "--out", "runs/mine"]
    own("train", "mine/minloss/equivariant", *files, *SHORT)
    source = json.loads(Path("runs/mine/config.json").read_text())["task_file"]
    assert source == {"path": str(Path("mine.py").resolve()), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    out, _ = own("evaluate", "runs/mine", "test.safetensors")
    assert "40 queries of mine 4" in out
    assert "mine 4" in own("data", "show", "test.safetensors")[0]
    assert own("search", "runs/mine", "test.safetensors", "--starts", 1, "--steps", 8)[0]
    out, _ = own("solve", "mine", "1" + "." * 15, "--weights", "runs/mine")
    assert "valid, 12 solutions" in out
    out, _ = own("show", "mine", "1" + "." * 15, "--solutions", 1)
    assert "12 solutions" in out
    assert own("count", "mine", "1" + "." * 15)[0] == "12\n"
    own("train", "--resume", "runs/mine", "--first.updates", 6)
    own("evaluate", "runs/mine", "test.safetensors")
    assert call("record", "runs/mine", "--out", "records", "--allow-dirty")[0] == 0
    record = json.loads(Path("records/mine-minloss-equivariant-extended-42.json").read_text())
    assert record["task_file"] == source | {"path": "mine.py"}
    assert "--task-file=mine.py" in record["evaluations"]["test"]["command"]
    assert call("compare", "runs/mine", "records/mine-minloss-equivariant-extended-42.json", "test.safetensors")[0] == 0
    code, _, err = call("report", "runs", "--boards", "test.safetensors", "--out", "report.html")
    assert code == 2
    assert "give that file with --task-file mine.py" in err
    own("report", "runs", "--boards", "test.safetensors", "--out", "report.html")
    assert "mine/minloss/equivariant" in Path("report.html").read_text()
    out, _ = own("train", "--recipes", "mine")
    assert out.count("mine/") == 8  # the seven objectives, and the rules alone


@pytest.mark.parametrize("name", ["roster", "kakuro"])
def test_counts_implications_and_rules_of_queries_go_through_all_commands(call, name):
    def own(*arguments):
        code, out, err = call(*arguments, "--task-file", EXAMPLES / "tasks" / f"{name}.py")
        assert code == 0, err
        return out

    for split in ("train", "test"):
        own("data", "build", name, "--split", split, "--queries", 8, "--out", f"{split}.safetensors")
    files = ["--train", "train.safetensors", "--dev", "test.safetensors", "--out", "runs/one"]
    own("train", f"{name}/minloss/equivariant", *files, *SHORT)
    assert f"8 queries of {name}" in own("evaluate", "runs/one", "test.safetensors")
    query = "Ann-Mon=late Bob-Tue=early" if name == "roster" else EXAMPLES / "tasks" / "kakuro.txt"
    assert "valid" in own("solve", name, query, "--weights", "runs/one", "--device", "cpu")
    assert own("count", name, query) == ("25196\n" if name == "roster" else "1\n")
    assert "solution 1" in own("show", name, query, "--solutions", 1)
    own("report", "runs", "--boards", "test.safetensors", "--out", "report.html")
    assert f"{name}/minloss/equivariant" in Path("report.html").read_text()


@pytest.mark.parametrize("helper", ['grid_task("one", problem)', 'named_task("one", problem, "abcd", "xy")'])
def test_a_task_of_one_size_needs_no_size(call, helper):
    """Its data is read again, though files name a size."""
    Path("one.py").write_text(
        "from oneofmany.problems import Problem, Rule, grid_task, named_task\n"
        "def problem():\n"
        "    return Problem('one', 2, 4, 2, (Rule('pair', (0, 2)), Rule('pair', (4, 6))))\n"
        f"TASK = {helper}\n"
    )
    own = ["--task-file", "one.py"]
    assert call("data", "build", "one", "--queries", 3, "--blanks", 2, 3, "--out", "one.safetensors", *own)[0] == 0
    code, out, err = call("show", "one.safetensors", "--number", 1, *own)
    assert code == 0, err
    assert "query 0" in out
    check_task(use_task_file("one.py"), sizes=[2])
    code, _, err = call("data", "build", "one", "--queries", 3, "--out", "other.safetensors", "--size", 3, *own)
    assert code == 2
    assert "size: one has the size 2 only, got 3" in err


def test_code_runs_only_from_the_command_line(call):
    """A run folder names the file that it needs and its checksum; nothing in the folder is run."""
    call("new-task", "mine")
    files = ["--train", "data/mine-train.safetensors", "--dev", "data/mine-train.safetensors"]
    build = ["data", "build", "mine", "--queries", 20, "--size", 4, "--task-file", "mine.py"]
    Path("data").mkdir()
    assert call(*build, "--out", files[1])[0] == 0
    assert call("train", "mine/minloss/equivariant", *files, "--out", "run", *SHORT, "--task-file", "mine.py")[0] == 0
    before = hashlib.sha256(Path("mine.py").read_bytes()).hexdigest()[:12]
    for command in (
        ("train", "--resume", "run"),
        ("evaluate", "run", files[1]),
        ("solve", "mine", "1" + "." * 15, "--weights", "run"),
    ):
        code, _, err = call(*command)
        assert code == 2, command
        assert err.count("\n") == 1
        assert "mine.py" in err
        assert before in err
        assert "--task-file" in err
    with Path("mine.py").open("a") as file:
        file.write("# another version\n")
    after = hashlib.sha256(Path("mine.py").read_bytes()).hexdigest()[:12]
    code, _, err = call("train", "--resume", "run", "--task-file", "mine.py")
    assert code == 2
    assert f"sha256 {before} then, {after} now" in err
    for command in (("evaluate", "run", files[1]), ("solve", "mine", "1" + "." * 15, "--weights", "run")):
        code, _, err = call(*command, "--task-file", "mine.py")
        assert code == 0, err
        assert f"sha256 {before} then, {after} now" in err
    changed = ["--task-file", "mine.py", "--changed-task-file", "--first.updates", 6]
    assert call("train", "--resume", "run", *changed)[0] == 0
    config = json.loads(Path("run/config.json").read_text())
    assert config["task_file"]["sha256"].startswith(after)
    assert config["task_files_before"][0]["sha256"].startswith(before)
    assert call("train", "--resume", "run", "--task-file", "mine.py")[0] == 0
    assert call("evaluate", "run", files[1], "--task-file", "mine.py")[0] == 0


TASK = """
import numpy as np
from oneofmany.problems import Problem, Query, Task
NONE = np.zeros((0, 2), np.int16)
def problem(size=2):
    return Problem("mine", size, size, 2, ())
def parse(text):
    return Query(problem(len(text)), np.array([int(c) for c in text], np.uint8), NONE)
def write(problem, values, relations=NONE):
    return "".join(map(str, values))
def draw(problem, values, relations=NONE, given=None, paint=None):
    return write(problem, values)
"""
END = "TASK = Task('mine', problem, parse, write, draw)\n"
BUILD = """
def build(problem, queries, split, seed):
    from oneofmany.data.listing import list_solutions
    return list_solutions(problem, np.zeros((0, 2), np.uint8), None, {}, seed=seed)
TASK"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, ["mine.py cannot be read: No such file"]),
        ("import oneofmany\n\nprint(what)\n", ["mine.py, line 3: NameError: name 'what'"]),
        ("x = 1\ndef f(:\n", ["mine.py, line 2: this is not Python"]),
        ("raise SystemExit(3)\n", ["mine.py, line 1: SystemExit: 3"]),
        ("\0", ["mine.py", "this is not Python"]),
        ("x = 1\n", ["mine.py defines no task"]),
        ("from oneofmany.problems.tasks.sudoku import TASK\n", ["mine.py defines no task"]),
        (TASK + END + END.replace("TASK", "OTHER"), ["mine.py defines 2 tasks, 'mine' and 'mine'"]),
        (TASK + END.replace("'mine'", "'sudoku'"), ["defines the task 'sudoku', which the package has already"]),
        (TASK + END.replace("'mine'", "'my task'"), ["a task has letters, digits, - and _ only, got 'my task'"]),
        (TASK + END.replace("parse", "5"), ["parse of the task 'mine' is not a function, got 5"]),
        (TASK.replace('Problem("mine"', 'Problem("other"') + END, ["a problem of the task 'other', expected 'mine'"]),
        (TASK.replace("return Problem(", "return (") + END, ["mine.py: problem returned tuple, expected Problem"]),
        (TASK.replace("return Query(", "return (") + END, ["mine.py: parse returned tuple, expected Query"]),
        (TASK.replace("int(c)", "9") + END, ["mine.py: parse returned [9, 9], expected 2 numbers from 0 to 2"]),
        (TASK.replace("int(c)", "c.no") + END, ["mine.py, line 8: AttributeError", "in parse of the task 'mine'"]),
        (TASK.replace("return write(problem, values)", "pass") + END, ["mine.py: draw returned NoneType"]),
        (TASK.replace("size, 2, ()", "size, 2, 5") + END, ["mine.py, line 6: ValueError: rules: expected a tuple"]),
        (TASK.replace("return write(problem, values)", "int('x')") + END, ["mine.py, line 12: ValueError: invalid"]),
        (TASK.replace("return write(problem, values)", "exit(0)") + END, ["mine.py, line 12: SystemExit: 0 (in draw"]),
        (TASK.replace("NONE)\n", "None)\n") + END, ["parse returned relations that are not an array of pairs: None"]),
        (TASK.replace("NONE)\n", "NONE + [[0, 1]])\n").replace("(0, 2)", "(1, 2)") + END, ["[[0, 1]], expected none"]),
        (TASK + END.replace("draw)", "draw, build=build)").replace("TASK", BUILD, 1), ["expected 1 queries, got 0"]),
        (TASK.replace("relations=NONE, given=None, paint=None", "") + END, ["mine.py: TypeError: draw() takes 2"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_task_file_is_one_sentence(call, text, words):
    if text is not None:
        Path("mine.py").write_text(text)
    # show builds the problem by parse; data builds it by itself.
    found = [call("show", "mine", "00", "--task-file", "mine.py")]
    found.append(call("data", "build", "mine", "--queries", 1, "--out", "x", "--task-file", "mine.py"))
    wrong = [err for code, _, err in found if code == 2]
    assert wrong
    for word in words:
        assert any(word in err for err in wrong), wrong
    assert all(err.count("\n") == 1 for err in wrong)


BOARDS = "TASK = Task('mine', problem, parse, write, draw, lambda lines, size: [(1, {})])\n"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Query(Problem('other', 2, 2, 2, ()), np.zeros(2, np.uint8), NONE)", "the task 'other', expected 'mine'"),
        ("Query(problem(), np.full(2, 9), NONE)", "mine.py: boards returned [9, 9], expected 2 numbers from 0 to 2"),
    ],
)
def test_queries_of_boards_are_checked(call, query, words):
    Path("mine.py").write_text(TASK + BOARDS.format(query))
    code, _, err = call("count", "mine", "00", "--task-file", "mine.py")
    assert code == 2
    assert words in err


D81 = "." * 81


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("killer", f"{D81} r1c1+r1c2=3 r1c1+r2c1=4", "'r1c1+r2c1=4': a cell is in two cages"),
        ("killer", f"{D81} r1c1+r1c2=99", "expected a sum of 99, but it can only be 3 to 17"),
        ("kakuro", "1x.. r2c1+r2c2=3", "r1c1: cells in no run are black, x, and no others, got '1'"),
        ("kakuro", ".1x. r1c1+r2c1=3", "r1c2: cells in no run are black, x, and no others, got '1'"),
        ("kakuro", ".xx. r1c1+r2c1=3", "r2c1: cells in no run are black, x, and no others, got 'x'"),
        ("kakuro", "...xxxxxx r1c1+r1c2=3 r1c3=5", "'r1c1+r1c2=3': expected a whole run, up to a black cell"),
        ("kakuro", "...xxxxxx r1c1+r1c2=3 r1c2+r1c3=5", "'r1c1+r1c2=3': expected a whole run"),
        ("kakuro", "..xx r1c1+r1c2=3 r1c1+r1c2=4", "'r1c1+r1c2=4': a run is given twice"),
    ],
)
def test_boards_that_their_drawing_would_not_show(call, name, text, words):
    code, _, err = call("count", name, text, "--task-file", EXAMPLES / "tasks" / f"{name}.py")
    assert code == 2
    assert words in err


@pytest.mark.parametrize("name", ["latin", "sudoku_x"])
def test_a_file_has_several_queries(call, name):
    own = ["--task-file", EXAMPLES / "tasks" / f"{name}.py"]
    Path("queries.txt").write_text("# two\n1" + "." * 15 + "\n\n" + "." * 15 + "2\n")
    code, out, err = call("count", name.replace("_", "-"), "queries.txt", *own)
    assert code == 0, err
    assert out.split() == (["144", "144"] if name == "latin" else ["12", "12"])


def test_boards_of_kakuro_data_are_different(call):
    """Their runs and sums, too: every query brings its own."""
    own = ["data", "build", "kakuro", "--out", "one.safetensors", "--task-file", EXAMPLES / "tasks" / "kakuro.py"]
    assert call(*own, "--size", 2, "--queries", 30)[0] == 0
    data, task = Dataset.load("one.safetensors"), use_task_file(EXAMPLES / "tasks" / "kakuro.py")
    problems = data.own.problems(data.problem)
    assert len({task.format(problem, query) for problem, query in zip(problems, data.query, strict=True)}) == 30
    code, _, err = call(*own, "--size", 1, "--queries", 3, "--force")
    assert code == 2
    assert "queries: asked for 3, but only 1 different ones were found" in err


def test_a_size_that_a_text_does_not_have(call):
    own = ["--task-file", EXAMPLES / "tasks" / "magic_square.py"]
    assert call("count", "magic-square", "8 . . . 5 . . . .", "--size", 3, *own)[:2] == (0, "2\n")
    code, _, err = call("count", "magic-square", "8 . . . 5 . . . .", "--size", 4, *own)
    assert code == 2
    assert "the query has the size 3, expected 4" in err
    code, _, err = call("count", "colouring", "n=3 1-2", "--size", 5)
    assert code == 2
    assert "the graph has 3 nodes, expected 5" in err


def test_a_good_task_file_has_none_of_these_errors(call):
    Path("mine.py").write_text(TASK + END)
    assert call("show", "mine", "00", "--task-file", "mine.py")[0] == 0
    assert call("data", "build", "mine", "--queries", 1, "--out", "x", "--task-file", "mine.py")[0] == 0


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["solve", "mine", "1"], "a task of your own needs its file (--task-file)"),
        (["data", "build", "mine", "--queries", 1, "--out", "x"], "a task of your own needs its file (--task-file)"),
        (["train", "mine/minloss/equivariant"], "a task of your own needs its --task-file"),
        (["new-task", "my task"], "expected letters, digits"),
        (["new-task", "sudoku"], "other than nqueens, futoshiki, sudoku"),
    ],
)
def test_without_the_file(call, command, words):
    code, _, err = call(*command)
    assert code == 2
    assert words in err


def test_data_is_the_same_for_a_seed_and_splits_are_apart(call):
    file = str(EXAMPLES / "tasks" / "map.py")
    for out, seed, split in (("a", 1, "train"), ("b", 1, "train"), ("c", 2, "train"), ("d", 1, "test")):
        drawn = ["--queries", 200, "--seed", seed, "--split", split]
        code, _, err = call("data", "build", "map", "--task-file", file, *drawn, "--out", out)
        assert code == 0, err
    a, b, c = (Path(name).read_bytes() for name in "abc")
    assert a == b != c
    use_task_file(file)
    train, test = Dataset.load("a"), Dataset.load("d")
    assert not {row.tobytes() for row in train.query} & {row.tobytes() for row in test.query}
    assert (train.listed == train.total).all()
    assert train.total.max() <= 50


def test_more_queries_than_there_are(call):
    call("new-task", "mine")
    full = ["--size", 4, "--queries", 100, "--blanks", 0, 0, "--out", "x", "--task-file", "mine.py"]
    code, _, err = call("data", "build", "mine", *full)
    assert code == 2
    assert "asked for 100, but only 48 distinct ones" in err
    assert "ask for fewer (oneofmany data build mine --queries N)" in err  # training has no such option
    assert "ask for fewer (oneofmany data build mine --queries N)" in err  # `train` has no such option
    latin = ["--size", 2, "--queries", 100, "--out", "x", "--task-file", EXAMPLES / "tasks" / "latin.py"]
    code, _, err = call("data", "build", "latin", *latin)
    assert code == 2
    assert "asked for 100, but only 20 different ones" in err


def test_builders_of_the_package_and_sizes_of_examples_are_named(call):
    code, _, err = call("data", "build", "colouring", "--queries", 5, "--out", "x")
    assert code == 2
    assert "only a builder of its own can draw: use oneofmany data colouring" in err
    killer = ["--size", 8, "--queries", 1, "--out", "x", "--task-file", EXAMPLES / "tasks" / "killer.py"]
    code, _, err = call("data", "build", "killer", *killer)
    assert code == 2
    assert "size: expected a Killer Sudoku of 4 x 4, 6 x 6 or 9 x 9 cells, got 8" in err


def test_an_entry_point_is_known_by_its_name(call, tmp_path, monkeypatch):
    """An installed package offers its tasks in the group oneofmany.tasks; runs remember package and version."""
    (tmp_path / "installed_task.py").write_text(TASK + END)
    (tmp_path / "installed_exit.py").write_text("raise SystemExit(0)")
    about = tmp_path / "some_tasks-1.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: some-tasks\nVersion: 1.5\n")
    (about / "entry_points.txt").write_text(
        "[oneofmany.tasks]\nmine = installed_task:TASK\nother = installed_task:TASK\nlost = installed_task:LOST\n"
        "left = installed_exit:TASK\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert "mine/minloss/equivariant" in call("train", "--recipes", "mine")[1]
    assert call("count", "mine", "00")[1] == "4\n"
    task = find_task("mine")
    assert task.source.package == "some-tasks 1.5"
    for name in ("other", "lost", "left"):
        code, _, err = call("count", name, "00")
        assert code == 2
        assert "some-tasks 1.5" in err
    with pytest.raises(ValueError, match=r"needs the task 'gone' of gone 2\.0 .*install that package"):
        check_source("run", "gone", {"path": "x", "sha256": "0", "package": "gone 2.0"})


@pytest.mark.slow
def test_a_sweep_trains_evaluates_and_records(tmp_path):
    """The runs of a sweep are processes of their own, which get the option too."""
    subprocess.run([sys.executable, "-m", "oneofmany", "new-task", "mine"], cwd=tmp_path, check=True)
    program = [sys.executable, "-m", "oneofmany"]
    own = ["--task-file", "mine.py"]
    build = [*program, "data", "build", "mine", "--queries", "20", "--size", "4", "--out", "d.safetensors", *own]
    subprocess.run(build, cwd=tmp_path, check=True)
    sweep = ["sweep", "mine/*/equivariant", "--seeds", "1", "--train", "d.safetensors", "--dev", "d.safetensors"]
    sweep += ["--evaluate", "d.safetensors", "--records", "records", "--allow-dirty", *SHORT, *own]
    code = subprocess.run([*program, *sweep, "--dry-run"], cwd=tmp_path, capture_output=True, text=True)
    assert code.stdout.count("start") == 8
    one = ["sweep", "mine/minloss/equivariant", *sweep[2:]]
    done = subprocess.run([*program, *one], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "records" / "mine-minloss-equivariant-1.json").is_file()


@pytest.mark.parametrize("example", sorted((EXAMPLES / "tasks").glob("*.py")), ids=lambda path: path.stem)
def test_examples_in_the_commands(call, example):
    task = use_task_file(example)
    problem = task.problem()
    blank = task.format(problem, [0] * problem.variables, None)
    options = ["--task-file", example]
    code, out, err = call("show", task.name, blank, "--solutions", 1, *options)
    assert code == 0, err
    assert re.search(r"^\d[\d,]* solutions?\b", out)
    number = 3 if problem.own_kinds else 30
    code, _, err = call("data", "build", task.name, "--queries", number, "--out", "x.safetensors", *options)
    assert code == 0, err
    use_task_file(example)
    data = Dataset.load("x.safetensors")
    assert len(data) == number
    assert data.multiple.any()
    for row in range(3):
        text = task.format(data.problem_of(row), data.query[row], None)
        query = task.parse(text)
        assert query.problem.same_as(data.problem_of(row))
        assert (query.values == data.query[row]).all()
    code, out, err = call("show", "x.safetensors", "--rows", 0, *options)
    assert code == 0, err
    assert "solution 1" in out
    assert len(example.read_text().splitlines()) <= (140 if problem.own_kinds else 60)


def test_completion_knows_the_option():
    found = commands()
    for name in ("data build", "data import", "train", "sweep", "evaluate", "solve", "count", "show", "report"):
        assert found[name].options["--task-file"] == ()  # a file
    assert found["train"].options["--changed-task-file"] is None


def test_the_template_passes_the_conformance_test(call):
    call("new-task", "some-Task_1", "--out", "other.py")
    check_task(use_task_file("other.py"), [1, 4, 5], limit=1000)


@pytest.mark.slow
def test_the_commands_of_the_page_take_a_minute_of_training(tmp_path):
    """All commands of docs/own-task.md in order, one process each, with the recipe as it is."""

    def call(*arguments):
        program = [sys.executable, "-m", "oneofmany", *arguments]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    page = (EXAMPLES.parent / "docs" / "own-task.md").read_text()
    commands = re.search(r"```console\n(.*?)```", page, re.DOTALL)[1].splitlines()
    assert [words.split()[1] for words in commands] == [
        *("new-task", "show", "count", "data", "train", "evaluate", "solve", "report")
    ]
    for command in commands:
        call(*command.split()[1:])
    scores = json.loads(
        call("evaluate", "runs/mytask", "mytask-test.safetensors", "--task-file", "mytask.py", "--json")
    )
    assert scores["overall"]["accuracy"] > 0.9
    assert scores["ms"]["accuracy"] > 0.8
