"""Run folders with values of other types: every reader refuses them in one sentence, without a traceback."""

import json
import shutil
from dataclasses import replace

import pytest

from oneofmany.evaluation import read_record
from oneofmany.runs.folder import RunFolder
from oneofmany.training import resume, train
from oneofmany.training.checks import check_pretrained
from oneofmany.training.jobs import Job, check_settings, data_in
from oneofmany.training.queue import Metrics
from small_runs import files, small

WRONG = (None, True, 3, -1, 0.5, "x", [], [1, "x"], {}, {"a": 1}, 10**400)
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """A finished run."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(small("minloss"), *files(data, small()), folder)
    return folder


def refused(reader):
    """Whether a reader refuses what it reads, with a ValueError."""
    try:
        reader()
    except ValueError:
        return True
    return False


def changed(values):
    """Copies of a JSON object in which one value, at any depth, has another type."""
    for name, value in values.items():
        for wrong in WRONG:
            yield values | {name: wrong}
        if isinstance(value, dict):
            yield from (values | {name: inner} for inner in changed(value))


def test_configurations_and_results(finished):
    job = Job("run", small("minloss"), finished, ())
    start = replace(small("selectr"), pretrained=(str(finished),))
    readers = [
        lambda: read_record(finished),
        lambda: check_settings([job]),
        lambda: data_in(finished),
        lambda: check_pretrained(start),
    ]
    for name in ("config.json", "result.json"):
        good = (finished / name).read_text()
        found = 0
        for values in changed(json.loads(good)):
            (finished / name).write_text(json.dumps(values))
            found += sum(map(refused, readers))
        assert found > 50
        (finished / name).write_text(good)


def test_resuming_with_other_data(finished):
    good, result = (finished / "config.json").read_text(), (finished / "result.json").read_text()
    values = json.loads(good)
    for data in changed(values["data"]):
        (finished / "config.json").write_text(json.dumps(values | {"data": data}))
        (finished / "result.json").unlink(missing_ok=True)  # a finished run is only read
        refused(lambda: resume(finished))
    (finished / "config.json").write_text(json.dumps(values | {"data": {}}))
    (finished / "result.json").unlink(missing_ok=True)
    with pytest.raises(ValueError, match=r"config\.json is damaged \(KeyError: 'train'\)"):
        resume(finished)
    (finished / "config.json").write_text(good)
    (finished / "result.json").write_text(result)


def test_a_state_after_all_phases_without_weights(finished, tmp_path):
    shutil.copytree(finished, run := tmp_path / "run")
    (run / "result.json").unlink()
    folder = RunFolder.open(run)
    tensors, about, _ = folder.load_state()
    about |= {"finished": False, "candidate": None, "best": None, "phase": 1}
    folder.save_state(10**13, tensors, about)
    with pytest.raises(ValueError, match=r"the newest state of .*run is damaged: it has no weights"):
        resume(run)


def test_lines_of_metrics(finished):
    path = finished / "metrics.jsonl"
    good = path.read_text()
    first, *others = good.splitlines()
    lines = [json.dumps(values) for values in changed(json.loads(first))] + [DEEP, "3", "null", "[]", "{", "{}", "\0"]
    for line in lines:
        path.write_text("\n".join([line, *others]) + "\n")
        refused(lambda: read_record(finished))
        newest = Metrics(path).newest()
        assert f"{newest['phase']} {newest['update']:,} {newest['loss']:.4f} {newest['queries_per_second']:,.0f}"
    path.write_text(f"{DEEP}\n{good}")
    with pytest.raises(ValueError, match=r"line 1 of .*metrics\.jsonl is damaged: it is not a JSON object"):
        read_record(finished)
    path.write_text(good)


def test_states(finished):
    folder, result = RunFolder.open(finished), finished / "result.json"
    state = folder.load_state()
    assert state is not None
    tensors, about, _ = state
    good = result.read_text()
    found = 0
    for number, values in enumerate(changed(about)):
        result.unlink(missing_ok=True)
        folder.save_state(5 * 10**11 + number, tensors, values)
        found += refused(lambda: resume(finished))
    assert found > 50
    for number, phase in enumerate((-1, -(10**30))):
        result.unlink(missing_ok=True)
        folder.save_state(6 * 10**11 + number, tensors, about | {"finished": False, "phase": phase})
        with pytest.raises(ValueError, match="its newest state is damaged"):
            resume(finished)
    result.write_text(good)
