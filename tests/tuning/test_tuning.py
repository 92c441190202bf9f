"""A search: its space, equal budgets, pruning on dev, continuing, and its page."""

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("optuna")

from oneofmany.cli import run
from oneofmany.data.nqueens import build_nqueens
from oneofmany.recipes import recipe
from oneofmany.recipes.finding import DataFiles
from oneofmany.training import OBJECTIVES
from oneofmany.training.jobs import Job, state_of
from oneofmany.tuning import Search, Tuner, budget_of, read_space, with_budget
from oneofmany.tuning.studies import evaluations

SPACE = """
ema = { values = [0.0, 0.5] }
[first.lr]
low = 1e-5
high = 1e-1
log = true
[objectives.ccloss.first]
warmup = { low = 0, high = 20 }
"""
FAKE = (sys.executable, "-S", str(Path(__file__).with_name("fake_trial.py")))


@pytest.fixture
def files(tmp_path):
    """A space and two data files, and the options that name them."""
    (tmp_path / "space.toml").write_text(SPACE)
    for split in ("train", "dev"):
        build_nqueens(7, 5, 40, split, seed=1).save(tmp_path / f"{split}.safetensors")
    names = {"space": "space.toml", "train": "train.safetensors", "dev": "dev.safetensors"}
    return [part for name, file in names.items() for part in (f"--{name}", str(tmp_path / file))]


def written(text, tmp_path):
    (tmp_path / "space.toml").write_text(text)
    return read_space(tmp_path / "space.toml")


def test_a_space(tmp_path):
    space = written(SPACE, tmp_path)
    axes = space.of("ccloss")
    assert sorted(axes) == ["ema", "first.lr", "first.warmup"]
    assert sorted(space.of("minloss")) == ["ema", "first.lr"]
    assert (axes["first.lr"].low, axes["first.lr"].high, axes["first.lr"].log) == (1e-5, 1e-1, True)
    assert axes["ema"].choices == (0.0, 0.5)
    assert (axes["first.warmup"].low, axes["first.warmup"].high) == (0, 20)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("decay = 1", "decay: expected low and high, or values, got 1"),
        ("decay = {low = 1}", "decay: expected numbers low <= high"),
        ("decay = {low = 2, high = 1}", "decay: expected numbers low <= high"),
        ("decay = {low = 0, high = 1, log = true}", "decay: expected low > 0 with log, got 0"),
        ("decay = {values = []}", "decay: expected a list of values"),
        ("first.updates = {low = 1, high = 2}", r"first\.updates is the same for all trials"),
        ("seed = {values = [1, 2]}", "seed is the same for all trials"),
        ("", "names no field"),
        ("[", "is not TOML"),
    ],
)
def test_a_bad_space_is_named(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        written(text, tmp_path)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("updates", [100, 1001])
def test_budgets_are_equal_for_all_objectives(name, updates):
    for variant in ("tiny", "table-2"):
        settings = with_budget(recipe(f"nqueens/{name}/{variant}"), updates)
        assert budget_of(settings) == updates
        for phase in (settings.first, settings.second):
            assert (phase.minutes, phase.stop_after) == (None, None)
    with pytest.raises(ValueError, match="--updates"):
        with_budget(recipe(f"nqueens/{name}/tiny"), 0)


def test_steps_count_the_updates_of_all_phases(tmp_path):
    settings = replace(recipe("nqueens/selectr/tiny"), pretraining="both", select_on="ms")
    lengths = settings.first.updates, settings.selector_training.updates
    lines = [
        {"kind": "dev", "phase": "pretrain-minloss", "update": 5, "dev_ms": 0.1, "dev_overall": 0.9},
        {"kind": "train", "phase": "pretrain-unique", "update": 5},
        {"kind": "dev", "phase": "pretrain-unique", "update": 7, "dev_ms": 0.2, "dev_overall": 0.9},
        {"kind": "dev", "phase": "joint", "update": 3, "dev_ms": 0.3, "dev_overall": 0.9},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "dev", "ph'
    (tmp_path / "metrics.jsonl").write_text(text)
    expected = [(5, 0.1), (lengths[0] + 7, 0.2), (2 * lengths[0] + lengths[1] + 3, 0.3)]
    assert evaluations(Job("x", settings, tmp_path, ())) == expected


def test_a_search_is_fair_prunes_continues_and_has_a_page(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("oneofmany.training.queue.PROGRAM", FAKE)
    out = tmp_path / "tuning"
    command = ["tune", "nqueens/minloss/tiny", *files, "--objectives", "minloss", "ccloss", "--updates", "500"]
    command += ["--jobs", "2", "--out", str(out), "--seed", "3"]
    assert run([*command, "--trials", "3"]) == 0
    assert run([*command, "--trials", "12"]) == 0
    stdout = capsys.readouterr().out
    runs = [path for name in ("minloss", "ccloss") for path in (out / name).iterdir() if path.is_dir()]
    # Equally many, and no number twice.
    assert sorted((run.parent.name, int(run.name)) for run in runs) == [
        (name, number) for name in ("ccloss", "minloss") for number in range(12)
    ]
    for folder in runs:
        arguments = json.loads((folder / "config.json").read_text())["arguments"]
        assert arguments[arguments.index("--first.updates") + 1] == "500"
        assert "--evaluate" not in arguments
    # Some trials were stopped early, and none of them is the best one.
    search = Search("nqueens/minloss/tiny", read_space(tmp_path / "space.toml"), objectives=("minloss", "ccloss"),
                    updates=500, out=out, data=DataFiles(train=files[3], dev=files[5]))  # fmt: skip
    studies = Tuner(search).studies
    for name, study in studies.items():
        states = [trial.state.name for trial in study.trials]
        assert set(states) == {"COMPLETE", "PRUNED"}
        pruned = [trial.number for trial in study.trials if trial.state.name == "PRUNED"]
        assert not any((out / name / str(number) / "result.json").exists() for number in pruned)
        best = max((t for t in study.trials if t.state.name == "COMPLETE"), key=lambda trial: trial.value)
        assert f"{name}: dev {100 * best.value:.2f} % in trial {best.number}: " in stdout
        assert len(best.intermediate_values) == 5
    page = (out / "tuning.html").read_text()
    assert page.count("<svg") >= 5  # history, progress, and three fields
    assert "Every objective has the same number of trials and of updates" in page
    with pytest.raises(ValueError, match="holds a search with other settings"):
        Tuner(replace(search, updates=400))


def test_test_sets_are_refused(files, tmp_path, capsys):
    test = tmp_path / "test.safetensors"
    build_nqueens(7, 5, 20, "test", seed=1).save(test)
    command = ["tune", "nqueens/minloss/tiny", *files[:4], "--dev", str(test), "--out", str(tmp_path / "out")]
    (tmp_path / "space.toml").write_text("ema = { values = [0.0, 0.5] }")
    assert run(command) == 2
    assert "test.safetensors is a test set: a search sees training and dev data only" in capsys.readouterr().err


class Interrupt:
    """A watch that asks the search to stop once a run has made ten updates."""

    done = False

    def changed(self, entry):
        pass

    def look(self, entries):
        path = entries[0].job.folder / "metrics.jsonl"
        if not self.done and path.exists() and len(path.read_text().splitlines()) >= 10:
            os.kill(os.getpid(), signal.SIGINT)
            self.done = True


@pytest.mark.slow
def test_a_search_that_was_stopped_resumes_its_runs(files, tmp_path):
    """With real runs: the trial that was stopped is resumed, not started again."""
    space = written("ema = { values = [0.0, 0.5] }", tmp_path)
    fields = "--log-every 1 --checkpoint-minutes 0 --device cpu --threads 1 --network.width 8 --evaluate-every 50"
    search = Search("nqueens/minloss/tiny", space, trials=2, updates=150, out=tmp_path / "tuning",
                    fields=fields.split(), data=DataFiles(train=files[3], dev=files[5]))  # fmt: skip
    assert Tuner(search, watch=Interrupt()).run() == signal.SIGINT
    assert state_of(search.out / "minloss/0") == "begun"
    tuner = Tuner(search)
    assert tuner.run() is None
    states = [trial.state.name for trial in tuner.studies["minloss"].trials]
    assert states == ["COMPLETE", "COMPLETE"]
    assert "continue with: oneofmany train --resume" in (search.out / "minloss/0.log").read_text()
    assert [len(trial.intermediate_values) for trial in tuner.studies["minloss"].trials] == [3, 3]
