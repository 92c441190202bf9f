"""Files are written whole or not at all: write a temporary file, fsync, rename."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: temporary files of killed processes stay
    fcntl = None

FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}
"""Errors of a full or failing disk. They stay ``OSError``, since the caller's input is not at fault."""

PART = ".part"
"""The end of the names of temporary files."""
DAY = 24 * 60 * 60


class FileError(ValueError):
    """A file cannot be read or must not be written; the message is one sentence."""


def check_writable(path: str | Path, force: bool = False) -> Path:
    """Raise now, before hours of work, what ``write_whole`` would raise at the end; return the file, without links."""
    path = Path(path)
    if path.is_dir():
        raise FileError(f"{path} is a directory: name a file")
    if path.exists() and not path.is_file():
        raise FileError(f"{path} is not a regular file, and it is never replaced: choose another name")
    if path.is_symlink():
        path = Path(os.path.realpath(path))
    _delete_left(path)
    if path.exists() and not force:
        raise FileError(f"{path} exists: choose another name, or overwrite it with --force")
    parent = path.parent
    if not parent.is_dir():
        raise FileError(f"{parent} is not a directory: create it first, or choose another place for {path.name}")
    try:
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        if error.errno in FULL_DISK:
            raise
        raise FileError(
            f"{parent} cannot be written ({error.strerror}): choose another place for {path.name}"
        ) from None
    return path


def write_whole(path: str | Path, write: Callable[[Path], object], force: bool = False) -> None:
    """Let ``write`` fill a temporary file, then move it to ``path`` in one step; on any error nothing changes."""
    path = check_writable(path, force)
    handle, beside = _temporary(path)
    try:
        write(beside)
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.chmod(0o666 & ~_umask())
        if force:
            beside.replace(path)
        else:
            # Unlike a rename, a hard link never replaces a file that appeared in the meantime.
            _link_or_rename(beside, path)
        with contextlib.suppress(OSError):  # some file systems cannot sync a directory
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
    finally:
        beside.unlink(missing_ok=True)
        os.close(handle)


def _temporary(path: Path) -> tuple[int, Path]:
    """Create a locked temporary file next to ``path``.

    A process holds the lock of its file until it ends, so a file that can be locked has no process any more.
    """
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=f".{_machine()}{PART}", dir=path.parent)
        # Another process may have taken it for a left one before it was locked.
        if not _locked(handle, wait=True) or os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)


def _delete_left(path: Path) -> None:
    """Delete the temporary files of ``path`` that killed processes left."""
    with contextlib.suppress(OSError):  # a folder that cannot be listed
        for left in path.parent.iterdir():
            if left.name.startswith(f".{path.name}.") and left.name.endswith(PART):
                _delete_unlocked(left)


def _delete_unlocked(left: Path) -> None:
    with contextlib.suppress(OSError), left.open("rb+") as file:
        # Network storage may not pass locks on to other machines, so their files are deleted after a day only.
        here = left.name.endswith(f".{_machine()}{PART}")
        if (here or time.time() - left.stat().st_mtime > DAY) and _locked(file.fileno(), wait=False):
            left.unlink()


@cache
def _machine() -> str:
    """A short name of this running system, on which locks work."""
    try:
        name = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8")
    except OSError:
        name = platform.node()
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def _locked(handle: int, wait: bool) -> bool:
    """Lock an open file; False if another process holds the lock, or if the file system has no locks."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return fcntl is not None


def _link_or_rename(beside: Path, path: Path) -> None:
    try:
        os.link(beside, path)
    except FileExistsError:
        raise FileError(f"{path} exists: choose another name, or overwrite it with --force") from None
    except OSError:  # a file system without hard links
        beside.rename(path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def canonical_json(value: Any) -> str:
    """Return JSON that is the same text for the same value on every machine."""
    return json.dumps(value, default=_plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _plain(value: Any) -> Any:
    """Return a number or an array of NumPy as JSON knows them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ValueError(f"a header: expected numbers, texts, lists and dicts of them, got a {type(value).__name__}")


def checksum_of(path: str | Path) -> str:
    """Return the checksum of a file's bytes. Predictions identify the weights that made them by it."""
    with Path(path).open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def write_json(path: str | Path, value: Any) -> None:
    """Write JSON in one step; an existing file is replaced."""
    text = json.dumps(value, indent=1, sort_keys=False, allow_nan=False) + "\n"
    write_whole(path, lambda beside: beside.write_text(text, encoding="utf-8"), True)


def read_json(path: str | Path) -> dict[str, Any]:
    """Read a JSON object; raises FileError if the file is anything else."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise FileError(f"{path} is damaged: it is not JSON") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    if not isinstance(value, dict):
        raise FileError(f"{path} is damaged: expected a JSON object")
    return value
