"""Locks: one owner at a time, the dead and the silent are replaced by exactly one, and the replaced find out."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from oneofmany.runs import lock as module
from oneofmany.runs.lock import LIMIT, Lock, Locked, LostLock, owner_of

HOLD = (
    "import sys, time; from oneofmany.runs.lock import Lock; Lock(sys.argv[1]).acquire(); print('has it', flush=True)"
)


def holder(path, then="time.sleep(60)"):
    """A process that has taken the lock."""
    process = subprocess.Popen([sys.executable, "-c", f"{HOLD}; {then}", str(path)], stdout=subprocess.PIPE, text=True)
    with process.stdout as said:
        assert said.readline() == "has it\n"
    return process


def write(path, number=1, age=0.0, **changes):
    """The file of a lock that this process does not hold."""
    about = {**vars(module._this_process("theirs")), **changes}
    file = path.with_name(f"{path.name}.{number}")
    file.write_text(json.dumps(about))
    os.utime(file, (time.time() - age,) * 2)
    return file


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".lock"


def test_one_at_a_time_and_nothing_stays(path):
    assert owner_of(path) is None
    with Lock(path):
        assert owner_of(path).pid == os.getpid()
        with pytest.raises(Locked, match=rf"{path.parent} is in use by \S+ on \S+ \(process {os.getpid()}\): wait"):
            Lock(path).acquire()
        with Lock(path.with_name(".other"), "the other"):
            assert owner_of(path) is not None
        with pytest.raises(Locked, match=r"^the log is in use by"):
            Lock(path, "the log").acquire()
    assert owner_of(path) is None
    assert list(path.parent.iterdir()) == []
    with Lock(path):
        pass


def test_the_lock_of_a_living_process_stays(path):
    process = holder(path)
    with pytest.raises(Locked, match=rf"process {process.pid}\): wait until that process has ended$"):
        Lock(path).acquire()
    # A process of this machine keeps its lock for as long as it lives, suspended for hours or not.
    process.send_signal(signal.SIGSTOP)
    (file,) = path.parent.iterdir()
    os.utime(file, (0, 0))
    assert owner_of(path).pid == process.pid
    process.kill()
    process.wait()
    with Lock(path):
        assert [file.name for file in path.parent.iterdir()] == [".lock.2"]


def test_a_killed_process_that_nobody_waited_for_is_dead_too(path):
    process = holder(path)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
    with Lock(path):
        pass
    process.wait()


@pytest.mark.parametrize(
    ("changes", "age", "stale"),
    [
        ({"pid": 1, "started": 0}, 0, True),  # another process has its number now
        ({"pid": 2**22 + 1}, 0, True),  # there is no such process
        ({}, 0, True),  # the number of this process, which does not have it
        ({"machine": "elsewhere"}, LIMIT - 60, False),
        ({"machine": "elsewhere"}, LIMIT + 60, True),
        ({"machine": "elsewhere"}, -LIMIT - 60, True),  # a copy with a time of its own
        ({"pid": "x"}, 0, False),  # its content is not there yet
        ({"pid": "x"}, LIMIT + 60, True),
    ],
)
def test_stale_or_not(path, changes, age, stale):
    write(path, 7, age, **changes)
    assert (owner_of(path) is None) == stale
    if stale:
        with Lock(path):
            assert [file.name for file in path.parent.iterdir()] == [".lock.8"]
    else:
        with pytest.raises(Locked, match=r"is in use by .*, or until its lock shows no sign of life for 300 s$"):
            Lock(path).acquire()
        assert [file.name for file in path.parent.iterdir()] == [".lock.7"]


def test_signs_of_life(path, monkeypatch):
    monkeypatch.setattr(module, "BEAT", 0.01)
    with Lock(path):
        (file,) = path.parent.iterdir()
        for _ in range(3):
            os.utime(file, (0, 0))
            while file.stat().st_mtime == 0:
                time.sleep(0.005)


def test_who_lost_the_lock_finds_out_and_leaves_the_new_one(path, monkeypatch):
    mine = Lock(path)
    mine.acquire()
    mine.check()
    (file,) = path.parent.iterdir()
    # For the other machine, this process is on another machine and was silent.
    monkeypatch.setattr(module, "_machine", lambda: "elsewhere")
    os.utime(file, (0, 0))
    theirs = Lock(path)
    theirs.acquire()
    with pytest.raises(LostLock, match="was taken over by another process"):
        mine.check()
    mine.release()
    theirs.check()
    theirs.release()
    assert list(path.parent.iterdir()) == []


def test_without_hard_links(path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    write(path, 3, pid=2**22 + 1)
    with Lock(path):
        assert owner_of(path).pid == os.getpid()
        with pytest.raises(Locked):
            Lock(path).acquire()
    assert list(path.parent.iterdir()) == []


def test_a_lock_that_was_given_back_and_taken_again_meanwhile(path, monkeypatch):
    """A process lists the files, and is interrupted: number 1, which it saw, is given back and taken by another."""
    first, other = Lock(path), Lock(path)
    first.acquire()
    real = module._files
    listed = []

    def interrupted(where):
        files = real(where)
        if not listed:
            listed.append(files)
            first.release()
            other.acquire()
        return files

    monkeypatch.setattr(module, "_files", interrupted)
    monkeypatch.setattr(module, "_owner", lambda file, now, real=module._owner: _once_gone(listed, file, now, real))
    with pytest.raises(Locked):
        Lock(path).acquire()
    other.check()
    other.release()


def _once_gone(listed, file, now, real):
    """The first look after the first list finds the file gone, as just before it was created again."""
    if listed and file in listed[0].values():
        listed[0] = {}
        return None
    return real(file, now)


def die(lock):
    """Leave the lock as a killed process does."""
    lock._ending.set()
    beside = lock._file.with_name(f"{lock._token}.dead")
    beside.write_text(json.dumps(json.loads(lock._file.read_text()) | {"pid": 2**22 + 1}))
    beside.replace(lock._file)
    module._held.discard(lock._token)


def test_many_at_once_on_stale_locks(path):
    """Threads that fight for a lock whose owners die most of the time: never two at once."""
    inside, wins, together = [], [], threading.Barrier(6)

    def fight():
        together.wait()
        for _ in range(25):
            lock = Lock(path)
            try:
                lock.acquire()
            except Locked:
                continue
            inside.append(lock)
            time.sleep(0.001)
            wins.append(len(inside))
            inside.remove(lock)
            if len(wins) % 3:
                die(lock)
            else:
                lock.release()

    threads = [threading.Thread(target=fight) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wins) > 6
    assert set(wins) == {1}


def test_exactly_one_thread_takes_over(path):
    write(path, pid=2**22 + 1)
    outcomes, together = [], threading.Barrier(8)

    def take():
        together.wait()
        lock = Lock(path)
        try:
            lock.acquire()
            outcomes.append(lock)
        except Locked as error:
            outcomes.append(error)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = (one for one in outcomes if isinstance(one, Lock))
    assert len(outcomes) == 8
    winner.release()
    assert list(path.parent.iterdir()) == []
