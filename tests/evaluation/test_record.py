"""The record holds what the run folder and its predictions hold, and no absolute paths."""

import base64
import json
import shutil
import subprocess
import sys
import tracemalloc
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluated_runs import QUERIES, made
from oneofmany.data.dataset import Dataset
from oneofmany.evaluation import evaluate_run, load_predictions
from oneofmany.evaluation.record_file import read_record, save_record
from oneofmany.evaluation.record_json import _numbers, from_json, to_json
from oneofmany.evaluation.recording import record_of
from oneofmany.files import FileError

KEYS = (
    "format recipe task objective network seed settings command environment data seconds updates finished dev "
    "history evaluations"
)


@pytest.fixture
def run(tmp_path):
    """A SelectR run with an evaluation, a new copy for every test."""
    shutil.copytree(made(), tmp_path / "here")
    evaluate_run(tmp_path / "here" / "selectr", tmp_path / "here" / "test.safetensors", device="cpu")
    return tmp_path / "here" / "selectr"


def test_record_has_all_of_the_run(run):
    record = read_record(run)
    config, result = (json.loads((run / f"{name}.json").read_text()) for name in ("config", "result"))
    assert list(to_json(record)) == KEYS.split()
    assert (record.name, record.recipe, record.seed) == ("small/selectr/7", "small/selectr", 7)
    assert (record.task, record.objective, record.network) == ("nqueens", "selectr", "equivariant")
    assert record.settings == config["settings"]
    assert record.environment == config["environment"]
    assert (record.seconds, record.updates) == (result["seconds"], result["updates"])
    assert record.finished is True
    assert to_json(record)["dev"] == {key: value for key, value in result["dev"].items() if key != "score"}
    for name in ("train", "dev"):
        header = Dataset.load(made() / f"{name}.safetensors").header()
        queries = {"train": 200, "dev": 20}[name]
        about = to_json(record)["data"][name]
        expected = {"name": name, "checksum": header["checksum"], "queries": queries}
        several = {"ms_queries", "solutions_per_ms_query"}
        assert about.keys() == {*expected, *several}  # no machine's path
        assert expected.items() <= about.items()
    assert to_json(from_json(to_json(record), "it")) == to_json(record)


def test_history_has_one_entry_for_every_evaluation_on_dev(run):
    history = read_record(run).history
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["kind"] == "dev"]
    assert {"pretrain-minloss", "pretrain-unique", "joint"} == set(history.phase)
    for key, values in vars(history).items():
        assert values == tuple(line.get(key) for line in lines), key
    for phase, share in zip(history.phase, history.exploratory_all_loss, strict=True):
        assert (share is not None) == (phase == "joint")


def test_evaluations_are_the_predictions(run):
    (name, evaluation), *others = read_record(run).evaluations.items()
    assert (name, others) == ("test", [])
    outcomes, about = load_predictions(run / "predictions" / "test.safetensors")
    for key in ("valid", "total", "givens"):
        np.testing.assert_array_equal(getattr(evaluation, key), getattr(outcomes, key))
    summary = outcomes.summary()
    for subset in ("os", "ms", "overall"):
        assert evaluation.scores.of(subset).as_dict() == summary[subset]
    assert evaluation.listed.as_dict() == summary["listed"]
    assert (evaluation.cell_accuracy, evaluation.chosen, evaluation.checked) == (summary["cell_accuracy"], None, None)
    for key in ("readout", "steps", "starts", "choose", "seed", "seconds", "patience", "batch", "precision", "weights"):
        assert getattr(evaluation, key) == about[key]
    assert to_json(read_record(run))["evaluations"]["test"]["data"] == about["data"]
    assert evaluation.command == "oneofmany evaluate selectr test.safetensors"
    assert evaluation.data.queries == QUERIES


def test_no_machine_path(run):
    record = read_record(run)
    assert record.command == "oneofmany train small/selectr --train train.safetensors --dev=dev.safetensors"
    for place in (run.parent, made()):
        assert str(place) not in json.dumps(to_json(record))


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("oneofmany train a/b --out runs/a/b", "oneofmany train a/b --out runs/a/b"),
        ("x /home/me/data/t.st '/home/me/u.st' --d=/a/b/", "x t.st 'u.st' --d=b/"),
        ("x ../data/t.st", "x ../data/t.st"),
        ("", ""),
    ],
)
def test_only_absolute_paths_are_shortened(run, command, kept):
    config = json.loads((run / "config.json").read_text())
    config["command"] = command
    config["settings"]["pretrained"] = ["/home/me/runs/42", "runs/x/42"]
    (run / "config.json").write_text(json.dumps(config))
    record = read_record(run)
    assert record.command == kept
    assert record.settings["pretrained"] == ["42", "runs/x/42"]


def test_run_without_a_recipe_is_nobody_elses(run):
    config = json.loads((run / "config.json").read_text())
    config["settings"]["recipe"] = ""
    (run / "config.json").write_text(json.dumps(config))
    assert read_record(run).name == "nqueens/selectr/own/7"


def test_unfinished_run(run):
    whole = read_record(run)
    (run / "result.json").unlink()
    record = record_of(run)
    assert record.finished is False
    assert record.updates == whole.updates
    assert record.dev == whole.dev
    assert 0 < record.seconds <= whole.seconds
    # Before the first evaluation there are neither weights nor metrics.
    for file in (run / "weights.safetensors", run / "metrics.jsonl"):
        file.unlink()
    record = record_of(run)
    assert (record.dev, record.updates, record.history.phase) == (None, 0, ())


def test_file_gives_back_the_record(run, tmp_path):
    record, path = read_record(run), tmp_path / "record.json"
    save_record(record, path)
    assert to_json(read_record(path)) == to_json(record)
    assert json.loads(path.read_text()) == json.loads(json.dumps(to_json(record)))
    with pytest.raises(FileError, match="--force"):
        save_record(record, path)
    save_record(replace(record, seed=8), path, force=True)
    assert read_record(path).seed == 8


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 3}, "upgrade"),
        ({"format": None}, "format"),
        ({"evaluations": []}, "evaluations"),
        ({"seed": "7"}, "seed"),
    ],
)
def test_files_that_are_no_records(run, tmp_path, change, words):
    path = tmp_path / "record.json"
    path.write_text(json.dumps(to_json(read_record(run)) | change))
    with pytest.raises(FileError, match=words):
        read_record(path)


def test_what_is_no_record_at_all(run, tmp_path):
    for text, words in (
        ("{", "not JSON"),
        ("[]", "JSON object"),
        ("{}", "not the record"),
        ("[" * 100_000, "not JSON"),
    ):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(FileError, match=words):
            read_record(tmp_path / "x.json")
    for path in (tmp_path / "nothing", tmp_path / "nothing.json", run / "weights.safetensors"):
        with pytest.raises(FileError, match="neither a run folder nor a record"):
            read_record(path)
    with pytest.raises(FileError, match=r"config\.json"):
        read_record(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "result.json", "metrics.jsonl", "weights.safetensors"])
def test_damaged_folder_is_one_sentence(run, name):
    if name == "weights.safetensors":
        (run / "result.json").unlink()
        (run / "predictions" / "test.safetensors").unlink()
    (run / name).write_text('{"format": 1}\n')
    with pytest.raises(FileError, match="damaged") as error:
        read_record(run)
    assert "\n" not in str(error.value)
    assert str(run) in str(error.value)


def test_predictions_of_other_weights_are_refused(run):
    shutil.copy(run.parent / "minloss" / "weights.safetensors", run)
    with pytest.raises(FileError, match=r"other weights .* --force"):
        read_record(run)


@given(st.lists(st.integers(-1, 2**31 - 1), max_size=40))
def test_encoded_numbers(numbers):
    text = packed(np.array(numbers, "<i4").tobytes())
    assert _numbers(text, len(numbers)).tolist() == numbers
    for count in (len(numbers) + 1, len(numbers) - 1):
        if count >= 0:
            with pytest.raises(ValueError, match="numbers"):
                _numbers(text, count)


def packed(data):
    return base64.b64encode(zlib.compress(data)).decode()


def at(value, *keys):
    for key in keys:
        value = value[key]
    return value


def damages():
    """(what is wrong, a function that damages the JSON of a record)."""
    test = ("evaluations", "test")
    yield "no recipe", lambda record: record.pop("recipe")
    yield "seed is text", lambda record: record.update(seed="42")
    yield "seed is a truth value", lambda record: record.update(seed=True)
    yield "settings are a list", lambda record: record.update(settings=[])
    yield "seconds are not a number", lambda record: record.update(seconds=float("nan"))
    yield "seconds have hundreds of digits", lambda record: record.update(seconds=10**400)
    yield "a loss has hundreds of digits", lambda record: record["history"]["loss"].__setitem__(0, 10**400)
    yield "data is a number", lambda record: record.update(data=3)
    yield "train is a list", lambda record: record["data"].update(train=[])
    yield "queries are text", lambda record: record["data"]["train"].update(queries="7")
    yield "dev is text", lambda record: record.update(dev="0.5")
    yield "dev.os is text", lambda record: record["dev"].update(os="0.5")
    yield "history is a list", lambda record: record.update(history=[])
    yield "a column is short", lambda record: record["history"]["loss"].pop()
    yield "an update is text", lambda record: record["history"]["update"].__setitem__(0, "1")
    yield "an evaluation is a number", lambda record: record["evaluations"].update(test=3)
    yield "no bits", lambda record: at(record, *test).pop("valid")
    yield "bits are not base64", lambda record: at(record, *test).update(valid="????")
    yield "totals are not compressed", lambda record: at(record, *test).update(total="AAAA")
    yield "totals are a number", lambda record: at(record, *test).update(total=7)
    yield "givens are cut", lambda record: at(record, *test).update(givens=at(record, *test, "givens")[:-8])
    yield "a score is not the bits'", lambda record: at(record, *test, "overall").update(correct=0)
    yield "more right than there are", lambda record: at(record, *test, "os").update(correct=10**6)
    yield "negative counts", lambda record: at(record, *test, "ms").update(correct=-1)
    yield "OS and MS do not add up", lambda record: at(record, *test, "os").update(total=QUERIES)
    yield "a score is text", lambda record: at(record, *test).update(ms="all")
    yield "more queries than bits", lambda record: at(record, *test, "data").update(queries=QUERIES + 8)
    yield "listed is missing", lambda record: at(record, *test).pop("listed")
    yield "chosen is text", lambda record: at(record, *test).update(chosen="yes")
    yield "steps are text", lambda record: at(record, *test).update(steps="4")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The JSON of a record with an evaluation."""
    folder = tmp_path_factory.mktemp("whole") / "here"
    shutil.copytree(made(), folder)
    evaluate_run(folder / "selectr", folder / "test.safetensors", device="cpu")
    return json.dumps(to_json(read_record(folder / "selectr")))


@pytest.mark.parametrize(("what", "damage"), list(damages()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_damaged_record_gives_one_sentence(whole, tmp_path, what, damage):
    record = json.loads(whole)
    from_json(record, "it")
    damage(record)
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(record))
    with pytest.raises(FileError, match=r"damaged\.json") as error:
        read_record(path)
    assert "\n" not in str(error.value)


def test_bits_of_ms_queries_give_their_score(whole):
    """One right answer is moved from an MS to an OS query: the sum is the same and the parts are not."""
    record = json.loads(whole)
    scores = record["evaluations"]["test"]
    step = 1 if scores["os"]["correct"] else -1
    scores["os"]["correct"] -= step
    scores["ms"]["correct"] += step
    with pytest.raises(FileError, match="MS queries"):
        from_json(record, "it")


def test_a_small_file_cannot_unpack_to_more_than_its_queries_need(whole):
    record = json.loads(whole)
    record["evaluations"]["test"]["total"] = packed(bytes(200_000_000))
    with pytest.raises(FileError, match="numbers"):
        from_json(record, "it")


def test_records_of_the_first_format_are_read(run):
    """Version 1 stored shares, intervals and scores by number of solutions and givens, but no patience and times."""
    record = to_json(read_record(run))
    outcomes, _ = load_predictions(run / "predictions" / "test.safetensors")
    old = json.loads(json.dumps(record | {"format": 1, "name": "small/selectr/7"}))
    old["evaluations"]["test"] |= outcomes.summary()
    del old["history"]["time"], old["evaluations"]["test"]["patience"], old["evaluations"]["test"]["time"]
    read = from_json(old, "old")
    assert read.evaluations["test"].patience is read.evaluations["test"].time is None
    assert read.history.time == (None,) * len(read.history)
    record["history"]["time"] = [None] * len(read.history)
    record["evaluations"]["test"]["time"] = None
    assert to_json(read) == record


def test_a_record_cannot_take_all_memory(whole):
    """Packed zeros take almost no space; they are unpacked only if the record has as many bits (review R8)."""
    record = json.loads(whole)
    test = record["evaluations"]["test"]
    test["data"]["queries"] = 2**24
    test["total"] = packed(bytes(2**26))
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="valid: expected 16777216 bits"):
            from_json(record, "it")
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_flipped_bits_of_predictions_are_found(run):
    file = run / "predictions" / "test.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(FileError, match=r"test\.safetensors.*checksum.*--force"):
        read_record(run)


def test_reading_a_record_file_needs_no_torch(run, tmp_path):
    save_record(read_record(run), tmp_path / "record.json")
    code = "import sys; from oneofmany.evaluation import read_record as read; read(sys.argv[1]); "
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "record.json")], check=True)
