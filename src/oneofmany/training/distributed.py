"""One or several processes, and the few values that they exchange.

Data parallelism is written by hand because it has to be exact. Every process draws the whole batch, works on its slice
and divides by the number of trained queries in the whole batch. Gradients are summed. So one process and many give the
same update.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


class LostProcess(RuntimeError):  # noqa: N818 - named after what happened
    """Another process of the run has ended; the last state is kept."""


@contextmanager
def _talking() -> Iterator[None]:
    """Turn Gloo's RuntimeError about a lost peer into LostProcess; NCCL ends the process by itself."""
    try:
        yield
    except RuntimeError as error:
        raise LostProcess(f"another process of this run was lost ({str(error).splitlines()[0]})") from error


@dataclass(frozen=True)
class Group:
    """The processes of a run; only ``rank`` 0 writes."""

    rank: int = 0
    size: int = 1

    @property
    def writes(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def rows(self, batch: int) -> slice:
        """This process's slice of a batch."""
        if batch % self.size:
            raise ValueError(f"batch: expected a multiple of the {self.size} processes, got {batch}")
        share = batch // self.size
        return slice(self.rank * share, (self.rank + 1) * share)

    def shards(self, number: int) -> range:
        """This process's shards of a file."""
        if number % self.size:
            raise ValueError(f"shards: expected a multiple of the {self.size} processes, got {number}")
        share = number // self.size
        return range(self.rank * share, (self.rank + 1) * share)

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes; with one process, the tensor itself."""
        if self.size > 1:
            values = values.clone()
            with _talking():
                dist.all_reduce(values)
        return values

    def sum_gradients(self, parameters: Sequence[Tensor]) -> None:
        """Add up the gradients of all processes, in one message."""
        if self.size == 1:
            return
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        with _talking():
            dist.all_reduce(flat)
        for parameter, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = part.view_as(parameter)

    def wait(self, device: torch.device) -> None:
        """Wait until all processes have reached this call."""
        if self.size > 1:
            with _talking():
                dist.barrier(device_ids=[device.index] if device.type == "cuda" else None)

    def from_first(self, value: float, device: torch.device) -> float:
        """The value of the first process, so that all processes decide the same."""
        if self.size == 1:
            return value
        told = torch.tensor([value], dtype=torch.float64, device=device)
        with _talking():
            dist.broadcast(told, 0)
        return float(told)


def launched() -> Group:
    """This process among those that torchrun started, or alone, by the environment: nothing is sent."""
    return Group(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))


@contextmanager
def processes(device: torch.device) -> Iterator[tuple[Group, torch.device]]:
    """The processes that torchrun started, or only this one, and the device of this process."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1 or not dist.is_available():
        yield Group(), device
        return
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    mine = not dist.is_initialized()
    if mine:
        if device.type == "cuda":
            torch.cuda.set_device(device)
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    group = Group(dist.get_rank(), dist.get_world_size())
    try:
        yield group, device
        # A process that leaves early can end the others: torchrun stops all of them when one fails, and Gloo's threads
        # can crash a process that ends while they still hold a tensor.
        group.wait(device)
    finally:
        if mine:
            dist.destroy_process_group()
