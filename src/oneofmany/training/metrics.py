"""Lines of metrics: the means over the updates since the last line, and the callback that receives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneofmany.training.phases import Phase

Watch = Callable[[dict[str, Any]], None]
"""A callback for every line of metrics, and for the length of every phase."""


def averages(sums: dict[str, float], updates: int, phase: Phase) -> dict[str, float | None]:
    """Means over the updates; in the joint phase also the exploratory fractions (see the glossary)."""
    line: dict[str, float | None] = {
        "loss": sums["loss"] / updates,
        "gradient_norm": sums["gradient_norm"] / updates,
        "skipped": round(sums["skipped"]),
    }
    if phase.objective != "selectr":
        return line
    line["selector_loss"] = sums["selector_loss"] / updates
    line["selector_gradient_norm"] = sums["selector_gradient_norm"] / updates
    if phase.trains != "both":
        return line
    for over, total in (("ms", sums["ms_queries"]), ("all", sums["queries"])):
        for closest in ("loss", "hamming"):
            share = sums[f"exploratory_{closest}"] / total if total else None
            line[f"exploratory_{over}_{closest}"] = share
    return line
