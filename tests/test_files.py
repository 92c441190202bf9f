"""Files are written whole or not at all; only regular files are replaced; what killed processes left is deleted."""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import oneofmany.files as files
from oneofmany.data.nqueens import build_nqueens
from oneofmany.evaluation import read_record
from oneofmany.files import FileError, canonical_json, check_writable, read_json, write_whole
from oneofmany.networks.saved import load_network
from oneofmany.tensor_files import read_tensors


def write(path, text="new", force=False):
    write_whole(path, lambda beside: beside.write_text(text), force)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_what_is_not_a_regular_file_is_never_replaced(tmp_path, kind, force):
    path = tmp_path / "out"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.relpath(path))
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except OSError:
            pytest.skip("no device can be made here")
    before = path.stat()
    link = tmp_path / "link"
    link.symlink_to(path)
    for one in (path, link):
        for refused in (check_writable, write):
            with pytest.raises(FileError, match=rf"^{one} is not a regular file, .*: choose another name$"):
                refused(one, force=force)
    assert (path.stat().st_mode, path.stat().st_ino) == (before.st_mode, before.st_ino)
    assert link.is_symlink()


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "file", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with pytest.raises(FileError, match="exists"):
        write(link)
    write(link, force=True)
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["far", "file", "link"]


WRITER = """
import sys, time
from oneofmany.files import write_whole

def slow(beside):
    beside.write_text("half")
    print(beside, flush=True)
    sys.stdin.readline()

write_whole(sys.argv[1], slow, True)
"""


@contextmanager
def writer(path):
    """A process that is in the middle of writing a file, and its temporary file."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_is_deleted_and_what_a_running_one_writes_is_not(tmp_path):
    path = tmp_path / "file"
    with writer(path) as (killed, left), writer(path) as (running, its):
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert left.read_text() == its.read_text() == "half"
        write(tmp_path / "other")
        assert left.exists()
        write(path)
        assert not left.exists()
        assert its.exists()
        running.communicate("\n")
    assert path.read_text() == "half"
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "other"]


def test_files_of_other_machines_are_deleted_after_a_day(tmp_path, monkeypatch):
    for name in (".file.abc.part", f".file.abc.{'0' * 8}.part"):
        left = tmp_path / name
        left.write_text("half")
        write(tmp_path / "file", force=True)
        assert left.exists()
        yesterday = time.time() - 90_000
        os.utime(left, (yesterday, yesterday))
        write(tmp_path / "file", force=True)
        assert not left.exists()
    # A file system without locks: nothing is known about the process, so nothing is deleted.
    old = tmp_path / f".file.abc.{files._machine()}.part"
    old.write_text("half")
    monkeypatch.setattr(files, "_locked", lambda handle, wait: False)
    write(tmp_path / "file", force=True)
    assert old.exists()


def test_a_new_file_that_was_taken_for_a_left_one_is_made_again(tmp_path, monkeypatch):
    real, made = tempfile.mkstemp, []

    def mkstemp(**arguments):
        handle, name = real(**arguments)
        made.append(name)
        if len(made) == 1:  # another process deletes it before it is locked
            os.unlink(name)
        return handle, name

    monkeypatch.setattr(tempfile, "mkstemp", mkstemp)
    write(tmp_path / "file")
    assert len(made) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@contextmanager
def as_somebody_else():
    """Without the rights of root, who may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_may_not_be_read_is_not_called_missing():
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        folder = Path(place)
        folder.chmod(0o755)
        path = folder / "data.safetensors"
        build_nqueens(4, 2, seed=1).save(path)
        (folder / "record.json").write_text("{}")
        readers = (
            (path, lambda: read_tensors(path, otherwise="not a thing", newest=1, framework="numpy")),
            (path, lambda: load_network(path)),
            (folder / "record.json", lambda: read_json(folder / "record.json")),
            (folder / "record.json", lambda: read_record(folder / "record.json")),
        )
        for file in folder.iterdir():
            file.chmod(0)
        for file, read in readers:
            with as_somebody_else(), pytest.raises(FileError, match=rf"^{file} cannot be read: Permission denied$"):
                read()


def test_headers_take_numbers_and_arrays_of_numpy():
    assert canonical_json({"b": np.int64(3), "a": np.arange(2)}) == '{"a":[0,1],"b":3}'
    with pytest.raises(ValueError, match="a header: expected numbers, texts, lists and dicts of them, got a set"):
        canonical_json({"a": {1}})
