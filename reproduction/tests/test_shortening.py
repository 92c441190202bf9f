"""Commands of a sweep become recipe and seed, if nothing else differs."""

from dataclasses import replace

import pytest

from oneofmany.evaluation.record_file import read_record, save_record
from reproduction.runs import RECORDS
from reproduction.shortening import shorten, shortened

PATH = RECORDS / "ours" / "nqueens-unique-equivariant-42.json"


def long(record):
    """The record as a sweep on another machine leaves it."""
    evaluations = {
        name: replace(one, command=f"oneofmany evaluate /x/42 /y/{one.data.name}.safetensors --steps=64", made_by=None)
        for name, one in record.evaluations.items()
    }
    return replace(record, command="oneofmany train RECIPE --data /y", made_by=None, evaluations=evaluations)


def test_commands_are_shortened_once_and_the_originals_kept(tmp_path):
    record = long(read_record(PATH))
    save_record(record, tmp_path / "one.json")
    assert shorten(tmp_path) == ["one.json"]
    found = read_record(tmp_path / "one.json")
    assert found.command == "oneofmany train nqueens/unique/equivariant --seed 42"
    assert found.made_by == record.command
    evaluation = found.evaluations["nqueens-test"]
    run = "runs/nqueens/unique/equivariant/42"
    assert evaluation.command == f"oneofmany evaluate {run} data/nqueens-test.safetensors --steps=64"
    assert evaluation.made_by == record.evaluations["nqueens-test"].command
    assert (evaluation.valid == record.evaluations["nqueens-test"].valid).all()
    assert shorten(tmp_path) == []
    assert shortened(found).made_by == record.command


def test_other_settings_and_data_are_refused():
    record = read_record(PATH)
    with pytest.raises(ValueError, match="settings of its recipe: decay"):
        shortened(replace(record, settings=record.settings | {"decay": 0.5}))
    other = record.data | {"train": replace(record.data["train"], name="mine")}
    with pytest.raises(ValueError, match="expected the data nqueens-train, nqueens-dev, got mine"):
        shortened(replace(record, data=other))
