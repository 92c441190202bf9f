"""What a report begins with: one sentence and one figure that compare the runs on the same queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from oneofmany.evaluation.record import SUBSETS, Evaluation, Record, Subset
from oneofmany.pictures.themes import Chart, Theme
from oneofmany.report.cells import Runs, accuracy_cell, commands
from oneofmany.report.grid import OBJECTIVES, Grid, labels_of, name_of, order_of, tested

MOST_ROWS = 24
"""At most this many recipes are in the figure."""
MOST_SENTENCES = 4
PARTS: dict[Subset, str] = {"os": "with one solution (OS)", "ms": "with several solutions (MS)"}
MARKS: dict[Subset, tuple[str, float]] = {"os": ("o", -0.24), "ms": ("D", 0.24)}
"""The marker of a subset, and its place on the bar."""


@dataclass(frozen=True)
class Answer:
    """The first thing that a report says.

    Args:
        sentences: the answer, in sentences with numbers.
        chart: the figure that shows them; None without one.
        note: what a reader must know about them.
    """

    sentences: Sequence[str] = ()
    chart: Chart | None = None
    note: str = ""


@dataclass(frozen=True)
class Row:
    """The accuracy of one recipe: (mean, low, high) in percent for each subset that has queries."""

    label: str
    objective: str
    shares: dict[Subset, tuple[float, float, float]]


@dataclass(frozen=True)
class Panel:
    """The recipes that were tested on the same queries, and the number of queries in each subset."""

    title: str
    rows: tuple[Row, ...]
    queries: dict[Subset, int]


def answer_of(grid: Grid) -> Answer:
    """The answer of any runs; without evaluated runs it has no sentence and no figure."""
    found, made = _panels(grid)
    if not found:
        return Answer()
    sentences = [_sentence(panel) for panel in found[:MOST_SENTENCES]]
    note = "An answer is right if it keeps the givens and breaks no rule, whether or not it is a listed solution."
    if any(panel.queries["ms"] for panel in found):
        note += " Any one of the solutions of a query is right."
    return Answer(sentences, _chart(found, made), note)


def answer_chart(grid: Grid) -> Chart | None:
    """The figure alone: accuracy of every recipe on its test queries."""
    return answer_of(grid).chart


def _panels(grid: Grid) -> tuple[list[Panel], tuple[str, ...]]:
    """The panels of at most ``MOST_ROWS`` recipes, and the commands behind them."""
    by_data: dict[tuple[str, str], dict[str, list[tuple[Record, Evaluation]]]] = defaultdict(lambda: defaultdict(list))
    for record, evaluation in tested(grid.runs):
        by_data[record.task, evaluation.data.checksum][record.recipe].append((record, evaluation))
    panels, made, left = [], [], MOST_ROWS
    for recipes in sorted(by_data.values(), key=_order)[:MOST_ROWS]:
        runs = list(recipes.values())[:left]
        left -= len(runs)
        if runs:
            panels.append(_panel(runs))
            made += [command for own in runs for command in commands(own)]
    return panels, tuple(dict.fromkeys(made))


def _order(recipes: dict[str, list[tuple[Record, Evaluation]]]) -> tuple[Any, ...]:
    """Panels that compare more recipes come first."""
    record = next(iter(recipes.values()))[0][0]
    return (-len(recipes), *order_of(record.task, record.objective))


def _panel(recipes: Sequence[Runs]) -> Panel:
    record, evaluation = recipes[0][0]
    labels = labels_of(runs[0][0] for runs in recipes)
    size = "" if evaluation.data.size is None else f" {evaluation.data.size}"
    queries: dict[Subset, int] = {subset: evaluation.scores.of(subset).total for subset in SUBSETS}
    rows = [Row(labels[runs[0][0].recipe], runs[0][0].objective, _shares(runs, queries)) for runs in recipes]
    return Panel(f"{name_of(record.task)}{size}", tuple(rows), queries)


def _shares(runs: Runs, queries: dict[Subset, int]) -> dict[Subset, tuple[float, float, float]]:
    found: dict[Subset, tuple[float, float, float]] = {}
    for subset, number in queries.items():
        numbers = [*accuracy_cell(runs, subset).numbers.values()] if number else []
        if numbers:
            mean, low, high = numbers if len(numbers) == 3 else (numbers[0],) * 3
            found[subset] = mean, low, high
    return found


def _sentence(panel: Panel) -> str:
    """``N-Queens 8: of 103 test queries, MinLoss answers 98 % correctly and Naive 44 %.``"""
    rows = sorted(panel.rows, key=lambda row: -row.shares["overall"][0])
    between = len(rows) - 2 if len(rows) > 3 else 0
    shown = [rows[0], rows[-1]] if between else rows
    texts = percents([row.shares["overall"][0] for row in shown])
    first, *others = [f"{row.label} {text}" for row, text in zip(shown, texts, strict=True)]
    best = f"{rows[0].label} answers{first.removeprefix(rows[0].label)} correctly"
    if others:
        best = ", ".join([best, *others[:-1]]) + f" and {others[-1]}"
    more = f"; {between} other recipes are between them" if between else ""
    return f"{panel.title}: of {panel.queries['overall']:,} test queries, {best}{more}."


def percents(shares: Sequence[float]) -> list[str]:
    """Percentages with as few digits as tell them apart; only 100 and 0 themselves are written so."""
    for digits in (0, 1, 2):
        texts = [f"{share:.{digits}f}" for share in shares]
        rounded = any(
            float(text) in (0, 100) and float(text) != share for text, share in zip(texts, shares, strict=True)
        )
        if not rounded and len(set(texts)) == len(set(shares)):
            break
    return [f"{text}\u00a0%" for text in texts]


def _chart(panels: Sequence[Panel], made: tuple[str, ...]) -> Chart:
    rows = sum(len(panel.rows) for panel in panels)
    subsets: list[Subset] = [subset for subset in PARTS if any(panel.queries[subset] for panel in panels)]
    subsets = subsets if len(subsets) > 1 else []
    marks = " Circles: queries with one solution (OS). Diamonds: queries with several solutions (MS)."
    return Chart(
        "answer",
        "Right answers, %",
        "Bars: all test queries, with 95 % intervals over seeds, or over the queries of a single run."
        + (marks if subsets else "")
        + " One trajectory.",
        partial(_draw, panels=panels, subsets=subsets),
        made,
        size=(4.8, 0.95 + 0.42 * rows + 0.4 * len(panels)),
    )


def _draw(figure: Any, theme: Theme, panels: Sequence[Panel], subsets: Sequence[Subset]) -> None:
    heights = [len(panel.rows) + 0.6 for panel in panels]
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, panel in zip(all_axes, panels, strict=True):
        for place, row in enumerate(panel.rows):
            mean, low, high = row.shares["overall"]
            colour = theme[row.objective] if row.objective in OBJECTIVES else theme["muted"]
            axes.barh(place, mean, height=0.66, color=colour)
            axes.plot([low, high], [place, place], color=theme["ink"], linewidth=1.4)
            right = max(high, *(share for share, *_ in row.shares.values()))
            (text,) = percents([mean])
            axes.annotate(text, (right, place), (8, 0), textcoords="offset points", va="center", fontweight="bold")
            for subset in subsets:
                if subset not in row.shares:
                    continue
                marker, shift = MARKS[subset]
                style = {"color": theme["ink"], "markerfacecolor": theme["paper"], "clip_on": False, "zorder": 4}
                axes.plot(row.shares[subset][0], place + shift, marker, markersize=5.5, **style)
        axes.set_title(panel.title, loc="left")
        axes.set_yticks(range(len(panel.rows)), [row.label for row in panel.rows], color=theme["ink"])
        axes.set_ylim(len(panel.rows) - 0.45, -0.55)
        axes.set_xlim(0, 116)
        axes.set_xticks(range(0, 101, 20))
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        for side in ("bottom", "left"):
            axes.spines[side].set_visible(False)
    all_axes[-1].set(xlabel="right answers, %")
    style = {"linestyle": "", "color": theme["ink"], "markerfacecolor": theme["paper"], "markersize": 5.5}
    handles = [all_axes[0].plot([], [], marker=MARKS[one][0], label=PARTS[one], **style)[0] for one in subsets]
    if handles:
        figure.legend(handles=handles, loc="outside upper left", ncols=2, handletextpad=0.2, columnspacing=1.4)
