"""Figures of lines, in panels one above the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oneofmany.pictures.themes import Theme

Point = tuple[float, float, float | None, float | None]
"""x, accuracy in percent, and both ends of its interval or None."""


@dataclass(frozen=True)
class Line:
    """A line of a figure.

    Args:
        label: in the legend; lines with the same label are listed there once.
        objective: decides the colour; ink if the theme does not have it.
        points: in order; an accuracy of nan makes a gap.
        marker: of the points; empty for none.
        dashes: how the line is drawn, as matplotlib names it.
        way: what the dashes mean, if that is not the label; listed in the legend once.
    """

    label: str
    objective: str
    points: Sequence[Point]
    marker: str = ""
    dashes: str = "-"
    way: str = ""


def shifted(lines: Sequence[Line], by: float) -> list[Line]:
    """Lines beside each other, so that their intervals do not hide each other."""
    middle = (len(lines) - 1) / 2
    return [
        replace(line, points=[(x + by * (i - middle), *rest) for x, *rest in line.points])
        for i, line in enumerate(lines)
    ]


def draw_lines(
    figure: Any,
    theme: Theme,
    panels: Sequence[tuple[str, Sequence[Line]]],
    xlabel: str,
    ticks: dict[float, str] | None = None,
    log: bool = False,
) -> None:
    """Draw panels (title, lines) one above the other, with one legend.

    Args:
        figure: a new figure of matplotlib.
        theme: the colours.
        panels: title and lines of each.
        xlabel: the name of the common axis.
        ticks: place -> label, if they are not numbers.
        log: whether the axis is logarithmic, to base 2.
    """
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    handles: dict[str, Any] = {}
    for axes, (title, lines) in zip(all_axes, panels, strict=True):
        lowest = 100.0
        for line in lines:
            x, y = (np.array([point[i] for point in line.points], float) for i in (0, 1))
            colour = theme.get(line.objective, theme["ink"])
            style = {"color": colour, "linestyle": line.dashes, "marker": line.marker or None, "markersize": 5.5}
            (handle,) = axes.plot(x, y, **style, linewidth=1.8 if line.marker else 1.4)
            handles.setdefault(line.label, handle)
            known = [(at, mean, low, high) for at, mean, low, high in line.points if low is not None]
            if known:
                at, mean, low, high = np.array(known, float).T
                axes.errorbar(at, mean, [mean - low, high - mean], color=colour, linestyle="", capsize=2.5,
                              elinewidth=1.2)  # fmt: skip
                lowest = min(lowest, low.min())
            lowest = min(lowest, np.nanmin(y))
        axes.set_title(title, loc="left")
        axes.set(ylabel="accuracy, %")
        axes.set_ylim(max(-1, 10 * np.floor(lowest / 10 - 0.3)), 102)
        if ticks is not None:
            axes.grid(axis="x", visible=False)
    for way, dashes in {line.way: line.dashes for _, lines in panels for line in lines if line.way}.items():
        (handles[way],) = all_axes[0].plot([], [], color=theme["ink"], linestyle=dashes)
    last = all_axes[-1]
    last.set(xlabel=xlabel)
    if log:
        last.set_xscale("log", base=2)
        places = sorted({point[0] for _, lines in panels for line in lines for point in line.points})
        ticks = {place: f"{place:g}" for place in places}
    if ticks is not None:
        last.set_xticks(list(ticks), list(ticks.values()))
        last.minorticks_off()
    else:
        last.xaxis.set_major_formatter("{x:,.0f}")
    figure.legend(list(handles.values()), list(handles), loc="outside upper left", ncols=columns_of(handles),
                  handlelength=2.2, columnspacing=1.4)  # fmt: skip


def legend_room(panels: Sequence[tuple[str, Sequence[Line]]]) -> float:
    """How much higher than usual a figure must be for its legend, in inches; nothing for two rows."""
    labels = {name for _, lines in panels for line in lines for name in (line.label, line.way) if name}
    return 0.2 * max(0, -(-len(labels) // columns_of(labels)) - 2)


def columns_of(labels: Iterable[str]) -> int:
    """As many columns of a legend as fit above a figure of the usual width."""
    return max(1, min(4, 66 // (max(map(len, labels), default=0) + 8)))
