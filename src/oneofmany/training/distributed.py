"""One or many processes: who they are, and the few things they tell each other.

Data parallelism by hand, since it has to be exact: every process draws the whole batch, works on its slice, divides by
what is trained on in the whole batch, and gradients are summed. One process and many then give the same update.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


class LostProcess(RuntimeError):  # noqa: N818 - said as it is
    """Another process of the run has gone; the last state is kept."""


@contextmanager
def _talking() -> Iterator[None]:
    """Gloo says with a RuntimeError that the other side does not answer; NCCL ends the process by itself."""
    try:
        yield
    except RuntimeError as error:
        raise LostProcess(f"another process of this run was lost ({str(error).splitlines()[0]})") from error


@dataclass(frozen=True)
class Group:
    """The processes of a run; ``rank`` 0 alone writes."""

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

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes; the tensor itself where there is one process."""
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
        """Until all processes have come this far."""
        if self.size > 1:
            with _talking():
                dist.barrier(device_ids=[device.index] if device.type == "cuda" else None)

    def from_first(self, value: float, device: torch.device) -> float:
        """The first process's number, so that all take the same decision."""
        if self.size == 1:
            return value
        told = torch.tensor([value], dtype=torch.float64, device=device)
        with _talking():
            dist.broadcast(told, 0)
        return float(told)


@contextmanager
def processes(device: torch.device) -> Iterator[tuple[Group, torch.device]]:
    """The processes that torchrun started, or just this one; and the device that this process works on."""
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
        # Whoever left now could take the others along: torchrun ends all where one fails, and Gloo's threads can fail a
        # process that ends while they still hold a tensor.
        group.wait(device)
    finally:
        if mine:
            dist.destroy_process_group()
