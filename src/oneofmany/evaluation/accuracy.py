"""Accuracy by validity: an answer is correct if it keeps the givens and satisfies every rule, listed or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oneofmany.data import Batch, Dataset, DeviceData
from oneofmany.evaluation.scores import Score
from oneofmany.networks import Prediction, PredictionNetwork, predict
from oneofmany.networks.inference import StartCriterion, threshold
from oneofmany.networks.kernels import Precision, check_precision, running
from oneofmany.networks.protocol import Readout, arguments_of, readout_of
from oneofmany.progress import Progress

DTYPES = {
    "answers": np.uint8,
    "valid": np.bool_,
    "listed": np.bool_,
    "cells": np.int32,
    "confidence": np.float32,
    "steps": np.int32,
    "total": np.int32,
    "givens": np.int32,
    "multiple": np.bool_,
    "chosen": np.bool_,
    "checked": np.bool_,
}
OPTIONAL = ("chosen", "checked")


@dataclass(frozen=True, eq=False)
class Outcomes:
    """A network's answers to Q queries and whether they are valid: numpy arrays with one entry per query.

    All but ``chosen`` and ``checked`` describe one trajectory: the first start.

    Args:
        answers: uint8 [Q, R], values 1..V; 0 if the readout gives a variable no value or several.
        valid: bool [Q], the answer keeps the givens and satisfies every rule.
        listed: bool [Q], the answer is one of the listed solutions.
        cells: int32 [Q], how many variables agree with the closest listed solution, givens included; -1 if none is
            listed.
        confidence: float32 [Q], log-probability of the answer.
        steps: int32 [Q], steps run.
        total: int32 [Q], number of solutions; -1 if unknown.
        givens: int32 [Q], number of given variables.
        multiple: bool [Q], MS queries: total > 1 or, if the total is unknown, more than one listed solution.
        chosen: bool [Q], validity of the start chosen without knowledge of the rules; None with one start.
        checked: bool [Q], whether any start is valid (for users who have a checker); None with one start.
    """

    answers: np.ndarray
    valid: np.ndarray
    listed: np.ndarray
    cells: np.ndarray
    confidence: np.ndarray
    steps: np.ndarray
    total: np.ndarray
    givens: np.ndarray
    multiple: np.ndarray
    chosen: np.ndarray | None = None
    checked: np.ndarray | None = None

    def __post_init__(self) -> None:
        if np.ndim(self.answers) != 2:
            raise ValueError(f"answers: expected [Q, R], got {list(np.shape(self.answers))}")
        if (self.chosen is None) != (self.checked is None):
            raise ValueError("chosen and checked: expected both or none of them")
        for name, dtype in DTYPES.items():
            if name in OPTIONAL and getattr(self, name) is None:
                continue
            array = np.ascontiguousarray(getattr(self, name), dtype)
            if name != "answers" and array.shape != (len(self),):
                raise ValueError(f"{name}: expected [{len(self)}], got {list(array.shape)}")
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def variables(self) -> int:
        """R, the number of variables."""
        return self.answers.shape[1]

    def summary(self) -> dict[str, Any]:
        """Return all scores as plain numbers for JSON; each score is a ``Score.as_dict()``.

        ``listed`` and ``cell_accuracy`` cover the queries with listed solutions (None if there are none).
        ``per_solutions`` and ``per_givens`` split ``overall`` by ``total`` (-1: unknown) and by ``givens``.
        """
        known = self.cells >= 0
        return self._split(self.valid) | {
            "cell_accuracy": float(self.cells[known].mean() / self.variables) if known.any() else None,
            "listed": _score(self.listed[known]),
            "per_solutions": self._per("solutions", self.total),
            "per_givens": self._per("givens", self.givens),
            "chosen": None if self.chosen is None else self._split(self.chosen),
            "checked": None if self.checked is None else self._split(self.checked),
        }

    def _split(self, right: np.ndarray) -> dict[str, Any]:
        return {"os": _score(right[~self.multiple]), "ms": _score(right[self.multiple]), "overall": _score(right)}

    def _per(self, name: str, number: np.ndarray) -> list[dict[str, Any]]:
        values, group = np.unique(number, return_inverse=True)
        counts, right = np.bincount(group), np.bincount(group, self.valid)
        return [
            {name: int(value), **Score(int(correct), int(count)).as_dict()}
            for value, correct, count in zip(values, right, counts, strict=True)
        ]


def evaluate(
    network: PredictionNetwork,
    data: Dataset | DeviceData,
    *,
    readout: Readout | None = None,
    steps: int | None = None,
    starts: int = 1,
    choose: StartCriterion = "residual",
    seed: int = 0,
    batch_size: int = 1024,
    device: torch.device | str = "cpu",
    precision: Precision = "float32",
    patience: int | None = None,
    tell: Progress | None = None,
) -> Outcomes:
    """Answer all queries and check the answers.

    Results stay on the device until the end. The noise of the first start does not depend on the number of starts.

    Args:
        network: any prediction network, on the device of the data. It gets noise only if its call takes noise.
        data: the queries; listed solutions are used for ``listed`` and ``cells`` only.
        readout: how answers are read from logits; by default the network's own readout, or argmax if it has none.
        steps: number of steps; the network's own by default.
        starts: number of noisy starts per query.
        choose: which start counts for ``chosen``, as in ``predict``.
        seed: of the noise, drawn on the CPU: the same seed and batch size give the same noise on every device.
        batch_size: queries per batch.
        device: for a ``Dataset``; a ``DeviceData`` stays on its own device.
        precision: ``bfloat16`` runs the network under autocast; ``float16`` needs an NLM built with it.
        patience: stop a query after this many steps without a change of its answer, as in ``predict``.
        tell: called with the name of the work, the number of answers so far and the total.
    """
    readout = readout_of(network) if readout is None else readout
    _check(network, readout, starts, batch_size)
    check_precision(network, precision)
    placed = data if isinstance(data, DeviceData) else DeviceData(data, device)
    generator = torch.Generator().manual_seed(seed)
    runs: list[dict[str, Tensor]] = []
    for start in range(starts):
        parts, done = [], start * len(placed)
        for batch in placed.in_order(batch_size):
            with running(placed.device, precision):
                # Starts are the outer loop, so the noise of the first does not depend on how many follow.
                prediction = predict(network, batch, steps=steps, generator=generator, choose=choose, patience=patience)
            if starts > 1 and choose == "residual" and prediction.residual is None:
                raise ValueError("choose: expected 'confidence' if there are no two steps to compare, got 'residual'")
            parts.append(_read(prediction, batch, readout, first=start == 0))
            done += len(batch)
            if tell is not None:
                tell("evaluating", done, starts * len(placed))
        runs.append({name: torch.cat([part[name] for part in parts]) for name in parts[0]})
    tensors = runs[0] | {"total": placed.total, "givens": (placed.query > 0).sum(1)}
    if starts > 1:
        every = torch.stack([run["valid"] for run in runs])
        better = torch.stack([run["confidence"] if choose == "confidence" else -run["residual"] for run in runs])
        tensors["chosen"] = every.gather(0, better.argmax(0, keepdim=True))[0]
        tensors["checked"] = every.any(0)
    arrays = {name: tensor.cpu().numpy() for name, tensor in tensors.items() if name in DTYPES}
    multiple = np.zeros(len(placed), bool)
    multiple[placed.rows["ms"].cpu().numpy()] = True
    return Outcomes(**arrays, multiple=multiple)


def _read(prediction: Prediction, batch: Batch, readout: Readout, first: bool) -> dict[str, Tensor]:
    """The outcomes of a batch on its device; answers, cells and steps for the first start only."""
    answers, confidence = prediction.answers, prediction.confidence
    if readout == "threshold":
        answers, confidence = threshold(prediction.logits)
    valid = batch.problem.check(answers, batch.query, batch.relations)
    read = {"valid": valid, "confidence": confidence}
    if prediction.residual is not None:
        read["residual"] = prediction.residual
    if first:
        agree = (answers[:, None] == batch.solutions).sum(-1).masked_fill(~batch.mask, -1)
        # The extra column of -1 covers queries without listed solutions, also if no query of the data has any.
        cells = torch.cat([agree, agree.new_full((len(agree), 1), -1)], 1).amax(1)
        read |= {"answers": (answers + 1).to(torch.uint8), "listed": cells == answers.shape[1], "cells": cells}
        read["steps"] = prediction.steps
    return read


def _check(network: PredictionNetwork, readout: str, starts: int, batch_size: int) -> None:
    if readout not in ("argmax", "threshold"):
        raise ValueError(f"readout: expected 'argmax' or 'threshold', got {readout!r}")
    if readout == "threshold" and network.value_offset:
        raise ValueError("readout: expected 'argmax' for a network with a blank class, got 'threshold'")
    for name, value in {"starts": starts, "batch_size": batch_size}.items():
        if value < 1:
            raise ValueError(f"{name}: expected at least 1, got {value}")
    if starts > 1 and "noise" not in arguments_of(network):
        raise ValueError(f"starts: expected 1 for a network without noise, got {starts}")


def _score(right: np.ndarray) -> dict[str, Any]:
    return Score(int(right.sum()), len(right)).as_dict()
