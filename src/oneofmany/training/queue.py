"""A queue of runs: several at a time, each in its own process.

Its state is the run folders: finished runs are skipped, started runs are resumed, missing runs are started. So a queue
that was stopped or killed continues when it is made again.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, Protocol

from oneofmany.runs.devices import device_named
from oneofmany.training.jobs import Job, state_of
from oneofmany.training.signals import listening

PROGRAM = (sys.executable, "-m", "oneofmany")
LOOK = 0.1
"""Seconds between two checks of the processes."""
TRAIN = ("train",)
STOPPED = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT)
"""Exit codes of a process that was asked to stop."""
State = Literal["waiting", "running", "stopping", "stopped", "finished", "failed"]


class Metrics:
    """The newest metrics of a run, read from its growing metrics.jsonl."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0
        self._newest: dict[str, Any] = {}

    def newest(self) -> dict[str, Any]:
        """The newest value of every metric of training and dev; empty before the first line."""
        try:
            size = self.path.stat().st_size
            if size < self._read:  # a resumed run cuts the lines after its state
                self._read, self._newest = 0, {}
            if size > self._read:
                with self.path.open("rb") as file:
                    file.seek(self._read)
                    whole = file.read().rpartition(b"\n")[0]
                self._read += len(whole) + 1 if whole else 0
                for line in whole.splitlines():
                    with suppress(ValueError):
                        values = json.loads(line)
                        self._newest |= values if values.get("kind") in ("train", "dev") else {}
        except FileNotFoundError:
            self._newest = {}
        return self._newest


@dataclass(eq=False)
class Entry:
    """A job in the queue.

    Args:
        job: the job.
        state: its state; jobs that are waiting or stopped at the end are left for the next queue.
        steps: the commands that are still to run.
        why: the reason of a failure.
        resumed: whether its training was started earlier and is resumed.
        began: the time of its first command in this queue, by the monotonic clock.
    """

    job: Job
    state: State = "waiting"
    steps: list[tuple[str, ...]] = field(default_factory=list)
    why: str = ""
    resumed: bool = False
    began: float | None = None
    process: subprocess.Popen[bytes] | None = None
    log: IO[bytes] | None = None
    logged_before: int = 0

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.job.folder / "metrics.jsonl")
        self.steps = [TRAIN] if state_of(self.job.folder) != "finished" else []
        self.steps += self.job.after
        if not self.steps:
            self.state = "finished"

    @property
    def is_trained(self) -> bool:
        """Whether its training has finished; later commands may be left."""
        return state_of(self.job.folder) == "finished"


class QueueWatch(Protocol):
    """Shows what the queue does."""

    def changed(self, entry: Entry) -> None:
        """Called when a job changes its state or begins its next command."""

    def look(self, entries: Sequence[Entry]) -> None:
        """Called several times a second."""


class Queue:
    """Runs jobs until all have ended, until a deadline, or until a signal.

    Args:
        jobs: the jobs in the order in which they start; a job that starts from the weights of another waits for it.
        at_once: the number of jobs at a time. On a CPU they share its cores, unless a job sets its threads.
        deadline: the time to stop, by ``time.monotonic()``.
        watch: called with every change.
    """

    def __init__(
        self, jobs: Sequence[Job], *, at_once: int = 1, deadline: float | None = None, watch: QueueWatch | None = None
    ) -> None:
        self.entries = [Entry(job) for job in jobs]
        self.at_once, self.deadline, self.watch = at_once, deadline, watch
        by_folder = {str(entry.job.folder): entry for entry in self.entries}
        self._before = {
            entry: [by_folder[path] for path in entry.job.settings.pretrained if path in by_folder]
            for entry in self.entries
            if TRAIN in entry.steps
        }
        self._threads = {entry: self._threads_of(entry.job) for entry in self.entries if entry.steps}
        self._signal: int | None = None

    def run(self) -> int | None:
        """Run until nothing is left or it is time to stop; return the signal that stopped it, if any.

        At the deadline and on SIGINT or SIGTERM, the runs save their state and stop. A second signal kills them.
        """
        with listening(self._stop):
            try:
                while True:
                    self._look_at_processes()
                    if self._is_over():
                        self._ask_to_stop()
                    else:
                        self._start_what_is_ready()
                    if self.watch is not None:
                        self.watch.look(self.entries)
                    waiting = any(entry.state == "waiting" for entry in self.entries)
                    if not self._running() and (self._is_over() or not waiting):
                        return self._signal
                    time.sleep(LOOK)
            finally:
                for entry in self._running():  # after an exception of the queue itself
                    assert entry.process is not None
                    entry.process.terminate()
                    entry.process.wait()

    def _running(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.state in ("running", "stopping")]

    def _is_over(self) -> bool:
        return self._signal is not None or (self.deadline is not None and time.monotonic() >= self.deadline)

    def _change(self, entry: Entry, state: State, why: str = "") -> None:
        entry.state, entry.why = state, why
        if state not in ("running", "stopping") and entry.log is not None:
            entry.log.close()
            entry.log = entry.process = None
        if self.watch is not None:
            self.watch.changed(entry)

    # ---- starting --------------------------------------------------------------------------------------------------

    def _start_what_is_ready(self) -> None:
        for entry in self.entries:
            if len(self._running()) >= self.at_once:
                return
            if entry.state != "waiting":
                continue
            missing = [other for other in self._before.get(entry, ()) if not other.is_trained]
            failed = [other.job.name for other in missing if other.state == "failed"]
            if failed:
                self._change(entry, "failed", f"it starts from {failed[0]}, which failed")
            elif not missing and self._lock(entry):
                if entry.steps[0] == TRAIN and entry.is_trained:  # another queue trained it meanwhile
                    entry.steps.pop(0)
                entry.began = time.monotonic()
                self._next_step(entry)

    def _lock(self, entry: Entry) -> bool:
        """Lock the run's log for this queue and its process; False if a process of another queue holds the lock.

        The lock belongs to the open file, which the process inherits. So a process that outlives a killed queue still
        holds it.
        """
        entry.job.log.parent.mkdir(parents=True, exist_ok=True)
        log = entry.job.log.open("ab")
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.close()
            return False
        entry.log = log
        return True

    def _next_step(self, entry: Entry) -> None:
        if not entry.steps:
            self._change(entry, "finished")
            return
        assert entry.log is not None
        threads = self._threads[entry]
        entry.resumed = state_of(entry.job.folder) == "begun"
        command = entry.steps[0] if entry.steps[0] != TRAIN else _train_command(entry, threads)
        environment = os.environ if threads is None else {**os.environ, "OMP_NUM_THREADS": str(threads)}
        entry.logged_before = os.fstat(entry.log.fileno()).st_size
        entry.process = subprocess.Popen(
            [*PROGRAM, *command],
            stdin=subprocess.DEVNULL,
            stdout=entry.log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches only the queue, which then stops the runs
        )
        self._change(entry, "running")

    def _threads_of(self, job: Job) -> int | None:
        if self.at_once == 1 or job.settings.threads is not None or device_named(job.settings.device).type != "cpu":
            return None
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores // self.at_once)

    # ---- ending ----------------------------------------------------------------------------------------------------

    def _look_at_processes(self) -> None:
        for entry in self._running():
            assert entry.process is not None
            code = entry.process.poll()
            if code is None:
                continue
            if code == 0 and (entry.steps[0] != TRAIN or entry.is_trained):
                entry.steps.pop(0)
                if entry.steps and self._is_over():
                    self._change(entry, "stopped")
                else:
                    self._next_step(entry)
            elif self._is_over() and code in STOPPED:
                self._change(entry, "stopped")
            else:
                self._change(entry, "failed", _why(entry.job.log, entry.logged_before) or f"exit code {code}")

    def _ask_to_stop(self) -> None:
        for entry in self._running():
            if entry.state == "running" and entry.process is not None:
                entry.process.terminate()
                self._change(entry, "stopping")

    def _stop(self, number: int) -> None:
        """Stop the queue at the first signal; kill its runs at the second."""
        if self._signal is not None:
            for entry in self._running():
                if entry.process is not None:
                    entry.process.kill()
        self._signal = number


def _train_command(entry: Entry, threads: int | None) -> tuple[str, ...]:
    folder = str(entry.job.folder)
    if entry.resumed:
        return (*TRAIN, "--resume", folder)
    own = () if threads is None else ("--threads", str(threads))
    return (*TRAIN, *entry.job.arguments, *own, "--out", folder)


def _why(log: Path, start: int) -> str:
    """The last line that a failed run wrote; after a traceback, the line that names the error."""
    with log.open("rb") as file:
        file.seek(start)
        lines = [line for line in file.read().decode(errors="replace").split("\n") if line.strip()]
    traces = [number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    named = [line for line in lines[traces[-1] + 1 :] if not line.startswith(" ")] if traces else lines[-1:]
    return next(iter(named), "").strip().removeprefix("oneofmany: ")
