"""Files are written whole or not at all: write a temporary file, fsync, rename."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}
"""Errors of a full or failing disk. They stay ``OSError``, since the caller's input is not at fault."""


class FileError(ValueError):
    """A file cannot be read or must not be written; the message is one sentence."""


def check_writable(path: str | Path, force: bool = False) -> Path:
    """Raise now, before hours of work, what ``write_whole`` would raise at the end."""
    path = Path(path)
    if path.is_dir():
        raise FileError(f"{path} is a directory: name a file")
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
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    beside = Path(name)
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
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


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
