"""Equal budgets: the same number of updates for every objective, whatever its phases."""

from __future__ import annotations

from dataclasses import replace

from oneofmany.training.phases import phases_of
from oneofmany.training.settings import Settings


def budget_of(settings: Settings) -> int:
    """The updates of all phases of a run."""
    return sum(phase.settings.updates for phase in phases_of(settings))


def with_budget(settings: Settings, updates: int) -> Settings:
    """The settings with this many updates in all; the phases keep their shares, and none ends early."""
    phases = phases_of(settings)
    total = budget_of(settings)
    if updates < len(phases):
        raise ValueError(f"--updates: expected at least {len(phases)}, one for each phase, got {updates}")

    def share(of: int) -> int:
        return max(1, round(of * updates / total)) if of else 0

    always = {"minutes": None, "stop_after": None}
    first = replace(settings.first, updates=share(settings.first.updates), **always)
    warm = replace(settings.selector_training, updates=share(settings.selector_training.updates))
    scaled = replace(settings, first=first, second=replace(settings.second, **always), selector_training=warm)
    if phases[-1].stream == "first":  # the only phase
        return replace(scaled, first=replace(first, updates=updates))
    rest = budget_of(replace(scaled, second=replace(scaled.second, updates=1))) - 1
    if rest >= updates:
        raise ValueError(f"--updates: {updates} are too few for the phases of {settings.recipe}")
    return replace(scaled, second=replace(scaled.second, updates=updates - rest))
