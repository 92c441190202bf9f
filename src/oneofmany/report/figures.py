"""The paper's figures from records; only those that the runs have numbers for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from oneofmany.evaluation.scores import wilson
from oneofmany.report import paper
from oneofmany.report.anchors import anchor_charts
from oneofmany.report.bins import Bin, bins_of
from oneofmany.report.cells import test_commands
from oneofmany.report.example2 import POINTS, START, boundaries
from oneofmany.report.our_figures import our_charts
from oneofmany.report.paper import OBJECTIVES, name_of
from oneofmany.report.records import PAPER_VARIANTS, Grid, Record, test_evaluation, variant_of
from oneofmany.report.table import slug
from oneofmany.report.themes import Chart, Theme

MARKERS: dict[str, str] = dict(zip(OBJECTIVES, "XPsv^Do", strict=True))


def all_charts(grid: Grid) -> list[Chart]:
    """Every figure that there are numbers for, in order."""
    cells = list(dict.fromkeys((record["task"], variant_of(record)) for record in grid.runs))
    charts = [chart for cell in cells if (chart := solutions_chart(grid, *cell))]
    charts += [chart for task in dict.fromkeys(task for task, _ in cells) if (chart := givens_chart(grid, task))]
    charts += [chart for cell in cells if (chart := exploratory_chart(grid, *cell))]
    charts += [chart for cell in cells if (chart := training_chart(grid, *cell))]
    return [*charts, *anchor_charts(grid), *our_charts(grid), example_chart()]


def _about(task: str, variant: str) -> tuple[str, str]:
    """Parts of a chart's file name and of its title."""
    return slug(task, variant), name_of(task) + (f" ({variant})" if variant else "")


def solutions_chart(grid: Grid, task: str, variant: str) -> Chart | None:
    """Accuracy of the dev-best Unique, MinLoss and SelectR (Naive, where Unique is missing) by number of solutions."""
    shown = [o for o in ("unique", "minloss", "selectr") if grid.best(task, o, variant)]
    if "unique" not in shown and grid.best(task, "naive", variant):
        shown = ["naive", *shown]
    runs = {o: record for o in shown if (record := grid.best(task, o, variant)) is not None}
    evaluations = {o: evaluation for o, record in runs.items() if (evaluation := test_evaluation(record)) is not None}
    curves = {o: bins for o, evaluation in evaluations.items() if len(bins := bins_of(evaluation)) > 1}
    # Bins of other data would stand at the same place of the axis and mean something else.
    data = {o: evaluations[o]["data"]["checksum"] for o in curves}
    curves = {o: bins for o, bins in curves.items() if data[o] == next(iter(data.values()))}
    if len(curves) < 2:
        return None
    name, title = _about(task, variant)
    return Chart(
        f"solutions-{name}",
        f"{title}: accuracy against the size of the solution set",
        "The run that the dev set picks of each objective. Queries are binned by all solutions that exist; bars are "
        "Wilson's 95 % intervals.",
        partial(_draw_solutions, curves=curves),
        test_commands([runs[o] for o in curves]),
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
    _legend(figure, axes)


def givens_chart(grid: Grid, task: str) -> Chart | None:
    """How many givens the test queries have, and how many queries there are, by number of solutions."""
    tested = [r for r in grid.runs if r["task"] == task and test_evaluation(r)]
    tested.sort(key=lambda record: variant_of(record) not in PAPER_VARIANTS)  # the paper's test set before others
    bins = [bins for r in tested[:1] if (e := test_evaluation(r)) and len(bins := bins_of(e)) > 1]
    if not bins or len({round(b.givens, 6) for b in bins[0]}) == 1:
        return None
    return Chart(
        f"givens-{slug(task)}",
        f"{name_of(task)}: givens and queries against the size of the solution set",
        "The test queries: mean number of givens, and number of queries on a logarithmic axis.",
        partial(_draw_givens, bins=bins[0]),
        test_commands(tested[:1]),
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
    below.yaxis.set_visible(False)  # the bars say their numbers
    below.set_xticks(x, [b.label for b in bins])
    for axes in (above, below):
        axes.grid(axis="x", visible=False)


def exploratory_chart(grid: Grid, task: str, variant: str) -> Chart | None:
    """Share of exploratory training queries over SelectR's joint phase."""
    runs = [r for r in grid.at(task, "selectr", variant) if _exploratory(r, "exploratory_all_loss")[1]]
    if not runs:
        return None
    name, title = _about(task, variant)
    return Chart(
        f"exploratory-{name}",
        f"{title}: exploratory queries in SelectR's joint training",
        "Share of training queries for which the selector prefers another listed solution than the closest to the "
        "network's prediction, by loss (solid) or by Hamming distance (dashed); one line a seed. The band is the "
        "paper's 3 to 10 % of the first batches.",
        partial(_draw_exploratory, runs=runs),
        tuple(record["command"] for record in runs),
    )


def _exploratory(record: Record, key: str) -> tuple[list[int], list[float]]:
    """Updates of the joint phase and the shares in percent."""
    history = record.get("history") or {}
    known = [(u, s) for u, s in zip(history.get("update", []), history.get(key, []), strict=False) if s is not None]
    return [update for update, _ in known], [100 * share for _, share in known]


def _draw_exploratory(figure: Any, theme: Theme, runs: Sequence[Record]) -> None:
    axes = figure.add_subplot()
    axes.axhspan(*paper.EXPLORATORY, color=theme["band"], zorder=0, label="paper, all queries at first")
    kinds = [("all", "all queries", "selectr"), ("ms", "MS queries alone", "minloss")]
    if all((record["settings"].get("second") or {}).get("sampling") == "ms" for record in runs):
        kinds = [("all", "all queries, which are MS queries", "selectr")]
    for queries, name, colour in kinds:
        for measure, dashes in (("loss", "-"), ("hamming", "--")):
            for i, record in enumerate(runs):
                x, y = _exploratory(record, f"exploratory_{queries}_{measure}")
                label = name if i == 0 and measure == "loss" else None
                axes.plot(x, y, dashes, color=theme[colour], linewidth=1.2, label=label)
    axes.set(xlabel="updates of the joint phase", ylabel="exploratory, %")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _legend(figure, axes)


def training_chart(grid: Grid, task: str, variant: str) -> Chart | None:
    """Dev accuracy over training, OS and MS, of the run that dev picks of every objective."""
    best = {o: record for o in OBJECTIVES if (record := grid.best(task, o, variant)) is not None}
    runs = {o: record for o, record in best.items() if len((record.get("history") or {}).get("update", [])) > 1}
    if not runs:
        return None
    name, title = _about(task, variant)
    return Chart(
        f"training-{name}",
        f"{title}: dev accuracy over training",
        "The run that the dev set picks of each objective, one trajectory; phases follow each other with a gap. What a "
        "run started from is not shown.",
        partial(_draw_training, runs=runs),
        tuple(record["command"] for record in runs.values()),
        size=(5.6, 4.9),
    )


def _draw_training(figure: Any, theme: Theme, runs: dict[str, Record]) -> None:
    above, below = figure.subplots(2, 1, sharex=True)
    for axes, subset in ((above, "os"), (below, "ms")):
        for objective, record in runs.items():
            x, y = _joined(record["history"], f"dev_{subset}")
            axes.plot(x, y, color=theme[objective], linewidth=1.4, label=name_of(objective))
        axes.set(ylabel=f"{name_of(subset)} dev accuracy, %")
    below.set(xlabel="updates")
    below.xaxis.set_major_formatter("{x:,.0f}")
    _legend(figure, above)


def _joined(history: dict[str, Any], key: str) -> tuple[list[float], list[float]]:
    """All phases one after the other: updates count on, and a gap (nan) stands between two phases."""
    x: list[float] = []
    y: list[float] = []
    before, phase = 0.0, None
    for update, now, value in zip(history["update"], history["phase"], history[key], strict=True):
        if phase is not None and now != phase:
            before = x[-1]
            x.append(before)
            y.append(float("nan"))
        phase = now
        x.append(before + update)
        y.append(float("nan") if value is None else 100 * value)
    return x, y


def example_chart() -> Chart:
    """Example 2: the decision boundary that MinLoss is left with, beside those of others."""
    return Chart(
        "example-2",
        "Example 2: MinLoss in a local minimum",
        "Logistic regression on ten points, of which four (x = −1) may have either label. From slope 0.1 and offset 0, "
        "MinLoss ends with its boundary at −0.55, as in the paper, and is wrong at x = −2.",
        partial(_draw_example, ends=boundaries()),
    )


def _draw_example(figure: Any, theme: Theme, ends: dict[str, tuple[float, float]]) -> None:
    axes = figure.add_subplot()
    line = np.linspace(-3, 2, 300)
    starting = 1 / (1 + np.exp(-(START[0] * line + START[1])))
    axes.plot(line, starting, color=theme["ink"], linestyle="--", linewidth=1.2, label="start: boundary at 0")
    axes.axvline(0, color=theme["ink"], linestyle="--", linewidth=1)
    for objective, (slope, offset) in ends.items():
        boundary = -offset / slope
        inside = line[0] < boundary < line[-1]
        says = f"boundary at {boundary:.2f}".replace("-", "−") if inside else "label 1 everywhere"
        curve = 1 / (1 + np.exp(-(slope * line + offset)))
        axes.plot(line, curve, color=theme[objective], label=f"{name_of(objective)}: {says}")
        if inside:
            axes.axvline(boundary, color=theme[objective], linewidth=1)
    for x, labels, count in POINTS:
        for label in labels:
            axes.scatter(x, label, s=50 + 25 * count, color=theme["right" if label else "wrong"], zorder=3)
            axes.annotate(
                f"{count}×", (x, label), textcoords="offset points", xytext=(0, 10), ha="center", fontsize=9.5
            )
    axes.set(xlabel="x", ylabel="probability of label 1", ylim=(-0.09, 1.2), xlim=(-3, 2))
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.grid(axis="x", visible=False)
    _legend(figure, axes, columns=2)


def _legend(figure: Any, axes: Any, columns: int = 4) -> None:
    """Above the drawing, where no line can run under it."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, handlelength=1.6, columnspacing=1.4)
