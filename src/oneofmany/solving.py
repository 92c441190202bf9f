"""Answers to queries: from a network in batches, from the exact enumerator, or from both.

    solver = Solver(oneofmany.load("sudoku"))
    for answer in solver.answer(queries):              # queries as a task's ``parse`` gives them, of any sizes
        print(answer.values, answer.valid, answer.confidence)

Every function answers in the order of the queries. Whoever answered is named in ``Answer.source``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import oneofmany
from oneofmany.exact import solve
from oneofmany.networks.inference import StartCriterion, predict, threshold
from oneofmany.networks.protocol import arguments_of
from oneofmany.networks.saved import SavedNetwork
from oneofmany.problems import Batch, Problem, Query, nqueens

Tell = Callable[[int, int], None]
"""Called with how many queries are answered, of how many."""

Noise = torch.Generator | None
T = TypeVar("T")

TRIES = 8
"""Noisy starts that are tried for each of the different answers that are wanted."""

PATIENCE = 8
"""An answer that has not changed for so many steps is taken."""


@dataclass(frozen=True, eq=False)
class Answer:
    """One answer to a query.

    Args:
        values: uint8 [R], 1..V, and 0 where a network gives no or several values; the query itself where there is no
            solution.
        valid: whether it keeps the givens and every rule.
        source: who answered. An answer of the enumerator that is not valid says that there is no solution.
        log_probability: the network's log-probability of the answer; None where no network was asked. For networks
            that choose a value for every variable it is the sum over variables of the softmax at the last step, for
            those that threshold every choice on its own (NLM) the sum over choices.
        share: of the probability of all listed solutions, those of ``Solver.weigh``; None elsewhere.
        seconds: the query's part of the time that its batch took.
    """

    values: np.ndarray
    valid: bool
    source: Literal["network", "exact"]
    log_probability: float | None = None
    share: float | None = None
    seconds: float = 0.0

    @property
    def confidence(self) -> float | None:
        """The network's probability of the whole answer, 0..1: how sure it is, which is not how often it is right."""
        return None if self.log_probability is None else math.exp(self.log_probability)


class Solver:
    """Answers queries with one network, on the network's device.

    Args:
        saved: a network as ``oneofmany.load`` gives it.
        steps: run exactly so many steps. None: the network's own number for test time, but a query is done once its
            answer has not changed for ``PATIENCE`` steps.
        starts: how many noisy starts to try for every query. One of them answers, chosen without the rules.
        choose: by what: the belief that moved least in the last step, or the surest answer.
        seed: of the noise. The same seed and batch size give the same answers.
        batch_size: how many queries are answered at once.
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

    def answer(self, queries: Sequence[Query], tell: Tell | None = None) -> list[Answer]:
        """One answer to every query."""

        def work(rows: list[int], batch: Batch, noise: Noise) -> list[Answer]:
            return self._start(batch, noise, self.starts)

        return self._in_batches(queries, work, tell)

    def distinct(
        self, queries: Sequence[Query], number: int, *, tries: int | None = None, tell: Tell | None = None
    ) -> list[list[Answer]]:
        """Up to ``number`` different answers to every query, each from a noisy start of its own.

        Valid answers come first, in the order in which they were found; others fill the rest. Starts are tried until
        every query of a batch has enough valid answers, at most ``tries`` of them (``TRIES`` for each wanted answer).
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
        self, queries: Sequence[Query], found: Sequence[Sequence[Answer]], tell: Tell | None = None
    ) -> list[list[Answer]]:
        """Solutions that were found for every query, with the network's probability of each, the likeliest first.

        The probability is the mean over ``starts`` noisy starts. Shares add up to 1 over the solutions of a query; the
        probabilities add up to what the network gives to all of them together.
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
        """Why this network cannot answer a query, in one sentence; None where it can."""
        return self.saved.network.accepts(query.problem, query.relations)

    def _needs_noise(self, name: str, number: int) -> None:
        if not self.noisy:
            raise ValueError(
                f"{name}: this network ({self.saved.settings.kind}) starts from no noise and has one answer to a "
                f"query, got {number}"
            )

    def _in_batches(
        self, queries: Sequence[Query], work: Callable[[list[int], Batch, Noise], list[T]], tell: Tell | None
    ) -> list[T]:
        """What ``work`` makes of every query. Every problem has noise of its own: others do not change its answers."""
        for query in queries:
            if why := self.refusal(query):
                raise ValueError(why)
        made: dict[int, T] = {}
        for problem, rows in _by_problem(queries).items():
            noise = torch.Generator().manual_seed(self.seed) if self.noisy else None
            for first in range(0, len(rows), self.batch_size):
                part = rows[first : first + self.batch_size]
                batch = _batch(problem, [queries[row] for row in part], self.device)
                made.update(zip(part, work(part, batch, noise), strict=True))
                if tell:
                    tell(len(made), len(queries))
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
            raise ValueError("the network's answers are not finite numbers: its weights are damaged")
        return logits

    def _read_off(self, batch: Batch, logits: Tensor) -> tuple[np.ndarray, list[bool], list[float]]:
        """Values uint8 [B, R], whether valid, and their log-probability."""
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
            # All choices not taken, and for the taken ones the logit on top: logsigmoid(x) = logsigmoid(-x) + x.
            taken = logits.expand(len(values), -1, -1).gather(-1, values)[..., 0]
            return F.logsigmoid(-logits).sum() + taken.sum(-1)
        per_class = logits.log_softmax(-1).expand(len(values), -1, -1)
        return per_class.gather(-1, values + self.network.value_offset)[..., 0].sum(-1)


def solve_exactly(
    queries: Sequence[Query], limit: int = 1, *, seed: int | None = None, tell: Tell | None = None
) -> list[list[Answer]]:
    """Up to ``limit`` solutions of every query from the enumerator; a seed makes the search's order random.

    A query without a solution has one answer that is not valid: the query itself.
    """
    if queries:
        prepare()
    answers: dict[int, list[Answer]] = {}
    for problem, rows in _by_problem(queries).items():
        for first in range(0, len(rows), 4096):
            part = rows[first : first + 4096]
            start = time.perf_counter()
            found = solve(problem, *_stack([queries[row] for row in part]), limit=limit, seed=seed)
            spent = (time.perf_counter() - start) / len(part)
            for i, row in enumerate(part):
                listed = [Answer(values, True, "exact", seconds=spent) for values in found.of(i)]
                answers[row] = listed or [Answer(queries[row].values, False, "exact", seconds=spent)]
            if tell:
                tell(len(answers), len(queries))
    return [answers[row] for row in range(len(queries))]


def fall_back(queries: Sequence[Query], found: Sequence[Sequence[Answer]], number: int = 1) -> list[list[Answer]]:
    """The valid answers that were found, and as many from the enumerator as are missing to ``number`` different ones.

    A query that has no solution gets the enumerator's answer that says so.
    """
    kept = [[answer for answer in answers if answer.valid][:number] for answers in found]
    short = [row for row, answers in enumerate(kept) if len(answers) < number]
    for row, exact in zip(short, solve_exactly([queries[row] for row in short], number), strict=True):
        asked = sum(answer.seconds for answer in found[row])  # the network was asked first
        known = {answer.values.tobytes() for answer in kept[row]}
        new = [replace(answer, seconds=answer.seconds + asked) for answer in exact]
        kept[row] += [answer for answer in new if answer.values.tobytes() not in known][: number - len(kept[row])]
    return kept


def bundled(task: str) -> Path:
    """Where the bundled network of a task lies, if there is one."""
    return Path(oneofmany.__file__).parent / "weights" / f"{task}.safetensors"


@cache
def prepare() -> None:
    """Load or compile the enumerator (seconds, the first time), so that it is not part of a query's time."""
    solve(nqueens(1), np.zeros((1, 1), np.uint8), limit=1)


def _by_problem(queries: Sequence[Query]) -> dict[Problem, list[int]]:
    rows: dict[Problem, list[int]] = {}
    for row, query in enumerate(queries):
        rows.setdefault(query.problem, []).append(row)
    return rows


def _stack(queries: Sequence[Query]) -> tuple[np.ndarray, np.ndarray]:
    """Queries of one problem as uint8 [Q, R] and relations int16 [Q, M, 2], -1 for padding."""
    relations = np.full((len(queries), max(len(query.relations) for query in queries), 2), -1, np.int16)
    for row, query in zip(relations, queries, strict=True):
        row[: len(query.relations)] = query.relations
    return np.stack([query.values for query in queries]), relations


def _batch(problem: Problem, queries: Sequence[Query], device: torch.device) -> Batch:
    values, relations = (torch.from_numpy(array.astype(np.int64)).to(device) for array in _stack(queries))
    none = torch.zeros(len(queries), 0, device=device)
    return Batch(
        query=values,
        solutions=none[..., None].expand(-1, -1, problem.variables).long(),
        mask=none.bool(),
        total=torch.full((len(queries),), -1, device=device),
        problem=problem,
        relations=relations if relations.shape[1] else None,
    )
