"""Learning rate and early stopping of a phase."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from oneofmany.training.settings import PhaseSettings

FACTOR, PATIENCE, FLOOR, IMPROVEMENT = 0.2, 7, 0.01, 0.01
"""The paper's plateau: times 0.2 after more than 7 evaluations without 1 % relative improvement, down to 0.01 lr."""


@dataclass
class Schedule:
    """The learning rate and early stopping of a phase. Both count evaluations separately, as in the authors' code.

    Args:
        phase: the settings of the phase.
        factor: the factor on the learning rate, lowered at every plateau.
        best: the lowest dev error that counted as an improvement.
        waited: evaluations without improvement since the last change of the learning rate.
        stalled: evaluations without improvement.
    """

    phase: PhaseSettings
    factor: float = 1.0
    best: float = math.inf
    waited: int = 0
    stalled: int = 0

    def lr(self, update: int, progress: float) -> float:
        """The learning rate of update ``update`` (from 0); ``progress`` (0 to 1) is the used share of the budget."""
        phase = self.phase
        rate = phase.lr * min(1.0, (update + 1) / phase.warmup if phase.warmup else 1.0)
        if phase.schedule == "cosine":
            falling = 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
            return rate * (phase.final_lr + (1 - phase.final_lr) * falling)
        return rate * self.factor

    def evaluated(self, accuracy: float) -> bool:
        """Record a dev accuracy; return True if the phase should stop."""
        error = 1 - accuracy
        if error < self.best * (1 - IMPROVEMENT):
            self.best, self.waited, self.stalled = error, 0, 0
        else:
            self.waited += 1
            self.stalled += 1
        if self.phase.schedule == "plateau" and self.waited > PATIENCE:
            self.factor, self.waited = max(self.factor * FACTOR, FLOOR), 0
        return self.phase.stop_after is not None and self.stalled > self.phase.stop_after

    def state(self) -> dict[str, Any]:
        """The values that resuming needs."""
        state = {name: value for name, value in asdict(self).items() if name != "phase"}
        return state | {"best": None if math.isinf(self.best) else self.best}

    def restore(self, state: dict[str, Any]) -> None:
        """Load a saved state."""
        self.factor, self.waited, self.stalled = state["factor"], state["waited"], state["stalled"]
        self.best = math.inf if state["best"] is None else state["best"]
