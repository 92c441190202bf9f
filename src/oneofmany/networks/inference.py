"""Predict at test time: any number of steps, early stopping, and a choice among several noisy starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from oneofmany.networks.protocol import PredictionNetwork, TakesNoise, arguments_of
from oneofmany.networks.settings import StartCriterion
from oneofmany.problems import Batch


@dataclass(frozen=True, eq=False)
class Prediction:
    """A network's answers to a batch.

    Args:
        answers: int64 [B, R], values 0..V-1; -1 if the blank class has the largest logit (not a valid answer).
        logits: [B, R, V + value_offset] of the last step.
        confidence: float [B], log-probability of the answer.
        residual: float [B], how far the belief moved in the last step: total variation distance, mean over variables;
            None if there are no two steps to compare.
        steps: int64 [B], steps run; 1 for a network without steps.
        start: int64 [B], the chosen start. All of the above belong to it.
        every_start: int64 [S, B, R], the answers of all starts.
    """

    answers: Tensor
    logits: Tensor
    confidence: Tensor
    residual: Tensor | None
    steps: Tensor
    start: Tensor
    every_start: Tensor


Draw = Callable[[tuple[int, ...]], Tensor]
"""Draws standard normal noise of a shape, on any device."""


def draw_noise(network: TakesNoise, batch: Batch, generator: torch.Generator | Draw) -> Tensor:
    """Draw standard normal noise of the network's ``noise_shape`` and move it to the batch's device."""
    shape = network.noise_shape(batch)
    if isinstance(generator, torch.Generator):
        return torch.randn(shape, generator=generator, device=generator.device).to(batch.query.device)
    return generator(shape).to(batch.query.device)


def predict(
    network: PredictionNetwork,
    batch: Batch,
    *,
    steps: int | None = None,
    starts: int = 1,
    generator: torch.Generator | Draw | None = None,
    choose: StartCriterion = "residual",
    patience: int | None = None,
    compact: bool = True,
    stop: Callable[[], bool] | None = None,
) -> Prediction:
    """Answer a batch of queries, without gradients and in evaluation mode.

    Args:
        network: any prediction network; its call must take the arguments that are used here.
        batch: the queries; solutions and mask are not used.
        steps: at most this many steps, possibly more than in training; the network's own number by default.
        starts: number of noisy starts per query.
        generator: source of the noise, or a function that draws noise of a shape; None runs a single start without
            noise.
        choose: which start answers, without knowledge of the rules: the one whose belief moved least in the last step
            (residual) or the most confident one (confidence).
        patience: stop a query after this many steps without a change of its answer; None or 0 runs all steps.
        compact: remove stopped queries from the batch. False runs all of them until the last has stopped, which keeps
            the shapes of a compiled network. The answers are the same.
        stop: called every ``patience`` steps; True ends all queries with the answers that they have.
    """
    takes = arguments_of(network)
    noisy, resumable = "noise" in takes, takes.issuperset(("steps", "state", "return_state", "every_step"))
    if choose not in ("residual", "confidence"):
        raise ValueError(f"choose: expected 'residual' or 'confidence', got {choose!r}")
    for name, value, least in (("steps", steps, 1), ("starts", starts, 1), ("patience", patience, 0)):
        if value is not None and value < least:
            raise ValueError(f"{name}: expected at least {least}, got {value}")
    patience = patience or None
    if steps is not None and "steps" not in takes:
        raise ValueError(f"steps: expected None for a network without steps, got {steps}")
    if patience is not None and not resumable:
        raise ValueError(f"patience: expected None for a network that cannot continue from a state, got {patience}")
    if starts > 1 and not noisy:
        raise ValueError(f"starts: expected 1 for a network without noise, got {starts}")
    if starts > 1 and generator is None:
        raise ValueError(f"generator: expected one for the noise of {starts} starts, got None")

    runs = []
    asked: Any = network  # its arguments were checked above
    with evaluating(asked):
        for _ in range(starts):
            noise = draw_noise(asked, batch, generator) if noisy and generator is not None else None
            if resumable:
                made = trajectory(asked, batch, steps, noise, patience, compact=compact, stop=stop)
                runs.append((made.logits, made.residual, made.steps))
            else:
                runs.append(_at_once(asked, batch, {"steps": steps, "noise": noise}))
    logits, residual, used = ([run[i] for run in runs] for i in range(3))
    if starts > 1 and choose == "residual" and residual[0] is None:
        raise ValueError("choose: expected 'confidence' if there are no two steps to compare, got 'residual'")

    logits = torch.stack(logits)
    answers = logits.argmax(-1)
    confidence = logits.float().log_softmax(-1).gather(-1, answers[..., None]).sum((-1, -2))
    residuals = None if residual[0] is None else torch.stack(residual)
    start = confidence.argmax(0) if choose == "confidence" or residuals is None else residuals.argmin(0)
    query = torch.arange(len(batch), device=start.device)
    answers = answers - network.value_offset
    return Prediction(
        answers=answers[start, query],
        logits=logits[start, query],
        confidence=confidence[start, query],
        residual=None if residuals is None else residuals[start, query],
        steps=torch.stack(used)[start, query],
        start=start,
        every_start=answers,
    )


def threshold(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Read each choice separately, as the paper does for the NLM: taken if its probability is above one half.

    Args:
        logits: [B, R, V].

    Returns:
        Answers int64 [B, R], -1 if a variable takes no value or several, and their log-probability [B].
    """
    taken = logits > 0
    answers = torch.where(taken.sum(-1) == 1, taken.int().argmax(-1), -1)
    return answers, logsigmoid(logits.float().abs()).sum((1, 2))


Run = tuple[Tensor, Tensor | None, Tensor]
"""Logits [B, R, classes] of the last step, how far the belief moved in it [B], and the steps run [B]."""


def _at_once(network: Any, batch: Batch, arguments: dict[str, Any]) -> Run:
    logits = network(batch, **{name: value for name, value in arguments.items() if value is not None})
    stepwise = logits if logits.ndim == 4 else logits[None]
    used = torch.full((len(batch),), len(stepwise), device=logits.device)
    return stepwise[-1], _moved(stepwise[-2], stepwise[-1]) if len(stepwise) > 1 else None, used


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One start of every query of a batch.

    Args:
        logits: [B, R, classes] of the last step.
        residual: float [B], how far the belief moved in the last step, as in ``Prediction``; None after a single step.
        steps: int64 [B], steps run.
        settled: bool [B], whether the query was stopped because its answer had settled.
        rows: int64 [N], the queries that were still running at the end.
        state: [N, C, width], their last states.
    """

    logits: Tensor
    residual: Tensor | None
    steps: Tensor
    settled: Tensor
    rows: Tensor
    state: Tensor


def trajectory(
    network: Any,
    batch: Batch,
    steps: int | None = None,
    noise: Tensor | None = None,
    patience: int | None = None,
    *,
    tolerance: float | None = None,
    state: Tensor | None = None,
    compact: bool = True,
    stop: Callable[[], bool] | None = None,
) -> Trajectory:
    """Run a network that can continue from a state, call after call, so that memory does not grow with the steps.

    Gradients and training mode are left as they are. Arguments as in ``predict``, and:

    Args:
        network: an equivariant network, or one with the same arguments.
        batch: the queries.
        steps: at most this many steps; the network's own number by default.
        noise: float [B, C].
        patience: stop a query after this many steps without a change of its answer.
        tolerance: stop it only if its belief has also moved by this much at most in the last step.
        state: [B, C, width], to continue from; None to start.
        compact: remove stopped queries from the batch.
        stop: called every ``patience`` steps; True ends all queries.
    """
    steps = int(network.steps) if steps is None else steps
    # Without patience only the last two steps are compared.
    first = 1 if patience is not None else max(steps - 1, 1)
    more = {} if noise is None else {"noise": noise}  # a network may not take any
    begun = {} if state is None else {"state": state}
    reached: Any  # the last state
    last, reached = network(batch, steps=first, **more, **begun, every_step=False, return_state=True)
    used = torch.full((len(batch),), first, device=last.device)
    moved = torch.zeros(len(batch), device=last.device)
    rows, before, stopped = torch.arange(len(batch), device=last.device), last, used < 0
    changed = used.clone()  # the step of the last change of the answer
    last = last.clone()
    for done in range(first, steps, patience or 1):
        if stop is not None and stop():
            break
        count = min(patience or 1, steps - done)
        logits, reached = network(batch, steps=count, **more, state=reached, return_state=True)
        trail = torch.cat([before[None], logits])
        end = torch.full_like(changed, count)  # how many of these steps count for each query
        settled = stopped
        if patience is not None:
            answers, step = trail.argmax(-1), torch.arange(done + 1, done + count + 1, device=last.device)[:, None]
            same = (answers[1:] == answers[:-1]).all(-1)
            trace = torch.cat([changed[None], torch.where(same, 0, step)]).cummax(0).values
            changed, waited = trace[-1], step - trace[1:] >= patience
            if tolerance is not None:
                waited &= _moved(trail[:-1], trail[1:]) <= tolerance
            settled = stopped | waited.any(0)
            end = torch.where(waited.any(0), waited.int().argmax(0) + 1, end)
        own = torch.arange(len(rows), device=last.device)
        running, at = ~stopped, trail[end, own]
        to = rows[running]
        last[to], moved[to], used[to] = at[running], _moved(trail[end - 1, own], at)[running], done + end[running]
        before, stopped = trail[-1], settled
        if stopped.all():
            break
        if compact and stopped.any():
            keep = ~stopped
            batch, rows, stopped, before = batch[keep], rows[keep], stopped[keep], before[keep]
            reached, changed, more = reached[keep], changed[keep], {k: value[keep] for k, value in more.items()}
    settled = torch.ones(len(last), dtype=torch.bool, device=last.device)
    if stopped.any():
        rows, reached = rows[~stopped], reached[~stopped]
    settled[rows] = False
    return Trajectory(last, moved if steps > 1 else None, used, settled, rows, reached)


def _moved(before: Tensor, after: Tensor) -> Tensor:
    """Total variation distance [.., B] between the beliefs of two steps [.., B, R, classes], mean over variables."""
    return (after.float().softmax(-1) - before.float().softmax(-1)).abs().sum(-1).mean(-1) / 2


@contextmanager
def evaluating(network: Any) -> Iterator[None]:
    """Run a network in evaluation mode, without gradients."""
    training = getattr(network, "training", False)
    if training:
        network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        if training:
            network.train()
