"""Locks for folders on local and network storage: one writer at a time, by the atomic creation of a file.

    with Lock("runs/first/.lock"):       # FileError that names the owner if somebody else has it
        ...                              # write

There is no ``flock``, which network storage may not pass on to other machines. The lock ``PATH`` is a file
``PATH.NUMBER`` that names its owner, who changes the file's time every ``BEAT`` seconds as a sign of life.

A lock is stale if its owner is a process of this machine that has ended, or one of another machine without a sign of
life for ``LIMIT`` seconds. To take over the stale lock ``PATH.3``, a process creates ``PATH.4``, which only one can do,
and then deletes ``PATH.3``. If a suspended process lost its lock in this way, it finds out before its next write
(``check``).
"""

from __future__ import annotations

import contextlib
import errno
import getpass
import json
import os
import random
import socket
import tempfile
import threading
import time
import uuid
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from oneofmany.files import FileError

BEAT = 15.0
"""Seconds between two signs of life."""
LIMIT = 300.0
"""Seconds without a sign of life after which the lock of another machine is stale."""
TRIES = 20
NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""Errors of a file system without hard links."""
_held: set[str] = set()
"""The tokens of the locks that this process holds."""


class Locked(FileError):  # noqa: N818 - named after the state
    """Somebody else has the lock; the message names the owner."""


class LostLock(RuntimeError):  # noqa: N818 - named after what happened
    """Somebody else took over the lock of this process, which gave no sign of life for too long."""


@dataclass(frozen=True)
class Owner:
    """The process that holds a lock.

    Args:
        user: the name of its user.
        host: the name of its machine, for people.
        pid: its number.
        machine: identifies the running system in which ``pid`` has a meaning: a boot of a machine, and a container.
        started: start time of the process, so that a later process with the same number is not mistaken for it.
        token: identifies the lock.
    """

    user: str
    host: str
    pid: int
    machine: str
    started: int | None
    token: str

    def __str__(self) -> str:
        return f"{self.user} on {self.host} (process {self.pid})"


class Lock:
    """The exclusive right to write something.

    Args:
        path: the name of the lock: its files are ``PATH.NUMBER``; the folder must exist.
        what: what is locked, for messages; by default the folder.
    """

    def __init__(self, path: str | Path, what: str | Path | None = None) -> None:
        self.path = Path(path)
        self.what = self.path.parent if what is None else what
        self._file: Path | None = None
        self._token = ""
        self._ending = threading.Event()

    def acquire(self) -> None:
        """Take the lock, also a stale one; ``Locked`` if somebody else has it."""
        assert self._file is None, "a lock is taken once"
        token = uuid.uuid4().hex
        handle, name = tempfile.mkstemp(prefix=f"{self.path.name}.", suffix=".part", dir=self.path.parent)
        _held.add(token)  # before the file exists: other threads must not take it for a copy
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(asdict(_this_process(token)), file)
            self._file = self._create(Path(name))
        except BaseException:
            _held.discard(token)
            raise
        finally:
            Path(name).unlink(missing_ok=True)
        self._token = token
        self._ending.clear()
        threading.Thread(target=self._live, args=(self._file,), name="lock", daemon=True).start()

    @property
    def acquired(self) -> bool:
        """Whether this object took the lock and has not given it back."""
        return self._file is not None

    def refuse(self) -> None:
        """Raise ``Locked`` if somebody has the lock."""
        if (owner := owner_of(self.path)) is not None:
            raise self._locked(owner)

    def release(self) -> None:
        """Give the lock back; nothing happens if this process does not have it any more."""
        if self._file is None:
            return
        self._ending.set()
        with contextlib.suppress(LostLock, OSError):
            self.check()
            self._file.unlink()
        _held.discard(self._token)
        self._file = None

    def check(self) -> None:
        """Raise ``LostLock`` if this process does not have the lock any more."""
        assert self._file is not None
        owner = _read(self._file)
        if owner is None and self._file.exists():  # it cannot be read just now, as network storage happens to say
            return
        if owner is None or owner.token != self._token:
            raise LostLock(
                f"{self.what} was taken over by another process, because this one gave no sign of life for "
                f"{LIMIT:.0f} s: this process stops here"
            )

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _create(self, own: Path) -> Path:
        """Give the file ``own`` the next number of the lock."""
        for _ in range(TRIES):
            seen = _files(self.path)
            now = _touched(own)
            for other in seen.values():
                if (owner := _owner(other, now)) is not None:
                    raise self._locked(owner)
            file = _numbered(self.path, max(seen, default=0) + 1)
            try:
                _link(own, file)
            except FileExistsError:  # another process was faster
                continue
            # Numbers start again when a lock is given back. So a process that listed the files before that may have
            # created another number: both look again, and at most one stays.
            others = [other for other in _files(self.path).values() if other != file]
            if any(_owner(other, now) for other in others):
                file.unlink(missing_ok=True)
                time.sleep(random.uniform(0.01, 0.1))
                continue
            for stale in others:
                stale.unlink(missing_ok=True)
            return file
        raise Locked(f"{self.what} is wanted by several processes at once: try again")

    def _locked(self, owner: Owner) -> Locked:
        elsewhere = owner.machine != _machine()
        limit = f", or until its lock shows no sign of life for {LIMIT:.0f} s" if elsewhere else ""
        return Locked(f"{self.what} is in use by {owner}: wait until that process has ended{limit}")

    def _live(self, file: Path) -> None:
        while not self._ending.wait(BEAT):
            with contextlib.suppress(OSError):  # the next write finds out
                os.utime(file)


def owner_of(path: str | Path) -> Owner | None:
    """The owner of the lock ``path``, of this process or another one; None if it is free or stale."""
    path = Path(path)
    files = _files(path)
    if not files:
        return None
    try:
        with tempfile.NamedTemporaryFile(prefix=f"{path.name}.", suffix=".part", dir=path.parent) as own:
            now = _touched(Path(own.name))
    except OSError:  # a folder that this process may only read
        now = time.time()
    return next((owner for file in files.values() if (owner := _owner(file, now)) is not None), None)


def _files(path: Path) -> dict[int, Path]:
    """The files of a lock by number."""
    try:
        names = os.listdir(path.parent)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    start = f"{path.name}."
    numbers = [name.removeprefix(start) for name in names if name.startswith(start)]
    return {int(number): _numbered(path, int(number)) for number in numbers if number.isdecimal()}


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _link(own: Path, file: Path) -> None:
    try:
        os.link(own, file)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # Without hard links the content comes after the creation; until then the owner is unknown, but not gone.
        with file.open("xb") as made:
            made.write(own.read_bytes())


def _touched(file: Path) -> float:
    """The time now by the clock of the storage, which all machines share; their own clocks may differ."""
    os.utime(file)
    return file.stat().st_mtime


def _owner(file: Path, now: float) -> Owner | None:
    """The owner of a lock's file; None if it is stale or gone."""
    try:
        owner, age = _read(file), abs(now - file.stat().st_mtime)
    except FileNotFoundError:
        return None
    if owner is None or owner.machine != _machine():
        return None if age > LIMIT else owner or UNKNOWN
    if owner.pid == os.getpid():  # otherwise a copy of a lock, or that of an earlier process with the same number
        return owner if owner.token in _held else None
    return owner if _is_running(owner) else None


def _read(file: Path) -> Owner | None:
    """The content of a lock's file; None if it is incomplete or gone."""
    try:
        owner = Owner(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return owner if isinstance(owner.pid, int) and owner.pid > 0 else None


def _is_running(owner: Owner) -> bool:
    """Whether a process of this machine has not ended."""
    started = _started(owner.pid)
    try:
        os.kill(owner.pid, 0)
    except PermissionError:  # of another user, whose processes may be hidden
        return started in (None, owner.started)
    except (ProcessLookupError, OverflowError):
        return False
    return started == owner.started


def _started(pid: int) -> int | None:
    """The start time of a process; None if it has ended, or if the system does not say (other than Linux)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(rest[18])  # a zombie has ended, but nobody has asked for its exit code


def _this_process(token: str) -> Owner:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container without a list of users
        user = f"user {os.getuid()}"
    return Owner(user, socket.gethostname(), os.getpid(), _machine(), _started(os.getpid()), token)


@cache
def _machine() -> str:
    """Process numbers are comparable in one boot of one machine, and in one container of it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


UNKNOWN = Owner("somebody", "an unknown machine", 0, "", None, "")
"""The owner of a lock whose content is not there yet."""
