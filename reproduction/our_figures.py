"""Figures of our network: accuracy against the number of steps at test time and against the size of the boards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from oneofmany.evaluation.record import Record, Subset
from oneofmany.report.cells import Runs, commands, summary_of
from oneofmany.report.figures import legend
from oneofmany.report.grid import Grid, name_of, variant_of
from oneofmany.report.themes import Chart, Theme
from reproduction.beyond import size_curves, step_curves
from reproduction.ours import MAIN_OBJECTIVE, on
from reproduction.runs import OUR_VARIANT

Panel = tuple[str, dict[int, Runs]]
"""A task's name, and its runs at every place of the horizontal axis."""
LINES: dict[Subset, tuple[str, str]] = {"os": ("unique", "s"), "ms": ("minloss", "o")}
"""Queries -> colour and marker."""


def our_charts(grid: Grid) -> list[Chart]:
    """The figures that there are numbers for."""
    steps = [
        (name_of(records[0].task), {x: on(records, name) for x, name in names.items()})
        for records, data, names in step_curves(grid)
        if _shown(records) and data == f"{records[0].task}-dev"
    ]
    sizes = [
        (name_of(records[0].task), {x: on(records, name) for x, name in names.items()})
        for records, names in size_curves(grid)
        if _shown(records)
    ]
    found = []
    if steps:
        caption = "MinLoss, mean over seeds, one trajectory, on dev."
        found.append(_chart("our-steps", "Our network: accuracy against steps at test time", caption, steps, log=True))
    if sizes:
        caption = "MinLoss, mean over seeds, one trajectory. Trained on 10 queens, 5x5 Futoshiki and 9x9 Sudoku."
        found.append(_chart("our-sizes", "Our network: accuracy against the size of the boards", caption, sizes))
    return found


def _shown(records: Sequence[Record]) -> bool:
    return (records[0].objective, variant_of(records[0])) == (MAIN_OBJECTIVE, OUR_VARIANT)


def _chart(name: str, title: str, caption: str, panels: list[Panel], log: bool = False) -> Chart:
    made = [command for _, places in panels for runs in places.values() for command in commands(runs)]
    draw = partial(_draw, panels=panels, log=log)
    return Chart(name, title, caption, draw, tuple(dict.fromkeys(made)), size=(5.6, 2.6))


def _draw(figure: Any, theme: Theme, panels: Sequence[Panel], log: bool) -> None:
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, places) in zip(all_axes, panels, strict=True):
        for subset, (colour, marker) in LINES.items():
            means = [(x, summary.mean) for x, runs in places.items() if (summary := summary_of(runs, subset))]
            x, y = np.array(means).reshape(-1, 2).T
            axes.plot(x, y, color=theme[colour], marker=marker, markersize=4.5, label=name_of(subset))
        axes.set_title(title, loc="left")
        if log:
            axes.set_xscale("log", base=2)
        axes.set_xticks(list(places), [str(place) for place in places], fontsize=8)  # many in a narrow panel
        axes.minorticks_off()
        axes.grid(axis="x", visible=False)
    all_axes[0].set(ylabel="accuracy, %")
    figure.supxlabel("steps" if log else "size", fontsize=10.5)
    legend(figure, all_axes[0], columns=2)
