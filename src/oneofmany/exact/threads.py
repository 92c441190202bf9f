"""Run compiled functions on threads, which end early when the time is up or at Ctrl-C."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np

PAUSE = 0.25


def on_threads(
    work: Callable[..., None],
    parts: Sequence[tuple[int, ...]],
    threads: int,
    stop: np.ndarray,
    deadline: float = math.inf,
) -> None:
    """Call ``work`` with every part. This thread only waits, because it cannot answer Ctrl-C inside of a kernel.

    Args:
        work: releases the interpreter lock and returns early after ``stop`` was set.
        parts: the arguments of every call.
        threads: the largest number of threads.
        stop: uint8 [1], set to 1 at the end.
        deadline: of ``time.monotonic``.
    """
    if not parts or time.monotonic() >= deadline:
        return
    pool = ThreadPoolExecutor(min(threads, len(parts)))
    futures = [pool.submit(work, *part) for part in parts]
    try:
        # Some systems do not interrupt a wait, so it is never long.
        while wait(futures, timeout=max(0, min(PAUSE, deadline - time.monotonic()))).not_done:
            if time.monotonic() >= deadline:
                break
    finally:
        stop[0] = 1
        pool.shutdown(cancel_futures=True)
    for future in futures:
        if not future.cancelled():
            future.result()
