"""Answer queries in batches with one network."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from oneofmany.problems import Query, rules_kept
from oneofmany.progress import Progress
from oneofmany.solving.answers import Answer, by_problem, in_batches, stacked
from oneofmany.solving.running import Running, StartCriterion, abilities, engine_of, mixes

if TYPE_CHECKING:
    from oneofmany.solving.running import Saved

T = TypeVar("T")

TRIES = 8
"""Noisy starts per different answer asked for."""

TIMED = 32
"""Queries per batch on a CPU with a time limit: every query of a batch runs a step, even after the time is up."""


MOST_STARTS = 128
"""Starts of a query until a search gives up."""

PATIENCE = 8
"""By default a query stops after this many steps without a change of its answer."""


class Solver:
    """Answers queries with one network, on the network's device. Answers keep the givens of their query.

    Args:
        saved: a network from ``oneofmany.load``.
        steps: run at most this many steps; by default the network's own number at test time.
        patience: stop a query after this many steps without a change of its answer; 0 always runs all steps. A network
            that cannot continue from a state runs all of its steps.
        starts: number of noisy starts per query. One of them answers, chosen without knowledge of the rules.
        choose: which start answers: the most confident one, or the one whose belief moved least in the last step. The
            second is as good only without patience: a start that stops early may still have been moving.
        seed: of the noise. The same seed and batch size give the same answers.
        batch_size: queries per batch.
        threads: number of CPU threads. More than one is faster only if the cores are idle.
    """

    def __init__(
        self,
        saved: Saved,
        *,
        steps: int | None = None,
        patience: int = PATIENCE,
        starts: int = 1,
        choose: StartCriterion = "confidence",
        seed: int = 0,
        batch_size: int = 256,
        threads: int = 1,
    ) -> None:
        given = {"steps": steps, "starts": starts, "batch size": batch_size, "threads": threads}
        for name, value in given.items():
            if value is not None and value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        if patience < 0:
            raise ValueError(f"patience: expected at least 0, got {patience}")
        if steps is not None and not saved.settings.has_steps:
            raise ValueError(f"steps: this network ({saved.settings.kind}) has no steps to choose, got {steps}")
        self.saved, self.starts, self.seed, self.batch_size = saved, starts, seed, batch_size
        self.network, self.threads = saved.network, threads
        self.choose: StartCriterion = choose
        self.steps = steps or (saved.settings.test_steps if saved.settings.has_steps else None)
        self.noisy, stops_early = abilities(saved)
        self.mixes = mixes(saved)
        self.patience = patience or None if stops_early else None
        if starts > 1:
            self._needs_noise("starts", starts)

    def answer(
        self, queries: Sequence[Query], tell: Progress | None = None, *, seconds: float | None = None
    ) -> list[Answer]:
        """Return one answer to every query.

        After ``seconds`` a network with patience stops with the answers that it has. Queries that it has not begun get
        the query itself, not ``finished``.
        """

        def work(rows: list[int], part: list[Query], running: Running) -> list[Answer]:
            return self._start(part, running, self.starts)

        return self._in_batches(queries, work, tell, seconds, lambda row: _unanswered(queries[row]))

    def search(
        self,
        queries: Sequence[Query],
        tell: Progress | None = None,
        *,
        seconds: float | None = None,
        most: int = MOST_STARTS,
    ) -> list[Answer]:
        """Return one answer to every query: of one trajectory or, where that is not valid, of further noisy starts.

        Every query gets its trajectory first. Then those without a valid answer start again, all together, until
        ``seconds`` are over or ``most`` starts are done. So the rules decide who needs another start; of answers that
        are not valid, the one with the smallest residual is kept. The same seed and batch size give the same answers
        as long as the time does not end the search.
        """
        if most < 1:
            raise ValueError(f"most: expected at least 1 start, got {most}")
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        answers = self.answer(queries, tell, seconds=seconds)
        again = copy(self)
        for start in range(1, most if self.noisy else 1):
            rows = [row for row, answer in enumerate(answers) if not answer.valid]
            left = deadline - time.monotonic()
            if not rows or left <= 0:
                break
            again.seed = int(np.random.SeedSequence((self.seed % 2**63, start)).generate_state(1)[0])
            more = again.answer([queries[row] for row in rows], seconds=None if math.isinf(left) else left)
            late = time.monotonic() >= deadline  # what was cut off has not settled, whatever its residual
            for row, new in zip(rows, more, strict=True):
                answers[row] = _better(answers[row], new, late)
        return answers

    def distinct(
        self,
        queries: Sequence[Query],
        number: int,
        *,
        tries: int | None = None,
        tell: Progress | None = None,
        seconds: float | None = None,
    ) -> list[list[Answer]]:
        """Return up to ``number`` different answers to every query, each from another noisy start.

        Valid answers come first, in the order found, then invalid ones. Starts are tried until every query of a batch
        has ``number`` valid answers, up to ``tries`` starts (by default ``TRIES`` times ``number``).
        """
        if number < 1:
            raise ValueError(f"distinct: expected at least 1 answer, got {number}")
        self._needs_noise("distinct", number)

        def work(rows: list[int], part: list[Query], running: Running) -> list[list[Answer]]:
            found: list[dict[bytes, Answer]] = [{} for _ in rows]
            for _ in range(tries or TRIES * number):
                for seen, answer in zip(found, self._start(part, running, 1), strict=True):
                    seen.setdefault(answer.values.tobytes(), answer)
                if all(sum(answer.valid for answer in seen.values()) >= number for seen in found):
                    break
            return [sorted(seen.values(), key=lambda answer: not answer.valid)[:number] for seen in found]

        return self._in_batches(queries, work, tell, seconds, lambda row: [_unanswered(queries[row])])

    def weigh(
        self,
        queries: Sequence[Query],
        found: Sequence[Sequence[Answer]],
        tell: Progress | None = None,
        *,
        seconds: float | None = None,
    ) -> list[list[Answer]]:
        """Return the solutions found for every query with the network's probability of each, most likely first.

        The probability is the mean over ``starts`` noisy starts. Shares add up to 1 over the solutions of a query.
        """

        def work(rows: list[int], part: list[Query], running: Running) -> list[list[Answer]]:
            start = time.perf_counter()
            every_start = np.stack([self._predict(part, running, 1)[0] for _ in range(self.starts)])
            spent = (time.perf_counter() - start) / len(rows)
            return [self._weighed(found[row], every_start[:, i], spent) for i, row in enumerate(rows)]

        return self._in_batches(queries, work, tell, seconds, lambda row: list(found[row]))

    def prepare(self, queries: Sequence[Query]) -> None:
        """Load or compile what answers these queries on a CPU, so that no query's time includes it."""
        if engine_of(self.saved) is None:
            return
        running = self._running(lambda: True)
        # What is compiled depends on these two alone.
        kinds = {(query.problem.linear is None, len(query.relations) == 0): query for query in reversed(queries)}
        for query in kinds.values():
            if not self.refusal(query):
                running.predict([query])

    def refusal(self, query: Query) -> str | None:
        """Return why this network cannot answer a query, in one sentence; None if it can."""
        return self.network.accepts(query.problem, query.relations)

    def _needs_noise(self, name: str, number: int) -> None:
        if not self.noisy:
            raise ValueError(
                f"{name}: this network ({self.saved.settings.kind}) has no noise and gives one answer per "
                f"query, got {number}"
            )

    def _in_batches(
        self,
        queries: Sequence[Query],
        work: Callable[[list[int], list[Query], Running], list[T]],
        tell: Progress | None,
        seconds: float | None,
        instead: Callable[[int], T],
    ) -> list[T]:
        """Apply ``work`` in batches."""
        for query in queries:
            if why := self.refusal(query):
                raise ValueError(why)
        deadline = math.inf if seconds is None else time.monotonic() + seconds

        def late() -> bool:
            return time.monotonic() >= deadline

        made: dict[int, T] = {}
        running = self._running(late)
        size = self.batch_size if seconds is None or running.engine is None else min(self.batch_size, TIMED)
        for part in in_batches(queries, size, self.mixes):
            if late():
                break
            made.update(zip(part, work(part, [queries[row] for row in part], running), strict=True))
            if tell:
                tell("queries answered", len(made), len(queries))
        return [made[row] if row in made else instead(row) for row in range(len(queries))]

    def _running(self, stop: Callable[[], bool]) -> Running:
        return Running(
            self.saved,
            steps=self.steps,
            patience=self.patience,
            choose=self.choose,
            seed=self.seed,
            threads=self.threads,
            stop=stop,
        )

    def _start(self, queries: list[Query], running: Running, starts: int) -> list[Answer]:
        start = time.perf_counter()
        logits, residual = self._predict(queries, running, starts)
        values, sure = self._read_off(queries, logits)
        valid = np.asarray(values.all(1))
        for problem, rows in by_problem(queries).items():
            valid[rows] &= rules_kept(problem, values[rows], stacked([queries[row] for row in rows])[1])
        seconds = (time.perf_counter() - start) / len(queries)
        moved = [None] * len(queries) if residual is None else residual.tolist()
        rows = zip(values, valid.tolist(), sure.tolist(), moved, strict=True)
        return [Answer(own, ok, "network", p, seconds=seconds, residual=far) for own, ok, p, far in rows]

    def _predict(self, queries: list[Query], running: Running, starts: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Logits float64 [B, R, classes] and residuals float32 [B] of the chosen start's last step."""
        logits, residual = running.predict(queries, starts)
        if not np.isfinite(logits).all():
            raise ValueError("the network's logits are not finite: its weights are damaged")
        return logits.astype(np.float64), residual

    def _read_off(self, queries: list[Query], logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values uint8 [B, R], with the givens of the queries, and their log-probability [B]."""
        given = np.stack([query.values for query in queries]).astype(np.int64)
        if self.network.readout == "threshold":
            own = given[..., None] == np.arange(1, logits.shape[-1] + 1)
            taken = np.where(given[..., None] > 0, own, logits > 0)
            values = np.where(taken.sum(-1) == 1, taken.argmax(-1) + 1, 0)
            return values.astype(np.uint8), _log_sigmoid(np.where(taken, logits, -logits)).sum((1, 2))
        offset = 1 - self.network.value_offset
        values = np.where(given > 0, given, logits.argmax(-1) + offset)
        each = np.take_along_axis(_log_softmax(logits), (values - offset)[..., None], -1)[..., 0]
        return values.astype(np.uint8), each.sum(-1)

    def _weighed(self, found: Sequence[Answer], every_start: np.ndarray, seconds: float) -> list[Answer]:
        """Solutions of one query, by their probability under the logits [S, R, classes] of its starts."""
        listed = [replace(answer, seconds=answer.seconds + seconds) for answer in found]
        if not all(answer.valid for answer in listed):  # there is no solution
            return listed
        solutions = np.stack([answer.values for answer in listed])
        each = np.stack([self._log_probability(logits, solutions) for logits in every_start])
        total = np.logaddexp.reduce(each, 0) - math.log(len(each))
        share = np.exp(_log_softmax(total))
        order = np.argsort(-total, kind="stable").tolist()
        return [replace(listed[k], log_probability=float(total[k]), share=float(share[k])) for k in order]

    def _log_probability(self, logits: np.ndarray, solutions: np.ndarray) -> np.ndarray:
        """[K] of solutions uint8 [K, R] under the logits [R, classes] of their query."""
        values = solutions.astype(np.int64) - 1
        variables = np.arange(len(logits))
        if self.network.readout == "threshold":
            # Start as if no choice were taken, then add the logits of those taken: logsigmoid(x) = logsigmoid(-x) + x.
            return _log_sigmoid(-logits).sum() + logits[variables, values].sum(-1)
        return _log_softmax(logits)[variables, values + self.network.value_offset].sum(-1)


def _unanswered(query: Query) -> Answer:
    return Answer(query.values, False, "network", finished=False)


def _better(old: Answer, new: Answer, late: bool) -> Answer:
    """The better of two answers to a query, with the time of both; the new one may have been cut off by the time."""
    settles_more = old.residual is not None and new.residual is not None and new.residual < old.residual
    wins = new.valid or (new.finished and not late and (settles_more or not old.finished))
    return replace(new if wins else old, seconds=old.seconds + new.seconds)


def _log_sigmoid(x: np.ndarray) -> np.ndarray:
    return -np.logaddexp(0, -x)


def _log_softmax(x: np.ndarray) -> np.ndarray:
    return x - np.logaddexp.reduce(x, -1, keepdims=True)
