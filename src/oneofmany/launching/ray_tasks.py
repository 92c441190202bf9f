"""Commands as tasks of a Ray cluster."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oneofmany.extras import require
from oneofmany.launching.base import LOOK, Command

if TYPE_CHECKING:
    from ray.exceptions import RayError


class KilledError(RuntimeError):
    """A command was killed, for example because its machine ran out of memory; Ray tries again."""


class OnRay:
    """Starts every command as a task. Ray runs it where its cores and GPUs are free, and again if it was killed.

    Args:
        address: the cluster; None is that of this machine, or a new one if there is none.
        cpus: the cores of a command.
        gpus: the GPUs of a command; 0.25 lets four commands share one.
        retries: how often a command is tried again after it, or its machine, was killed.
    """

    def __init__(self, address: str | None = None, cpus: int = 1, gpus: float = 0.0, retries: int = 3) -> None:
        require("ray")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self.cpus: int | None = cpus
        self._joined = not ray.is_initialized()
        if self._joined:
            try:
                _check_reachable(address)
                ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
            except OSError as error:
                raise ValueError(
                    f"--address: there is no Ray cluster at {address} ({str(error).splitlines()[0]}): start one with "
                    "ray start --head, or leave the option out"
                ) from None
        if not any(node["Alive"] and _fits(node["Resources"], cpus, gpus) for node in ray.nodes()):
            self.close()
            raise ValueError(f"no machine of the Ray cluster has --cpus {cpus} and --gpus {gpus:g}: ask for less")
        options: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": retries}
        options["retry_exceptions"] = [KilledError]
        self._run = ray.remote(**options)(run)

    def start(self, commands: Sequence[Command]) -> list[Task]:
        """Hand commands to Ray."""
        here = str(Path.cwd())
        return [
            Task(self._run.remote(command.line, str(command.log), dict(command.environment), here), command.log)
            for command in commands
        ]

    def close(self) -> None:
        """Leave the cluster; tasks that still run are stopped."""
        import ray

        if self._joined:
            ray.shutdown()


def _fits(resources: Mapping[str, float], cpus: int, gpus: float) -> bool:
    return resources.get("CPU", 0) >= cpus and resources.get("GPU", 0) >= gpus


def _check_reachable(address: str | None) -> None:
    """Raise OSError at once for a HOST:PORT where nobody listens; Ray would try for many minutes."""
    host, _, port = (address or "").partition(":")
    if port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10).close()


class Task:
    """A command on the cluster, and its log."""

    def __init__(self, reference: Any, log: Path) -> None:
        self._reference, self._log = reference, log
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, or None as long as Ray has no result."""
        import ray
        from ray.exceptions import RayError, TaskCancelledError

        if self._code is None and ray.wait([self._reference], timeout=0)[0]:
            try:
                self._code = ray.get(self._reference)
            except TaskCancelledError:
                self._code = -signal.SIGTERM
            except RayError as error:  # it was killed once more than it may be tried again, or could not be started
                self._code = -signal.SIGKILL
                with self._log.open("a", encoding="utf-8") as log:
                    log.write(f"oneofmany: {_why(error)}\n")
        return self._code

    def terminate(self) -> None:
        """Ask it to save its state and to stop."""
        import ray

        ray.cancel(self._reference)

    def kill(self) -> None:
        """End it at once."""
        import ray

        ray.cancel(self._reference, force=True)


def _why(error: RayError) -> str:
    """What Ray says in one line: the exception that the task raised, or else the first line."""
    cause = getattr(error, "cause", None)
    text = (f"{type(cause).__name__}: {cause}" if isinstance(cause, Exception) else str(error)).strip()
    return f"Ray: {text.splitlines()[0] if text else type(error).__name__}"


def run(line: Sequence[str], log: str, environment: Mapping[str, str], folder: str) -> int:
    """Run a command on a machine of the cluster and return its exit code; KilledError if it was killed."""
    with Path(log).open("ab") as file:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            cwd=folder,
            start_new_session=True,
        )
    try:
        while (code := process.poll()) is None:
            time.sleep(LOOK)  # the exception by which Ray cancels a task does not interrupt a wait for the process
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if code < 0 or code > 128:
        raise KilledError(f"{line[0]} ended with exit code {code}")
    return code
