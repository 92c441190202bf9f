"""A finished run is written again only if it is extended on purpose; then it is the longer run, and says so."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from oneofmany.evaluation import evaluate_run, read_record, save_record
from oneofmany.files import FileError
from oneofmany.runs.folder import RunFolder, about_extensions
from oneofmany.training import PhaseSettings, SelectorTraining, resume, train
from oneofmany.training.checkpoints import Checkpoint
from oneofmany.training.jobs import Job, check_settings, share
from small_runs import assert_same_run, files, small, untimed

KINDS = {
    "minloss": small(),
    "plateau": small(first=PhaseSettings(updates=6, batch=4, lr=1e-2, schedule="plateau"), ema=0.6, burn_in=(0, 1)),
    "selectr": small("selectr", selector_training=SelectorTraining(updates=3, lr=1e-2, copy_interval=3)),
    "second": small(second=PhaseSettings(updates=6, batch=4), epsilon=0.5),
    "rrn": small("iexplr", "rrn"),
}


def longer(settings, updates=10):
    phase = "second" if settings.second.updates else "first"
    return replace(settings, **{phase: replace(getattr(settings, phase), updates=updates)})


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """Finished runs of six updates by name, made once; a copy for every test."""
    folder, copies = tmp_path_factory.mktemp("finished"), iter(range(100))

    def copy(name="minloss"):
        if not (folder / name).exists():
            train(KINDS[name], *files(data, KINDS[name]), folder / name)
        return shutil.copytree(folder / name, folder / f"{name}-{next(copies)}")

    return copy


@pytest.mark.parametrize("name", KINDS)
def test_an_extended_run_is_the_longer_run(data, tmp_path, finished, name):
    """Without a schedule that depends on the length, all bits are those of a run that was longer from the start."""
    out = finished(name)
    told = []
    result = resume(out, longer(KINDS[name]), told.append, extend=True)
    assert f"{out} is extended from 6 to 10 updates" in told[0]["text"]
    train(longer(KINDS[name]), *files(data, KINDS[name]), tmp_path / "whole")
    assert_same_run(out, tmp_path / "whole")
    assert resume(out) == result
    # Once more, and interrupted by nothing but the end of a process.
    resume(out, replace(longer(KINDS[name], 12), recipe=f"{KINDS[name].recipe}/extended"), extend=True)
    whole = tmp_path / "longest"
    train(longer(KINDS[name], 12), *files(data, KINDS[name]), whole)
    assert_same_run(out, whole)


def test_a_cosine_follows_the_new_number_of_updates_from_the_state_on(data, finished):
    cosine = small(first=PhaseSettings(updates=6, batch=4, lr=1e-2, schedule="cosine"))
    out = finished()
    shutil.rmtree(out)
    train(cosine, *files(data, cosine), out)
    resume(out, longer(cosine), extend=True)
    rates = {line["update"]: line["lr"] for line in RunFolder.open(out).read_metrics() if line["kind"] == "train"}
    train(longer(cosine), *files(data, cosine), out.with_name("whole"))
    whole = {line["update"]: line["lr"] for line in RunFolder.open(out.with_name("whole")).read_metrics()}
    assert [rates[update] == whole[update] for update in (2, 4, 6, 8, 10)] == [False, False, False, True, True]


def test_what_the_run_and_its_record_say(data, finished, tmp_path):
    out = finished()
    evaluate_run(out, files(data, KINDS["minloss"])[1], name="before")
    assert read_record(out).extended is None
    resume(out, longer(KINDS["minloss"]), extend=True)
    record = read_record(out)
    assert record.recipe == "small/minloss/extended"
    assert record.extended == [{"phase": "first", "from": 6, "to": 10, "exact": True}]
    assert (record.settings["first"]["updates"], record.updates, record.finished) == (10, 10, True)
    assert record.evaluations == {}  # stale
    assert [path.name for path in (out / "predictions").iterdir()] == ["before.safetensors.stale"]
    save_record(record, tmp_path / "record.json")
    assert read_record(tmp_path / "record.json").extended == record.extended
    evaluate_run(out, files(data, KINDS["minloss"])[1], name="before")
    assert list(read_record(out).evaluations) == ["before"]


def test_a_sweep_does_not_take_it_for_its_own(finished):
    out, settings = finished(), longer(KINDS["minloss"])
    resume(out, settings, extend=True)
    with pytest.raises(ValueError, match="was extended from 6 to 10 updates: choose another folder with --out"):
        check_settings([Job("run", settings, out, ())])
    data = tuple(RunFolder.open(out).config["data"][name]["checksum"] for name in ("train", "dev"))
    start = Job("start", replace(small("selectr", first=settings.first), pretraining="minloss"), out / "x", (), data)
    assert share([start], out.parent)[0].settings.pretrained != (str(out),)


@pytest.mark.parametrize("after", range(4))
def test_killed_while_it_is_extended(data, tmp_path, finished, monkeypatch, after):
    """Between any two steps: the run is the finished one, or the extended one; nothing is lost."""
    out, settings = finished(), longer(KINDS["minloss"])
    evaluate_run(out, files(data, settings)[1], name="mine")
    before = untimed(out)
    steps = []

    class Killed(BaseException):
        pass

    def stop(step, real):
        def stopping(*arguments, **how):
            if steps.append(step) or len(steps) > after:
                raise Killed
            return real(*arguments, **how)

        return stopping

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "save", stop("state", Checkpoint.save))
        patched.setattr("pathlib.Path.replace", stop("rename", type(out).replace))
        patched.setattr(RunFolder, "configure", stop("config", RunFolder.configure))
        with pytest.raises(Killed):
            resume(out, settings, extend=True)
    if RunFolder.open(out).config["settings"]["first"]["updates"] == 6:
        resume(out)
        assert untimed(out) == before
        resume(out, settings, extend=True)
    else:
        resume(out)
    train(settings, *files(data, settings), tmp_path / "whole")
    assert_same_run(out, tmp_path / "whole")


def test_a_run_of_the_first_version_has_no_optimiser_left(data, finished):
    for name in ("minloss", "selectr", "plateau"):
        out = finished(name)
        folder = RunFolder.open(out)
        tensors, about, _ = folder.load_state()
        number = max(int(path.stem) for path in (out / "state").iterdir())
        kept = {key: tensor for key, tensor in tensors.items() if not key.startswith("end/")}
        folder.save_state(
            number, kept, {key: value for key, value in about.items() if key not in ("end", "extensions")}
        )
        told = []
        resume(out, longer(KINDS[name]), told.append, extend=True)
        assert "so a new one starts from the best weights" in told[0]["text"]
        record = read_record(out)
        assert [one["exact"] for one in record.extended] == [False]
        assert record.finished
        assert record.history.update[-1] == 10


def test_what_is_refused(data, finished, tmp_path):
    out, settings = finished(), KINDS["minloss"]
    before = contents(out)

    def refuse(message, wanted, run=out, extend=True):
        with pytest.raises(ValueError, match=message):
            resume(run, wanted, extend=extend)

    refuse(r"first\.updates: 6 there, 10 here: resume it without them", longer(settings), extend=False)
    refuse(r"first\.updates: expected more than the 6 of .*, got 4", longer(settings, 4))
    refuse(r"other settings: seed: 7 there, 8 here", replace(longer(settings), seed=8))
    refuse(r"second\.updates: 0 there, 5 here", replace(settings, second=PhaseSettings(updates=5, batch=4, lr=1e-2)))
    assert contents(out) == before
    for name in ("missing", "empty"):
        broken = finished()
        shutil.rmtree(broken / "state")
        (broken / "state").mkdir() if name == "empty" else None
        refuse("has no state to continue from: it cannot be extended", longer(settings), broken)
        assert (broken / "state").exists() == (name == "empty")
        assert {path.name: content for path, content in contents(broken).items()}.items() <= {
            path.name: content for path, content in before.items()
        }.items()
    early = small(first=PhaseSettings(updates=6, batch=4, lr=1e-9, stop_after=0))
    train(early, *files(data, early), tmp_path / "early")
    assert json.loads((tmp_path / "early" / "result.json").read_text())["updates"] < 6
    refuse("ended before its last update", longer(early), tmp_path / "early")
    unfinished = finished()
    (unfinished / "result.json").unlink()
    refuse("has not finished its 6 updates: finish it first", longer(settings), unfinished)


# ---- what is finished ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["there", "empty", "gone", "damaged"])
def test_a_finished_run_is_only_read(finished, state):
    """Whatever has become of its states, and without its data (review R1)."""
    out = finished()
    if state == "damaged":
        for path in (out / "state").iterdir():
            path.write_bytes(b"noise")
    elif state != "there":
        shutil.rmtree(out / "state")
        (out / "state").mkdir() if state == "empty" else None
    before = contents(out)
    assert resume(out) == json.loads((out / "result.json").read_text())
    assert resume(out, KINDS["minloss"])["finished"]
    assert contents(out) == before
    (out / "result.json").write_text("{}")
    with pytest.raises(FileError, match=r"result\.json is damaged"):
        resume(out)


def test_other_settings_of_the_machine(data, tmp_path, finished):
    """They hold for one session, and the run remembers them."""
    out, settings = finished(), KINDS["minloss"]
    (out / "result.json").unlink()
    try:
        resume(out, replace(settings, threads=2, checkpoint_minutes=5.0))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    config = RunFolder.open(out).config
    assert config["settings"]["threads"] == 1
    assert config["environment"]["resumed_with"] == [{"threads": 2, "checkpoint_minutes": 5.0}]
    assert_same_run(out, finished())
    assert about_extensions(config) == ""
