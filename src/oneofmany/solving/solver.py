"""Answer queries in batches with one network."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import oneofmany
from oneofmany.networks.inference import StartCriterion, predict, threshold
from oneofmany.networks.protocol import arguments_of
from oneofmany.networks.saved import SavedNetwork
from oneofmany.problems import Batch, Problem, Query
from oneofmany.progress import Progress
from oneofmany.solving.answers import Answer, by_problem, stacked

Noise = torch.Generator | None
T = TypeVar("T")

TRIES = 8
"""Noisy starts per different answer asked for."""

PATIENCE = 8
"""A query stops after this many steps without a change of its answer."""


class Solver:
    """Answers queries with one network, on the network's device.

    Args:
        saved: a network from ``oneofmany.load``.
        steps: run exactly this many steps. By default up to the network's own number at test time; a query stops
            early after ``PATIENCE`` steps without a change of its answer.
        starts: number of noisy starts per query. One of them answers, chosen without knowledge of the rules.
        choose: which start answers: the one whose belief moved least in the last step, or the most confident one.
        seed: of the noise. The same seed and batch size give the same answers.
        batch_size: queries per batch.
    """

    def __init__(
        self,
        saved: SavedNetwork,
        *,
        steps: int | None = None,
        starts: int = 1,
        choose: StartCriterion = "residual",
        seed: int = 0,
        batch_size: int = 256,
    ) -> None:
        for name, value in {"steps": steps, "starts": starts, "batch size": batch_size}.items():
            if value is not None and value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        if steps is not None and not saved.settings.has_steps:
            raise ValueError(f"steps: this network ({saved.settings.kind}) has no steps to choose, got {steps}")
        self.saved, self.starts, self.seed, self.batch_size = saved, starts, seed, batch_size
        self.network: Any = saved.network
        self.choose: StartCriterion = choose
        self.steps = steps or (saved.settings.test_steps if saved.settings.has_steps else None)
        takes = arguments_of(saved.network)
        self.patience = PATIENCE if steps is None and takes.issuperset(("state", "return_state")) else None
        self.noisy = "noise" in takes
        self.device = next(saved.network.parameters()).device
        if starts > 1:
            self._needs_noise("starts", starts)

    def answer(self, queries: Sequence[Query], tell: Progress | None = None) -> list[Answer]:
        """Return one answer to every query."""

        def work(rows: list[int], batch: Batch, noise: Noise) -> list[Answer]:
            return self._start(batch, noise, self.starts)

        return self._in_batches(queries, work, tell)

    def distinct(
        self, queries: Sequence[Query], number: int, *, tries: int | None = None, tell: Progress | None = None
    ) -> list[list[Answer]]:
        """Return up to ``number`` different answers to every query, each from another noisy start.

        Valid answers come first, in the order found, then invalid ones. Starts are tried until every query of a batch
        has ``number`` valid answers, up to ``tries`` starts (by default ``TRIES`` times ``number``).
        """
        if number < 1:
            raise ValueError(f"distinct: expected at least 1 answer, got {number}")
        self._needs_noise("distinct", number)

        def work(rows: list[int], batch: Batch, noise: Noise) -> list[list[Answer]]:
            found: list[dict[bytes, Answer]] = [{} for _ in rows]
            for _ in range(tries or TRIES * number):
                for seen, answer in zip(found, self._start(batch, noise, 1), strict=True):
                    seen.setdefault(answer.values.tobytes(), answer)
                if all(sum(answer.valid for answer in seen.values()) >= number for seen in found):
                    break
            return [sorted(seen.values(), key=lambda answer: not answer.valid)[:number] for seen in found]

        return self._in_batches(queries, work, tell)

    def weigh(
        self, queries: Sequence[Query], found: Sequence[Sequence[Answer]], tell: Progress | None = None
    ) -> list[list[Answer]]:
        """Return the solutions found for every query with the network's probability of each, most likely first.

        The probability is the mean over ``starts`` noisy starts. Shares add up to 1 over the solutions of a query.
        """

        def work(rows: list[int], batch: Batch, noise: Noise) -> list[list[Answer]]:
            start = time.perf_counter()
            every_start = [self._logits(batch, noise, 1).cpu().double() for _ in range(self.starts)]
            spent = (time.perf_counter() - start) / len(rows)
            return [
                self._weighed(found[row], [logits[i] for logits in every_start], spent) for i, row in enumerate(rows)
            ]

        return self._in_batches(queries, work, tell)

    def refusal(self, query: Query) -> str | None:
        """Return why this network cannot answer a query, in one sentence; None if it can."""
        return self.saved.network.accepts(query.problem, query.relations)

    def _needs_noise(self, name: str, number: int) -> None:
        if not self.noisy:
            raise ValueError(
                f"{name}: this network ({self.saved.settings.kind}) has no noise and gives one answer per "
                f"query, got {number}"
            )

    def _in_batches(
        self, queries: Sequence[Query], work: Callable[[list[int], Batch, Noise], list[T]], tell: Progress | None
    ) -> list[T]:
        """Apply ``work`` in batches. Each problem has its own noise, so other problems do not change its answers."""
        for query in queries:
            if why := self.refusal(query):
                raise ValueError(why)
        made: dict[int, T] = {}
        for problem, rows in by_problem(queries).items():
            noise = torch.Generator().manual_seed(self.seed) if self.noisy else None
            for first in range(0, len(rows), self.batch_size):
                part = rows[first : first + self.batch_size]
                batch = _batch(problem, [queries[row] for row in part], self.device)
                made.update(zip(part, work(part, batch, noise), strict=True))
                if tell:
                    tell("queries answered", len(made), len(queries))
        return [made[row] for row in range(len(queries))]

    def _start(self, batch: Batch, noise: Noise, starts: int) -> list[Answer]:
        start = time.perf_counter()
        values, valid, sure = self._read_off(batch, self._logits(batch, noise, starts))
        seconds = (time.perf_counter() - start) / len(batch)
        rows = zip(values, valid, sure, strict=True)
        return [Answer(own, ok, "network", p, seconds=seconds) for own, ok, p in rows]

    def _logits(self, batch: Batch, noise: Noise, starts: int) -> Tensor:
        """[B, R, classes] of the chosen start's last step."""
        logits = predict(
            self.network,
            batch,
            steps=self.steps,
            starts=starts,
            generator=noise,
            choose=self.choose,
            patience=self.patience,
        ).logits.float()
        if not torch.isfinite(logits).all():
            raise ValueError("the network's logits are not finite: its weights are damaged")
        return logits

    def _read_off(self, batch: Batch, logits: Tensor) -> tuple[np.ndarray, list[bool], list[float]]:
        """Values uint8 [B, R], whether they are valid, and their log-probability."""
        if self.network.readout == "threshold":
            answers, sure = threshold(logits)
        else:
            best, place = logits.log_softmax(-1).max(-1)
            answers, sure = place - self.network.value_offset, best.sum(-1)
        valid = batch.problem.check(answers, batch.query, batch.relations)
        return (answers + 1).cpu().numpy().astype(np.uint8), valid.tolist(), sure.tolist()

    def _weighed(self, found: Sequence[Answer], every_start: list[Tensor], seconds: float) -> list[Answer]:
        listed = [replace(answer, seconds=answer.seconds + seconds) for answer in found]
        if not all(answer.valid for answer in listed):  # there is no solution
            return listed
        solutions = torch.from_numpy(np.stack([answer.values for answer in listed]))
        each = torch.stack([self._log_probability(logits, solutions) for logits in every_start])
        total = each.logsumexp(0) - math.log(len(each))
        share = total.softmax(0)
        order = total.argsort(descending=True, stable=True).tolist()
        return [replace(listed[k], log_probability=float(total[k]), share=float(share[k])) for k in order]

    def _log_probability(self, logits: Tensor, solutions: Tensor) -> Tensor:
        """[K] of solutions uint8 [K, R] under the logits [R, classes] of their query."""
        values = solutions.long()[..., None] - 1
        if self.network.readout == "threshold":
            # Start as if no choice were taken, then add the logits of those taken: logsigmoid(x) = logsigmoid(-x) + x.
            taken = logits.expand(len(values), -1, -1).gather(-1, values)[..., 0]
            return F.logsigmoid(-logits).sum() + taken.sum(-1)
        per_class = logits.log_softmax(-1).expand(len(values), -1, -1)
        return per_class.gather(-1, values + self.network.value_offset)[..., 0].sum(-1)


def bundled(task: str) -> Path:
    """Return the path of a task's bundled network; the file may not exist."""
    return Path(oneofmany.__file__).parent / "weights" / f"{task}.safetensors"


def _batch(problem: Problem, queries: Sequence[Query], device: torch.device) -> Batch:
    values, relations = (torch.from_numpy(array.astype(np.int64)).to(device) for array in stacked(queries))
    none = torch.zeros(len(queries), 0, device=device)
    return Batch(
        query=values,
        solutions=none[..., None].expand(-1, -1, problem.variables).long(),
        mask=none.bool(),
        total=torch.full((len(queries),), -1, device=device),
        problem=problem,
        relations=relations if relations.shape[1] else None,
    )
