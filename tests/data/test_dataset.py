"""The dataset file: reading returns what was written, and every error is explained."""

import dataclasses
import json
import os
import resource
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneofmany.data.dataset import DTYPES, Dataset
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.files import FileError, write_whole
from oneofmany.problems import Problem, nqueens
from oneofmany.tensor_files import HEADER, sealed, write_tensors


@pytest.fixture(scope="module")
def small():
    return build_futoshiki(4, 9, 2, 30, seed=3)


@pytest.fixture(scope="module")
def content(small, tmp_path_factory):
    path = tmp_path_factory.mktemp("dataset") / "small.safetensors"
    small.save(path)
    return path.read_bytes()


def test_round_trip(small, tmp_path):
    path = tmp_path / "a.safetensors"
    small.save(path)
    again = Dataset.load(path)
    for name in DTYPES:
        assert (getattr(again, name) == getattr(small, name)).all()
        assert getattr(again, name).dtype == DTYPES[name]
    assert again.problem is small.problem
    assert again.built == small.built
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.safetensors"]


def test_header_is_one_canonical_json(content):
    (length,) = struct.unpack("<Q", content[:8])
    metadata = json.loads(content[8 : 8 + length])["__metadata__"]
    assert list(metadata) == [HEADER]
    header = json.loads(metadata[HEADER])
    assert metadata[HEADER] == json.dumps(header, sort_keys=True, separators=(",", ":"))
    assert {"format", "task", "size", "built", "version", "checksum"} <= header.keys()
    assert header["built"]["seed"] == 3


def test_the_checksum_is_that_of_earlier_versions(small, monkeypatch):
    """A run of an earlier version can be resumed, and its records name the same data."""
    pinned = "sha256:db7aabc0f0506d80ebaa8d55389fbe725b548628b68b898bc1e83d2c9838e9c2"
    assert small.header()["checksum"] == pinned
    monkeypatch.setattr("oneofmany.__version__", "9.9.9")
    assert small.header()["checksum"] == pinned


def test_take(small):
    rows = np.array([7, 2, 2])
    part = small.take(rows)
    assert (part.query == small.query[rows]).all()
    for i, row in enumerate(rows):
        assert (part.solutions_of(i) == small.solutions_of(row)).all()


def test_existing_files_are_kept(small, tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_text("mine")
    with pytest.raises(FileError, match=r"exists: choose another name, or overwrite it with --force"):
        small.save(path)
    assert path.read_text() == "mine"
    small.save(path, force=True)
    assert len(Dataset.load(path)) == 30


def test_a_failed_write_leaves_nothing(tmp_path):
    path = tmp_path / "a"
    path.write_text("before")

    def fail(beside):
        beside.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_whole(path, fail, force=True)
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "a"

    def write(beside):
        beside.write_text("ours")
        path.write_text("theirs")

    with pytest.raises(FileError, match="exists"):
        write_whole(path, write)
    assert path.read_text() == "theirs"


def test_a_file_system_that_is_full(small, tmp_path):
    """A limit on the size of files replaces a full disk: the write fails in the middle."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            small.save(tmp_path / "a.safetensors")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert list(tmp_path.iterdir()) == []


@given(data=st.data())
def test_any_altered_byte_is_noticed(content, tmp_path_factory, data):
    place = data.draw(st.integers(0, len(content) - 1))
    value = data.draw(st.integers(0, 255).filter(lambda v: v != content[place]))
    altered = content[:place] + bytes([value]) + content[place + 1 :]
    path = tmp_path_factory.mktemp("altered") / "a.safetensors"
    path.write_bytes(altered)
    (length,) = struct.unpack("<Q", content[:8])
    try:
        again = Dataset.load(path)
    except FileError as error:
        assert str(path) in str(error)  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
    else:  # only a change without meaning may pass: JSON padding of the container, for example
        assert place < 8 + length
        assert len(again) == 30


@given(st.integers(0, 100))
def test_any_truncation_is_noticed(content, tmp_path_factory, percent):
    path = tmp_path_factory.mktemp("short") / "a.safetensors"
    path.write_bytes(content[: len(content) * percent // 101])
    with pytest.raises(FileError):
        Dataset.load(path)


@given(st.binary(max_size=200))
def test_garbage_is_refused(tmp_path_factory, garbage):
    path = tmp_path_factory.mktemp("garbage") / "a.safetensors"
    path.write_bytes(garbage)
    with pytest.raises(FileError):
        Dataset.load(path)


def rewritten(content, change):
    """The file with a changed header but intact tensors."""
    (length,) = struct.unpack("<Q", content[:8])
    container = json.loads(content[8 : 8 + length])
    header = json.loads(container["__metadata__"][HEADER])
    change(header)
    container["__metadata__"] = {HEADER: json.dumps(header)}
    text = json.dumps(container).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + content[8 + length :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(format=3), "format version 3, newer than 2"),
        (lambda h: h.update(format="x"), "damaged or not a dataset: its format version is 'x'"),
        (lambda h: h.update(size=5), "does not match its checksum"),
        (lambda h: h.update(checksum="sha256:0"), "does not match its checksum"),
        (lambda h: h.pop("task"), "does not match its checksum"),
        (lambda h: h.pop("checksum"), "damaged or not a dataset"),
        (lambda h: h.pop("format"), "damaged or not a dataset"),
        (lambda h: h.clear(), "damaged or not a dataset"),
    ],
)
def test_altered_headers(content, tmp_path, change, message):
    path = tmp_path / "a.safetensors"
    path.write_bytes(rewritten(content, change))
    with pytest.raises(FileError, match=message):
        Dataset.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"task": "own", "variables": 10**9, "values": 2},
            "it names 1000000000 variables of 2 values, expected at most",
        ),
        ({"task": "own", "variables": 10**30, "values": 255}, "expected at most 4194304 choices"),
        ({"size": 10**9, "variables": 10**9}, "size: expected a Futoshiki of 1 to 25 values, got 1000000000"),
    ],
)
def test_sizes_that_a_small_file_names(small, tmp_path, changes, message):
    """With a checksum that fits: the sizes are compared before memory is taken (review R8)."""
    about = {key: value for key, value in small.header().items() if key != "checksum"} | changes
    tensors = {name: getattr(small, name) for name in DTYPES} | {"query": np.zeros((0, 10**9), np.uint8)}
    write_tensors(tmp_path / "a", tensors, sealed(about, tensors))
    assert (tmp_path / "a").stat().st_size < 10**6
    with pytest.raises(FileError, match=message):
        Dataset.load(tmp_path / "a")


def test_a_safetensors_file_of_something_else(tmp_path):
    from safetensors.numpy import save_file

    path = tmp_path / "a.safetensors"
    save_file({"weight": np.zeros(3)}, path)
    with pytest.raises(FileError, match="not a dataset"):
        Dataset.load(path)


def test_missing_files_and_folders(small, tmp_path):
    with pytest.raises(FileError, match="is not a file"):
        Dataset.load(tmp_path / "none")
    with pytest.raises(FileError, match="is not a file"):
        Dataset.load(tmp_path)
    with pytest.raises(FileError, match="is not a directory"):
        small.save(tmp_path / "none" / "a.safetensors")
    with pytest.raises(FileError, match="is a directory"):
        small.save(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(small, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="cannot be written"):
        small.save(tmp_path / "a.safetensors")


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("query", lambda a: a[:, :-1], "query: expected"),
        ("query", lambda a: a + 9, "query: expected values"),
        ("solutions", lambda a: a * 0, "solutions: expected values"),
        ("solutions", lambda a: a[:, ::-1], "does not keep the givens"),
        ("offsets", lambda a: a[::-1], "offsets do not rise"),
        ("offsets", lambda a: a[:-1], "offsets: expected"),
        ("total", lambda a: a * 0, "fewer solutions than are listed"),
        ("group", lambda a: a[:-1], "total and group"),
        ("relations", lambda a: a + 100, "relations: expected variables"),
        ("relations", lambda a: np.concatenate([a, a], 1), "lists a pair twice"),
        ("relations", lambda a: np.where(np.arange(2) == 0, a, -1), "half of a pair"),
    ],
)
def test_tensors_that_do_not_fit(small, field, change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(small, **{field: change(getattr(small, field))})


def test_a_task_of_ones_own(tmp_path):
    board = build_nqueens(5, 2)
    mine = Problem("mine", 5, 5, 5, nqueens(5).rules)
    dataclasses.replace(board, problem=mine).save(tmp_path / "a.safetensors")
    assert Dataset.load(tmp_path / "a.safetensors").problem.task == "mine"
    assert Dataset.load(tmp_path / "a.safetensors", mine).problem is mine
    with pytest.raises(FileError, match="does not fit"):
        Dataset.load(tmp_path / "a.safetensors", nqueens(6))
