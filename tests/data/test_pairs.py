"""Import of your own pairs, and export."""

import contextlib
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
        ([("2 . . y", "2 4 1 3")], "nqueens", "row 4 of 4"),
        ([([2, 0, 0, 0], "2 4 1 3")], "nqueens", "expected the text form of nqueens"),
        ([("2 . . .", "2 4 1 3"), (". . . . .", "1 3 5 2 4")], "nqueens", "pair 2 .* it is a query of"),
    ],
)
def test_bad_pairs(tmp_path, pairs, task, message):
    with pytest.raises(FileError, match=message):
        import_pairs(write(tmp_path / "p.jsonl", pairs), task)


def test_bad_files(tmp_path):
    for name, content, message in [
        ("a.jsonl", "", "expected at least one pair, got none"),
        ("b.jsonl", '{"input": [0], "output": [1]}\n{"input": ', "line 2 of .* is not JSON"),
        ("c.jsonl", "[1, 2]", "fields input and output"),
        ("d.jsonl", '{"input": [0]}', "fields input and output"),
        ("e.csv", "input,output", "expected at least one pair, got none"),
        ("e.txt", "", "ends in .jsonl, .parquet, .csv or .tsv"),
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


def test_parquet_of_texts_and_lists(tmp_path):
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    texts = {"input": [".2", "0A"] * 400, "output": ["12", "1A"] * 400}
    lists = {"input": [[0, 2], [0, 10]] * 400, "output": [[1, 2], [1, 10]] * 400}
    for number, columns in enumerate((texts, lists, texts | {"note": [None] * 800})):
        path = tmp_path / f"{number}.parquet"
        parquet.write_table(pyarrow.table(columns), path)
        dataset, summary = import_pairs(path)
        assert dataset.solutions.tolist() == [[1, 2], [1, 10]]
        assert (summary.pairs, summary.repeated_pairs) == (800, 798)
    for columns, message in (
        ({"input": ["1"]}, "it has no column output"),
        ({"input": [1], "output": [1]}, "input: expected a list of integers"),
        ({"input": [1.5], "output": [1]}, "expected texts, integers or lists of them, got double"),
        ({"input": [None, "1"], "output": ["1", "1"]}, "input: expected a list of integers"),
    ):
        parquet.write_table(pyarrow.table(columns), tmp_path / "bad.parquet")
        with pytest.raises(FileError, match=message):
            import_pairs(tmp_path / "bad.parquet")
    good = path.read_bytes()
    for place in range(0, len(good), 13):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x24]) + good[place + 1 :])
        with contextlib.suppress(FileError):  # any other error is a failure
            import_pairs(path)


def test_a_small_parquet_file_cannot_take_all_memory(tmp_path, monkeypatch):
    """Equal values take no space in the file (review R8)."""
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    path = tmp_path / "bomb.parquet"

    def refuse(column, message, **how):
        parquet.write_table(pyarrow.table({"input": column, "output": column}), path, compression="zstd", **how)
        with pytest.raises(FileError, match=message):
            import_pairs(path)

    zeros = pyarrow.array(np.zeros(3_000_000, np.uint8))
    refuse(pyarrow.ListArray.from_arrays([0, len(zeros)], zeros), "names at least 6000000 values .* has only 9.. bytes")
    refuse(["0" * 3_000_000], "values or characters, but has only", use_dictionary=False)
    repeated = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(20_000, np.int32)), ["1" * 2000])
    refuse(repeated, "names at least [0-9]+ values or characters, but has only")
    monkeypatch.setattr("oneofmany.data.parquet.PER_BYTE", 10**9)
    refuse(["0" * 3_000_000], "a row has 3000000 characters or values, expected at most 262144")
    refuse(pyarrow.ListArray.from_arrays([0, len(zeros)], zeros), "a row has 3000000 characters or values")
    monkeypatch.setattr("oneofmany.data.parquet.LARGEST_GROUP", 10**6)
    refuse(pyarrow.ListArray.from_arrays([0, len(zeros)], zeros), "a row group has 3000000 values")
    monkeypatch.setattr("oneofmany.data.parquet.LARGEST_BYTES", 10**6)
    refuse(["0" * 3_000_000], "a column of a row group has 30000.. bytes, expected at most 1000000")
