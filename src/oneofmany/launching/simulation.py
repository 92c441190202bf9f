"""A simulation of a sweep on a cluster, to see what failures, preemption, stragglers and checkpoints cost::

    from oneofmany.launching.simulation import Scenario, simulate

    print(simulate(Scenario(jobs=1000, workers=64)))

It follows the rules of the queue: jobs start in order, as long as a worker is free; a killed job resumes from its last
checkpoint; a preempted one has saved its state; both wait at the end of the queue and start with a delay.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass

import numpy as np

from oneofmany.runs.lock import BEAT

LOCKS = 2
"""The locks of a running job: of the job and of the run folder."""


@dataclass(frozen=True)
class Scenario:
    """A sweep and a cluster; times are in minutes.

    Args:
        jobs: the number of runs.
        workers: the runs at a time.
        minutes: the median time of a run without disturbance.
        spread: the standard deviation of the logarithm of that time; 0 makes all equal.
        checkpoint: the time between two checkpoints.
        megabytes: the size of a checkpoint.
        failures: kills of a worker per day; what was done since the last checkpoint is lost.
        preemptions: preemptions of a worker per day; nothing is lost.
        restart: the time from the start of a process to its first update.
        delay: the time until a worker is free again after a kill or a preemption.
        retries: a job that was killed more often fails.
    """

    jobs: int = 1000
    workers: int = 64
    minutes: float = 60.0
    spread: float = 0.5
    checkpoint: float = 10.0
    megabytes: float = 2.0
    failures: float = 0.1
    preemptions: float = 1.0
    restart: float = 0.5
    delay: float = 5.0
    retries: int = 3

    def __post_init__(self) -> None:
        positive = (self.jobs, self.workers, self.minutes, self.checkpoint)
        others = (self.spread, self.megabytes, self.failures, self.preemptions, self.restart, self.delay, self.retries)
        if not all(value > 0 for value in positive) or not all(value >= 0 for value in others):
            raise ValueError(
                f"expected positive jobs, workers, minutes and checkpoint, and nothing negative, got {self}"
            )


@dataclass(frozen=True)
class Outcome:
    """What happened; times are in minutes.

    Args:
        finished: runs that ended, each once.
        failed: runs that were killed too often.
        makespan: the time until the last run ended.
        tail: the part of it in which workers are idle because no run waits any more.
        work: the time of all finished runs without disturbance.
        lost: the time that was trained again because a checkpoint was older.
        restarts: processes that were started again.
        efficiency: the share of the workers' time that was work.
        megabytes_per_second: the mean rate of checkpoints.
        metadata_per_second: the mean rate of signs of life of locks.
    """

    finished: int
    failed: int
    makespan: float
    tail: float
    work: float
    lost: float
    restarts: int
    efficiency: float
    megabytes_per_second: float
    metadata_per_second: float


def simulate(scenario: Scenario, seed: int = 0) -> Outcome:
    """Run a sweep to its end, event by event."""
    s, rng = scenario, np.random.default_rng(seed)
    lengths = s.minutes * np.exp(s.spread * rng.standard_normal(s.jobs))
    done, kills = np.zeros(s.jobs), np.zeros(s.jobs, np.int64)
    kill, preempt = s.failures / 1440, s.preemptions / 1440
    waiting = deque(range(s.jobs))
    free = [(0.0, worker) for worker in range(s.workers)]
    heapq.heapify(free)
    later: list[tuple[float, int]] = []
    """Jobs that wait again, and when."""
    end = np.zeros(s.workers)
    lost = busy = 0.0
    restarts = checkpoints = finished = failed = 0
    empty = None
    while waiting or later:
        now, worker = heapq.heappop(free)
        while later and later[0][0] <= now:
            waiting.append(heapq.heappop(later)[1])
        if not waiting:  # the jobs that are left still run: this worker looks again when the next one comes back
            empty = now if empty is None else empty
            heapq.heappush(free, (later[0][0], worker))
            continue
        job = waiting.popleft()
        until = rng.exponential(1 / (kill + preempt)) if kill + preempt else np.inf
        left = lengths[job] - done[job]
        if s.restart + left <= until:
            spent, done[job] = s.restart + left, lengths[job]
            checkpoints += int(left // s.checkpoint) + 1
            finished += 1
            end[worker] = now + spent
            heapq.heappush(free, (now + spent, worker))
        else:
            spent, made = until, max(0.0, until - s.restart)
            killed = rng.random() < kill / (kill + preempt)
            kept = made // s.checkpoint * s.checkpoint if killed else made
            checkpoints += int(made // s.checkpoint) + (not killed)
            lost += made - kept
            done[job] += kept
            kills[job] += killed
            end[worker] = now + spent
            heapq.heappush(free, (now + spent + s.delay, worker))
            if kills[job] > s.retries:
                failed += 1
            else:
                restarts += 1
                heapq.heappush(later, (now + spent, job))
        busy += spent
    makespan = float(end.max())
    work = float(lengths[done >= lengths].sum())
    seconds = 60 * makespan
    return Outcome(
        finished=finished,
        failed=failed,
        makespan=makespan,
        tail=float(makespan - (end.min() if empty is None else empty)),
        work=work,
        lost=float(lost),
        restarts=restarts,
        efficiency=work / (makespan * s.workers),
        megabytes_per_second=checkpoints * s.megabytes / seconds,
        metadata_per_second=float(LOCKS * (60 * busy / BEAT) / seconds),
    )
