"""``oneofmany train`` as a user runs it: results on stdout, the rest on stderr, exit codes, nothing lost."""

import dataclasses
import errno
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
import torch

import oneofmany.training.updating as updating
from oneofmany.data import Dataset
from oneofmany.recipes import recipes
from oneofmany.runs.folder import RunFolder
from oneofmany.runs.state import lock_of
from oneofmany.training import PhaseSettings, train
from oneofmany.training.distributed import LostProcess
from small_runs import assert_same_run, fields, files, small, write_data

RECIPE = "sudoku/minloss/tiny"


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A folder with small data of two tasks."""
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture
def call(call, monkeypatch, tmp_path):
    """Run ``oneofmany train`` in a folder of its own: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    return partial(call, "train")


def own(data, settings, out="run"):
    """The arguments that train these settings on the small data."""
    train_file, dev_file = files(data, settings)
    return [RECIPE, "--out", out, "--train", train_file, "--dev", dev_file, *fields(settings)]


def contents(folder):
    """Every file with its bytes, and every folder."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


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


@pytest.mark.parametrize("columns", [80, 140])
def test_a_bar_is_one_line(call, data, monkeypatch, columns):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    code, _, err = call(*own(data, small("selectr")))
    assert code == 0, err
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", err).replace("\r", "\n").split("\n")
    assert max(len(line.rstrip()) for line in lines) <= columns
    shown = [line for line in lines if line.strip()]
    assert all(line.startswith(("pretrain-", "selector", "joint")) for line in shown)
    assert any(line.startswith("joint") and "6/6" in line and "loss " in line and " dev " in line for line in shown)
    assert any("queries" in line or "/s" in line for line in shown) == (columns > 120)


def test_help_and_recipes(call):
    code, out, _ = call("--help")
    assert code == 0
    assert "--resume" in out
    assert call()[0] == 2
    code, out, err = call("--recipes")
    assert (code, err) == (0, "")
    assert "\nnqueens/minloss/table-2 " in out
    assert "'*/*/tuning/*'" in out
    listed = [line.split()[0] for line in call("--recipes", "*/*/tiny")[1].splitlines() if "/tiny " in line]
    assert listed == [name for name in recipes() if name.endswith("/tiny")]
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
        (["--betas", 2, 3], "betas: expected at least 0 and less than 1, got 2.0"),
        (["--decay", -1], "decay: expected at least 0, got -1.0"),
        (["--selector-training.decay", -1], "selector_training.decay: expected at least 0, got -1.0"),
        (["--network.width", 0], "network.width: expected at least 1, got 0"),
        (["--network.test-steps", 0], "network.test_steps: expected 1 to 10000, got 0"),
        (["--network.steps", 10**9], "network.steps: expected 1 to 10000, got 1000000000"),
        (
            ["--network.kind", "nlm"],
            "task: expected nqueens or futoshiki, which have predicates for an NLM, got 'sudoku'",
        ),
        (["--objective", "selectr", "--selector.width", 0, "--second.updates", 1], None),
        (["--objective", "selectr", "--selector.kind", "nlm", "--second.updates", 1], None),
    ],
)
def test_values_that_cannot_be(call, data, tmp_path, changes, sentence):
    told = refused(call, tmp_path, *own(data, small(), "deep/in/run"), *changes)
    assert sentence is None or told == f"oneofmany: {sentence}\n"
    assert list(tmp_path.iterdir()) == []


def test_an_error_after_the_folder_was_made_leaves_nothing_too(call, data, tmp_path, monkeypatch):
    def wrong(*_):
        assert list(tmp_path.rglob("config.json"))
        raise ValueError("width: expected a miracle")

    with monkeypatch.context() as patched:
        patched.setattr(updating.Updater, "run", wrong)
        assert refused(call, tmp_path, *own(data, small())) == "oneofmany: width: expected a miracle\n"
        # What was there before stays there.
        (tmp_path / "run").mkdir()
        assert call(*own(data, small(), "run/inner"))[0] == 2
        assert list((tmp_path / "run").iterdir()) == []
    assert call(*own(data, small()))[0] == 0
    # A run with a state is never deleted.
    (tmp_path / "run" / "result.json").unlink()
    monkeypatch.setattr(RunFolder, "result", wrong)
    before = contents(tmp_path)
    assert call("--resume", "run")[0] == 0
    assert contents(tmp_path).keys() == before.keys() | {tmp_path / "run" / "result.json"}


@pytest.mark.parametrize("when", ["config.json", "metrics.jsonl"])
def test_a_full_disk_can_be_continued(call, data, tmp_path, monkeypatch, when):
    """Before the configuration nothing stays; after it the run can be resumed."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", when)

    with monkeypatch.context() as patched:
        if when == "config.json":
            patched.setattr("oneofmany.runs.folder.write_json", full)
        else:
            patched.setattr(RunFolder, "log", full)
        code, _, err = call(*own(data, small()))
    assert (code, err) == (1, f"oneofmany: {when}: No space left on device\n")
    if when == "config.json":
        assert list(tmp_path.iterdir()) == []
        assert call(*own(data, small()))[0] == 0
    else:
        assert call("--resume", "run")[0] == 0
    train(small(), *files(data, small()), tmp_path / "whole")
    assert_same_run(tmp_path / "run", tmp_path / "whole")


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
    (tmp_path / "run" / "result.json").unlink()
    for state in (tmp_path / "run" / "state").iterdir():
        state.write_bytes(b"noise")
    assert "every state is damaged, so it cannot be resumed" in refused(call, tmp_path, "--resume", "run")


# ---- one writer ----------------------------------------------------------------------------------------------------


def test_a_run_that_somebody_writes(call, data, tmp_path):
    arguments = own(data, small())
    assert call(*arguments)[0] == 0
    (tmp_path / "run" / "result.json").unlink()
    with lock_of(tmp_path / "run"):
        for command in (arguments, ["--resume", "run"], ["--resume", "run", "--threads", 1]):
            sentence = refused(call, tmp_path, *command)
            assert sentence.startswith("oneofmany: run is in use by ")
            assert sentence.endswith(f" (process {os.getpid()}): wait until that process has ended\n")
    (tmp_path / "run" / "result.json").write_text(
        '{"dev": {"os": 1, "ms": 1, "overall": 1, "update": 1, "phase": "train"}, "seconds": 1}'
    )
    with lock_of(tmp_path / "run"):  # a finished run is only read
        assert call("--resume", "run")[0] == 0
        assert "run is in use by" in refused(call, tmp_path, "--resume", "run", "--first.updates", 8)


def test_a_run_whose_lock_was_taken_over_stops(call, data, tmp_path, monkeypatch):
    real = updating.Updater.run

    def suspended(self, update, *arguments):
        real(self, update, *arguments)
        if update == 3:  # for other machines, this process was silent for too long
            (tmp_path / "run" / ".lock.1").rename(tmp_path / "run" / ".lock.2")

    monkeypatch.setattr(updating.Updater, "run", suspended)
    code, out, err = call(*own(data, small()))
    assert (code, out) == (1, "")
    assert "oneofmany: run was taken over by another process, because this one gave no sign of life" in err
    assert (tmp_path / "run" / ".lock.2").exists()
    assert not (tmp_path / "run" / "result.json").exists()


@pytest.mark.slow
def test_two_trainings_in_one_folder_and_two_that_resume(data, tmp_path):
    """Real processes: one of them wins and is the run that it would be alone, the other changes nothing."""
    settings = small(first=PhaseSettings(updates=10**5, batch=4, lr=1e-2), log_every=10, checkpoint_minutes=5.0)
    settings = dataclasses.replace(settings, evaluate_every=10**5)
    command = [sys.executable, "-m", "oneofmany", "train"]

    def race(*commands):
        both = [
            subprocess.Popen([*command, *map(str, one)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for one in commands
        ]
        while all(process.poll() is None for process in both):
            time.sleep(0.02)
        loser = next(process for process in both if process.poll() is not None)
        (winner,) = (process for process in both if process is not loser)
        metrics = tmp_path / "run" / "metrics.jsonl"
        before = metrics.stat().st_size if metrics.exists() else 0
        while not metrics.exists() or metrics.stat().st_size <= before:
            assert winner.poll() is None
            time.sleep(0.02)
        winner.terminate()
        winner.communicate()
        said = loser.communicate()[1]
        assert (loser.returncode, winner.returncode) == (2, 143)
        assert said.startswith(f"oneofmany: {tmp_path / 'run'} is in use by ")
        assert f"(process {winner.pid})" in said
        assert said.count("\n") == 1
        return both.index(winner)

    won = race(*([*own(data, settings, tmp_path / "run"), "--seed", seed] for seed in (1, 2)))
    assert RunFolder.open(tmp_path / "run").config["settings"]["seed"] == won + 1
    race(*[["--resume", tmp_path / "run"]] * 2)
    lines = RunFolder.open(tmp_path / "run").read_metrics()
    updates = [line["update"] for line in lines if line["kind"] == "train"]
    assert updates == list(range(10, 10 * len(updates) + 1, 10))


# ---- other settings for a run --------------------------------------------------------------------------------------


def test_resuming_with_other_threads_and_more_updates(call, data, tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    real = updating.Updater.run

    def interrupted(self, update, *arguments):
        real(self, update, *arguments)
        if update in (2, 3):
            os.kill(os.getpid(), signal.SIGTERM)

    settings = small(seed=3, first=PhaseSettings(updates=6, batch=4, lr=2e-2))
    with monkeypatch.context() as patched:
        patched.setattr(updating.Updater, "run", interrupted)
        _, _, err = call(*own(data, settings), "--tensorboard")
        assert err.endswith("continue with: oneofmany train --resume run --tensorboard\n")
    with monkeypatch.context() as patched:
        patched.setattr(updating.Updater, "run", interrupted)
        _, _, err = call("--resume", "run", "--tensorboard", "--threads", 1, "--checkpoint-minutes", 3)
        again = "--resume run --threads 1 --checkpoint-minutes 3 --tensorboard"
        assert err.endswith(f"continue with: oneofmany train {again}\n")
    assert call(*again.split())[0] == 0
    assert "first.lr: 0.02 there, 0.5 here" in refused(call, tmp_path, "--resume", "run", "--first.lr", 0.5)
    code, out, err = call("--resume", "run", "--first.updates", 9)
    assert code == 0
    assert "warning: run is extended from 6 to 9 updates: it is not a run of the recipe any more" in err
    assert "train: update 9 of 9" in err
    assert call("--resume", "run") == (0, out, "")
    longer = dataclasses.replace(settings, first=dataclasses.replace(settings.first, updates=9))
    train(longer, *files(data, settings), tmp_path / "whole")
    assert_same_run(tmp_path / "run", tmp_path / "whole")
