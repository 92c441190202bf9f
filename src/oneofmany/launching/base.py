"""What all launchers share: a command line with its log, the process that runs it, and waiting for many."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from oneofmany.runs.signals import listening

LOCKED = os.EX_TEMPFAIL
"""Exit code of a job that another process works on: it is tried again later."""
STOPPED = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT)
"""Exit codes of a process that was asked to stop."""
LOOK = 0.1
"""Seconds between two looks at the processes."""
SEEN = 60.0
"""Seconds until a file of another machine is seen here: network storage remembers for a while that it was missing."""


@dataclass(frozen=True)
class Command:
    """A command line; it may run more than once, and continues from the files that it has written.

    Args:
        line: the program and its arguments.
        log: the file to which its output is appended.
        environment: variables to set, in addition to those of the machine on which it runs.
    """

    line: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)


class Process(Protocol):
    """A started command; ``subprocess.Popen`` is one."""

    def poll(self) -> int | None:
        """The exit code, or None as long as it runs or waits for a machine."""

    def terminate(self) -> None:
        """Ask it to save its state and to stop."""

    def kill(self) -> None:
        """End it at once."""


class Launcher(Protocol):
    """Starts commands somewhere."""

    cpus: int | None
    """The cores of a command; None if the caller shares them out."""

    def start(self, commands: Sequence[Command]) -> Sequence[Process]:
        """Start commands, or hand them to the scheduler of a cluster."""
        ...

    def close(self) -> None:
        """Leave the cluster."""


def finish(
    commands: Sequence[Command],
    launcher: Launcher,
    *,
    at_once: int | None = None,
    tell: Callable[[int, int], object] = lambda done, of: None,
) -> None:
    """Run commands to their ends; ValueError with the last line of the log if one fails.

    An error, a failed command, SIGINT and SIGTERM stop all others, which may save their state; KeyboardInterrupt comes
    after that. A second signal kills them.
    """
    waiting, running = list(commands), dict[Process, Command]()
    signals: list[int] = []

    def stop(number: int) -> None:
        signals.append(number)
        if len(signals) > 1:
            for process in running:
                process.kill()

    with listening(stop):
        try:
            while (waiting or running) and not signals:
                free = len(commands) if at_once is None else at_once - len(running)
                now, waiting = waiting[:free], waiting[free:]
                running |= dict(zip(launcher.start(now), now, strict=True)) if now else {}
                for process, command in list(running.items()):
                    code = process.poll()
                    if code is None:
                        continue
                    del running[process]
                    if code != 0:
                        raise ValueError(f"{command.log.stem} failed: {_last_line(command.log) or f'exit code {code}'}")
                tell(len(commands) - len(waiting) - len(running), len(commands))
                if running:
                    time.sleep(LOOK)
        finally:
            for process in running:
                process.terminate()
            while any(process.poll() is None for process in running):
                time.sleep(LOOK)
    if signals:
        raise KeyboardInterrupt


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "").removeprefix("oneofmany: ")
