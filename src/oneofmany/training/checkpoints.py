"""Checkpoints: the position of a run, its best weights so far, and both on disk."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from oneofmany.files import FileError
from oneofmany.runs.folder import RunFolder
from oneofmany.training.learners import under
from oneofmany.training.ranges import check_types


@dataclass
class Candidate:
    """Weights that may be kept, with their accuracy on dev."""

    weights: dict[str, Tensor]
    dev: dict[str, Any]

    def copy(self) -> Candidate:
        """A copy that shares no tensor with this one."""
        return Candidate({name: tensor.clone() for name, tensor in self.weights.items()}, self.dev)

    def better_than(self, other: Candidate | None) -> bool:
        """Whether the dev score is strictly higher; True if there is no other."""
        return other is None or self.dev["score"] > other.dev["score"]


@dataclass
class Position:
    """The position of a run: everything in a state except the tensors."""

    phase: int = 0
    update: int = 0
    all_updates: int = 0
    seconds: float = 0.0
    phase_seconds: float = 0.0
    progress: float = 0.0
    schedule: dict[str, Any] | None = None
    since_evaluation: dict[str, float] = field(default_factory=dict)
    logged: int = 0
    metrics: int = 0
    best: dict[str, Any] | None = None
    candidate: dict[str, Any] | None = None
    finished: bool = False
    end: dict[str, Any] | None = None
    """The position at the end of the last phase, from which the run can be extended."""
    extensions: int = 0

    @property
    def number(self) -> int:
        """The number of the state; it grows with the position."""
        return self.extensions * 10**12 + self.phase * 10**9 + self.update + (10**11 if self.finished else 0)


IN_PHASE = ("update", "phase_seconds", "schedule")
"""The fields of a position that say where in its phase it is."""


class Clock:
    """Adds elapsed time to a position."""

    def __init__(self, at: Position) -> None:
        self.at, self.last = at, time.monotonic()
        self.since_rate = self.last

    def tick(self) -> None:
        """Add the time since the last tick."""
        now = time.monotonic()
        self.at.seconds += now - self.last
        self.at.phase_seconds += now - self.last
        self.last = now

    def rate(self, count: int) -> float:
        """``count`` divided by the seconds since the last call."""
        now = time.monotonic()
        rate = count / max(now - self.since_rate, 1e-9)
        self.since_rate = now
        return rate


@dataclass
class Checkpoint:
    """Everything that a state holds.

    Args:
        at: the position of the run.
        best: the best weights of the current phase, if it was evaluated already.
        candidate: the best weights of the earlier phases.
        tensors: those of the learners and, inside a phase, the sums of the updater; after the last phase also
            ``end/...``, the same tensors at its end.
    """

    at: Position
    best: Candidate | None
    candidate: Candidate | None
    tensors: dict[str, Tensor]

    def save(self, folder: RunFolder) -> None:
        """Write the folder's next state."""
        self.at.metrics = folder.logged_bytes()
        tensors = self.tensors
        for name, held in (("best", self.best), ("candidate", self.candidate)):
            setattr(self.at, name, None if held is None else held.dev)
            if held is not None:
                tensors = tensors | {f"{name}/{key}": value for key, value in held.weights.items()}
        folder.save_state(self.at.number, tensors, asdict(self.at))

    @classmethod
    def load(cls, folder: RunFolder, device: torch.device) -> tuple[Checkpoint, list[str]] | None:
        """The newest complete state of the folder and a warning for each damaged one; None if there is no state."""
        found = folder.load_state()
        if found is None:
            return None
        tensors, about, complaints = found
        try:
            at = Position(**about)
        except TypeError:
            raise FileError(
                f"{folder.path} was started by another version of oneofmany: resume it with that version"
            ) from None
        try:
            check_types(at)
            counts = (at.metrics, at.phase, at.update, at.extensions)
            if not all(0 <= count < 2**63 for count in counts) or (at.finished and at.candidate is None):
                raise ValueError("its position cannot be")
        except ValueError as error:
            raise FileError(f"{folder.path}: its newest state is damaged ({error}), so it cannot be resumed") from None
        tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
        best = None if at.best is None else Candidate(under(tensors, "best"), at.best)
        candidate = None if at.candidate is None else Candidate(under(tensors, "candidate"), at.candidate)
        return cls(at, best, candidate, tensors), complaints
