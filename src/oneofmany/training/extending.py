"""Extend a finished run: give its last phase more updates, and continue from where it ended."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from oneofmany.files import FileError
from oneofmany.runs.folder import RunFolder
from oneofmany.training.checkpoints import IN_PHASE, Checkpoint
from oneofmany.training.learners import under
from oneofmany.training.phases import phases_of
from oneofmany.training.settings import Settings, to_json
from oneofmany.training.updating import MEASURED


@dataclass(frozen=True)
class Extension:
    """A change of the number of updates in the last phase of a run.

    Args:
        settings: the new settings of the run; their recipe ends in ``/extended``.
        phase: the settings that change, ``first`` or ``second``.
        before: the number of updates until now.
        updates: the number of updates from now on.
    """

    settings: Settings
    phase: str
    before: int
    updates: int

    @classmethod
    def between(cls, saved: Settings, wanted: Settings) -> Extension | None:
        """The extension from saved to wanted settings; None if they have the same number of updates."""
        before, after = phases_of(saved)[-1], phases_of(wanted)[-1]
        phase = before.stream
        updates = after.settings.updates
        if updates == before.settings.updates or (before.name, phase) != (after.name, after.stream):
            return None
        recipe = saved.recipe if saved.recipe.endswith("/extended") else f"{saved.recipe}/extended"
        changed = replace(getattr(saved, phase), updates=updates)
        settings = replace(saved, recipe=recipe if saved.recipe else "", **{phase: changed})
        return cls(settings, phase, before.settings.updates, updates)

    def apply(self, folder: RunFolder) -> str:
        """Turn a finished run into one that continues, and return a sentence; call it while the folder is locked.

        The order matters: a process that is killed in between leaves the run as it was, or extended.
        """
        state = self._state(folder)
        exact = "optimiser/0/step" in state.tensors
        state.save(folder)
        (folder.path / "result.json").unlink(missing_ok=True)
        for file in folder.predictions.glob("*.safetensors"):  # answers of weights that may be replaced
            file.replace(file.with_name(f"{file.name}.stale"))
        about = {"phase": self.phase, "from": self.before, "to": self.updates, "exact": exact}
        extended = [*(folder.config.get("extended") or ()), about]
        folder.configure(folder.config | {"settings": to_json(self.settings), "extended": extended})
        missing = "" if exact else "; its state has no optimiser, so a new one starts from the best weights"
        return (
            f"{folder.path} is extended from {self.before} to {self.updates} updates: it is not a run of the recipe "
            f"any more, and its evaluations are stale{missing}"
        )

    def _state(self, folder: RunFolder) -> Checkpoint:
        """The state at the end of the last phase, with the place that it has in the longer phase."""
        found = Checkpoint.load(folder, torch.device("cpu"))
        if found is None:
            raise FileError(f"{folder.path} has no state to continue from: it cannot be extended")
        state, at, best = found[0], found[0].at, found[0].candidate or found[0].best
        if best is None:
            raise FileError(f"{folder.path} has no weights in its last state: it cannot be extended")
        phase = phases_of(self.settings)[-1]
        if at.finished:
            end = at.end or {"update": _reached(folder, phase.name)}
            if end["update"] < self.before:
                raise FileError(f"{folder.path} ended before its last update, by its time limit or early stopping")
            at.phase, at.finished, at.end, at.extensions = at.phase - 1, False, None, at.extensions + 1
            for name in IN_PHASE:
                setattr(at, name, end.get(name, getattr(at, name)))
            selector = under(state.tensors, "selector")
            tensors = under(state.tensors, "end") or self._without_optimiser(best.weights, selector)
            state = Checkpoint(at, best, None if phase.fresh else best.copy(), tensors)
        at.progress = at.update / self.updates
        return state

    def _without_optimiser(self, weights: dict[str, Tensor], selector: dict[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of a state with these weights and new optimisers: runs of version 0.1 did not keep more."""
        parts = {"network": weights} | ({"average": weights} if self.settings.ema else {})
        if selector:
            parts |= {"selector": selector}
            parts |= {"copy": weights} if self.settings.selector_training.copy_interval > 1 else {}
        tensors = {f"{part}/{name}": tensor.clone() for part, own in parts.items() for name, tensor in own.items()}
        return tensors | {
            "lagged/updates": torch.tensor(0),
            "sums": torch.zeros(len(MEASURED), dtype=torch.float64),
        }


def _reached(folder: RunFolder, phase: str) -> int:
    """The last update of a phase in the metrics."""
    return max((line["update"] for line in folder.read_metrics() if line.get("phase") == phase), default=0)
