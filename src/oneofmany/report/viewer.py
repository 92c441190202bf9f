"""The data of the board viewer: a network's belief about every variable, step by step, as plain JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oneofmany.data import Dataset, DeviceData
from oneofmany.networks import PredictionNetwork, draw_noise
from oneofmany.networks.headers import OTHERWISE
from oneofmany.networks.protocol import Readout, readout_of
from oneofmany.networks.saved import SavedNetwork, load_network
from oneofmany.pictures.boards import Board
from oneofmany.pictures.marks import form_of, marks_of
from oneofmany.problems import Batch, find_task
from oneofmany.tensor_files import read_header

MOST_FRAMES = 33
"""At most this number of steps of a prediction is kept."""
MOST_SOLUTIONS = 64
"""At most this number of listed solutions of a query is kept."""
MOST_TRIED = 64
"""The queries of a viewer are chosen among at most this number."""
FIRST_BATCH = 1024
"""The batch size of ``evaluate``: queries of its first batch get the same noise here."""
UNIT = 46.0
"""The width of a cell in the viewer."""
LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
"""A belief from 0 to 1 as one character."""


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
        task, size, options, values, the ``names`` of variables and values or None, the ``form`` of the boards (grid,
        graph or rows), and ``boards``: for every query its givens, relations, solutions, what else is drawn (the
        ``marks`` of sums, ``absent`` cells, the ``places`` of nodes), the kept ``steps``, ``belief``
        [steps][variables][values] with two digits, ``answers`` [steps][variables] (1..V; 0 for none or several), and
        whether each answer is ``valid``.
    """
    readout = readout_of(network) if readout is None else readout
    return _boards(network, batch, _logits(network, batch, steps, seed), readout, frames)


def _boards(network: PredictionNetwork, batch: Batch, logits: Tensor, readout: Readout, frames: int) -> dict[str, Any]:
    """What ``trace`` returns, from logits [T, B, R, classes]."""
    kept, problem = _kept(len(logits), frames), batch.problem
    boards: list[dict[str, Any]] = []
    for b in range(len(batch)):
        own = batch[b : b + 1]
        relations = [] if own.relations is None else own.relations[0].tolist()
        pairs = np.array(relations, np.int64).reshape(-1, 2)
        seen = Board(own.problem_of(0), own.query[0].cpu().numpy(), pairs)
        belief, answers, valid = _read(logits[kept, b].float(), own, network.value_offset, readout)
        boards.append(
            {
                "query": own.query[0].tolist(),
                "relations": [pair for pair in relations if pair[0] >= 0],
                "solutions": (own.solutions[0][own.mask[0]][:MOST_SOLUTIONS] + 1).tolist(),
                **marks_of(seen, UNIT),
                "steps": [step + 1 for step in kept],
                "belief": [_two_digits(one) for one in belief],
                "answers": answers.tolist(),
                "valid": valid.tolist(),
            }
        )
    task = find_task(problem.task)
    names = None if task is None else task.names
    return {
        "task": problem.task,
        "size": problem.size,
        "options": dict(problem.options),
        "values": problem.values,
        "form": form_of(problem),
        "names": None if names is None else {"variables": list(names.variables), "values": list(names.values)},
        "boards": boards,
    }


def trace_runs(runs: Iterable[str | Path], data: Dataset, queries: int = 16) -> list[tuple[str, dict[str, Any]]]:
    """Answer the same few queries with the networks of run folders: for each recipe the run that dev picks.

    The answers are those of ``evaluate`` with its default settings.

    Args:
        runs: run folders; those of another task, or whose network does not accept the data, are left out.
        data: the source of the queries: its first MS queries, or OS queries if there are no others.
        queries: keep up to this number of them; up to three quarters are queries that only some of the runs answer.

    Returns:
        (recipe and seed, what ``trace`` returns, with the ``objective``, and ``rows``: the numbers of the queries) of
        each run, for ``write_report``.
    """
    first = min(len(data), FIRST_BATCH)
    several = np.flatnonzero(data.multiple[:first])
    tried = torch.as_tensor((several if len(several) else np.arange(first))[:MOST_TRIED])
    everything = DeviceData(data).batch(torch.arange(first))
    batch = everything[tried]
    found = []
    for recipe, saved in _picked(runs, data).items():
        steps = saved.settings.test_steps if saved.settings.has_steps else None
        logits = _logits(saved.network, everything, steps, 0, tried)
        title = f"{recipe}, seed {saved.card['seed']}" if "seed" in saved.card else recipe
        found.append((title, saved, logits))
    valid = np.array([_valid(saved.network, batch, logits[-1]) for _, saved, logits in found]).reshape(len(found), -1)
    differ = valid.any(0) & ~valid.all(0)
    few = np.flatnonzero(differ)[: math.ceil(0.75 * queries)]
    others = np.setdiff1d(np.flatnonzero(~differ), few)[: queries - len(few)]
    order = torch.as_tensor(np.concatenate([few, others]))
    return [
        (
            title,
            _boards(saved.network, batch[order], logits[:, order], saved.network.readout, MOST_FRAMES)
            | {"objective": saved.card.get("objective", ""), "rows": tried[order].tolist()},
        )
        for title, saved, logits in found
    ]


def _picked(runs: Iterable[str | Path], data: Dataset) -> dict[str, SavedNetwork]:
    """Recipe -> the network that accepts the data and is best on dev."""
    picked: dict[str, tuple[float, SavedNetwork]] = {}
    for path in (Path(run) / "weights.safetensors" for run in runs):
        if read_header(path, otherwise=OTHERWISE).get("task") != data.problem.task:
            continue  # the file of another task of the user's may not be known
        saved = load_network(path)
        fits = saved.network.accepts(data.problem, data.relations) is None
        recipe = saved.card.get("recipe") or path.parent.name
        dev = (saved.card.get("dev") or {}).get("overall") or 0.0
        if fits and dev >= picked.get(recipe, (0.0, saved))[0]:
            picked[recipe] = dev, saved
    return {recipe: saved for recipe, (_, saved) in picked.items()}


def _valid(network: Any, batch: Batch, logits: Tensor) -> np.ndarray:
    """bool [B]: which answers of the last step's logits [B, R, classes] are right."""
    if network.readout == "threshold":
        return _right(batch, _single(logits > 0), logits > 0).numpy()
    return _right(batch, logits.argmax(-1) - network.value_offset).numpy()


def _right(batch: Batch, answers: Tensor, taken: Tensor | None = None) -> Tensor:
    """bool [B]: which answers [B, R], or choices taken [B, R, V], keep the rules; without rules, which are listed."""
    if not batch.problem.has_rules:
        return ((answers[:, None] == batch.solutions).all(-1) & batch.mask).any(-1)
    return batch.check(answers if taken is None else taken)


def _single(taken: Tensor) -> Tensor:
    """The values [.., R] of variables with exactly one choice taken of [.., R, V]; -1 for the others."""
    return torch.where(taken.sum(-1) == 1, taken.int().argmax(-1), -1)


def _logits(network: Any, batch: Batch, steps: int | None, seed: int, rows: Tensor | None = None) -> Tensor:
    """Logits [T, B, R, classes] of some or all rows, with the noise of the whole batch; T = 1 without steps."""
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
                noise = draw_noise(network, batch, torch.Generator().manual_seed(seed))
                arguments["noise"] = noise if rows is None else noise[rows]
            logits = network(batch if rows is None else batch[rows], **arguments)
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


def _read(logits: Tensor, own: Batch, offset: int, readout: str) -> tuple[Tensor, Tensor, Tensor]:
    """Belief [T, R, V], answers [T, R] (1..V; 0 for none or several) and validity [T], from logits of one query."""
    same = own[torch.zeros(len(logits), dtype=torch.int64)]
    if readout == "threshold":
        answers = _single(logits > 0)
        return logits.sigmoid(), answers + 1, _right(same, answers, logits > 0)
    answers = logits.argmax(-1) - offset
    return logits.softmax(-1)[..., offset:], answers + 1, _right(same, answers)


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
            names = data.get("names") or {"variables": board["query"], "values": [None] * data["values"]}
            fits &= (len(names["variables"]), len(names["values"])) == (variables, data["values"])
            fits &= all(0 <= variable < variables for pair in board["relations"] for variable in pair)
            if not fits:
                raise ValueError
        if not (isinstance(data["task"], str) and isinstance(data["size"], int) and data["boards"]):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{where}: the stored prediction for the board viewer does not fit together") from None
    return data


def packed(data: dict[str, Any]) -> dict[str, Any]:
    """Viewer data for the page: every step's belief as a text with one character of ``LEVELS`` for each choice."""
    top = len(LEVELS) - 1

    def text(belief: Any) -> str:
        return "".join(LEVELS[level] for level in np.rint(np.ravel(belief) * top).astype(int))

    return data | {"boards": [board | {"belief": [text(one) for one in board["belief"]]} for board in data["boards"]]}
