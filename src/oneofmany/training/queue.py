"""A queue of runs: several at a time, each in its own process, on this machine or on a cluster.

Its state is the run folders: finished runs are skipped, started runs are resumed, missing runs are started. So a queue
that was stopped or killed continues when it is made again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from oneofmany.files import write_json
from oneofmany.launching import LOCKED, Command, Launcher, Process
from oneofmany.launching.base import LOOK, SEEN, STOPPED
from oneofmany.launching.local import Local
from oneofmany.runs.devices import device_named
from oneofmany.runs.lock import Lock, Locked
from oneofmany.runs.signals import listening
from oneofmany.runs.state import lock_of, was_taken
from oneofmany.training.jobs import Job, state_of
from oneofmany.training.newest import Metrics

PROGRAM = (sys.executable, "-m", "oneofmany")
WORK = (sys.executable, "-m", "oneofmany.launching.work")
AGAIN = 1.0
"""Seconds between two looks at the lock of a run that another process works on."""
TRAIN = ("train",)
State = Literal["waiting", "running", "stopping", "stopped", "finished", "failed"]


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
    process: Process | None = None
    logged_before: int = 0
    lock: Lock | None = None
    not_before: float = 0.0
    cancelled: bool = False
    ended: float | None = None

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.job.folder / "metrics.jsonl")
        self.steps = [TRAIN] if state_of(self.job.folder) != "finished" else []
        self.steps += self.job.after
        if not self.steps:
            self.state = "finished"

    def release(self) -> None:
        """Let other queues have the job."""
        if self.lock is not None:
            self.lock.release()
        self.process = self.lock = None

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
        at_once: the number of jobs at a time; None leaves it to the cluster. On this machine jobs on the CPU share its
            cores, unless a job sets its threads.
        deadline: the time to stop, by ``time.monotonic()``.
        watch: called with every change.
        cluster: the launcher of a cluster. There, one process does all commands of a job and holds its lock.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        at_once: int | None = 1,
        deadline: float | None = None,
        watch: QueueWatch | None = None,
        cluster: Launcher | None = None,
    ) -> None:
        self.entries: list[Entry] = []
        self.at_once, self.deadline, self.watch = max(1, len(jobs)) if at_once is None else at_once, deadline, watch
        self._cluster, self._launcher = cluster is not None, cluster or Local()
        self._threads: dict[Entry, int | None] = {}
        self._signal: int | None = None
        for job in jobs:
            self.add(job)
        by_folder = {str(entry.job.folder): entry for entry in self.entries}
        self._before = {
            entry: [by_folder[path] for path in entry.job.settings.pretrained if path in by_folder]
            for entry in self.entries
            if TRAIN in entry.steps
        }

    def add(self, job: Job) -> Entry:
        """Add a job at the end, also while the queue runs (in ``QueueWatch.look``)."""
        entry = Entry(job)
        self.entries.append(entry)
        if entry.steps:
            self._threads[entry] = self._threads_of(job)
        return entry

    def cancel(self, entry: Entry) -> None:
        """Stop one job, which saves its state; the others go on."""
        if entry.state == "running" and entry.process is not None:
            entry.cancelled = True
            entry.process.terminate()
            self._change(entry, "stopping")

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
                left = self._running()  # after an exception of the queue itself
                for entry in left:
                    assert entry.process is not None
                    entry.process.terminate()
                while any(entry.process.poll() is None for entry in left if entry.process is not None):
                    time.sleep(LOOK)
                for entry in left:
                    entry.release()

    def _running(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.state in ("running", "stopping")]

    def _is_over(self) -> bool:
        return self._signal is not None or (self.deadline is not None and time.monotonic() >= self.deadline)

    def _change(self, entry: Entry, state: State, why: str = "") -> None:
        entry.state, entry.why = state, why
        if state not in ("running", "stopping"):
            entry.release()
        if self.watch is not None:
            self.watch.changed(entry)

    # ---- starting --------------------------------------------------------------------------------------------------

    def _start_what_is_ready(self) -> None:
        free = self.at_once - len(self._running())
        ready: list[Entry] = []
        for entry in self.entries:
            if len(ready) >= free:
                break
            if entry.state != "waiting" or (self._cluster and time.monotonic() < entry.not_before):
                continue
            missing = [other for other in self._before.get(entry, ()) if not other.is_trained]
            failed = [other.job.name for other in missing if other.state == "failed"]
            if failed:
                self._change(entry, "failed", f"it starts from {failed[0]}, which failed")
            elif not missing and self._lock(entry):
                if entry.steps[0] == TRAIN and entry.is_trained:  # another queue trained it meanwhile
                    entry.steps.pop(0)
                if not entry.steps:
                    self._change(entry, "finished")
                    continue
                entry.began = time.monotonic()
                ready.append(entry)
        self._start(ready)

    def _lock(self, entry: Entry) -> bool:
        """Lock the job for this queue; False if another queue works on it, or if another process writes its run.

        A training process that outlives its killed queue still has the lock of the run. On a cluster the machine that
        works on the job locks it.
        """
        if time.monotonic() < entry.not_before:
            return False
        entry.not_before = time.monotonic() + AGAIN
        entry.job.log.parent.mkdir(parents=True, exist_ok=True)
        lock = Lock(entry.job.lock, entry.job.folder)
        try:
            lock_of(entry.job.folder).refuse()
            if self._cluster:
                lock.refuse()
                return True
            lock.acquire()
        except Locked:
            return False
        entry.lock = lock
        return True

    def _start(self, entries: Sequence[Entry]) -> None:
        """Start the next command of every entry; on a cluster, all commands."""
        if not entries:
            return
        for entry in entries:
            entry.resumed, entry.ended = state_of(entry.job.folder) == "begun", None
            entry.logged_before = entry.job.log.stat().st_size if entry.job.log.exists() else 0
        for entry, process in zip(entries, self._launcher.start([*map(self._command, entries)]), strict=True):
            entry.process = process
            self._change(entry, "running")

    def _command(self, entry: Entry) -> Command:
        threads, job = self._threads[entry], entry.job
        environment = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
        if not self._cluster:
            step = entry.steps[0] if entry.steps[0] != TRAIN else _train_command(entry, threads)
            return Command((*PROGRAM, *step), job.log, environment)
        about = {
            "folder": str(job.folder.absolute()),
            "lock": str(job.lock.absolute()),
            "start": [*PROGRAM, *_start_command(job, threads)],
            "resume": [*PROGRAM, *_resume_command(job)],
            "after": [[*PROGRAM, *step] for step in entry.steps if step != TRAIN],
        }
        write_json(job.file, about)
        return Command((*WORK, str(job.file.absolute())), job.log.absolute(), environment)

    def _threads_of(self, job: Job) -> int | None:
        if job.settings.threads is not None:
            return None
        if self._cluster:
            return self._launcher.cpus
        if self.at_once == 1 or device_named(job.settings.device).type != "cpu":
            return None
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores // self.at_once)

    # ---- ending ----------------------------------------------------------------------------------------------------

    def _look_at_processes(self) -> None:
        for entry in self._running():
            assert entry.process is not None
            code = entry.process.poll()
            if code is None or (code == 0 and self._cluster and not self._sees_result(entry)):
                continue
            if code == 0 and (entry.steps[0] != TRAIN or entry.is_trained):
                entry.steps = [] if self._cluster else entry.steps[1:]
                if not entry.steps:
                    self._change(entry, "finished")
                elif self._is_over():
                    self._change(entry, "stopped")
                else:
                    self._start([entry])
            elif code == LOCKED and self._cluster:
                self._change(entry, "stopped" if self._is_over() else "waiting")
            elif (self._is_over() or entry.cancelled) and code in STOPPED:
                self._change(entry, "stopped")
            elif entry.steps[0] == TRAIN and was_taken(entry.job.folder, code, started=not entry.resumed):
                self._change(entry, "waiting")
            else:
                self._change(entry, "failed", _why(entry.job.log, entry.logged_before) or f"exit code {code}")

    def _sees_result(self, entry: Entry) -> bool:
        """Whether the result of a training that ended on another machine is seen here, or should be by now."""
        if entry.steps[0] != TRAIN or entry.is_trained:
            return True
        entry.ended = entry.ended or time.monotonic()
        with suppress(OSError):
            os.listdir(entry.job.folder)  # network storage then looks for new files
        return time.monotonic() - entry.ended >= SEEN

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
    return _resume_command(entry.job) if entry.resumed else _start_command(entry.job, threads)


def _resume_command(job: Job) -> tuple[str, ...]:
    return (*TRAIN, "--resume", str(job.folder), *job.task_file)


def _start_command(job: Job, threads: int | None) -> tuple[str, ...]:
    own = () if threads is None else ("--threads", str(threads))
    return (*TRAIN, *job.arguments, *own, "--out", str(job.folder), *job.task_file)


def _why(log: Path, start: int) -> str:
    """The last line that a failed run wrote; after a traceback, the line that names the error."""
    with log.open("rb") as file:
        file.seek(start)
        lines = [line for line in file.read().decode(errors="replace").split("\n") if line.strip()]
    traces = [number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    named = [line for line in lines[traces[-1] + 1 :] if not line.startswith(" ")] if traces else lines[-1:]
    return next(iter(named), "").strip().removeprefix("oneofmany: ")
