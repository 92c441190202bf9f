"""Load the task that a Python file of the user's defines. Its code runs, so it is only loaded if the user names it."""

from __future__ import annotations

import hashlib
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from oneofmany.problems.problem import Problem
from oneofmany.problems.tasks.lines import TextError
from oneofmany.problems.tasks.task import Query, Source, Task

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
"""Names of tasks are parts of recipes, commands and file names."""


def load_task(path: str | Path, known: Iterable[Task] = ()) -> Task:
    """Run a Python file and return the one task that it defines; ValueError, in one sentence, if it does not.

    The functions of the task raise ValueError too, with file and line, if they fail or return something else than they
    should. Task objects of ``known`` are not the file's own.
    """
    place = Path(path)
    try:
        code = place.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    module = ModuleType(f"oneofmany_task_{re.sub(r'[^A-Za-z0-9]', '_', place.stem)}")
    module.__file__ = str(place)
    sys.modules[module.__name__] = module  # dataclasses look up their module there
    try:
        exec(compile(code, str(place), "exec", dont_inherit=True), vars(module))
    except SyntaxError as error:
        at = f", line {error.lineno}" if error.lineno else ""
        raise ValueError(f"{path}{at}: this is not Python: {error.msg}") from None
    except (Exception, SystemExit) as error:
        raise ValueError(_failed(str(path), error)) from None
    others = {id(task) for task in known}
    found = {id(one): one for one in vars(module).values() if isinstance(one, Task) and id(one) not in others}
    if not found:
        raise ValueError(f"{path} defines no task: expected one, as in TASK = Task(...)")
    if len(found) > 1:
        names = " and ".join(repr(task.name) for task in found.values())
        raise ValueError(f"{path} defines {len(found)} tasks, {names}: expected one in each file")
    source = Source(str(place.resolve()), hashlib.sha256(code).hexdigest())
    return checked(next(iter(found.values())), str(path), source)


def checked(task: Task, where: str, source: Source) -> Task:
    """Return a task whose functions say in one sentence, which begins with a file, what is wrong with them."""
    if not isinstance(task.name, str) or not NAME.fullmatch(task.name):
        raise ValueError(f"{where}: the name of a task has letters, digits, - and _ only, got {task.name!r}")

    def problem(found: Problem) -> None:
        if found.task != task.name:
            raise ValueError(f"{where}: problem returned a problem of the task {found.task!r}, expected {task.name!r}")

    def query(found: Query, by: str = "parse") -> None:
        values, own = found.values, found.problem
        if not isinstance(own, Problem) or not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
            raise ValueError(f"{where}: {by} returned a query without a problem or without an array of integers")
        problem(own)
        if values.shape != (own.variables,) or values.min() < 0 or values.max() > own.values:
            raise ValueError(
                f"{where}: {by} returned {values.tolist()}, expected {own.variables} numbers from 0 to {own.values}"
            )
        pairs: Any = found.relations
        if not isinstance(pairs, np.ndarray) or pairs.dtype.kind not in "iu" or pairs.shape[1:] != (2,):
            raise ValueError(f"{where}: {by} returned relations that are not an array of pairs: {pairs!r}")
        if pairs.size and (own.relation_kind is None or pairs.min() < 0 or pairs.max() >= own.variables):
            expected = "none" if own.relation_kind is None else f"pairs of variables from 0 to {own.variables - 1}"
            raise ValueError(f"{where}: {by} returned the relations {pairs.tolist()}, expected {expected}")

    def boards(found: list[Any]) -> None:
        for one in found:
            if not (isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], Query | TextError)):
                raise ValueError(f"{where}: boards returned {one!r}, expected a line number and a query")
            if isinstance(one[1], Query):
                query(one[1], "boards")

    def guarded(name: str, kind: type, check: Callable[[Any], None] = lambda found: None, listed: bool = False) -> Any:
        function = getattr(task, name)
        if not callable(function):
            raise ValueError(f"{where}: {name} of the task {task.name!r} is not a function, got {function!r}")

        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            try:
                found: Any = function(*arguments, **options)
                found = list(found) if listed else found
            except (Exception, SystemExit) as error:
                if isinstance(error, (ValueError, OSError, MemoryError)) and _says_it_all(name, where, error):
                    raise
                raise ValueError(f"{_failed(where, error)} (in {name} of the task {task.name!r})") from error
            if not isinstance(found, kind):
                raise ValueError(f"{where}: {name} returned {type(found).__name__}, expected {kind.__name__}")
            check(found)
            return found

        return call

    return replace(
        task,
        problem=guarded("problem", Problem, problem),
        parse=guarded("parse", Query, query),
        format=guarded("format", str),
        draw=guarded("draw", str),
        boards=None if task.boards is None else guarded("boards", list, boards, listed=True),
        explain=guarded("explain", str),
        build=None if task.build is None else guarded("build", object),
        source=source,
    )


def _says_it_all(name: str, path: str, error: Exception) -> bool:
    """Whether an error is about what a function was given, and not about its own code.

    Readers of texts pass on what is wrong with a text; builders say what is wrong with a size.
    """
    if name in ("parse", "boards"):
        return True
    last = traceback.extract_tb(error.__traceback__)[-1]
    return name in ("problem", "build") and last.filename == path and "raise " in (last.line or "")


def _failed(path: str, error: BaseException) -> str:
    """The file, the line in it that was running, and the error."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    at = f", line {lines[-1]}" if lines else ""
    return f"{path}{at}: {type(error).__name__}: {error}"
