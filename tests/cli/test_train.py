"""``oneofmany train`` as a user runs it: results on stdout, the rest on stderr, exit codes, nothing lost."""

import os
import signal
import sys

import pytest
import torch

import oneofmany.training.updating as updating
from oneofmany.cli import run
from oneofmany.data import Dataset
from oneofmany.recipes import recipes
from oneofmany.runs.folder import RunFolder
from oneofmany.training import train
from oneofmany.training.distributed import LostProcess
from small_runs import assert_same_run, fields, files, small, write_data

RECIPE = "sudoku/minloss/tiny"


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A folder with small data of two tasks."""
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Run ``oneofmany train`` in a folder of its own: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run_command(*arguments):
        try:
            code = run(["train", *map(str, arguments)])
        except SystemExit as stop:  # how tyro ends on --help and on bad arguments
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_command


def own(data, settings, out="run"):
    """The arguments that train these settings on the small data."""
    train_file, dev_file = files(data, settings)
    return [RECIPE, "--out", out, "--train", train_file, "--dev", dev_file, *fields(settings)]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ---- what it says --------------------------------------------------------------------------------------------------


def test_a_run(call, data, tmp_path):
    settings = small("selectr")
    code, out, err = call(*own(data, settings))
    assert code == 0
    assert out.startswith("run: dev OS ")
    assert " phase joint), " in out
    assert out.count("\n") == 1
    assert "pretrain-minloss: update 2 of 6, loss " in err
    assert "joint: update 6 of 6, loss " in err
    config = RunFolder.open("run").config
    assert config["command"].startswith("oneofmany train sudoku/minloss/tiny --out run --train ")
    # Three lines of Python do the same.
    train(settings, *files(data, settings), tmp_path / "library")
    assert_same_run(tmp_path / "run", tmp_path / "library")
    # A finished run only prints its result again.
    before = contents(tmp_path / "run")
    assert call("--resume", "run") == (0, out, "")
    assert contents(tmp_path / "run") == before


def test_bars_on_a_terminal(call, data, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    code, out, err = call(*own(data, small("selectr")))
    assert code == 0, err
    assert out.startswith("run: dev OS ")
    for text in ("pretrain-minloss", "selector", "joint", "6/6", "4/4", "loss "):
        assert text in err


def test_help_and_recipes(call):
    code, out, _ = call("--help")
    assert code == 0
    assert "--resume" in out
    assert call()[0] == 2
    code, out, err = call("--recipes")
    assert (code, err) == (0, "")
    assert "  nqueens/OBJECTIVE/table-2\n" in out
    assert "'*/*/tuning/*'" in out
    assert call("--recipes", "*/*/tiny")[1].split() == [name for name in recipes() if name.endswith("/tiny")]
    code, out, err = call("--recipes", "chess/*")
    assert (code, out) == (2, "")
    assert "no recipe matches 'chess/*'" in err
    code, out, _ = call(RECIPE, "--help")
    assert code == 0
    assert "--first.lr" in out
    assert "Learning rate of the prediction network." in out


def test_data_is_built_once_where_it_is_missing(call, tmp_path):
    short = ["--first.updates", 1, "--evaluate-every", 1, "--dev-queries", 2, "--device", "cpu", "--threads", 1]
    code, _, err = call(RECIPE, *short, "--data", "here", "--out", "one")
    assert code == 0, err
    assert err.count("building here/sudoku-tiny-") == 2
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [
        "sudoku-tiny-dev.safetensors",
        "sudoku-tiny-train.safetensors",
    ]
    code, _, err = call(RECIPE, *short, "--data=here", "--out=two")
    assert code == 0
    assert "building" not in err
    # Without --out, recipe and seed name the folder.
    assert call(RECIPE, *short, "--data", "here", "--seed", 3)[0] == 0
    assert (tmp_path / "runs" / "sudoku" / "minloss" / "tiny" / "3" / "result.json").is_file()


def test_tensorboard_is_an_extra(call, data, tmp_path, monkeypatch):
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "tensorboard", None)
        code, _, err = call(*own(data, small()), "--tensorboard")
    assert code == 2
    assert err.endswith("train --tensorboard and is not installed: pip install 'oneofmany[tensorboard]'\n")
    assert not (tmp_path / "run" / "config.json").exists()
    pytest.importorskip("tensorboard")
    assert call(*own(data, small()), "--tensorboard")[0] == 0
    assert list((tmp_path / "run" / "tensorboard").iterdir())


# ---- stopping ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_after_the_update(call, data, tmp_path, monkeypatch, number, code):
    settings = small("minloss")
    real = updating.Updater.run

    def interrupted(self, update, *arguments):
        real(self, update, *arguments)
        if update == 2:
            os.kill(os.getpid(), number)

    with monkeypatch.context() as patched:
        patched.setattr(updating.Updater, "run", interrupted)
        returned, out, err = call(*own(data, settings))
    assert (returned, out) == (code, "")
    name = signal.Signals(number).name
    assert err.endswith(f"stopped by {name} at update 3; continue with: oneofmany train --resume run\n")
    assert not (tmp_path / "run" / "result.json").exists()
    assert call("--resume", "run")[0] == 0
    train(settings, *files(data, settings), tmp_path / "whole")
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_a_bad_loss_is_exit_code_1(call, data, tmp_path):
    code, out, err = call(*own(data, small("minloss", largest_loss=1e-3)))
    assert (code, out) == (1, "")
    assert err.startswith("oneofmany: the loss is ")
    assert " at update 2 of phase train: training stopped, the last checkpoint is kept" in err
    assert err.count("\n") == 1
    assert (tmp_path / "run" / "config.json").is_file()


def test_a_lost_process_is_exit_code_1(call, data, monkeypatch):
    def lost(*_):
        raise LostProcess("another process of this run was lost (Connection closed by peer)")

    monkeypatch.setattr(updating.Updater, "run", lost)
    code, out, err = call(*own(data, small()))
    assert (code, out) == (1, "")
    assert err == (
        "oneofmany: another process of this run was lost (Connection closed by peer); "
        "continue with: oneofmany train --resume run\n"
    )


def test_a_damaged_state_is_told_and_the_run_goes_on(call, data, tmp_path, monkeypatch):
    settings = small("minloss")
    real = updating.Updater.run

    def interrupted(self, update, *arguments):
        real(self, update, *arguments)
        if update == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patched:
        patched.setattr(updating.Updater, "run", interrupted)
        assert call(*own(data, settings))[0] == 143
    newest = max((tmp_path / "run" / "state").iterdir())
    newest.write_bytes(newest.read_bytes()[:-1])
    code, _, err = call("--resume", "run")
    assert code == 0
    damaged = f"run/state/{newest.name} is damaged (its checksum does not match): going back to the state before it"
    assert f"warning: {damaged}\n" in err
    train(settings, *files(data, settings), tmp_path / "whole")
    assert_same_run(tmp_path / "run", tmp_path / "whole")


# ---- bad input -----------------------------------------------------------------------------------------------------


def refused(call, tmp_path, *arguments):
    """Exit code 2, one sentence, nothing printed, nothing changed: the sentence."""
    before = contents(tmp_path)
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert contents(tmp_path) == before
    return err


def test_unknown_names(call, data, tmp_path):
    sentence = refused(call, tmp_path, "sudoku/minlos/tiny")
    assert sentence == "oneofmany: there is no recipe 'sudoku/minlos/tiny': did you mean 'sudoku/minloss/tiny'?\n"
    assert "name a recipe first" in refused(call, tmp_path, "--seed", 3)
    assert "--out needs a value" in refused(call, tmp_path, RECIPE, "--out")
    for field, close in (("--first.lrr", "--first.lr"), ("--sede", "--seed"), ("--networks.width", "--network.width")):
        code, out, err = call(RECIPE, field, 3)
        assert (code, out) == (2, "")
        assert field in err
        assert close in err.replace(field, "")
        assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["--loss-scale", "nan"], "loss_scale: expected a finite number, got nan"),
        (["--first.updates", 0], "first.updates: expected at least 1, got 0"),
        (["--first.sampling", 1.5], "first.sampling: expected 0 to 1.0, got 1.5"),
        (["--reveal", 2], "reveal: expected 0 to 1.0, got 2.0"),
        (["--device", "abacus"], "device: expected auto, cpu, cuda or cuda:N, got 'abacus'"),
        (["--task", "nqueens"], "train: the data is of task sudoku, the recipe is for nqueens"),
        (["--pretrained", "nowhere"], "nowhere is not a run folder: it has no config.json"),
    ],
)
def test_values_that_cannot_be(call, data, tmp_path, changes, sentence):
    assert refused(call, tmp_path, *own(data, small()), *changes) == f"oneofmany: {sentence}\n"
    assert not (tmp_path / "run").exists()


def test_no_gpu(call, data, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    sentence = refused(call, tmp_path, *own(data, small()), "--device", "cuda")
    assert "'cuda' was asked for, but PyTorch finds no GPU here; use --device cpu" in sentence


def test_data_that_does_not_fit(call, data, tmp_path):
    settings = small()
    arguments = own(data, settings)
    other = [*arguments, "--dev", data / "nqueens-dev.safetensors"]
    assert "dev: the data is of task nqueens, the recipe is for sudoku" in refused(call, tmp_path, *other)
    missing = refused(call, tmp_path, *arguments, "--train", "none")
    assert missing == "oneofmany: none is not a file\n"
    sudoku = Dataset.load(files(data, settings)[0])
    single = tmp_path / "single.safetensors"
    sudoku.take((~sudoku.multiple).nonzero()[0]).save(single)
    sentence = refused(call, tmp_path, *arguments, "--train", single, "--first.sampling", "ms")
    assert sentence == "oneofmany: train: phase train samples MS queries, but the data has none\n"
    sentence = refused(call, tmp_path, *arguments, "--train", single, "--first.sampling", 0.25)
    assert "samples MS queries, but the data has none" in sentence


def test_a_folder_that_exists(call, data, tmp_path):
    arguments = own(data, small())
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("years of work")
    assert refused(call, tmp_path, *arguments) == (
        "oneofmany: run exists (it is not a run): choose another folder with --out\n"
    )
    (tmp_path / "run" / "thesis.txt").unlink()
    assert call(*arguments)[0] == 0
    sentence = refused(call, tmp_path, *arguments)
    assert (
        sentence == "oneofmany: run exists (it is a run; --resume run continues it): choose another folder with --out\n"
    )


def test_resuming_what_cannot_be(call, data, tmp_path):
    assert "nothing is not a run folder" in refused(call, tmp_path, "--resume", "nothing")
    arguments = own(data, small())
    assert call(*arguments)[0] == 0
    same = fields(small())
    assert call("--resume", "run", RECIPE, *same)[0] == 0
    sentence = refused(call, tmp_path, "--resume", "run", RECIPE, *same, "--seed", 8, "--first.lr", 0.5)
    assert sentence == (
        "oneofmany: run was started with other settings: seed: 7 there, 8 here; first.lr: 0.01 there, 0.5 here: "
        "resume it without them\n"
    )
    sentence = refused(call, tmp_path, "--resume", "run", "--data", "elsewhere", "--out", "other")
    assert "leave out --data, --out" in sentence
    for state in (tmp_path / "run" / "state").iterdir():
        state.write_bytes(b"noise")
    assert "every state is damaged, so it cannot be resumed" in refused(call, tmp_path, "--resume", "run")
