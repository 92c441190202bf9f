"""A figure of differences with their intervals, and what the page needs to show it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from oneofmany.evaluation.statistics import SeedSummary
from oneofmany.pictures.themes import Chart, Theme
from reproduction.paired import UNDECIDED, verdict


def forest(name: str, title: str, axis: str, rows: Mapping[str, SeedSummary], made: tuple[str, ...]) -> Chart | None:
    """Every difference with its interval; None without any.

    Args:
        name: of the file.
        title: for readers.
        axis: what the differences are.
        rows: label -> difference.
        made: the commands behind them.
    """
    if not rows:
        return None
    caption = "Mean over seeds with Student's t interval (95 %), paired by seed; in grey those that contain 0."
    return Chart(name, title, caption, partial(_draw, rows=rows, axis=axis), made, size=(4.6, 0.9 + 0.32 * len(rows)))


def image(name: str, what: str) -> str:
    """The line of Markdown that shows a figure."""
    return f"![{what}](figures/{name}.svg)"


def _draw(figure: Any, theme: Theme, rows: Mapping[str, SeedSummary], axis: str) -> None:
    draw_differences(figure.subplots(), theme, rows)
    figure.supxlabel(axis, fontsize=10.5)


def draw_differences(axes: Any, theme: Theme, rows: Mapping[str, SeedSummary]) -> None:
    """Draw differences with their intervals below each other, in grey those that contain 0, and a line at 0.

    Args:
        axes: of matplotlib.
        theme: the colours.
        rows: label -> difference.
    """
    axes.axvline(0, color=theme["muted"], linewidth=1)
    for place, one in enumerate(rows.values()):
        colour = theme["muted" if verdict(one) == UNDECIDED else "ink"]
        low, high = (one.mean if end is None else end for end in (one.low, one.high))
        ends = [[one.mean - low], [high - one.mean]]
        axes.errorbar([one.mean], [place], xerr=ends, color=colour, marker="o", markersize=5, elinewidth=1.3)
    axes.set_yticks(range(len(rows)), list(rows), fontsize=9.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
