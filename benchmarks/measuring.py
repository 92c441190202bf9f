"""Tools of the benchmarks: time, peak memory, a step as a CUDA graph, sources of another revision."""

import os
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Step = Callable[[], object]
Result = TypeVar("Result")


def numbers_from(source: str | Path, script: str, *arguments: str) -> list[float]:
    """Return the numbers in the last line that a script prints in a process with the sources in this folder."""
    environment = {**os.environ, "PYTHONPATH": os.path.abspath(source)}
    command = [sys.executable, script, *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [float(number) for number in done.stdout.splitlines()[-1].split()]


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


def timed(
    work: Callable[[], Result], repeats: int = 1, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Result]:
    """Return the least seconds of some repeats on a CPU, and the result."""
    start = clock()
    result = work()
    best = clock() - start
    return (min(best, timed(work, repeats - 1, clock)[0]) if repeats > 1 else best), result


def peak_now() -> int:
    """Return the peak resident bytes so far, from /proc: getrusage's counter is inherited from the parent process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


class LiveTensors(TorchDispatchMode):
    """Counts the bytes of live tensors on a CPU, where torch keeps no statistics; inputs are not counted."""

    def __init__(self) -> None:
        super().__init__()
        self.held = self.peak = 0
        self.watched: dict[weakref.ref[torch.UntypedStorage], int] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        known = [tensor.untyped_storage() for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, Tensor)]
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and tensor.untyped_storage() not in known:
                self.watch(tensor.untyped_storage())
        return result

    def watch(self, storage: torch.UntypedStorage) -> None:
        reference = weakref.ref(storage, self.release)
        self.watched[reference] = storage.nbytes()
        self.held += storage.nbytes()
        self.peak = max(self.peak, self.held)

    def release(self, reference: weakref.ref[torch.UntypedStorage]) -> None:
        self.held -= self.watched.pop(reference)


def peak_mebibytes(run: Step, device: torch.device) -> float:
    """Return the peak memory of a run beyond what was there before it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        torch.cuda.synchronize(device)
        return (torch.cuda.max_memory_allocated(device) - before) / 2**20
    with LiveTensors() as tensors:
        run()
    return tensors.peak / 2**20
