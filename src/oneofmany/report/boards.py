"""Predictions of trained runs for the board viewer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oneofmany.data import Dataset, DeviceData
from oneofmany.networks.saved import SavedNetwork, load_network
from oneofmany.report.viewer import trace


def trace_runs(runs: Iterable[str | Path], data: Dataset, queries: int = 3) -> list[tuple[str, dict[str, Any]]]:
    """Let the networks of run folders answer the same few queries: of every recipe the run that dev picks.

    Args:
        runs: run folders; those of another task than the data's, or whose network cannot take its size, are left out.
        data: where the queries come from: the first MS queries, or OS queries where there are no others.
        queries: how many.

    Returns:
        (recipe and seed, what ``trace`` returns), as ``write_report`` takes them.
    """
    several = np.flatnonzero(data.multiple)
    rows = (several if len(several) else np.arange(len(data)))[:queries]
    batch = DeviceData(data).batch(torch.as_tensor(rows))
    picked: dict[str, tuple[float, SavedNetwork]] = {}
    for run in map(Path, runs):
        saved = load_network(run / "weights.safetensors")
        fits = saved.task == data.problem.task and saved.network.accepts(data.problem, data.relations) is None
        recipe = saved.card.get("recipe") or run.name
        dev = (saved.card.get("dev") or {}).get("overall") or 0.0
        if fits and dev >= picked.get(recipe, (0.0, saved))[0]:
            picked[recipe] = dev, saved
    found = []
    for recipe, (_, saved) in picked.items():
        steps = saved.settings.test_steps if saved.settings.has_steps else None
        title = f"{recipe}, seed {saved.card['seed']}" if "seed" in saved.card else recipe
        found.append((title, trace(saved.network, batch, steps)))
    return found
