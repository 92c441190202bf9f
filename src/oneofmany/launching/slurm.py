"""Commands as jobs of a SLURM cluster, submitted as job arrays by submitit."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oneofmany.extras import require
from oneofmany.files import write_whole
from oneofmany.launching.base import SEEN, Command

if TYPE_CHECKING:
    import submitit

ASK = 3.0
"""Seconds between two questions to the scheduler, one for all jobs."""
GRACE = 90
"""Seconds before the time limit at which a job is told to save its state."""
TIMES = 1000
"""How often a job is queued again at its time limit."""
ARRAY = 1000
"""The most jobs of an array; SLURM's default (MaxArraySize 1001) takes no more."""


class OnSlurm:
    """Submits commands as a job array. A job that is preempted, or reaches its time limit, is queued again.

    Args:
        folder: a folder on shared storage, which takes the logs of the jobs.
        cpus: the cores of a command.
        gpus: the GPUs of a command, a whole number.
        limit: the time limit of a job in minutes.
        partition: the partition; None is the cluster's default.
        cluster: ``local`` runs the jobs as processes of this machine, for tests.
    """

    def __init__(
        self,
        folder: Path,
        cpus: int = 1,
        gpus: float = 0.0,
        limit: int = 1440,
        partition: str | None = None,
        cluster: str = "slurm",
    ) -> None:
        require("submitit")
        import submitit

        if gpus != int(gpus):
            raise ValueError(f"--gpus: SLURM gives whole GPUs to a job, got {gpus:g}")
        self.cpus: int | None = cpus
        self._folder = folder.absolute() / ".slurm"
        try:
            executor = submitit.AutoExecutor(self._folder / "%j", cluster, slurm_max_num_timeout=TIMES)
        except RuntimeError as error:
            raise ValueError(
                f"--launcher slurm: {error}: run the command on a machine of the cluster, where srun and sbatch are"
            ) from None
        executor.update_parameters(timeout_min=limit, cpus_per_task=cpus, name="oneofmany")
        if cluster == "slurm":
            executor.update_parameters(
                slurm_array_parallelism=ARRAY,  # as many at a time as the cluster gives
                slurm_signal_delay_s=GRACE,
                slurm_additional_parameters={"requeue": True, "open_mode": "append"},
                **({"gpus_per_node": int(gpus)} if gpus else {}),
                **({"slurm_partition": partition} if partition else {}),
            )
        self._executor = executor
        self._scheduler = Scheduler()

    def start(self, commands: Sequence[Command]) -> list[Job]:
        """Submit commands as one job array, or as several if there are very many."""
        self._folder.mkdir(parents=True, exist_ok=True)
        started: list[Job] = []
        try:
            for first in range(0, len(commands), ARRAY):
                started += self._submit(commands[first : first + ARRAY])
        except BaseException:
            for job in started:  # nobody would wait for them
                job.terminate()
            raise
        return started

    def _submit(self, commands: Sequence[Command]) -> list[Job]:
        from submitit.core.utils import FailedJobError

        ends = [self._folder / f"{uuid.uuid4().hex}.exit" for _ in commands]
        try:
            with self._executor.batch():
                jobs = [
                    self._executor.submit(Line(one.line, str(one.log.absolute()), one.environment, str(end)))
                    for one, end in zip(commands, ends, strict=True)
                ]
        except FailedJobError as error:
            said = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise ValueError(f"--launcher slurm: {'; '.join(said) or 'sbatch failed'}") from None
        return [Job(job, end, self._scheduler) for job, end in zip(jobs, ends, strict=True)]

    def close(self) -> None:
        """Jobs stay in the queue of the cluster."""


class Line:
    """The command line of a job, as submitit runs it. It consists of texts only; submitit stores it.

    At a time limit submitit calls ``checkpoint`` and queues the job again.
    """

    def __init__(self, line: Sequence[str], log: str, environment: Mapping[str, str], end: str) -> None:
        self.line, self.log, self.environment, self.end = list(line), log, dict(environment), end
        self.folder = os.getcwd()
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self) -> None:
        """Run the command. Its exit code is written into ``end`` unless it was stopped, since SLURM may go on then."""
        # SLURM sends the signal of a time limit to all processes of a job; it would kill the command.
        handler = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        with Path(self.log).open("ab") as log:
            self._process = subprocess.Popen(
                self.line,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
                cwd=self.folder,
            )
        signal.signal(signal.SIGUSR2, handler)
        code = self._process.wait()
        if 0 <= code <= 128:
            write_whole(self.end, lambda path: path.write_text(str(code)), True)

    def checkpoint(self) -> Any:
        """Let the command save its state; the job that is queued again resumes it."""
        from submitit.helpers import DelayedSubmission

        if self._process is not None:
            self._process.terminate()
            # A handler interrupts ``wait``, whose lock it must not want.
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self._process = None
        return DelayedSubmission(self)


class Scheduler:
    """Asks SLURM which jobs it still has: one question for all jobs, every few seconds."""

    def __init__(self) -> None:
        self._asked = -math.inf
        self._jobs: frozenset[str] | None = None

    def has(self, job: str) -> bool:
        """Whether a job waits or runs, as far as is known."""
        if time.monotonic() - self._asked >= ASK:
            command = ["squeue", "--me", "--noheader", "--array", "--format=%i"]
            told = subprocess.run(command, capture_output=True, text=True)
            self._jobs = None if told.returncode else frozenset(told.stdout.split())
            self._asked = time.monotonic()  # also if a busy scheduler did not answer
        return self._jobs is None or job in self._jobs


class Job:
    """A job of the cluster."""

    def __init__(self, job: submitit.Job[Any], end: Path, scheduler: Scheduler) -> None:
        self._job, self._end, self._scheduler = job, end, scheduler
        self._submitted = self._known = time.monotonic()
        self._cancelled = False
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, or None as long as the job waits, runs, or is to be queued again."""
        if self._code is None:
            known = self._is_known()
            if known:
                self._known = time.monotonic()
            else:
                os.listdir(self._end.parent)  # network storage then looks for new files
            self._code = self._read()  # after the question: it may have ended in between
            late = self._cancelled or time.monotonic() - self._known >= SEEN
            if self._code is None and not known and late:  # it was cancelled, or its machine was lost for good
                self._code = -signal.SIGTERM
        return self._code

    def terminate(self) -> None:
        """Ask it to save its state and to stop, and take it out of the queue."""
        self._cancelled = True
        self._job.cancel(check=False)

    def kill(self) -> None:
        """End it at once."""
        if self._is_slurm():
            subprocess.run(["scancel", "--signal=KILL", str(self._job.job_id)], capture_output=True)
        self.terminate()

    def _read(self) -> int | None:
        try:
            return int(self._end.read_text())
        except (FileNotFoundError, ValueError):
            return None

    def _is_known(self) -> bool:
        if not self._is_slurm():
            return not self._job.done()
        return time.monotonic() - self._submitted < 2 * ASK or self._scheduler.has(str(self._job.job_id))

    def _is_slurm(self) -> bool:
        import submitit

        return isinstance(self._job, submitit.SlurmJob)
