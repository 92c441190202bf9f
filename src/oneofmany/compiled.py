"""Compile functions with numba and keep the machine code, also where neither package nor home can be written.

numba keeps compiled code next to the package or in the home directory and raises an error if it can write to neither.
Here a folder of this user among the temporary files comes next, and then no cache at all.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from numba.core import config, event

Function = Callable[..., Any]


def njit(**options: Any) -> Callable[[Function], Any]:
    """Return numba's ``njit`` decorator with these options and a cache in the first folder that can be written."""
    compiled: Any = numba.njit
    options = {"cache": True} | options

    def decorate(function: Function) -> Any:
        try:
            return compiled(**options)(function)
        except RuntimeError:  # numba found no folder
            folder = temporary_folder()
        settings: Any = config
        before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
        try:
            return compiled(**options | {"cache": folder is not None})(function)
        except RuntimeError:
            return compiled(**options | {"cache": False})(function)
        finally:
            settings.CACHE_DIR = before  # numba has read it; functions of others are not ours to move

    return decorate


def temporary_folder() -> Path | None:
    """Return this user's cache folder among the temporary files; None if it cannot be made or others can write to it.

    numba loads its cache as code, so a folder that somebody else prepared must not be used.
    """
    user = str(os.getuid()) if hasattr(os, "getuid") else "user"  # Windows has temporary files for each user
    folder = Path(tempfile.gettempdir()) / f"oneofmany-numba-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    ours = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
    return folder if stat.S_ISDIR(found.st_mode) and ours else None


def cache_folder() -> Path | None:
    """Return the folder that keeps compiled code; None if there is none."""
    kept = njit()(_nothing)
    return Path(kept.stats.cache_path) if kept.stats.cache_path else None


def _nothing() -> None:
    """A function for numba to cache."""


class _Announcement(event.Listener):
    def __init__(self, say: Callable[[], object]) -> None:
        self.say, self.said = say, False

    def on_start(self, event: event.Event) -> None:
        if not self.said:
            self.said = True
            self.say()

    def on_end(self, event: event.Event) -> None:
        pass


@contextmanager
def announced(say: Callable[[], object]) -> Iterator[None]:
    """Call ``say`` once before the first function is compiled in this context; code from a cache is not compiled."""
    with event.install_listener("numba:compile", _Announcement(say)):
        yield
