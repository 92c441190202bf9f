"""The data of the board viewer: a network's belief about every variable, step by step, as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oneofmany.data import Dataset, DeviceData
from oneofmany.networks import PredictionNetwork, draw_noise
from oneofmany.networks.protocol import Readout, readout_of
from oneofmany.networks.saved import SavedNetwork, load_network
from oneofmany.problems import Batch

MOST_FRAMES = 33
"""At most this number of steps of a prediction is kept."""
MOST_SOLUTIONS = 64
"""At most this number of listed solutions of a query is kept."""


def trace(
    network: PredictionNetwork,
    batch: Batch,
    steps: int | None = None,
    seed: int = 0,
    *,
    readout: Readout | None = None,
    frames: int = MOST_FRAMES,
) -> dict[str, Any]:
    """Run a network once on a few queries and return its belief at every step, small enough to store.

    Args:
        network: any prediction network; without steps it gives one frame.
        batch: the queries, with their listed solutions.
        steps: number of steps; the network's own number if None.
        seed: of the noise, if the network takes noise.
        readout: how an answer is read from the logits, as in ``evaluate``; the network's own if None.
        frames: keep up to this number of steps: the first ones, and the others evenly.

    Returns:
        task, size, options, values, and ``boards``: for every query its givens, relations, solutions, the kept
        ``steps``, ``belief`` [steps][variables][values] with two digits, ``answers`` [steps][variables] (1..V; 0 for
        none or several), and whether each answer is ``valid``.
    """
    logits = _logits(network, batch, steps, seed).float()
    kept = _kept(len(logits), frames)
    problem, offset = batch.problem, network.value_offset
    readout = readout_of(network) if readout is None else readout
    boards: list[dict[str, Any]] = []
    for b in range(len(batch)):
        own = batch[b : b + 1]
        relations = [] if own.relations is None else own.relations[0].tolist()
        boards.append(
            {
                "query": own.query[0].tolist(),
                "relations": [pair for pair in relations if pair[0] >= 0],
                "solutions": (own.solutions[0][own.mask[0]][:MOST_SOLUTIONS] + 1).tolist(),
                "steps": [step + 1 for step in kept],
                "belief": [],
                "answers": [],
                "valid": [],
            }
        )
        for step in kept:
            belief, answer, valid = _read(logits[step, b], own, offset, readout)
            boards[-1]["belief"].append(_two_digits(belief))
            boards[-1]["answers"].append(answer.tolist())
            boards[-1]["valid"].append(valid)
    return {
        "task": problem.task,
        "size": problem.size,
        "options": dict(problem.options),
        "values": problem.values,
        "boards": boards,
    }


def trace_runs(runs: Iterable[str | Path], data: Dataset, queries: int = 3) -> list[tuple[str, dict[str, Any]]]:
    """Answer the same few queries with the networks of run folders: for each recipe the run that dev picks.

    Args:
        runs: run folders; those of another task, or whose network does not accept the data, are left out.
        data: the source of the queries: its first MS queries, or OS queries if there are no others.
        queries: number of queries.

    Returns:
        (recipe and seed, what ``trace`` returns) of each run, for ``write_report``.
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


def _logits(network: Any, batch: Batch, steps: int | None, seed: int) -> Tensor:
    """Logits [T, B, R, classes]; T = 1 for a network without steps."""
    takes = signature(getattr(network, "forward", network)).parameters
    if steps is not None and "steps" not in takes:
        raise ValueError(f"steps: expected None for a network without steps, got {steps}")
    arguments: dict[str, Any] = {} if steps is None else {"steps": steps}
    training = getattr(network, "training", False)
    try:
        if training:
            network.eval()
        with torch.no_grad():
            if "noise" in takes:
                arguments["noise"] = draw_noise(network, batch, torch.Generator().manual_seed(seed))
            logits = network(batch, **arguments)
    finally:
        if training:
            network.train()
    return logits if logits.ndim == 4 else logits[None]


def _kept(steps: int, frames: int) -> list[int]:
    """The kept steps: all if there are few, else the first half of the frames and the others evenly spaced."""
    if frames < 2:
        raise ValueError(f"frames: expected at least 2, got {frames}")
    if steps <= frames:
        return list(range(steps))
    early = frames // 2
    return [*range(early), *np.unique(np.linspace(early, steps - 1, frames - early).round().astype(int)).tolist()]


def _read(logits: Tensor, own: Batch, offset: int, readout: str) -> tuple[Tensor, Tensor, bool]:
    """Belief [R, V], answer [R] (1..V; 0 for none or several) and its validity, from logits [R, V + offset]."""
    if readout == "threshold":
        taken = logits > 0
        valid = own.problem.check(taken[None], own.query, own.relations)
        return logits.sigmoid(), torch.where(taken.sum(-1) == 1, taken.int().argmax(-1) + 1, 0), bool(valid)
    answer = logits.argmax(-1) - offset
    valid = own.problem.check(answer[None], own.query, own.relations)
    return logits.softmax(-1)[:, offset:], answer + 1, bool(valid)


def _two_digits(belief: Tensor) -> list[list[float]]:
    """Beliefs with two digits; 0 and 1 as whole numbers, which halves the text."""
    rows = belief.double().mul(100).round().div(100).tolist()
    return [[int(x) if x in (0.0, 1.0) else x for x in row] for row in rows]


def check_viewer(data: Any, where: str) -> dict[str, Any]:
    """Return the viewer data; ValueError if the viewer could not show it."""
    try:
        for board in data["boards"]:
            variables, frames = len(board["query"]), len(board["steps"])
            fits = frames > 0 and np.shape(board["belief"]) == (frames, variables, data["values"])
            fits &= np.shape(board["answers"]) == (frames, variables) and len(board["valid"]) == frames
            fits &= all(len(solution) == variables for solution in board["solutions"])
            fits &= all(0 <= variable < variables for pair in board["relations"] for variable in pair)
            if not fits:
                raise ValueError
        if not (isinstance(data["task"], str) and isinstance(data["size"], int) and data["boards"]):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{where}: the stored prediction for the board viewer does not fit together") from None
    return data
