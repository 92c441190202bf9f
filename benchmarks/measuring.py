"""Tools of the benchmarks: time, peak memory, a step as a CUDA graph."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

Step = Callable[[], object]
Result = TypeVar("Result")


def captured(step: Step) -> Step:
    """Return a function that replays the step as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def seconds(step: Step, device: str) -> float:
    if device == "cpu":
        start = time.perf_counter()
        step()
        return time.perf_counter() - start
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    step()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1000


def timed(work: Callable[[], Result], repeats: int = 1) -> tuple[float, Result]:
    """Return the least seconds of some repeats on a CPU, and the result."""
    start = time.perf_counter()
    result = work()
    best = time.perf_counter() - start
    return (min(best, timed(work, repeats - 1)[0]) if repeats > 1 else best), result


def peak_now() -> int:
    """Return the peak resident bytes so far, from /proc: getrusage's counter is inherited from the parent process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
