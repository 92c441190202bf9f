"""The tasks by name: those of the package, those of installed packages, and the user's own."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from oneofmany.problems.tasks import colouring, futoshiki, nqueens, sudoku
from oneofmany.problems.tasks.own import checked, load_task
from oneofmany.problems.tasks.task import Source, Task

TASKS: dict[str, Task] = {task.name: task for task in (nqueens.TASK, futoshiki.TASK, sudoku.TASK, colouring.TASK)}
"""The tasks that come with the package and those added to it, by name."""
PACKAGE = tuple(TASKS)
"""The names of the tasks that come with the package."""
GROUP = "oneofmany.tasks"
"""The entry points of installed packages: name of a task -> its ``Task`` object."""
SHOWN = 12
"""Characters of a checksum in a sentence."""


def use_task_file(path: str | Path) -> Task:
    """Load the task of a Python file and add it to ``TASKS``; ValueError, in one sentence, if that cannot be done.

    The code of the file runs. A task file that was added before is replaced.
    """
    task = load_task(path, TASKS.values())
    if task.name in PACKAGE:
        raise ValueError(f"{path} defines the task {task.name!r}, which the package has already: choose another name")
    TASKS[task.name] = task
    return task


def find_task(name: str) -> Task | None:
    """Return the task with this name; None if neither ``TASKS`` nor an installed package has it."""
    if name not in TASKS:
        from importlib.metadata import entry_points

        for entry in entry_points(group=GROUP):
            if entry.name == name:
                TASKS[name] = _installed(entry)
                break
    return TASKS.get(name)


def task_named(name: str) -> Task:
    """Return the task with this name; ValueError if there is none."""
    found = find_task(name)
    if found is None:
        raise ValueError(
            f"task: expected one of {', '.join(TASKS)}, got {name!r}; a task of your own needs its file (--task-file)"
        )
    return found


def check_source(where: str | Path, task: str, remembered: Any) -> str | None:
    """Compare the code of a task with what a run or a weights file remembers of it.

    Args:
        where: the run or file, for the sentence.
        task: name of the task.
        remembered: ``source_of`` at that time; None if the task was not one of the user's.

    Returns:
        a sentence if the code has changed since, else None. ValueError, which names the file, if the task is not known.
    """
    if not isinstance(remembered, dict):
        return None
    path, sha256, package = (str(remembered.get(name) or "") for name in ("path", "sha256", "package"))
    found = find_task(task)
    if found is None:
        file = f"{package or path} (sha256 {sha256[:SHOWN]})"
        what = "install that package" if package else f"give that file with --task-file {path}"
        raise ValueError(f"{where} needs the task {task!r} of {file}: {what}")
    if found.source is None or found.source.sha256 == sha256:
        return None
    return (
        f"{where} was made with another version of {Path(path).name}: sha256 {sha256[:SHOWN]} then, "
        f"{found.source.sha256[:SHOWN]} now"
    )


def source_of(task: str, *, whole_path: bool = True) -> dict[str, str] | None:
    """Return what a run remembers of the code of its task; None for a task of the package.

    With ``whole_path`` False only the name of the file, for what may be published.
    """
    found = TASKS.get(task)
    if found is None or found.source is None:
        return None
    own = found.source
    path = own.path if whole_path else Path(own.path).name
    return {"path": path, "sha256": own.sha256} | ({"package": own.package} if own.package else {})


def _installed(entry: Any) -> Task:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
    try:
        task = entry.load()
        path = str(sys.modules[entry.module].__file__)
        source = Source(path, hashlib.sha256(Path(path).read_bytes()).hexdigest(), package)
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"the package {package} cannot load its task {entry.name!r}: {type(error).__name__}: {error}"
        ) from None
    if not isinstance(task, Task) or task.name != entry.name:
        raise ValueError(f"the package {package}: {entry.value} is not the task {entry.name!r}")
    return checked(task, path, source)
