"""Runs on disk: the run folder and its lock, devices and the software environment of a run."""

from typing import TYPE_CHECKING, Any

from oneofmany.runs.lock import Lock, Locked, LostLock, Owner, owner_of

if TYPE_CHECKING:
    from oneofmany.runs.folder import RunFolder

__all__ = ["Lock", "Locked", "LostLock", "Owner", "RunFolder", "owner_of"]


def __getattr__(name: str) -> Any:
    # A worker of a cluster takes locks without PyTorch, which takes seconds to load.
    if name == "RunFolder":
        from oneofmany.runs.folder import RunFolder

        return RunFolder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
