"""Figures that any runs fill: accuracy by number of solutions, givens, exploratory share, training curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from oneofmany.evaluation.record import Evaluation, History, Record
from oneofmany.evaluation.scores import wilson
from oneofmany.report.cells import test_commands
from oneofmany.report.grid import OBJECTIVES, Grid, commands_of, name_of, order_of, test_evaluation, tested, variant_of
from oneofmany.report.table import slug
from oneofmany.report.themes import Chart, Theme

MARKERS: dict[str, str] = dict(zip(OBJECTIVES, "XPsv^Do", strict=True))
FIRST = (1, 2, 3, 4, 5, 6, 11, 21, 31, 41, 51, 101, 1001)
"""The first number of solutions of each bin."""
FEWEST = 30
"""A bin with fewer MS queries is merged with its neighbour, so that its interval is useful."""


@dataclass(frozen=True)
class Bin:
    """Queries with ``first`` to ``last`` solutions: how many, how many are right, and the mean number of givens."""

    first: int
    last: int
    correct: int
    total: int
    givens: float

    @property
    def label(self) -> str:
        """``3`` or ``6–10``."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"

    @property
    def accuracy(self) -> float:
        """In percent."""
        return 100 * self.correct / self.total


def bins_of(evaluation: Evaluation) -> list[Bin]:
    """The bins with queries; queries with an unknown number of solutions are left out."""
    totals, valid, givens = evaluation.total, evaluation.valid, evaluation.givens
    members = [
        rows
        for first, end in zip(FIRST, (*FIRST[1:], np.iinfo(np.int32).max), strict=True)
        if len(rows := np.flatnonzero((totals >= first) & (totals < end)))
    ]
    # From the right, since few queries have many solutions. OS queries keep their own bin.
    i = len(members) - 1
    while i > 0:
        if len(members[i]) < FEWEST and totals[members[i - 1]].min() > 1:
            members[i - 1 : i + 1] = [np.concatenate(members[i - 1 : i + 1])]
        i -= 1
    return [
        Bin(
            int(totals[rows].min()),
            int(totals[rows].max()),
            int(valid[rows].sum()),
            len(rows),
            float(givens[rows].mean()),
        )
        for rows in members
    ]


def user_charts(grid: Grid, band: tuple[float, float] | None = None) -> list[Chart]:
    """Every figure with numbers, in order.

    Args:
        grid: the runs.
        band: percentages of exploratory queries to mark in their figures.
    """
    cells = list(dict.fromkeys((record.task, variant_of(record)) for record in grid.runs))
    charts = [solutions_chart(grid, *cell) for cell in cells]
    charts += [givens_chart(grid, task) for task in dict.fromkeys(task for task, _ in cells)]
    charts += [exploratory_chart(grid, *cell, band=band) for cell in cells]
    charts += [training_chart(grid, *cell) for cell in cells]
    return [chart for chart in charts if chart is not None]


def _about(task: str, variant: str) -> tuple[str, str]:
    """Parts of a chart's file name and of its title."""
    return slug(task, variant), name_of(task) + (f" ({variant})" if variant else "")


def solutions_chart(grid: Grid, task: str, variant: str) -> Chart | None:
    """Accuracy of the best Unique, MinLoss and SelectR by dev (Naive if Unique is missing), by number of solutions."""
    best = {o: grid.best(task, o, variant) for o in ("naive", "unique", "minloss", "selectr")}
    shown = {o: r for o, r in best.items() if r is not None and (o != "naive" or best["unique"] is None)}
    evaluations = {o: evaluation for o, r in shown.items() if (evaluation := test_evaluation(r)) is not None}
    curves = {o: bins for o, evaluation in evaluations.items() if len(bins := bins_of(evaluation)) > 1}
    # Bins of other data would mean something else at the same place of the axis.
    data = {o: evaluations[o].data.checksum for o in curves}
    curves = {o: bins for o, bins in curves.items() if data[o] == next(iter(data.values()))}
    if len(curves) < 2:
        return None
    name, title = _about(task, variant)
    return Chart(
        f"solutions-{name}",
        f"{title}: accuracy against the size of the solution set",
        "For each objective the run that the dev set picks. Queries are binned by the number of existing solutions; "
        "bars are Wilson's 95 % intervals.",
        partial(_draw_solutions, curves=curves),
        test_commands([shown[o] for o in curves]),
    )


def _draw_solutions(figure: Any, theme: Theme, curves: dict[str, list[Bin]]) -> None:
    axes = figure.add_subplot()
    bins = next(iter(curves.values()))
    lowest = 100.0
    for i, (objective, own) in enumerate(curves.items()):
        x = np.arange(len(own)) + 0.13 * (i - (len(curves) - 1) / 2)
        y = np.array([b.accuracy for b in own])
        ends = 100 * np.array([wilson(b.correct, b.total) for b in own]).T
        lowest = min(lowest, ends[0].min())
        style = {"color": theme[objective], "marker": MARKERS[objective], "markersize": 5.5, "capsize": 2.5}
        axes.errorbar(x, y, np.abs(ends - y), label=name_of(objective), elinewidth=1.2, **style)
    axes.set(xlabel="number of solutions", ylabel="accuracy, %")
    axes.set_xticks(range(len(bins)), [b.label for b in bins])
    axes.set_ylim(max(0, 10 * np.floor(lowest / 10 - 0.3)), 101)
    axes.grid(axis="x", visible=False)
    legend(figure, axes)


def givens_chart(grid: Grid, task: str) -> Chart | None:
    """Mean number of givens and number of test queries, by number of solutions."""
    runs = tested(record for record in grid.runs if record.task == task)
    runs.sort(key=lambda run: bool(variant_of(run[0])))  # the plain recipe's test set before others
    bins = [bins for _, evaluation in runs[:1] if len(bins := bins_of(evaluation)) > 1]
    if not bins or len({round(b.givens, 6) for b in bins[0]}) == 1:
        return None
    return Chart(
        f"givens-{slug(task)}",
        f"{name_of(task)}: givens and queries against the size of the solution set",
        "The test queries: mean number of givens, and number of queries on a logarithmic axis.",
        partial(_draw_givens, bins=bins[0]),
        test_commands([runs[0][0]]),
        size=(5.6, 4.1),
    )


def _draw_givens(figure: Any, theme: Theme, bins: list[Bin]) -> None:
    above, below = figure.subplots(2, 1, sharex=True)
    x = np.arange(len(bins))
    above.plot(x, [b.givens for b in bins], color=theme["minloss"], marker="o", markersize=5)
    above.set_title("mean number of givens", loc="left")
    below.set_title("number of queries", loc="left")
    bars = below.bar(x, [b.total for b in bins], color=theme["minloss"], width=0.6)
    below.bar_label(bars, [f"{b.total:,}" for b in bins], color=theme["muted"], fontsize=9, padding=2)
    below.set(xlabel="number of solutions", yscale="log")
    below.set_ylim(max(1, min(b.total for b in bins) / 3), max(b.total for b in bins) * 4)
    below.yaxis.set_visible(False)  # the bars have labels
    below.set_xticks(x, [b.label for b in bins])
    for axes in (above, below):
        axes.grid(axis="x", visible=False)


def exploratory_chart(grid: Grid, task: str, variant: str, band: tuple[float, float] | None = None) -> Chart | None:
    """Share of exploratory training queries over SelectR's joint phase."""
    runs = [r for r in grid.at(task, "selectr", variant) if _exploratory(r.history, "all_loss")[1]]
    if not runs:
        return None
    name, title = _about(task, variant)
    marked = "" if band is None else f" The band is the paper's {band[0]:g} to {band[1]:g} % of the first batches."
    return Chart(
        f"exploratory-{name}",
        f"{title}: exploratory queries in SelectR's joint training",
        "Share of training queries for which the selector prefers another listed solution than the one closest to the "
        f"network's prediction, by loss (solid) or by Hamming distance (dashed); one line per seed.{marked}",
        partial(_draw_exploratory, runs=runs, band=band),
        commands_of(runs),
    )


def _exploratory(history: History, kind: str) -> tuple[list[int], list[float]]:
    """Updates of the joint phase, and the shares in percent."""
    column = getattr(history, f"exploratory_{kind}")
    known = [(update, 100 * share) for update, share in zip(history.update, column, strict=True) if share is not None]
    return [update for update, _ in known], [share for _, share in known]


def _draw_exploratory(figure: Any, theme: Theme, runs: Sequence[Record], band: tuple[float, float] | None) -> None:
    axes = figure.add_subplot()
    if band is not None:
        axes.axhspan(*band, color=theme["band"], zorder=0, label="paper, all queries at first")
    kinds = [("all", "all queries", "selectr"), ("ms", "MS queries alone", "minloss")]
    if all(record.setting("second.sampling") == "ms" for record in runs):
        kinds = [("all", "all queries, which are MS queries", "selectr")]
    for queries, name, colour in kinds:
        for measure, dashes in (("loss", "-"), ("hamming", "--")):
            for i, record in enumerate(runs):
                x, y = _exploratory(record.history, f"{queries}_{measure}")
                label = name if i == 0 and measure == "loss" else None
                axes.plot(x, y, dashes, color=theme[colour], linewidth=1.2, label=label)
    axes.set(xlabel="updates of the joint phase", ylabel="exploratory, %")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    legend(figure, axes)


def training_chart(grid: Grid, task: str, variant: str) -> Chart | None:
    """Dev accuracy over training, OS and MS, of each objective's run that dev picks."""
    known = {r.objective for r in grid.runs if r.objective in OBJECTIVES}
    best = {o: grid.best(task, o, variant) for o in sorted(known, key=lambda one: order_of(task, one))}
    runs = {o: record for o, record in best.items() if record is not None and len(record.history) > 1}
    if not runs:
        return None
    name, title = _about(task, variant)
    return Chart(
        f"training-{name}",
        f"{title}: dev accuracy over training",
        "For each objective the run that the dev set picks, one trajectory. Phases follow each other with a gap. The "
        "runs that a run started from are not shown.",
        partial(_draw_training, runs=runs),
        commands_of(runs.values()),
        size=(5.6, 4.9),
    )


def _draw_training(figure: Any, theme: Theme, runs: dict[str, Record]) -> None:
    above, below = figure.subplots(2, 1, sharex=True)
    for axes, subset in ((above, "os"), (below, "ms")):
        for objective, record in runs.items():
            x, y = _joined(record.history, f"dev_{subset}")
            axes.plot(x, y, color=theme[objective], linewidth=1.4, label=name_of(objective))
        axes.set(ylabel=f"{name_of(subset)} dev accuracy, %")
    below.set(xlabel="updates")
    below.xaxis.set_major_formatter("{x:,.0f}")
    legend(figure, above)


def _joined(history: History, column: str) -> tuple[list[float], list[float]]:
    """All phases one after the other: updates add up, and a nan makes a gap between two phases."""
    x: list[float] = []
    y: list[float] = []
    before, phase = 0.0, None
    for update, now, value in zip(history.update, history.phase, getattr(history, column), strict=True):
        if phase is not None and now != phase:
            before = x[-1]
            x.append(before)
            y.append(float("nan"))
        phase = now
        x.append(before + update)
        y.append(float("nan") if value is None else 100 * value)
    return x, y


def legend(figure: Any, axes: Any, columns: int = 4) -> None:
    """Draw the legend above the axes, so that no line is hidden."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, handlelength=1.6, columnspacing=1.4)
