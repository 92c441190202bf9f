"""The output of a sweep: a live table on a terminal, otherwise lines; and a table at the end."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from oneofmany.cli.evaluate import print_table
from oneofmany.cli.terminal import say
from oneofmany.files import read_json
from oneofmany.training.jobs import Job, state_of
from oneofmany.training.phases import phases_of
from oneofmany.training.queue import TRAIN, Entry, QueueWatch

EVERY = 30.0
"""Seconds between two summaries without a terminal."""
REDRAW = 0.5
STATES = ("finished", "running", "stopping", "stopped", "failed", "waiting")
SUBSETS = ("os", "ms", "overall")
STYLES = {"running": "cyan", "stopping": "yellow", "stopped": "yellow", "finished": "green", "failed": "red"}


@contextmanager
def show_sweep() -> Iterator[QueueWatch]:
    """The watch of a queue: a live table on a terminal, otherwise lines."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    with Live(console=Console(stderr=True), auto_refresh=False) as live:
        yield LiveTable(live)


class Lines:
    """Prints a line at every change, and a summary every half minute."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def changed(self, entry: Entry) -> None:
        """Print what a job does now."""
        say(f"{entry.job.name}: {doing(entry)}")

    def look(self, entries: Sequence[Entry]) -> None:
        """Print a summary if the last one is old enough."""
        if time.monotonic() - self._last < EVERY:
            return
        self._last = time.monotonic()
        running = [f"{entry.job.name} {_where(entry)}" for entry in entries if entry.state in ("running", "stopping")]
        say("; ".join([summary(entries), *running]))


class LiveTable:
    """Draws as many jobs as fit on the screen, running ones first."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._last = 0.0

    def changed(self, entry: Entry) -> None:
        """Print a failure above the table; the table shows everything else."""
        self._last = 0.0
        if entry.state == "failed":
            say(f"{entry.job.name}: {doing(entry)}")

    def look(self, entries: Sequence[Entry]) -> None:
        """Draw the table if the last drawing is old enough."""
        if time.monotonic() - self._last < REDRAW:
            return
        self._last = time.monotonic()
        self._live.update(table_of(entries, max(3, self._live.console.height - 5)), refresh=True)


def table_of(entries: Sequence[Entry], rows: int) -> Table:
    """The newest metrics of at most ``rows`` jobs: running before failed, stopped, waiting and finished ones."""
    order = ("running", "stopping", "failed", "stopped", "waiting", "finished")
    shown = set(sorted(entries, key=lambda entry: order.index(entry.state))[:rows])
    table = Table(box=None, padding=(0, 2, 0, 0), caption=summary(entries), caption_justify="left")
    for place, name in enumerate(("run", "phase", "update", "loss", "OS", "MS", "all", "queries/s", "state")):
        table.add_column(name, justify="right" if 2 <= place <= 7 else "left", no_wrap=True)
    for entry in entries:
        if entry not in shown:
            continue
        # A waiting job has no metrics; a finished one shows the accuracy of its kept weights.
        newest = entry.metrics.newest() if entry.state not in ("waiting", "finished") else {}
        dev = dev_of(entry.job) or {name: newest.get(f"dev_{name}") for name in SUBSETS}
        table.add_row(
            entry.job.name,
            newest.get("phase", ""),
            _update(entry, newest),
            f"{newest['loss']:.4f}" if newest else "",
            *(percent(dev[name]) for name in SUBSETS),
            f"{newest['queries_per_second']:,.0f}" if entry.state == "running" and newest else "",
            _step(entry) if entry.state == "running" else entry.state,
            style=STYLES.get(entry.state),
        )
    return table


def summary(entries: Sequence[Entry]) -> str:
    """``3 of 21 finished, 2 running, 16 waiting``."""
    counts = Counter(entry.state for entry in entries)
    parts = [f"{counts[state]} {state}" for state in STATES[1:] if counts[state]]
    return ", ".join([f"{counts['finished']} of {len(entries)} finished", *parts])


def doing(entry: Entry) -> str:
    """What a job does, in words."""
    if entry.state == "running":
        return f"{_step(entry)} ..."
    if entry.state == "failed":
        return f"failed: {entry.why} (full log: {entry.job.log})"
    if entry.state == "finished" and (dev := dev_of(entry.job)) is not None:
        seconds = "" if entry.began is None else f" after {time.monotonic() - entry.began:,.0f} s"
        shares = ", ".join(f"{name.upper()} {percent(dev[name])}" for name in SUBSETS)
        return f"finished{seconds}, dev {shares}"
    return "saving its state, then stopping" if entry.state == "stopping" else entry.state


def dev_of(job: Job) -> dict[str, Any] | None:
    """OS, MS and overall dev accuracy of the weights that a finished run kept; None if it has not finished."""
    return read_json(job.folder / "result.json")["dev"] if state_of(job.folder) == "finished" else None


def percent(share: float | None) -> str:
    """A share in percent, or a dash."""
    return "-" if share is None else f"{100 * share:.2f}"


def print_results(jobs: Sequence[Job]) -> None:
    """Print a table per task: the dev accuracy of every recipe and grid point, averaged over finished seeds."""
    for task in dict.fromkeys(job.settings.task for job in jobs):
        cells: dict[str, list[dict[str, Any] | None]] = {}
        for job in jobs:
            if job.settings.task == task:
                cells.setdefault(job.name.rpartition("/")[0], []).append(dev_of(job))
        rows = [[name, *_means(found)] for name, found in cells.items()]
        print_table(f"{task}: dev accuracy in %, mean over seeds", ["run", "seeds", "OS", "MS", "overall"], rows)


def _means(found: Sequence[dict[str, Any] | None]) -> list[str]:
    finished = [dev for dev in found if dev is not None]
    means = []
    for name in SUBSETS:
        shares = [dev[name] for dev in finished if dev[name] is not None]
        means.append(percent(sum(shares) / len(shares) if shares else None))
    return [f"{len(finished)} of {len(found)}", *means]


def _step(entry: Entry) -> str:
    if entry.steps[0] == TRAIN:
        return "resuming" if entry.resumed else "training"
    return {"evaluate": "evaluating", "record": "recording"}[entry.steps[0][0]]


def _update(entry: Entry, newest: dict[str, Any]) -> str:
    if not newest:
        return ""
    lengths = {phase.name: phase.settings.updates for phase in phases_of(entry.job.settings)}
    return f"{newest['update']:,} of {lengths.get(newest['phase'], 0):,}"


def _where(entry: Entry) -> str:
    newest = entry.metrics.newest()
    if entry.steps[0] != TRAIN or not newest:
        return _step(entry)
    dev = ", ".join(f"{name.upper()} {percent(newest.get(f'dev_{name}'))}" for name in SUBSETS)
    return f"{newest['phase']} {_update(entry, newest)}, loss {newest['loss']:.4f}, dev {dev}"
