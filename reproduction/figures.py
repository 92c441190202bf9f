"""The figures of the docs: the paper's Table 2 on MS queries, and our network with the paper's networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from oneofmany.evaluation.record import Subset
from oneofmany.evaluation.searching import Searched
from oneofmany.pictures.themes import Chart, Theme
from oneofmany.report.cells import commands
from oneofmany.report.figures import legend
from oneofmany.report.grid import OBJECTIVES, TASKS, Grid, name_of, summary_of
from reproduction import paper
from reproduction.agreement import compare, compared_commands
from reproduction.choosing import choosing_chart
from reproduction.curves import our_charts
from reproduction.given_rules import given_rules_chart
from reproduction.graphs import graph_chart
from reproduction.hard import hard_chart
from reproduction.ingredients import alike_chart, factorial_chart
from reproduction.large_boards import large_chart
from reproduction.ours import MAIN_OBJECTIVE, headline, reproduced
from reproduction.pronunciations import pronunciations_chart
from reproduction.runs import CHECKER_VARIANT, OUR_VARIANT, ours
from reproduction.searches import search_figure

WIDTH = 4.6
"""Inches: narrow, so that the text stays readable on a phone."""
LABELS = {
    "ours": "ours, 95 % interval over seeds",
    "flags": "ours, inequalities as flags",
    "checker": "ours, with the checker in training",
    "again": "paper's network, trained by us",
    "paper": "paper, ± two standard errors",
}


@dataclass(frozen=True)
class Point:
    """A mean and both ends of its interval, in percent.

    Args:
        series: one of ``LABELS``.
        row: where it is drawn, 0 at the top.
    """

    series: str
    row: int
    mean: float
    low: float
    high: float


def page_charts(grid: Grid, searches: Sequence[Searched] = ()) -> list[Chart]:
    """The figures that pages of the docs show; those without numbers are left out."""
    charts = [reproduction_chart(grid), results_chart(grid), *our_charts(grid), choosing_chart(grid)]
    charts += [factorial_chart(grid), alike_chart(grid), given_rules_chart(grid), pronunciations_chart(grid)]
    charts += [hard_chart(grid), search_figure(searches), large_chart(grid, searches)]
    charts += [graph_chart(grid)]
    return [chart for chart in charts if chart]


def reproduction_chart(grid: Grid) -> Chart | None:
    """MS accuracy of every objective and task, ours and the paper's."""
    found = [one for one in compare(grid) if one.subset == "ms"]
    if not found:
        return None
    panels: list[list[Point]] = []
    for task in TASKS:
        points = [_published(task, objective, "ms", row) for row, objective in enumerate(OBJECTIVES)]
        for one in (one for one in found if one.task == task):
            ends = (one.ours.low, one.ours.high)
            points.append(_point("ours", OBJECTIVES.index(one.objective), one.ours.mean, *ends))
        panels.append(points)
    return Chart(
        "reproduction",
        "Table 2 again: accuracy on MS queries",
        "Mean over seeds for every objective and task. Ours with Student's t interval (95 %), the paper's with two of "
        "its standard errors, both cut at 0 and 100.",
        partial(
            _draw,
            panels=panels,
            titles=list(map(name_of, TASKS)),
            labels=list(map(name_of, OBJECTIVES)),
            axis="accuracy on MS queries, %",
        ),
        compared_commands(found),
        size=(WIDTH, 5.7),
    )


def results_chart(grid: Grid) -> Chart | None:
    """Our network on the test sets, OS and MS, with the paper's networks and SelectR."""
    subsets: tuple[Subset, ...] = ("os", "ms")
    points, labels, made = [], [], []
    for task in TASKS:
        runs = {name: headline(ours(grid).at(task, MAIN_OBJECTIVE, variant), task) for name, variant in _SERIES}
        for subset in subsets if any(runs.values()) else ():
            runs["again"] = reproduced(grid, task)
            points.append(_published(task, "selectr", subset, len(labels)))
            for name, own in runs.items():
                if (summary := summary_of(own, subset)) is not None:
                    points.append(_point(name, len(labels), summary.mean, summary.low, summary.high))
                    made += commands(own)
            labels.append(f"{name_of(task)}, {name_of(subset)}")
    if not made:
        return None
    return Chart(
        "results",
        "Our network and the paper's networks",
        f"Accuracy on the test sets. Ours: {name_of(MAIN_OBJECTIVE)} on the fresh tests (with flags or the checker: on "
        "the first tests), mean over seeds with Student's t interval (95 %), or Wilson's over the queries if the seeds "
        "do not differ. The paper's networks: SelectR, trained by us and tested on the first tests, and as published, "
        "mean of three seeds with two standard errors.",
        partial(_draw, panels=[points], titles=[""], labels=labels, axis="accuracy, %"),
        tuple(dict.fromkeys(made)),
        size=(WIDTH, 3.8),
    )


_SERIES = (("ours", OUR_VARIANT), ("flags", f"{OUR_VARIANT}-flags"), ("checker", CHECKER_VARIANT))


def _published(task: str, objective: str, subset: Subset, row: int) -> Point:
    mean, error = paper.TABLE_2[task, objective, subset].mean, paper.STANDARD_ERRORS[task, objective, subset]
    return _point("paper", row, mean, mean - 2 * error, mean + 2 * error)


def _point(series: str, row: int, mean: float, low: float | None, high: float | None) -> Point:
    """An interval that is not known is empty, and none goes beyond 0 or 100."""
    ends = (mean if low is None else max(low, 0.0), mean if high is None else min(high, 100.0))
    return Point(series, row, mean, *ends)


def _draw(
    figure: Any,
    theme: Theme,
    panels: Sequence[Sequence[Point]],
    titles: Sequence[str],
    labels: Sequence[str],
    axis: str,
) -> None:
    four = any(point.series == "again" for points in panels for point in points)
    own, theirs = (theme["minloss"], theme["selectr"]) if four else (theme["ink"], theme["muted"])
    styles = {
        # Ours are trained with MinLoss and theirs with SelectR; the figure of all objectives has neutral colours.
        "ours": (own, "o", own, -0.16),
        "flags": (own, "s", theme["paper"], -0.16),
        "checker": (own, "v", theme["paper"], 0.18),
        "again": (theirs, "D", theirs, 0.05),
        "paper": (theirs, "D", theme["paper"], 0.26 if four else 0.16),
    }
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, points, title in zip(all_axes, panels, titles, strict=True):
        for series, (colour, marker, inside, shift) in styles.items():
            own = [point for point in points if point.series == series]
            if not own:
                continue
            means = [point.mean for point in own]
            ends = [[p.mean - p.low for p in own], [p.high - p.mean for p in own]]
            style = {"color": colour, "marker": marker, "markerfacecolor": inside, "markersize": 5, "clip_on": False}
            places = [point.row + shift for point in own]
            axes.errorbar(means, places, xerr=ends, linestyle="", elinewidth=1.3, label=LABELS[series], **style)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.set_title(title, loc="left")
        axes.grid(axis="y", visible=False)
    least = min(point.low for points in panels for point in points)
    all_axes[-1].set(xlabel=axis, xlim=(10 * (least // 10), 100))
    legend(figure, all_axes[0], columns=1)
