"""``oneofmany plot``: one figure of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from oneofmany.cli.options import Flag
from oneofmany.cli.terminal import say


def plot(
    runs: Annotated[
        tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN ...", help_behavior_hint="(required)")
    ],
    out: Annotated[Path, tyro.conf.arg(metavar="FIG.svg|FIG.png")],
    kind: Literal["answer", "training", "steps", "starts", "solutions"] = "answer",
    dark: Flag = False,
    force: Flag = False,
) -> None:
    """Draw one figure of runs: their accuracy, training curves, or accuracy over steps, starts or solutions.

    Example: oneofmany plot runs/ --kind training --out training.svg

    Example: oneofmany plot runs/first runs/second --out answer.png

    Args:
        runs: run folders, record files (.json), or folders that are searched for both.
        out: the file to write; an SVG follows the reader's light or dark mode.
        kind: answer: right answers of every recipe. training: accuracy on the validation (dev) set over updates. steps
            and starts: accuracy over the numbers of steps or starts that the runs were evaluated with. solutions:
            accuracy by the number of solutions of a query.
        dark: draw a PNG for a dark page.
        force: overwrite an existing file.
    """
    from oneofmany.extras import require
    from oneofmany.pictures.themes import check_picture
    from oneofmany.report import plot as draw
    from oneofmany.report import read_records

    require("matplotlib")
    check_picture(out, force)
    # Training curves are accuracies on the dev set, which training writes.
    records = read_records(runs, say, evaluated=kind != "training")
    draw(records, kind, say).save(out, dark=dark, force=force)
    print(out)
