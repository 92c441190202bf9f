"""Ctrl-C ends a command within a second, also where a library would lose it or compiles for a long time.

Python raises ``KeyboardInterrupt`` between two steps of the main thread. So compiled code delays it, and code that
ignores exceptions, such as the callbacks of numba's compiler, loses it. So a thread waits for the signal too, and
ends the process if the main thread has not done so in time. Nothing is lost: files are written whole or not at all.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

GRACE = 0.5
"""Seconds in which the main thread can end the command in the usual way."""
LAST = 5.0
"""Seconds for the rest, once the main thread has begun to say that the command is stopped."""
SAID = threading.Event()
"""Set by the main thread before it says so."""
STOPPED = 130
SHOW_CURSOR = "\x1b[?25h"


@contextmanager
def interruptible() -> Iterator[None]:
    """End this process within a second of a Ctrl-C, unless somebody else handles it, as training does."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored, as in a background job of a shell
        yield
        return
    asked, ended = threading.Event(), threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not asked.is_set():  # once is enough: the second would interrupt the cleaning up
            asked.set()
            raise KeyboardInterrupt

    def watch() -> None:
        while number := told.recv(1):
            ours = number[0] == signal.SIGINT and signal.getsignal(signal.SIGINT) is interrupt
            if ours and not ended.wait(GRACE) and not (SAID.is_set() and ended.wait(LAST)):
                asked.set()
                _stop()

    def unraisable(error: sys.UnraisableHookArgs) -> None:
        if not asked.is_set():
            sys.__unraisablehook__(error)

    tell, told = socket.socketpair()
    tell.setblocking(False)
    signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = unraisable
    threading.Thread(target=watch, name="interrupts", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        asked.set()  # only the exit code is missing now


def _stop() -> None:
    with suppress(OSError, ValueError):
        shown = SHOW_CURSOR if sys.stderr.isatty() else ""
        said = "" if SAID.is_set() else "oneofmany: stopped\n"
        os.write(sys.stderr.fileno(), f"{shown}{said}".encode())
    os._exit(STOPPED)
