"""Commands in forked processes, which import nothing any more, and which can be killed at any file operation."""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import torch

import oneofmany.launching.local as local
import oneofmany.training.queue as queue
from oneofmany.cli import run
from oneofmany.recipes import planning  # noqa: F401 - imported before the fork
from oneofmany.runs import environment
from oneofmany.solving import prepare

torch.set_num_threads(1)

WATCHED = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.utime", "os.chmod"}
"""Audit events of file operations; ``fsync`` and half of a write are added."""
Act = Callable[[str], object]


def before_file_operations(folder: Path, act: Act) -> None:
    """From now on, call ``act`` before every file operation of this process below ``folder`` and in every write."""
    place = f"{folder}/"
    real_fsync, real_write = os.fsync, Path.write_bytes

    def hook(event: str, arguments: tuple) -> None:
        if event in WATCHED and isinstance(arguments[0], str | Path) and str(arguments[0]).startswith(place):
            reads = event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR)
            act("read" if reads else event)

    def fsync(handle: int) -> None:
        act("fsync")
        real_fsync(handle)

    def write_bytes(path: Path, content: bytes) -> int:
        real_write(path, content[: len(content) // 2])
        act("half of a write")
        return real_write(path, content)

    sys.addaudithook(hook)
    os.fsync = fsync
    Path.write_bytes = write_bytes
    Path.write_text = lambda path, text, encoding=None: path.write_bytes(text.encode())


def fork(work: Callable[[], int], log: Path | int) -> int:
    """Run ``work`` in a new process, which ends with the returned exit code; its output goes to ``log``."""
    sys.stdout.flush()
    sys.stderr.flush()
    if pid := os.fork():
        return pid
    code = 99
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if isinstance(log, Path) else log
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout, sys.stderr = (os.fdopen(handle, "w", buffering=1, closefd=False) for handle in (1, 2))
        code = work()
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def command(arguments: Sequence[object], log: Path, prepare: Callable[[], None] = lambda: None) -> int:
    """Start ``oneofmany ARGUMENTS`` in a new process; return its number."""

    def work() -> int:
        assert local.subprocess in (subprocess, Forking), "the launcher starts processes in another way"
        local.subprocess = Forking  # the runs of a sweep are forked too
        prepare()
        return run([str(argument) for argument in arguments])

    return fork(work, log)


def together(commands: Sequence[Sequence[object]], logs: Sequence[Path]) -> list[int]:
    """Run commands that begin at the same moment; return their exit codes."""
    wait, go = os.pipe()

    def ready() -> None:
        os.close(go)
        os.read(wait, 1)

    pids = [command(arguments, log, ready) for arguments, log in zip(commands, logs, strict=True)]
    os.close(go)
    codes = [ended(pid) for pid in pids]
    os.close(wait)
    return codes


def ended(pid: int) -> int:
    """Wait for a process; return its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def call(arguments: Sequence[object], log: Path) -> int:
    """Run a command to its end; return its exit code."""
    return ended(command(arguments, log))


def import_like(arguments: Sequence[object], folder: Path) -> None:
    """Import here what a command imports while it runs. It runs in another process: PyTorch must not train and fork."""
    names = folder / "modules"

    def work() -> int:
        code = run([str(argument) for argument in arguments])
        names.write_text("\n".join(sys.modules))
        return code

    if ended(fork(work, folder / "log")):
        raise RuntimeError((folder / "log").read_text())
    for name in names.read_text().split():
        with suppress(Exception):
            import_module(name)


class Forking:
    """Stands in for the module ``subprocess`` in the launcher of a sweep."""

    DEVNULL, STDOUT = subprocess.DEVNULL, subprocess.STDOUT

    class Popen:
        """A forked process with the methods that the queue uses."""

        def __init__(self, command: Sequence[str], stdout, **_: object) -> None:
            self.code: int | None = None
            self.pid = fork(lambda: os.setsid() or run(list(command[len(queue.PROGRAM) :])), stdout.fileno())

        def poll(self) -> int | None:
            if self.code is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.code = os.waitstatus_to_exitcode(status) if pid else None
            return self.code

        def wait(self) -> int:
            while self.poll() is None:
                time.sleep(0.01)
            return self.code or 0

        def terminate(self) -> None:
            os.kill(self.pid, signal.SIGTERM)

        def kill(self) -> None:
            os.kill(self.pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


prepare()  # loads the enumerator
environment._revision = lambda: "0"  # git would take longer than the commands
