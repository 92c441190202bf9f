"""Commands as processes of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from oneofmany.launching.base import Command


class Local:
    """Starts every command at once; the caller decides how many run at a time."""

    cpus: int | None = None

    def start(self, commands: Sequence[Command]) -> list[subprocess.Popen[bytes]]:
        """Start commands as processes."""
        return [self._start(command) for command in commands]

    def close(self) -> None:
        """There is nothing to leave."""

    def _start(self, command: Command) -> subprocess.Popen[bytes]:
        with command.log.open("ab") as log:
            return subprocess.Popen(
                command.line,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **command.environment},
                start_new_session=True,  # Ctrl-C reaches only the caller, which then stops the commands
            )
