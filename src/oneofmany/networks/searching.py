"""Search by noise: more starts for the queries that have not settled. It uses no rules, only the network's residual.

A start has settled when its answer has not changed for some steps and its belief hardly moves any more. The first start
that settles answers. If none does, the start with the smallest residual answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from oneofmany.networks.inference import Trajectory, draw_noise, evaluating, trajectory
from oneofmany.networks.protocol import PredictionNetwork, arguments_of
from oneofmany.problems import Batch

Restart = Literal["noise", "perturbed"]
"""How a query starts again: from the beginning with new noise, or from its last state plus noise."""

TOLERANCE = 0.001
"""The largest residual of a settled start: the belief moves by this much in a step, total variation, mean over
variables."""
PATIENCE = 8
"""Steps without a change of the answer after which a start can have settled."""
SCALE = 1.0
"""Standard deviation of what is added to a state; its channels have a standard deviation of about 1."""


@dataclass(frozen=True, eq=False)
class Found:
    """The answers to a batch after some starts.

    Args:
        answers: int64 [B, R], values 0..V-1, of the start that answers.
        residual: float [B], how far its belief moved in its last step.
        settled: bool [B], whether it has settled.
        start: int64 [B], which start it is, from 0.
        steps: int64 [B], the steps of all starts of the query until now.
        starts: the number of starts until now.
    """

    answers: Tensor
    residual: Tensor
    settled: Tensor
    start: Tensor
    steps: Tensor
    starts: int


def search(
    network: PredictionNetwork,
    batch: Batch,
    *,
    starts: int,
    generator: torch.Generator,
    steps: int | None = None,
    tolerance: float = TOLERANCE,
    patience: int = PATIENCE,
    restart: Restart = "noise",
    scale: float = SCALE,
    together: int | None = None,
    stop: Callable[[], bool] | None = None,
) -> Iterator[Found]:
    """Answer a batch with up to ``starts`` starts per query; yields what is found after every start.

    The noise of a start does not depend on what has settled before, so the answers after n starts are the same for
    every larger number of starts and, apart from rounding, for every ``together``.

    Args:
        network: a network that starts from noise and can continue from a state (the equivariant network).
        batch: the queries; solutions and mask are not used.
        starts: the largest number of starts of a query.
        generator: source of the noise.
        steps: at most this many steps per start; the network's own number by default.
        tolerance: the largest residual of a settled start.
        patience: the steps without a change of the answer before a start can have settled.
        restart: how a query starts again.
        scale: of the noise that is added to a state, with ``perturbed``.
        together: run up to this many trajectories at once: several starts of few queries. By default as many as there
            are queries.
        stop: called every ``patience`` steps; True ends the search.
    """
    _check(network, starts, steps, tolerance, patience, restart, scale)
    asked: Any = network
    B, device = len(batch), batch.query.device
    best = Found(
        answers=torch.zeros_like(batch.query),
        residual=torch.full((B,), torch.inf, device=device),
        settled=torch.zeros(B, dtype=torch.bool, device=device),
        start=torch.zeros(B, dtype=torch.int64, device=device),
        steps=torch.zeros(B, dtype=torch.int64, device=device),
        starts=0,
    )
    limits = {"steps": steps, "patience": patience, "tolerance": tolerance, "stop": stop}
    last, noise = None, torch.zeros(0)
    while best.starts < starts and not (stop is not None and stop()):
        rows = torch.nonzero(~best.settled)[:, 0]
        ahead = 1 if restart == "perturbed" else max(1, (together or B) // max(1, len(rows)))
        # As many as before at most: 1, 1, 2, 4, ... So few starts are run for nothing if an earlier one settles.
        ahead = min(ahead, max(1, best.starts), starts - best.starts)
        with evaluating(asked):
            if restart == "perturbed" and best.starts:
                assert last is not None  # of the queries that have not settled: these rows
                added = torch.randn((B, *last.state.shape[1:]), generator=generator, device=generator.device)
                state = last.state + scale * added.to(device)[rows]
                made = trajectory(asked, batch[rows], noise=noise[rows], state=state, **limits) if len(rows) else last
            else:
                every = [draw_noise(asked, batch, generator) for _ in range(ahead)]
                noise = every[0]
                drawn, several = torch.cat([one[rows] for one in every]), rows.repeat(ahead)
                made = trajectory(asked, batch[several], noise=drawn, **limits) if len(rows) else last
        last = made
        for place in range(ahead):
            best = _better(best, rows, made, place, network.value_offset)
            yield best


def _better(best: Found, rows: Tensor, made: Trajectory | None, place: int, offset: int) -> Found:
    """What is found after one more start of some queries int64 [N]; rows place * N ... of ``made`` are that start."""
    start, N = best.starts, len(rows)
    if not N or made is None:
        return _replaced(best, rows, {}, start)
    own = slice(place * N, (place + 1) * N)
    assert made.residual is not None
    logits, residual, settled = made.logits[own], made.residual[own], made.settled[own]
    open_rows = ~best.settled[rows]  # an earlier one of these starts may have settled
    wins = open_rows & (settled | (residual < best.residual[rows]))
    to = rows[wins]
    changed = {
        "answers": (to, logits.argmax(-1)[wins] - offset),
        "residual": (to, residual[wins].to(best.residual.dtype)),
        "settled": (to, settled[wins]),
        "start": (to, torch.full_like(to, start)),
        "steps": (rows[open_rows], best.steps[rows[open_rows]] + made.steps[own][open_rows]),
    }
    return _replaced(best, rows, changed, start)


def _replaced(best: Found, rows: Tensor, changed: dict[str, tuple[Tensor, Tensor]], start: int) -> Found:
    values = {name: getattr(best, name) for name in ("answers", "residual", "settled", "start", "steps")}
    for name, (to, new) in changed.items():
        values[name] = values[name].index_put((to,), new)
    return Found(**values, starts=start + 1)


def _check(
    network: Any, starts: int, steps: int | None, tolerance: float, patience: int, restart: str, scale: float
) -> None:
    if not arguments_of(network).issuperset(("noise", "steps", "state", "return_state", "every_step")):
        raise ValueError("network: expected one that starts from noise and can continue from a state")
    for name, value, least in (("starts", starts, 1), ("steps", steps, 2), ("patience", patience, 1)):
        if value is not None and value < least:
            raise ValueError(f"{name}: expected at least {least}, got {value}")
    if not 0 < tolerance <= 1:
        raise ValueError(f"tolerance: expected more than 0, at most 1, got {tolerance}")
    if not scale >= 0:
        raise ValueError(f"scale: expected at least 0, got {scale}")
    if restart not in get_args(Restart):
        raise ValueError(f"restart: expected {' or '.join(get_args(Restart))}, got {restart!r}")
