"""``python -m oneofmany.launching.work FILE``: do one job of a sweep, from the start or from its last state to its end.

Launchers of clusters start it on the machine of the job. It holds the lock of the job, so that every run is done once,
whoever else was told to do it. FILE is JSON: the ``folder`` of the run, the ``lock`` of the job, and the command lines
``start``, ``resume`` and ``after``.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oneofmany.files import read_json
from oneofmany.launching.base import LOCKED
from oneofmany.runs.lock import Lock, Locked
from oneofmany.runs.state import lock_of, state_of, was_taken


class Worker:
    """Runs the commands of a job one after the other, and passes a request to stop on to the current one."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job, self.folder = job, Path(job["folder"])
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped_by: int | None = None

    def work(self) -> int:
        """Do the job and return 0, the exit code of a failed command, or ``LOCKED``."""
        lock = Lock(self.job["lock"], self.folder)
        try:
            lock_of(self.folder).refuse()  # a training process may have outlived the queue that started it
            lock.acquire()
        except Locked as error:
            print(f"oneofmany: {error}", flush=True)
            return LOCKED
        try:
            return self._train() or next((code for line in self.job["after"] if (code := self._run(line))), 0)
        finally:
            lock.release()

    def stop(self, number: int, _: object) -> None:
        """Handle a signal."""
        self.stopped_by = number
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def _train(self) -> int:
        if (state := state_of(self.folder)) == "finished":
            return 0
        code = self._run(self.job["resume" if state == "begun" else "start"])
        return LOCKED if code and was_taken(self.folder, code, started=state == "missing") else code

    def _run(self, line: Sequence[str]) -> int:
        """Run a command; an end by a signal is 128 + its number, as in a shell."""
        if self.stopped_by is None:
            self.process = subprocess.Popen(line, stdin=subprocess.DEVNULL)
        if self.stopped_by is not None:  # also between the two lines
            if self.process is None or self.process.poll() is not None:
                return 128 + self.stopped_by
            self.process.terminate()
        assert self.process is not None
        code = self.process.wait()
        return 128 - code if code < 0 else code


def end_with_parent() -> None:
    """Let Linux send SIGTERM to this process when the process that started it is killed."""
    with contextlib.suppress(OSError, AttributeError):  # other systems
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def main(file: str) -> int:
    """Do the job of a file."""
    worker = Worker(read_json(file))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, worker.stop)
    end_with_parent()
    return worker.work()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
