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
from oneofmany.evaluation.scores import judged
from oneofmany.files import read_json
from oneofmany.runs.lock import owner_of
from oneofmany.runs.state import lock_of
from oneofmany.training.jobs import Job, state_of
from oneofmany.training.phases import phases_of
from oneofmany.training.queue import TRAIN, Entry, Metrics, QueueWatch

EVERY = 30.0
"""Seconds between two summaries without a terminal."""
REDRAW = 0.5
WIDE = 130
"""Columns of a terminal on which the whole table fits."""
NARROW = ("run", "update", "loss", "all", "state")
OTHERS = 48
"""Columns of a narrow table beside the name of the run."""
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
        console = self._live.console
        self._live.update(table_of(entries, max(3, console.height - 5), console.width), refresh=True)


def table_of(entries: Sequence[Entry], rows: int, width: int = WIDE) -> Table:
    """The newest metrics of at most ``rows`` jobs: running before failed, stopped, waiting and finished ones.

    On a terminal of fewer than ``WIDE`` columns, long names are shortened and only the most important metrics are
    shown, so that a job is one line.
    """
    order = ("running", "stopping", "failed", "stopped", "waiting", "finished")
    shown = set(sorted(entries, key=lambda entry: order.index(entry.state))[:rows])
    table = Table(box=None, padding=(0, 2, 0, 0), caption=summary(entries), caption_justify="left")
    names = ("run", "phase", "update", "loss", "OS", "MS", "all", "queries/s", "state")
    shown_names = names if width >= WIDE else NARROW
    for name in shown_names:
        table.add_column(name, justify="left" if name in ("run", "phase", "state") else "right", no_wrap=True)
    for entry in entries:
        if entry not in shown:
            continue
        # A waiting job has no metrics; a finished one shows the accuracy of its kept weights.
        newest = entry.metrics.newest() if entry.state not in ("waiting", "finished") else {}
        dev = dev_of(entry.job) or {name: newest.get(f"dev_{name}") for name in SUBSETS}
        cells = (
            shortened(entry.job.name, width - OTHERS if width < WIDE else len(entry.job.name)),
            newest.get("phase", ""),
            _update(entry, newest),
            f"{newest['loss']:.4f}" if newest else "",
            *(percent(dev[name]) for name in SUBSETS),
            f"{newest['queries_per_second']:,.0f}" if entry.state == "running" and newest else "",
            _step(entry) if entry.state == "running" else entry.state,
        )
        picked = (cell for name, cell in zip(names, cells, strict=True) if name in shown_names)
        table.add_row(*picked, style=STYLES.get(entry.state))
    return table


def shortened(name: str, most: int) -> str:
    """A name of at most ``most`` characters, with its middle left out: the ends tell runs apart."""
    most = max(most, 8)
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[most // 2 - most :]}"


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
        return f"finished{seconds}, dev {shares} {judged(dev.get('judged_by'))}"
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
        known = (dev for found in cells.values() for dev in found if dev is not None)
        by = " and ".join(dict.fromkeys(judged(dev.get("judged_by")) for dev in known))
        about = f"dev accuracy in % ({by})" if by else "dev accuracy in %"
        print_table(f"{task}: {about}, mean over seeds", ["run", "seeds", "OS", "MS", "overall"], rows)


def print_status(jobs: Sequence[Job]) -> None:
    """Print a line for every run: its state, the newest metrics, and who works on it."""
    counts: Counter[str] = Counter()
    for job in jobs:
        state = state_of(job.folder)
        owner = owner_of(job.lock) or owner_of(lock_of(job.folder).path)
        words = {"missing": "waiting", "begun": "stopped", "finished": "finished"}[state]
        words = "running" if owner is not None else words
        newest, parts = Metrics(job.folder / "metrics.jsonl").newest(), []
        if newest and state == "begun":
            parts.append(f"{newest['phase']} update {newest['update']:,}")
        dev = dev_of(job) or {name: newest.get(f"dev_{name}") for name in SUBSETS}
        if any(share is not None for share in dev.values()):
            parts.append("dev " + ", ".join(f"{name.upper()} {percent(dev[name])}" for name in SUBSETS))
        if owner is not None:
            parts.append(f"by {owner}")
        print(f"{words:<9} {job.name}" + "".join(f", {part}" for part in parts))
        counts[words] += 1
    say(f"{len(jobs)} runs: {', '.join(f'{number} {words}' for words, number in counts.items())}")


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
