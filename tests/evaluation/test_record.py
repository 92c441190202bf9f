"""The record holds what the run folder and its predictions hold, and no place on a machine."""

import json
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluated_runs import QUERIES, made
from oneofmany.data.dataset import Dataset
from oneofmany.evaluating import evaluate_run
from oneofmany.evaluation import load_predictions
from oneofmany.files import FileError
from oneofmany.report.records import check_record
from oneofmany.runs import RunFolder, decode, read_record, record_of, save_record, valid_bits
from oneofmany.runs.record import encode

KEYS = (
    "format name recipe task objective network seed settings command environment data seconds updates finished dev "
    "history evaluations"
)


@pytest.fixture
def run(tmp_path):
    """A SelectR run with an evaluation, of its own for every test."""
    shutil.copytree(made(), tmp_path / "here")
    evaluate_run(tmp_path / "here" / "selectr", tmp_path / "here" / "test.safetensors", device="cpu")
    return tmp_path / "here" / "selectr"


def test_record_has_all_of_the_run(run):
    record = read_record(run)
    config, result = (json.loads((run / f"{name}.json").read_text()) for name in ("config", "result"))
    assert list(record) == KEYS.split()
    assert (record.name, record.recipe, record.seed) == ("small/selectr/7", "small/selectr", 7)
    assert (record.task, record.objective, record.network) == ("nqueens", "selectr", "equivariant")
    assert record.settings == config["settings"]
    assert record.environment == config["environment"]
    assert (record.seconds, record.updates) == (result["seconds"], result["updates"])
    assert record.finished is True
    assert record.dev == {key: value for key, value in result["dev"].items() if key != "score"}
    for name in ("train", "dev"):
        header = Dataset.load(made() / f"{name}.safetensors").header()
        queries = {"train": 200, "dev": 20}[name]
        about = record["data"][name]
        expected = {"name": name, "checksum": header["checksum"], "queries": queries}
        several = {"ms_queries", "solutions_per_ms_query"}
        assert about.keys() == {*expected, *several}  # no machine's path
        assert expected.items() <= about.items()
    assert check_record(record, "it") is record


def test_history_has_one_entry_for_every_evaluation_on_dev(run):
    history = read_record(run)["history"]
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["kind"] == "dev"]
    assert {"pretrain-minloss", "pretrain-unique", "joint"} == set(history["phase"])
    for key, values in history.items():
        assert values == [line.get(key) for line in lines], key
    for phase, share in zip(history["phase"], history["exploratory_all_loss"], strict=True):
        assert (share is not None) == (phase == "joint")


def test_evaluations_are_the_predictions(run):
    (name, evaluation), *others = read_record(run)["evaluations"].items()
    assert (name, others) == ("test", [])
    outcomes, about = load_predictions(run / "predictions" / "test.safetensors")
    np.testing.assert_array_equal(valid_bits(evaluation), outcomes.valid)
    np.testing.assert_array_equal(decode(evaluation["total"]), outcomes.total)
    np.testing.assert_array_equal(decode(evaluation["givens"]), outcomes.givens)
    for key, value in outcomes.summary().items():
        assert evaluation[key] == value
    for key in ("readout", "steps", "starts", "choose", "seed", "seconds", "data"):
        assert evaluation[key] == about[key]
    assert evaluation["command"] == "oneofmany evaluate selectr test.safetensors"
    assert evaluation["data"]["queries"] == QUERIES


def test_no_machine_path(run):
    record = read_record(run)
    assert record.command == "oneofmany train small/selectr --train train.safetensors --dev=dev.safetensors"
    for place in (run.parent, made()):
        assert str(place) not in json.dumps(record)


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
    assert read_record(run)["name"] == "nqueens/selectr/own/7"


def test_unfinished_run(run):
    whole = read_record(run)
    (run / "result.json").unlink()
    record = record_of(RunFolder.open(run))
    assert record.finished is False
    assert record.updates == whole["updates"]
    assert record.dev == whole["dev"]
    assert 0 < record.seconds <= whole["seconds"]
    # Before the first evaluation there are neither weights nor metrics.
    for file in (run / "weights.safetensors", run / "metrics.jsonl"):
        file.unlink()
    record = record_of(RunFolder.open(run))
    assert (record.dev, record.updates, record.history["phase"]) == (None, 0, [])
    check_record(record, "it")


def test_file_gives_back_the_record(run, tmp_path):
    record, path = read_record(run), tmp_path / "record.json"
    save_record(record, path)
    assert read_record(path) == record
    assert json.loads(path.read_text()) == record
    with pytest.raises(FileError, match="--force"):
        save_record(record, path)
    save_record(record | {"seed": 8}, path, force=True)
    assert read_record(path)["seed"] == 8


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "upgrade"),
        ({"format": None}, "format"),
        ({"evaluations": []}, "evaluations"),
        ({"seed": "7"}, "seed"),
    ],
)
def test_files_that_are_no_records(run, tmp_path, change, words):
    path = tmp_path / "record.json"
    save_record(read_record(run) | change, path)
    with pytest.raises(FileError, match=words):
        read_record(path)


def test_what_is_no_record_at_all(run, tmp_path):
    for text, words in (("{", "no JSON"), ("[]", "JSON object"), ("{}", "no record")):
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
    assert decode(encode(np.array(numbers, np.int32))).tolist() == numbers


def test_bits_must_be_as_many_as_queries(run):
    evaluation = read_record(run)["evaluations"]["test"]
    with pytest.raises(ValueError, match="bits"):
        valid_bits(evaluation | {"data": {"queries": QUERIES + 8}})
