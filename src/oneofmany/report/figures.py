"""Figures that any runs fill: accuracy by number of solutions, givens, exploratory share, training curves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from oneofmany.evaluation.record import History, Record
from oneofmany.pictures.themes import Chart, Theme
from oneofmany.report.cells import test_commands
from oneofmany.report.grid import OBJECTIVES, Grid, commands_of, name_of, tested, variant_of
from oneofmany.report.plots import Bin, bins_of, solutions_chart, starts_chart, steps_chart, training_chart
from oneofmany.report.table import slug


def user_charts(grid: Grid, band: tuple[float, float] | None = None) -> list[Chart]:
    """Every figure with numbers, in order.

    Args:
        grid: the runs.
        band: percentages of exploratory queries to mark in their figures.
    """
    cells = list(dict.fromkeys((record.task, variant_of(record)) for record in grid.runs))
    charts = [_solutions(grid, *cell) for cell in cells]
    charts += [givens_chart(grid, task) for task in dict.fromkeys(task for task, _ in cells)]
    charts += [exploratory_chart(grid, *cell, band=band) for cell in cells]
    for kind, word in ((steps_chart, "steps"), (starts_chart, "starts")):
        charts += [_over(kind, word, grid, *cell) for cell in cells]
    charts += [_training(grid, *cell) for cell in cells]
    return [chart for chart in charts if chart is not None]


def _about(task: str, variant: str) -> tuple[str, str]:
    """Parts of a chart's file name and of its title."""
    return slug(task, variant), name_of(task) + (f" ({variant})" if variant else "")


def _best(grid: Grid, task: str, variant: str, objectives: Iterable[str] = OBJECTIVES) -> list[Record]:
    """For each objective the run that dev picks."""
    return [r for o in objectives if (r := grid.best(task, o, variant)) is not None]


def _solutions(grid: Grid, task: str, variant: str) -> Chart | None:
    """Accuracy of the best Unique, MinLoss and SelectR by dev (Naive if Unique is missing), by number of solutions."""
    runs = _best(grid, task, variant, ("naive", "unique", "minloss", "selectr"))
    if any(record.objective == "unique" for record in runs):
        runs = [record for record in runs if record.objective != "naive"]
    left: list[str] = []
    name, title = _about(task, variant)
    chart = solutions_chart(runs, left.append, f"solutions-{name}", title)
    if chart is None or len(runs) - len(left) < 2:
        return None
    return replace(chart, caption=f"For each objective the run that the dev set picks. {chart.caption}")


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
        size=(4.8, 3.7),
    )


def _draw_givens(figure: Any, theme: Theme, bins: list[Bin]) -> None:
    above, below = figure.subplots(2, 1, sharex=True)
    x = np.arange(len(bins))
    above.plot(x, [b.givens for b in bins], color=theme["muted"], marker="o", markersize=5)
    above.set_title("mean number of givens", loc="left")
    below.set_title("number of queries", loc="left")
    bars = below.bar(x, [b.total for b in bins], color=theme["muted"], width=0.6)
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
    kinds = [("all", "all queries", "selectr"), ("ms", "MS queries alone", "ink")]
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


def _training(grid: Grid, task: str, variant: str) -> Chart | None:
    """Dev accuracy over training of each objective's run that dev picks."""
    name, title = _about(task, variant)
    chart = training_chart(_best(grid, task, variant), _unsaid, f"training-{name}", title)
    if chart is None:
        return None
    more = "For each objective the run that the dev set picks. "
    return replace(chart, caption=f"{more}{chart.caption} The runs that a run started from are not shown.")


def _over(kind: Any, word: str, grid: Grid, task: str, variant: str) -> Chart | None:
    """Accuracy over steps or starts of each objective's run that dev picks."""
    name, title = _about(task, variant)
    return kind(_best(grid, task, variant), _unsaid, f"{word}-{name}", title)


def _unsaid(sentence: str) -> None:
    """A page shows what there is."""


def legend(figure: Any, axes: Any, columns: int = 4) -> None:
    """Draw the legend above the axes, so that no line is hidden."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, handlelength=1.6, columnspacing=1.4)
