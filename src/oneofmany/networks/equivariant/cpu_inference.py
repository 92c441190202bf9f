"""Predict without PyTorch: ``networks.inference.predict`` for a ``CpuNetwork``, with the same noise and choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from oneofmany.networks.equivariant.cpu import CpuNetwork
from oneofmany.networks.equivariant.cpu_tables import Tables, tables_of
from oneofmany.networks.noise import Noise, Noises
from oneofmany.networks.settings import StartCriterion
from oneofmany.problems import Problem


@dataclass(frozen=True, eq=False)
class CpuPrediction:
    """A network's answers to B queries.

    Args:
        answers: int64 [B, R], values 0..V-1; of equally likely values the smallest.
        logits: float32 [B, R, V] of the last step.
        confidence: float32 [B], log-probability of the answer.
        residual: float32 [B], how far the belief moved in the last step: total variation distance, mean over
            variables; None after a single step.
        steps: int64 [B], steps run.
        start: int64 [B], the chosen start. All of the above belong to it.
    """

    answers: np.ndarray
    logits: np.ndarray
    confidence: np.ndarray
    residual: np.ndarray | None
    steps: np.ndarray
    start: np.ndarray


def predict_on_cpu(
    network: CpuNetwork,
    problem: Problem | Sequence[Problem],
    queries: np.ndarray,
    relations: np.ndarray | None = None,
    *,
    steps: int | None = None,
    starts: int = 1,
    noise: Noise | Noises | None = None,
    choose: StartCriterion = "residual",
    patience: int | None = None,
    threads: int = 1,
    stop: Callable[[], bool] | None = None,
    tables: tuple[Tables, np.ndarray | None] | None = None,
) -> CpuPrediction:
    """Answer queries; the arguments are those of ``CpuNetwork.run`` and ``networks.inference.predict``.

    ``noise`` gives the numbers of a torch generator of the same seed, so the answers are those of ``predict`` with that
    generator, unless a decision hangs on the rounding of float32. None runs a single start without noise.
    """
    if choose not in ("residual", "confidence"):
        raise ValueError(f"choose: expected 'residual' or 'confidence', got {choose!r}")
    if starts < 1:
        raise ValueError(f"starts: expected at least 1, got {starts}")
    if starts > 1 and noise is None:
        raise ValueError(f"noise: expected some for {starts} starts, got None")
    problems = [problem] * max(len(queries), 1) if isinstance(problem, Problem) else problem
    shape = (len(queries), problems[0].choices)
    tables = tables or tables_of(problems, relations)
    runs = [
        network.run(
            problem,
            queries,
            relations,
            noise=None if noise is None else noise.normal(shape),
            steps=steps,
            patience=patience,
            threads=threads,
            stop=stop,
            tables=tables,
        )
        for _ in range(starts)
    ]
    logits = np.stack([run.last for run in runs])
    log_probability = log_softmax(logits)
    confidence = log_probability.max(-1).sum(-1)
    residual = None
    if all(run.before is not None for run in runs):
        before = np.stack([log_softmax(run.before) for run in runs if run.before is not None])
        residual = np.abs(np.exp(log_probability) - np.exp(before)).sum(-1).mean(-1) / 2
    elif starts > 1 and choose == "residual":
        raise ValueError("choose: expected 'confidence' if there are no two steps to compare, got 'residual'")
    start = confidence.argmax(0) if choose == "confidence" or residual is None else residual.argmin(0)
    chosen = start, np.arange(len(queries))
    return CpuPrediction(
        answers=logits[chosen].argmax(-1),
        logits=logits[chosen],
        confidence=confidence[chosen],
        residual=None if residual is None else residual[chosen],
        steps=np.stack([run.steps for run in runs])[chosen],
        start=start,
    )


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Return the log-softmax over the last axis."""
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
