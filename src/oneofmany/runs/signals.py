"""Handlers for SIGINT and SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def listening(react: Callable[[int], None]) -> Iterator[None]:
    """On SIGINT and SIGTERM, call ``react`` with the signal's number instead of ending at once."""
    try:
        before = {
            number: signal.signal(number, lambda number, frame: react(number))
            for number in (signal.SIGINT, signal.SIGTERM)
        }
    except ValueError:  # not in the main thread, where handlers cannot be set
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
