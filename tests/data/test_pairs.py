"""Import of your own pairs, and export."""

import json
import sys

import numpy as np
import pytest

from oneofmany.data.dataset import Dataset
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.pairs import export_parquet, import_pairs
from oneofmany.files import FileError


def write(path, pairs):
    path.write_text("\n".join(json.dumps({"input": i, "output": o, "note": "more is ignored"}) for i, o in pairs))
    return path


def test_grouping(tmp_path):
    path = write(
        tmp_path / "p.jsonl",
        [([0, 2], [1, 2]), ([0, 0], [3, 1]), ([0, 2], [3, 2]), ([0, 2], [1, 2]), ([0, 0], [1, 1])],
    )
    dataset, summary = import_pairs(path)
    assert dataset.query.tolist() == [[0, 2], [0, 0]]
    assert dataset.solutions.tolist() == [[1, 2], [3, 2], [3, 1], [1, 1]]
    assert dataset.offsets.tolist() == [0, 2, 4]
    assert dataset.total.tolist() == [-1, -1]
    assert (dataset.problem.variables, dataset.problem.values) == (2, 3)
    assert (summary.pairs, summary.repeated_pairs, summary.queries, summary.ms_queries) == (5, 1, 2, 2)
    assert "2 inputs (100.0%) have several answers" in summary.sentence()
    dataset.save(tmp_path / "p.safetensors")
    assert Dataset.load(tmp_path / "p.safetensors").multiple.tolist() == [True, True]


def test_texts_without_a_task(tmp_path):
    dataset, summary = import_pairs(write(tmp_path / "p.jsonl", [(".2", "12"), ("0A", "1A")]))
    assert dataset.solutions.tolist() == [[1, 2], [1, 10]]
    assert "ordinary supervised learning" in summary.sentence()


@pytest.mark.parametrize("task", ["nqueens", "futoshiki"])
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_task_round_trip(tmp_path, task, suffix):
    dataset = build_nqueens(6, 4, seed=1) if task == "nqueens" else build_futoshiki(4, 9, 2, 40, seed=1)
    export_parquet(dataset, tmp_path / "p.parquet", pairs=True)
    path = tmp_path / "p.parquet"
    if suffix == "jsonl":
        from pyarrow import parquet

        rows = parquet.read_table(path).to_pylist()
        path = write(tmp_path / "p.jsonl", [(row["input"], row["output"]) for row in rows])
    again, _ = import_pairs(path, task)
    assert (again.query == dataset.query).all()
    assert (again.solutions == dataset.solutions).all()
    assert (again.total == dataset.total).all()
    for ours, theirs in zip(again.relations, dataset.relations, strict=True):
        assert sorted(ours[ours[:, 0] >= 0].tolist()) == sorted(theirs[theirs[:, 0] >= 0].tolist())


def test_parquet_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "p.parquet"
    sentence = r"pyarrow is needed for Parquet files and is not installed: pip install 'oneofmany\[parquet\]'"
    with pytest.raises(ValueError, match=sentence):
        export_parquet(build_nqueens(6, 4), path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=sentence):
        import_pairs(path)


def test_parquet_of_queries(tmp_path):
    from pyarrow import parquet

    dataset = build_futoshiki(4, 9, 2, 40, seed=1)
    export_parquet(dataset, tmp_path / "q.parquet")
    rows = parquet.read_table(tmp_path / "q.parquet").to_pylist()
    assert np.array([row["query"] for row in rows]).tolist() == dataset.query.tolist()
    assert [row["solutions"] for row in rows] == [dataset.solutions_of(i).tolist() for i in range(40)]
    assert [row["total"] for row in rows] == dataset.total.tolist()
    with pytest.raises(FileError, match="exists"):
        export_parquet(dataset, tmp_path / "q.parquet")


@pytest.mark.parametrize(
    ("pairs", "task", "message"),
    [
        ([([0], [1]), ([0, 0], [1, 1])], None, "pair 2 .* 2 and 2 variables, expected 1"),
        ([([0], [1, 1])], None, "pair 1 .* 1 and 2 variables"),
        ([([2], [1])], None, "does not keep the givens"),
        ([([0], [0])], None, "a variable is blank"),
        ([([0], [300])], None, "output: expected a list of integers"),
        ([([0], [-1])], None, "output: expected a list of integers"),
        ([([0], [True])], None, "output: expected a list of integers"),
        ([([[0]], [1])], None, "input: expected a list of integers"),
        ([(5, [1])], None, "input: expected a list of integers"),
        ([("2 . . .", "2 4 1 2")], "nqueens", "pair 1 .* not a solution"),
        ([("2 . . .", "2 1 3")], "nqueens", "not a solution"),
        ([("2 . . x", "2 4 1 3")], "nqueens", "row 4 of 4"),
        ([([2, 0, 0, 0], "2 4 1 3")], "nqueens", "expected the text form of nqueens"),
        ([("2 . . .", "2 4 1 3"), (". . . . .", "1 3 5 2 4")], "nqueens", "pair 2 .* it is a query of"),
    ],
)
def test_bad_pairs(tmp_path, pairs, task, message):
    with pytest.raises(FileError, match=message):
        import_pairs(write(tmp_path / "p.jsonl", pairs), task)


def test_bad_files(tmp_path):
    for name, content, message in [
        ("a.jsonl", "", "has no pairs"),
        ("b.jsonl", '{"input": [0], "output": [1]}\n{"input": ', "line 2 of .* is not JSON"),
        ("c.jsonl", "[1, 2]", "fields input and output"),
        ("d.jsonl", '{"input": [0]}', "fields input and output"),
        ("e.csv", "input,output", "ends in .jsonl or .parquet"),
        ("f.parquet", "no parquet", "cannot be read as Parquet"),
    ]:
        (tmp_path / name).write_text(content)
        with pytest.raises(FileError, match=message):
            import_pairs(tmp_path / name)
    (tmp_path / "g.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="is not text"):
        import_pairs(tmp_path / "g.jsonl")
    with pytest.raises(FileError, match="is not a file"):
        import_pairs(tmp_path / "missing.jsonl")
    with pytest.raises(ValueError, match="task: expected one of"):
        import_pairs(tmp_path / "a.jsonl", "chess")
