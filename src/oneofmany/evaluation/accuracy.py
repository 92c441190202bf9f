"""Accuracy by validity: an answer is correct if it keeps the givens and satisfies every rule, listed or not.

Without rules, an answer is correct if it is one of the listed answers.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from oneofmany.data import Batch, Dataset, DeviceData, SequenceData, SequencesOnDevice
from oneofmany.evaluation.outcomes import DTYPES, Outcomes
from oneofmany.evaluation.scores import Judge
from oneofmany.evaluation.sequences import evaluate_sequences
from oneofmany.networks import Prediction, PredictionNetwork, predict
from oneofmany.networks.inference import StartCriterion, threshold
from oneofmany.networks.kernels import Precision, check_precision, running
from oneofmany.networks.protocol import Readout, arguments_of, readout_of
from oneofmany.networks.sequences import SequenceNetwork
from oneofmany.progress import Progress


def evaluate(
    network: PredictionNetwork | SequenceNetwork,
    data: Dataset | DeviceData | SequenceData | SequencesOnDevice,
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
    """Answer all queries and check the answers: by the rules or, if the problem has none, by the listed solutions.

    Results stay on the device until the end. The noise of the first start does not depend on the number of starts.

    Args:
        network: any prediction network, on the device of the data; one for sequences if the data holds sequences. It
            gets noise only if its call takes noise.
        data: the queries; with rules, listed solutions are used for ``listed`` and ``cells`` only.
        readout: how answers are read from logits; by default the network's own readout, or argmax if it has none.
        steps: at most this many steps; the network's own number by default.
        starts: number of noisy starts per query.
        choose: which start counts for ``chosen``, as in ``predict``.
        seed: of the noise, drawn on the CPU: the same seed and batch size give the same noise on every device.
        batch_size: queries per batch.
        device: for a ``Dataset``; a ``DeviceData`` stays on its own device.
        precision: ``bfloat16`` runs the network under autocast; ``float16`` needs an NLM built with it.
        patience: stop a query after this many steps without a change of its answer, as in ``predict``; off by default.
        tell: called with the name of the work, the number of answers so far and the total.
    """
    if isinstance(data, SequenceData | SequencesOnDevice):
        if starts > 1 or steps is not None or patience:
            raise ValueError("starts, steps and patience: networks for sequences have none of them")
        return evaluate_sequences(network, data, batch_size=batch_size, device=device, precision=precision, tell=tell)
    readout = readout_of(network) if readout is None else readout
    _check(network, readout, starts, batch_size)
    check_precision(network, precision)
    placed = data if isinstance(data, DeviceData) else DeviceData(data, device)
    judge: Judge = "rules" if placed.problem.has_rules else "listed"
    if judge == "listed" and not placed.listed.all():
        raise ValueError("data: a query has neither rules nor listed solutions, so its answer cannot be judged")
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
        answers = torch.stack([run["answers"] for run in runs])
        tensors["distinct"] = torch.as_tensor(_distinct(answers.cpu().numpy(), every.cpu().numpy()))
    arrays = {name: tensor.cpu().numpy() for name, tensor in tensors.items() if name in DTYPES}
    multiple = np.zeros(len(placed), bool)
    multiple[placed.rows["ms"].cpu().numpy()] = True
    return Outcomes(**arrays, multiple=multiple, judged_by=judge)


def _read(prediction: Prediction, batch: Batch, readout: Readout, first: bool) -> dict[str, Tensor]:
    """The outcomes of a batch on its device; cells and steps for the first start only."""
    answers, confidence = prediction.answers, prediction.confidence
    if readout == "threshold":
        answers, confidence = threshold(prediction.logits)
    agree = (answers[:, None] == batch.solutions).sum(-1).masked_fill(~batch.mask, -1)
    valid = batch.check(answers) if batch.problem.has_rules else (agree == answers.shape[1]).any(1)
    read = {"answers": (answers + 1).to(torch.uint8), "valid": valid, "confidence": confidence}
    if prediction.residual is not None:
        read["residual"] = prediction.residual
    if first:
        # The extra column of -1 covers queries without listed solutions, also if no query of the data has any.
        cells = torch.cat([agree, agree.new_full((len(agree), 1), -1)], 1).amax(1)
        read |= {"listed": cells == answers.shape[1], "cells": cells, "steps": prediction.steps}
    return read


def _distinct(answers: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Count the different valid answers [Q] among those of all starts [S, Q, R]."""
    _, query = np.nonzero(valid)
    rows = np.concatenate([np.ascontiguousarray(query)[:, None].view(np.uint8), answers[valid]], 1)
    _, first = np.unique(rows, axis=0, return_index=True)
    return np.bincount(query[first], minlength=valid.shape[1])


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
