"""Accuracy of sequences: an answer is correct if it is one of the listed answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from oneofmany.data import SequenceData, SequencesOnDevice
from oneofmany.evaluation.outcomes import Outcomes
from oneofmany.networks.kernels import Precision, running
from oneofmany.networks.sequences import SequenceNetwork
from oneofmany.progress import Progress


def evaluate_sequences(
    network: Any,
    data: SequenceData | SequencesOnDevice,
    *,
    batch_size: int = 1024,
    device: torch.device | str = "cpu",
    precision: Precision = "float32",
    tell: Progress | None = None,
) -> Outcomes:
    """Answer all inputs by greedy decoding, and compare the answers with the listed ones.

    Args:
        network: a network for sequences, on the device of the data.
        data: the inputs, in the network's vocabularies.
        batch_size: inputs per batch.
        device: for a ``SequenceData``; a ``SequencesOnDevice`` stays on its own device.
        precision: ``bfloat16`` runs the network under autocast.
        tell: called with the name of the work, the number of answers so far and the total.
    """
    if not isinstance(network, SequenceNetwork):
        raise ValueError("data: expected a network for sequences (seq2seq or ctc), because the data holds sequences")
    placed = data if isinstance(data, SequencesOnDevice) else SequencesOnDevice(data, device)
    training = network.training
    network.eval()
    tokens: list[list[int]] = []
    confidence, edits, lengths, given = [], [], [], []
    try:
        with torch.no_grad():
            for batch in placed.in_order(batch_size):
                with running(placed.device, precision):
                    answers, sure = network.answers(batch)
                confidence.append(sure.float().cpu().numpy())
                given.append(batch.lengths.cpu().numpy())
                listed = batch.solutions.cpu().numpy()
                for answer, own, real in zip(answers.tolist(), listed, batch.mask.tolist(), strict=True):
                    found = [token for token in answer if token > 0]
                    near = [one[one > 0].tolist() for one, is_listed in zip(own, real, strict=True) if is_listed]
                    distance, length = min((edit_distance(found, one), len(one)) for one in near)
                    tokens.append(found)
                    edits.append(distance)
                    lengths.append(length)
                if tell is not None:
                    tell("evaluating", len(tokens), len(placed))
    finally:
        network.train(training)
    number, longest = len(tokens), max(map(len, tokens))
    padded = np.zeros((number, longest), np.int32)
    for row, found in zip(padded, tokens, strict=True):
        row[: len(found)] = found
    right, unknown = np.array(edits) == 0, np.full(number, -1)
    multiple = np.zeros(number, bool)
    multiple[placed.rows["ms"].cpu().numpy()] = True
    return Outcomes(
        answers=np.zeros((number, 0), np.uint8),
        valid=right,
        listed=right,
        cells=unknown,
        confidence=np.concatenate(confidence),
        steps=np.ones(number),
        total=unknown,
        givens=np.concatenate(given),
        multiple=multiple,
        tokens=padded,
        edits=np.array(edits),
        lengths=np.array(lengths),
        judged_by="listed",
    )


def edit_distance(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the least number of insertions, deletions and replacements that make one sequence of the other."""
    if one == other:
        return 0
    above = list(range(len(other) + 1))
    for row, token in enumerate(one, 1):
        here = [row]
        for column, theirs in enumerate(other, 1):
            here.append(min(above[column] + 1, here[-1] + 1, above[column - 1] + (token != theirs)))
        above = here
    return above[-1]
