"""A run that was killed and resumed is, bit for bit, the run that was not."""

import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

import oneofmany.training.checkpoints as checkpoints_module
import oneofmany.training.trainer as trainer_module
from oneofmany.runs.folder import RunFolder
from oneofmany.training import Interrupted, PhaseSettings, SelectorTraining, resume, train
from oneofmany.training.updating import Updater
from small_runs import assert_same_run, fields, files, small

EVERYTHING = {
    # Everything with a state: plateau with early stopping, moving average, lagged copy, burn-in, revealing, momentum.
    "selectr": small(
        "selectr",
        first=PhaseSettings(updates=6, batch=4, lr=1e-2, schedule="plateau", stop_after=0, warmup=2),
        second=PhaseSettings(updates=8, batch=4, lr=1e-2, schedule="cosine", stop_after=1),
        selector_training=SelectorTraining(updates=3, lr=1e-2, copy_interval=3),
        ema=0.6,
        burn_in=(0, 1),
        reveal=0.4,
        keep_pretrained=True,
    ),
    "iexplr": small("iexplr", clip=1.0, windows=2),
    "rrn": small("selectr", "rrn", selector_training=SelectorTraining(updates=3, sample=True, copy_interval=2)),
    "transformer": small(
        "selectr", "transformer", selector_training=SelectorTraining(updates=3, copy_interval=2), augment=True, ema=0.6
    ),
    "nlm": small("selectr", "nlm", selector_training=SelectorTraining(updates=3, reward="exact")),
    "second": small("minloss", second=PhaseSettings(updates=4, batch=4), epsilon=0.5, log_every=3),
}


class Hashed:
    """Stands in for the evaluation on dev: arbitrary scores that are a function of every bit of the weights.

    The score that counts has few values, so that phases stop early and the best is not always the last.
    """

    judged_by = "rules"

    def __init__(self, network, *_, **__):
        digest = hashlib.sha256()
        for tensor in network.state_dict().values():
            digest.update(tensor.numpy().tobytes())
        self.scores = digest.digest()

    def summary(self):
        shares = {"os": self.scores[0] / 256, "ms": self.scores[1] / 256, "overall": self.scores[2] % 3 / 4}
        return {name: {"accuracy": share} for name, share in shares.items()}


@pytest.fixture
def hashed_dev(monkeypatch):
    monkeypatch.setattr(trainer_module, "evaluate", Hashed)


@pytest.fixture(scope="module")
def undisturbed(data, tmp_path_factory):
    """Uninterrupted runs by name, evaluated by a dev score of every bit."""
    folder, done = tmp_path_factory.mktemp("undisturbed"), set()

    def find(name):
        if name not in done:
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(trainer_module, "evaluate", Hashed)
                train(EVERYTHING[name], *files(data, EVERYTHING[name]), folder / name)
            done.add(name)
        return folder / name

    return find


class Killed(BaseException):
    """Ends a run like SIGKILL: it is not caught, and no file is cleaned up."""


def after_every_write(patched, act):
    """Call ``act`` with a number after everything that a run writes: lines of metrics, weights, states, its result."""
    count = itertools.count(1)

    def counted(write):
        def writing(*arguments, **how):
            write(*arguments, **how)
            act(next(count))

        return writing

    for owner, name in (
        (RunFolder, "log"),
        (RunFolder, "save_state"),
        (trainer_module, "save_network"),
        (trainer_module, "write_json"),
    ):
        patched.setattr(owner, name, counted(getattr(owner, name)))


@pytest.mark.usefixtures("hashed_dev")
def test_killed_after_anything_that_is_written(data, tmp_path, undisturbed):
    settings, out = EVERYTHING["selectr"], tmp_path / "run"
    left_behind = []

    def snapshot(number):
        left_behind.append(tmp_path / str(number))
        shutil.copytree(out, left_behind[-1])

    with pytest.MonkeyPatch.context() as patched:
        after_every_write(patched, snapshot)
        train(settings, *files(data, settings), out)
    assert len(left_behind) > 20
    for folder in left_behind:
        resume(folder)
        assert_same_run(folder, undisturbed("selectr"))


@pytest.mark.usefixtures("hashed_dev")
@pytest.mark.parametrize("name", EVERYTHING)
def test_interrupted_at_every_single_update(data, tmp_path, undisturbed, monkeypatch, name):
    whole, real = undisturbed(name), Updater.run

    def interrupted(self, *arguments):
        real(self, *arguments)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Updater, "run", interrupted)
    settings, out, stops, result = EVERYTHING[name], tmp_path / "run", [], None
    while result is None:
        try:
            result = resume(out) if out.exists() else train(settings, *files(data, settings), out)
        except Interrupted as stopped:
            stops.append(stopped.number)
        assert len(stops) < 100
    assert_same_run(out, whole)
    # Runs stop at every update but the last of a phase, after which the next phase begins first.
    assert len(stops) >= 0.6 * result["updates"]
    assert set(stops) == {signal.SIGTERM}


def test_a_finished_run_stays_as_it_is(undisturbed):
    out = undisturbed("second")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert resume(out) == resume(out)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


# ---- damaged states ------------------------------------------------------------------------------------------------


def killed_run(data, settings, out, after=20):
    """A run that was killed after a number of writes, and its states."""

    def kill(number):
        if number == after:
            raise Killed

    with pytest.MonkeyPatch.context() as patched:
        after_every_write(patched, kill)
        with pytest.raises(Killed):
            train(settings, *files(data, settings), out)
    return sorted((out / "state").glob("*.safetensors"))


@pytest.mark.usefixtures("hashed_dev")
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_state_falls_back_to_the_one_before(data, tmp_path, undisturbed, damage):
    _, newest = killed_run(data, EVERYTHING["selectr"], tmp_path / "run")
    content = bytearray(newest.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    newest.write_bytes({"cut": content[:-100], "flipped": content, "empty": b""}[damage])
    told = []
    resume(tmp_path / "run", watch=told.append)
    (warning,) = [line for line in told if line.get("kind") == "warning"]
    assert str(newest) in warning["text"]
    assert "going back to the state before it" in warning["text"]
    assert_same_run(tmp_path / "run", undisturbed("selectr"))


def test_no_state_is_whole(data, tmp_path):
    states = killed_run(data, EVERYTHING["selectr"], tmp_path / "run")
    for state in states:
        state.write_bytes(b"nothing")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match="every state is damaged, so it cannot be resumed") as refused:
        resume(tmp_path / "run")
    assert all(str(state) in str(refused.value) for state in states)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_a_damaged_configuration(data, tmp_path):
    killed_run(data, small(), tmp_path / "run", after=3)
    path = tmp_path / "run" / "config.json"
    good = json.loads(path.read_text())
    for damage in ({"data": None}, {"data": {"train": {}}}, {"settings": None}, {"settings": {"first": 3}}):
        path.write_text(json.dumps(good | damage))
        with pytest.raises(ValueError, match=r"config\.json is damaged \("):
            resume(tmp_path / "run")
    path.write_text(json.dumps(good | {"settings": {"colour": "red"}}))
    with pytest.raises(ValueError, match="colour: this version has no such setting"):
        resume(tmp_path / "run")


def test_a_state_of_another_version(data, tmp_path, monkeypatch):
    killed_run(data, small(), tmp_path / "run", after=5)
    monkeypatch.setattr(checkpoints_module, "Position", lambda update=0: None)  # has other fields
    with pytest.raises(ValueError, match="was started by another version of oneofmany"):
        resume(tmp_path / "run")


def test_a_run_with_settings_that_are_gone(data, tmp_path):
    """Earlier versions had two more settings; with the values of every recipe they had no effect."""
    killed_run(data, small(), tmp_path / "run", after=5)
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"settings": config["settings"] | {"starts": 2, "start_temperature": 0.0}}))
    with pytest.raises(ValueError, match="starts: this version has no such setting"):
        resume(tmp_path / "run")
    path.write_text(json.dumps(config | {"settings": config["settings"] | {"starts": 1, "start_temperature": 0.0}}))
    assert resume(tmp_path / "run", small())["finished"]


# ---- other settings, other data ------------------------------------------------------------------------------------


def test_other_settings_are_refused_with_the_difference(data, undisturbed):
    settings = EVERYTHING["second"]
    out = undisturbed("second")
    resume(out, settings)
    other = replace(settings, seed=3, first=replace(settings.first, lr=0.5))
    with pytest.raises(ValueError, match=r"other settings: seed: 7 there, 3 here; first\.lr: 0\.01 there, 0\.5 here"):
        resume(out, other)


def test_other_data_is_refused_with_the_difference(data, tmp_path):
    settings = small("minloss")
    for path in files(data, settings):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    mine = files(tmp_path, settings)
    killed_run(tmp_path, settings, tmp_path / "run", after=5)
    for name, path, other in zip(("train", "dev"), mine, reversed(mine), strict=True):
        good = path.read_bytes()
        path.write_bytes(other.read_bytes())
        different = rf"started with other {name} data: .* had checksum sha256:\w+, now sha256"
        with pytest.raises(ValueError, match=different):
            resume(tmp_path / "run")
        path.write_bytes(good)
    mine[0].unlink()
    with pytest.raises(ValueError, match=r"sudoku\.safetensors is not a file"):
        resume(tmp_path / "run")


# ---- real processes ------------------------------------------------------------------------------------------------

LONGER = replace(
    EVERYTHING["selectr"],
    first=replace(EVERYTHING["selectr"].first, updates=30, stop_after=None),
    second=replace(EVERYTHING["selectr"].second, updates=30, stop_after=None),
    selector_training=replace(EVERYTHING["selectr"].selector_training, updates=20),
    log_every=1,
)


def start(data, settings, out):
    """Start or resume a run with ``oneofmany train``, as a user does."""
    train_file, dev_file = files(data, settings)
    fresh = ["sudoku/selectr/tiny", "--out", out, "--train", train_file, "--dev", dev_file, *fields(settings)]
    # A run that was killed before its configuration was written has to be started again.
    arguments = ["--resume", out] if (out / "config.json").exists() else fresh
    command = [sys.executable, "-m", "oneofmany", "train", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(process, out, phase):
    """Wait until a line about a phase is written, or the process has ended."""
    metrics = out / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and f'"phase":"{phase}"' in metrics.read_text()):
        time.sleep(0.005)


def test_killed_in_every_phase_at_random_moments(data, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "run"
    train(LONGER, *files(data, LONGER), whole)
    draw = random.Random(time.time_ns())
    kill, terminate, codes = signal.SIGKILL, signal.SIGTERM, []
    for phase, number in (
        ("pretrain-minloss", kill),
        ("pretrain-unique", kill),
        ("selector", terminate),
        ("joint", kill),
    ):
        process = start(data, LONGER, out)
        wait_for(process, out, phase)
        time.sleep(draw.uniform(0, 0.05))
        process.send_signal(number)
        stdout, stderr = process.communicate()
        codes.append(process.returncode)
        if process.returncode == 143:
            assert stdout == ""
            assert "stopped by SIGTERM at update " in stderr
            assert stderr.endswith(f"continue with: oneofmany train --resume {out}\n")
    # On a busy machine a phase may slip by: then the run has ended, or the next process is hit while it starts.
    assert set(codes) <= {-kill, 143, -terminate, 0}
    assert sum(code != 0 for code in codes) >= 3
    resume(out)
    assert_same_run(out, whole)
