"""The progress and the lock of a run, read from its folder without loading PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from oneofmany.runs.lock import Lock, owner_of


def lock_of(path: Path) -> Lock:
    """The lock of a run folder."""
    return Lock(path / ".lock", path)


def state_of(folder: Path) -> Literal["missing", "begun", "finished"]:
    """The progress of a run, read from its folder."""
    if (folder / "result.json").exists():
        return "finished"
    return "begun" if (folder / "config.json").exists() else "missing"


def was_taken(folder: Path, code: int, *, started: bool) -> bool:
    """Whether another process took a run just before a training that ended with an exit code other than 0.

    It works on the run, or has made its folder meanwhile: a training with exit code 2 has made nothing itself.

    Args:
        folder: of the run.
        code: the exit code.
        started: whether the training was to make the run, not to resume it.
    """
    made = started and code == 2 and state_of(folder) != "missing"
    return made or owner_of(lock_of(folder).path) is not None
