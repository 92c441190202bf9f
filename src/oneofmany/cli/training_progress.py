"""The output of a run while it trains: a bar on a terminal, otherwise lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from oneofmany.cli.terminal import say
from oneofmany.evaluation.scores import judged
from oneofmany.extras import require

if TYPE_CHECKING:
    from oneofmany.training.metrics import Watch

EVERY = 10.0
"""Seconds between two lines without a terminal."""
WIDE = 120
"""Columns of a terminal on which all metrics fit in one line; a narrower one shows the loss and dev accuracy only."""


@contextmanager
def show_training(folder: Path, tensorboard: bool = False) -> Iterator[Watch | None]:
    """A callback that shows every line of metrics; None on all processes but the first."""
    if int(os.environ.get("RANK", "0")):
        yield None
        return
    make, writer = _tensorboard() if tensorboard else None, None
    show, close = _bars() if sys.stderr.isatty() else (_lines(), lambda: None)

    def watch(line: dict[str, Any]) -> None:
        nonlocal writer
        show(line)
        if make is not None and line.get("kind") in ("train", "dev"):
            # Not earlier: the trainer refuses a run folder that exists already.
            writer = writer or make(str(folder / "tensorboard"))
            for name, value in line.items():
                if isinstance(value, float):
                    writer.add_scalar(f"{line['phase']}/{name}", value, line["update"])

    try:
        yield watch
    finally:
        close()
        if writer is not None:
            writer.close()


def _tensorboard() -> Any:
    require("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _dev(line: dict[str, Any]) -> str:
    shares = f"dev OS {_percent(line['dev_os'])}, MS {_percent(line['dev_ms'])}, all {_percent(line['dev_overall'])}"
    return f"{shares} {judged(line.get('judged_by'))}"


def _lines() -> Watch:
    last, length = -EVERY, 0

    def show(line: dict[str, Any]) -> None:
        nonlocal last, length
        kind = line.get("kind", "phase")
        if kind == "phase":
            length = line["updates"]
        elif kind == "warning":
            say(f"warning: {line['text']}")
        elif kind == "dev" or (kind == "train" and time.monotonic() - last >= EVERY):
            last = time.monotonic()
            what = _dev(line) if kind == "dev" else f"{line['queries_per_second']:,.0f} queries/s"
            say(f"{line['phase']}: update {line['update']:,} of {length:,}, loss {line['loss']:.4f}, {what}")

    return show


def _bars() -> tuple[Watch, Callable[[], None]]:
    console = Console(stderr=True, markup=False)
    wide = console.width >= WIDE
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=10 if wide else 5),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn(
            "{task.fields[about]}", markup=False, table_column=Column(no_wrap=True, max_width=None if wide else 26)
        ),
    )
    bars = Progress(*columns, console=console)
    bars.start()
    state: dict[str, Any] = {"loss": "", "speed": "", "dev": "", "short": ""}

    def show(line: dict[str, Any]) -> None:
        kind = line.get("kind", "phase")
        if kind == "warning":
            bars.console.print(f"warning: {line['text']}")
            return
        if kind == "phase":
            state["task"] = bars.add_task(line["phase"], total=line["updates"], about="")
            return
        if kind == "start":
            return
        state["loss"] = f"loss {line['loss']:.3f}"
        if kind == "train":
            state["speed"] = f"{line['queries_per_second']:,.0f}/s"
        else:
            state["dev"], state["short"] = _dev(line), f"dev {_percent(line['dev_overall'])}"
        parts = (state["loss"], state["dev"], state["speed"]) if wide else (state["loss"], state["short"])
        about = "  ".join(part for part in parts if part)
        bars.update(state["task"], completed=line["update"], about=about)

    return show, bars.stop
