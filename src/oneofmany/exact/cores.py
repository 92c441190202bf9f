"""How many threads are worth starting."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def idle_cores() -> int:
    """Return how many of these cores had nothing to do in the last minute, at least 1."""
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, usable_cores() - round(busy))
