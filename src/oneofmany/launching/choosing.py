"""The launcher that a user asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from oneofmany.launching.base import Launcher
from oneofmany.launching.local import Local

LauncherName = Literal["local", "slurm", "ray"]
LAUNCHERS: tuple[LauncherName, ...] = get_args(LauncherName)
"""The names of the launchers."""


@dataclass(frozen=True)
class Place:
    """Where commands run.

    Args:
        launcher: this machine, a SLURM cluster or a Ray cluster.
        cpus: the cores of a command; None shares those of this machine, and is 1 on a cluster.
        gpus: the GPUs of a command; Ray takes fractions.
        address: the address of a Ray cluster; None is that of this machine, or a new one.
        retries: how often Ray tries a killed command again.
        limit: the time limit of a SLURM job in minutes; at its end the job saves its state and is queued again.
        partition: the partition of a SLURM cluster.
    """

    launcher: LauncherName = "local"
    cpus: int | None = None
    gpus: float = 0.0
    address: str | None = None
    retries: int = 3
    limit: int = 1440
    partition: str | None = None

    def __post_init__(self) -> None:
        if self.launcher not in LAUNCHERS:
            raise ValueError(f"--launcher: expected {', '.join(LAUNCHERS)}, got {self.launcher!r}")
        if (self.cpus is not None and self.cpus < 1) or self.gpus < 0 or self.retries < 0 or self.limit < 1:
            raise ValueError(
                "expected --cpus and --limit of at least 1, --gpus and --retries of at least 0, got "
                f"{self.cpus}, {self.limit}, {self.gpus:g} and {self.retries}"
            )
        own = {"ray": ("address", "retries"), "slurm": ("limit", "partition"), "local": ()}
        for owner, names in own.items():
            for name in names:
                if owner != self.launcher and getattr(self, name) != getattr(Place, name):
                    raise ValueError(f"--{name} belongs to --launcher {owner}")
        if self.launcher == "local" and (self.cpus is not None or self.gpus):
            raise ValueError(
                "--cpus and --gpus belong to --launcher slurm or ray: on this machine --threads sets cores"
            )


def launcher_for(place: Place, folder: Path) -> Launcher:
    """The launcher of a place; ``folder`` is on shared storage and takes what SLURM writes."""
    if place.launcher == "ray":
        from oneofmany.launching.ray_tasks import OnRay

        return OnRay(place.address, place.cpus or 1, place.gpus, place.retries)
    if place.launcher == "slurm":
        from oneofmany.launching.slurm import OnSlurm

        return OnSlurm(folder, place.cpus or 1, place.gpus, place.limit, place.partition)
    return Local()
