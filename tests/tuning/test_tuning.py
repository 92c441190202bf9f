"""A search: its space, equal budgets, pruning on dev, continuing, and its page."""

import json
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("optuna")

from oneofmany.cli import run
from oneofmany.data import Dataset, import_sequences
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.sudoku import build_sudoku
from oneofmany.data.test_sets import is_test_set
from oneofmany.pictures.themes import LIGHT
from oneofmany.recipes import recipe
from oneofmany.recipes.fields import resolve
from oneofmany.recipes.finding import DataFiles
from oneofmany.runs.lock import Lock
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
        ("evaluate-every = {values = [1, 2]}", "evaluate_every is the same for all trials"),
        ("second.stop_after = {values = [1, 2]}", r"second\.stop_after is the same for all trials"),
        ("select_on = {values = ['os', 'ms']}", "select_on is the same for all trials"),
        ("burn_in = {values = [[0, 16]]}", 'burn_in: expected a list of values.*a text such as "0 16 32"'),
        ("decay = {low = 0.0, high = inf}", "decay: expected numbers low <= high"),
        ("decay = {low = 0.1, high = 1, log = 'no'}", "decay: expected numbers low <= high, and log = true if wanted"),
        ("objectives = 3", "objectives: expected low and high, or values, got 3"),
        ("objectives.minloss = 3", r"objectives\.minloss: expected low and high, or values, got 3"),
        ("[objectives.minloss]", "names no field"),
        ("", "names no field"),
        ("[", "is not TOML"),
    ],
)
def test_a_bad_space_is_named(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        written(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("firrst.lr = {low = 1e-4, high = 1e-2}", r"firrst\.lr is not a field of minloss: did you mean first\.lr\?"),
        ("dev = {values = ['test.safetensors']}", "dev is not a field of minloss: "),
        ("ema = {values = [0.5, 'many']}", "ema of minloss cannot be 'many'"),
        (
            "network.dropout = {low = 0.0, high = 2.0}",
            r"network\.dropout of minloss cannot be 2\.0: network\.dropout: ex",
        ),
        ("first.batch = {low = 1.5, high = 2.5}", r"first\.batch of minloss cannot be 1\.5"),
    ],
)
def test_a_space_that_does_not_fit_the_recipe_leaves_nothing_behind(text, message, files, tmp_path, capsys):
    (tmp_path / "space.toml").write_text(text)
    assert run(["tune", "nqueens/minloss/tiny", *files, "--out", str(tmp_path / "out")]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert re.match(f"oneofmany: --space: {message}", sentence), sentence
    assert not (tmp_path / "out").exists()


def tuner_of(files, tmp_path, text, name="nqueens/minloss/tiny", **options):
    space = written(text, tmp_path)
    options = {"updates": 100, "out": tmp_path / "tuning", "data": DataFiles(train=files[3], dev=files[5])} | options
    return Tuner(Search(name, space, **options))


def test_values_that_do_not_fit_together_are_named_and_do_not_stop_a_search_for_ever(files, tmp_path):
    together = "first.batch = {values = [3]}\nshards = {values = [2]}"
    with pytest.raises(ValueError, match=r"--space: shards of minloss cannot be 2: first\.batch: expected a multiple"):
        tuner_of(files, tmp_path, together, fields=("--first.batch", "3"))
    either = "first.batch = {values = [4, 3]}\nshards = {values = [1, 2]}"
    tuner = tuner_of(files, tmp_path, either)
    study = tuner.studies["minloss"]

    def add_many():
        for _ in range(100):
            tuner._add("minloss", study, study.ask(tuner.search.space.of("minloss")))

    with pytest.raises(ValueError, match=r"--space: minloss cannot have --first\.batch 3 --shards 2: first\.batch: "):
        add_many()
    assert study.trials[-1].state.name == "FAIL"


@pytest.mark.parametrize("name", ["selectr", "iexplr"])
def test_budgets_are_equal_whatever_phases_a_trial_has(name, files, tmp_path):
    space = "pretraining = {values = ['minloss', 'both']}"
    tuner = tuner_of(files, tmp_path, space, f"nqueens/{name}/tiny", fields=("--second.stop-after", "3"))
    study = tuner.studies[name]
    while len({trial.params["pretraining"] for trial in study.trials}) < 2:
        tuner._add(name, study, study.ask(tuner.search.space.of(name)))
    for entry in tuner.queue.entries:
        assert budget_of(entry.job.settings) == 100
        fields = entry.job.arguments[1 : entry.job.arguments.index("--train")]
        assert resolve(entry.job.arguments[0], fields) == entry.job.settings


def test_a_search_goes_on_only_with_the_same_settings_and_data(files, tmp_path):
    space = "ema = { values = [0.0, 0.5] }"
    tuner_of(files, tmp_path, space)
    tuner_of(files, tmp_path, space)
    other = tmp_path / "other.safetensors"
    build_nqueens(7, 5, 30, "train", seed=1).save(other)
    for changes, named in (
        ({"updates": 200}, r'{"updates": 100}, here {"updates": 200}'),
        ({"seed": 1}, r'{"seed": 42}, here {"seed": 1}'),
        ({"fields": ("--decay", "0.1")}, r'{"fields": \[\]}, here {"fields": \["--decay", "0.1"\]}'),
        ({"data": DataFiles(train=other, dev=files[5])}, '{"data": .*}, here {"data": .*}'),
    ):
        with pytest.raises(ValueError, match=rf"holds a search with other settings \({named}\): choose"):
            tuner_of(files, tmp_path, space, **changes)
    with pytest.raises(ValueError, match="--updates: expected at least 1, one for each phase, got 0"):
        tuner_of(files, tmp_path, space, updates=0, out=tmp_path / "other")


def test_a_search_goes_on_after_a_write_that_was_cut_off(files, tmp_path):
    space = "ema = { values = [0.0, 0.5] }"
    tuner = tuner_of(files, tmp_path, space)
    tuner.studies["minloss"].ask(tuner.search.space.of("minloss"))
    journal = tuner.search.out / "journal.log"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code": 4, "worker')
    again = tuner_of(files, tmp_path, space).studies["minloss"]
    assert len(again.trials) == 1
    again.ask(tuner.search.space.of("minloss"))
    assert len(tuner_of(files, tmp_path, space).studies["minloss"].trials) == 2


def test_a_search_has_one_owner(files, tmp_path):
    tuner = tuner_of(files, tmp_path, "ema = { values = [0.0, 0.5] }")
    with Lock(tuner.search.out / ".lock"):
        with pytest.raises(ValueError, match=r"tuning is in use by"):
            tuner.run()
        with pytest.raises(ValueError, match=r"tuning is in use by"):
            Tuner(tuner.search)


def test_without_the_packages_of_the_page_a_search_does_not_begin(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("oneofmany.extras.find_spec", lambda name: None if name == "jinja2" else name)
    assert run(["tune", "nqueens/minloss/tiny", *files, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert (
        said
        == "oneofmany: jinja2 is needed for the HTML report and is not installed: pip install 'oneofmany[report]'\n"
    )
    assert not (tmp_path / "out").exists()


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
                    updates=500, seed=3, out=out, data=DataFiles(train=files[3], dev=files[5]))  # fmt: skip
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
    assert f"% on dev with ema {best.params['ema']:.4g}, first.lr {best.params['first.lr']:.4g}" in page
    assert "No run has been evaluated" not in page
    assert "0 runs" not in page
    assert LIGHT["minloss"] in page
    assert LIGHT["ccloss"] in page
    with pytest.raises(ValueError, match="holds a search with other settings"):
        Tuner(replace(search, updates=400))


def test_test_sets_are_refused(files, tmp_path, capsys):
    test = tmp_path / "test.safetensors"
    build_nqueens(7, 5, 20, "test", seed=1).save(test)
    command = ["tune", "nqueens/minloss/tiny", *files[:4], "--dev", str(test), "--out", str(tmp_path / "out")]
    (tmp_path / "space.toml").write_text("ema = { values = [0.0, 0.5] }")
    assert run(command) == 2
    assert "test.safetensors is a test set: a search sees training and dev data only" in capsys.readouterr().err


def test_a_test_set_that_was_exported_and_imported_again_is_refused(files, tmp_path, capsys):
    """Its file does not say any more how it was built; the hashes of its queries do."""
    test = build_nqueens(7, 5, 20, "test", seed=1)
    lines = [
        {"input": " ".join(str(value or ".") for value in test.query[q]), "output": " ".join(map(str, answer))}
        for q in range(len(test))
        for answer in test.solutions_of(q)
    ]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "space.toml").write_text("ema = { values = [0.0, 0.5] }")
    smuggled = str(tmp_path / "own.safetensors")
    assert run(["data", "import", str(tmp_path / "test.jsonl"), "--task", "nqueens", "--out", smuggled]) == 0
    assert Dataset.load(smuggled).built.get("split") is None
    assert run(["tune", "nqueens/minloss/tiny", *files[:4], "--dev", smuggled, "--out", str(tmp_path / "out")]) == 2
    assert "own.safetensors is a test set: a search sees training and dev data only" in capsys.readouterr().err


def test_test_sets_are_recognised():
    words = [{"input": f"{a}{b}", "output": a} for a in "abcdefghijklmnop" for b in "abcdefghijklmnop"]
    built = {
        split: (
            build_sudoku(20, split, seed=1),
            build_sudoku(30, split, seed=1, size=4),
            build_futoshiki(4, 8, 3, 30, split, seed=1),
            import_sequences(words, split=split)[0],
        )
        for split in ("dev", "test")
    }
    for split, every in built.items():
        for data in every:
            assert is_test_set(data) == (split == "test"), data.problem
            assert is_test_set(replace(data, built={})) == (split == "test"), data.problem
    few = built["test"][1].take(np.arange(7))
    assert not is_test_set(replace(few, built={}))
    assert is_test_set(few)


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
