"""The minutes and accuracies in the package are those of the published records."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reproduction.measured import FILE, measured_json
from reproduction.runs import RECORDS, read_published

ROOT = Path(__file__).parents[2]


def test_the_file_is_that_of_the_records():
    """Computed here from the JSON of the records."""
    found = json.loads((ROOT / FILE).read_text())
    runs = {}
    for path in sorted(RECORDS.rglob("*-table-2-*.json")):
        record = json.loads(path.read_text())
        if path.parent.name == "paper":
            runs.setdefault(record["recipe"], []).append(record)
    assert len(runs) == 21
    for name, records in runs.items():
        overall = [one["evaluations"][f"{one['task']}-test"]["overall"] for one in records]
        accuracy = sum(100 * score["correct"] / score["total"] for score in overall) / len(overall)
        assert found[name]["accuracy"] == pytest.approx(accuracy, abs=0.006)
        assert found[name]["minutes"] == pytest.approx(sum(one["seconds"] for one in records) / 180, abs=0.06)
        assert found[name]["seeds"] == 3
        assert found[name]["device"] == records[0]["environment"]["device"]
        assert found[name]["pretrained"] == bool(records[0]["settings"]["pretrained"])


def test_repeated_runs_do_not_count_twice():
    records = read_published(RECORDS / "paper")
    name = "nqueens/minloss/table-2"
    own = [record for record in records if record.recipe == name and not record.apart]
    text = measured_json([*own, *own])
    assert json.loads(text)[name]["seeds"] == len(own) == 3
    assert measured_json([]) == "{\n\n}\n"


def test_the_fresh_test_counts_where_all_seeds_have_it():
    records = [r for r in read_published(RECORDS / "ours") if r.recipe == "sudoku/minloss/equivariant"]
    shares = {
        name: [100 * r.evaluations[f"sudoku{name}-test"].valid.mean() for r in records] for name in ("-fresh", "")
    }
    found = json.loads(measured_json(records))["sudoku/minloss/equivariant"]
    assert found["accuracy"] == pytest.approx(sum(shares["-fresh"]) / 3, abs=0.006)
    first = [replace(r, evaluations={"sudoku-test": r.evaluations["sudoku-test"]}) for r in records[:1]]
    found = json.loads(measured_json([*first, *records[1:]]))["sudoku/minloss/equivariant"]
    assert found["accuracy"] == pytest.approx(sum(shares[""]) / 3, abs=0.006)
