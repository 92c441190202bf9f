"""Which objective for which network: the small recipes, every objective with the same number of updates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from oneofmany.evaluation.record import Record
from oneofmany.evaluation.statistics import SeedSummary
from oneofmany.pictures.themes import Chart, Theme
from oneofmany.recipes.small import UPDATES
from oneofmany.report.cells import Runs, commands, count_cell, number_cell, with_interval
from oneofmany.report.grid import OBJECTIVES, Grid, name_of, summary_of
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction.paired import difference, in_points, paired_cells, verdict
from reproduction.runs import EXPERIMENTS

SMALL = f"{EXPERIMENTS}/small"
"""The folder of the records."""
BASE, PLAIN = "minloss", "naive"


class Kind(NamedTuple):
    """A kind of network of the study.

    Args:
        task: its task.
        variant: of its recipes.
        title: for readers.
        test: the test data.
    """

    task: str
    variant: str
    title: str
    test: str


KINDS = (
    Kind("nqueens", "small", "equivariant network, given the rules", "nqueens-completion-8-test"),
    Kind("nqueens", "small-transformer", "Transformer, no rules", "nqueens-completion-8-test"),
    Kind("sequences", "small-ctc", "encoder with CTC, all tokens at once", "cmudict-several-test"),
    Kind("sequences", "small", "encoder-decoder, autoregressive", "cmudict-several-test"),
)
_STUDY = (
    f"{UPDATES} updates for every run, those of a pre-training included, on one CPU core. Mean over seeds, with "
    "Student's t interval (95 %) over seeds, cut at 0 and 100. Minus MinLoss: paired by seed, in points, with the same "
    "interval; “undecided” if it contains 0. The comparisons are not corrected for their number. Random trains on the "
    "first listed answer."
)


def runs_of(grid: Grid, kind: Kind) -> dict[str, Runs]:
    """Objective -> its runs with their evaluation on the test data; objectives without runs are left out."""
    names = {objective: f"{kind.task}/{objective}/{kind.variant}" for objective in OBJECTIVES}
    found = {name: [r for r in grid.apart if (r.recipe, r.apart) == (recipe, SMALL)] for name, recipe in names.items()}
    runs = {
        name: [(r, r.evaluations[kind.test]) for r in own if kind.test in r.evaluations] for name, own in found.items()
    }
    return {name: own for name, own in runs.items() if own}


def _cells(name: str, of: dict[str, Runs]) -> tuple[Cell, Cell]:
    found = None if name == BASE or BASE not in of else difference(of[name], of[BASE])
    return paired_cells(found, of[name])


def small_boards(grid: Grid) -> Table:
    """The seven objectives on 8 queens, for a network that is given the rules and one that is not."""
    rows = []
    for kind in KINDS[:2]:
        of = runs_of(grid, kind)
        for name, runs in of.items():
            made = commands(runs)
            shares = [with_interval(summary_of(runs, subset), made) for subset in ("os", "ms", "overall")]
            rows.append((Cell(kind.title), Cell(name_of(name)), *shares, *_cells(name, of), count_cell(len(runs))))
    return Table(
        "small-boards",
        "8 queens, test accuracy in %, valid by the rules",
        (
            *columns(("network", "objective"), (("", ("OS", "MS", "Overall")),)),
            *columns((), (("MS minus MinLoss", ("points", "")),)),
            Column("seeds"),
        ),
        tuple(rows),
        f"{_STUDY} I-ExplR and SelectR: half of the updates are a pre-training with MinLoss.",
        labels=2,
    )


def small_sequences(grid: Grid) -> Table:
    """Objectives on words with several pronunciations, for CTC and for an autoregressive network."""
    rows = []
    for kind in KINDS[2:]:
        of = runs_of(grid, kind)
        for name, runs in of.items():
            rates = [100 * e.error_rate for _, e in runs if e.error_rate is not None]
            errors = number_cell(sum(rates) / len(rates) if rates else None)
            share = with_interval(summary_of(runs, "ms"), commands(runs))
            rows.append(
                (Cell(kind.title), Cell(name_of(name)), share, *_cells(name, of), errors, count_cell(len(runs)))
            )
    return Table(
        "small-sequences",
        "English words with several pronunciations, test accuracy in %, among the listed answers",
        (
            *columns(("network", "trained with"), (("", ("accuracy",)), ("minus MinLoss", ("points", "")))),
            Column("phoneme error rate"),
            Column("seeds"),
        ),
        tuple(rows),
        f"{_STUDY} All words have several answers, so Unique has nothing to train on. SelectR: half of the updates are "
        "a pre-training with MinLoss. Phoneme error rate: to the nearest listed answer, mean over seeds.",
        labels=2,
    )


def choosing_answer(grid: Grid) -> str:
    """One line for every kind of network: MinLoss beside Naive on MS queries; empty without runs."""
    lines = []
    for kind in KINDS:
        of = runs_of(grid, kind)
        if BASE not in of or PLAIN not in of:
            continue
        shares = [summary_of(of[name], "ms") for name in (BASE, PLAIN)]
        found = difference(of[BASE], of[PLAIN])
        if None in shares or found is None:
            continue
        first, second = (share.mean for share in shares if share is not None)
        words = {"higher": "MinLoss is better", "lower": "Naive is better", "undecided": "undecided"}[verdict(found)]
        lines.append(
            f"* **{kind.title[0].upper()}{kind.title[1:]}**: MinLoss {first:.1f} %, Naive {second:.1f} % of the "
            f"queries with several answers; {in_points(found)} points: **{words}**."
        )
    return "\n".join(lines)


def choosing_chart(grid: Grid) -> Chart | None:
    """Accuracy on MS queries of every objective, a panel for every kind of network."""
    panels = [(kind, of) for kind in KINDS if (of := runs_of(grid, kind))]
    if not panels:
        return None
    made = dict.fromkeys(command for _, of in panels for runs in of.values() for command in commands(runs))
    return Chart(
        "choosing",
        "Every objective with four kinds of networks: accuracy on queries with several answers",
        f"Mean over seeds, with Student's t interval (95 %), cut at 0 and 100, and every seed. {UPDATES} updates each.",
        partial(_draw, panels=[(kind.title, _points(of)) for kind, of in panels]),
        tuple(made),
        size=(4.6, 1.0 + 1.6 * len(panels)),
    )


class _Point(NamedTuple):
    name: str
    summary: SeedSummary
    seeds: list[float]


def _points(of: dict[str, Runs]) -> list[_Point]:
    found = []
    for name, runs in of.items():
        summary = summary_of(runs, "ms")
        seeds = [100 * e.scores.ms.accuracy for _, e in runs if e.scores.ms.accuracy is not None]
        if summary is not None:
            found.append(_Point(name, summary, seeds))
    return found


def _draw(figure: Any, theme: Theme, panels: Sequence[tuple[str, Sequence[_Point]]]) -> None:
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, points) in zip(all_axes, panels, strict=True):
        for row, point in enumerate(points):
            mean, low, high = point.summary.mean, point.summary.low, point.summary.high
            ends = [[mean - max(low, 0.0)], [min(high, 100.0) - mean]] if low is not None and high is not None else None
            colour = theme[point.name]
            axes.errorbar(
                [mean], [row], xerr=ends, color=colour, marker="o", markersize=5, elinewidth=1.3, clip_on=False
            )
            axes.plot(
                point.seeds, [row + 0.25] * len(point.seeds), linestyle="", marker="|", color=colour, markersize=4
            )
        axes.set_yticks(range(len(points)), [name_of(point.name) for point in points])
        axes.set_ylim(len(points) - 0.5, -0.5)
        axes.set_title(title, loc="left")
        axes.grid(axis="y", visible=False)
    all_axes[-1].set(xlabel="accuracy on queries with several answers, %", xlim=(0, 100))


def is_small(record: Record) -> bool:
    """Whether a run is of this study. It shared its machine, so its seconds say nothing."""
    return record.apart == SMALL
