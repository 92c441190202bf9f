"""Our network by size of the boards, number of steps and number of starts: tables and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from oneofmany.evaluation.record import SUBSETS, Evaluation, Record, Subset
from oneofmany.pictures.themes import Chart, Theme
from oneofmany.report.cells import Runs, commands, count_cell
from oneofmany.report.figures import legend
from oneofmany.report.grid import Grid, name_of, summarise, summary_of, variant_of
from oneofmany.report.results import ACCURACIES, WAYS, scores_of
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction.cells import accuracy_cells
from reproduction.ours import INTERVALS, MAIN_OBJECTIVE, TESTS, method_of, on
from reproduction.runs import OUR_VARIANT, ours

Panel = tuple[str, dict[int, Runs]]
"""A task's name, and its runs at every x."""
LINES: dict[Subset, tuple[str, str]] = {"os": ("muted", "s"), "ms": ("minloss", "o")}
"""Queries -> colour and marker."""


def in_a_table(record: Record, evaluation: Evaluation) -> bool:
    """Whether another table shows an evaluation, so that the list of all others leaves it out."""
    named = evaluation.name in {*TESTS, *steps_of(record)} or size_of(record, evaluation.name) is not None
    return named or evaluation.chosen is not None


def size_of(record: Record, name: str) -> int | None:
    """The size of the boards of ``TASK-test`` and ``TASK-size-N-test``; None for other evaluations."""
    size = record.evaluations[name].data.size
    return size if name in (f"{record.task}-test", f"{record.task}-size-{size}-test") else None


def size_curves(grid: Grid) -> list[tuple[list[Record], dict[int, str]]]:
    """(runs of a recipe, size -> name of the evaluation) for recipes that were tested on several sizes."""
    found = []
    for records in ours(grid).by_recipe():
        names = {name: size_of(r, name) for r in records for name in r.evaluations}
        by_size = {size: name for name, size in sorted(names.items()) if size is not None}
        if len(by_size) > 1:
            found.append((records, dict(sorted(by_size.items()))))
    return found


def sizes(grid: Grid) -> Table:
    """Accuracy on boards of other sizes than in training."""
    rows = []
    for records, by_size in size_curves(grid):
        for size, name in by_size.items():
            runs = on(records, name)
            about = runs[0][1]
            givens = float(about.givens.mean())
            row = [Cell(_about(records[0])), Cell(str(size)), Cell(f"{givens:.4g}", {"": givens})]
            rows.append((*row, count_cell(about.data.queries), *accuracy_cells(runs), count_cell(len(runs))))
    return Table(
        "our-sizes",
        "Our network on boards of other sizes, accuracy in %",
        (*columns(("task, trained with", "size"), (("", ("givens", "queries")), ACCURACIES)), Column("seeds")),
        tuple(rows),
        f"{INTERVALS} Trained on 10 queens, 5x5 Futoshiki and 9x9 Sudoku. Sizes 11, 6 and 9 are the first test sets. "
        "Givens: their mean number.",
        labels=2,
    )


def steps_of(record: Record) -> dict[str, int]:
    """Name -> number of steps, of the evaluations on dev with one start: ``TASK-dev``, ``TASK-dev-steps64``."""
    found = {}
    for name, evaluation in record.evaluations.items():
        data, ran = evaluation.data.name, evaluation.steps
        if ran and data.endswith("-dev") and name in (data, f"{data}-steps{ran}") and evaluation.starts == 1:
            found[name] = ran
    return found


def step_curves(grid: Grid) -> list[tuple[list[Record], str, dict[int, str]]]:
    """(runs of a recipe, dev set, steps -> name of the evaluation) if several numbers of steps were tried."""
    found = []
    for records in ours(grid).by_recipe():
        tried = {
            (record.evaluations[name].data.name, ran): name
            for record in records
            for name, ran in steps_of(record).items()
        }
        for data in sorted({data for data, _ in tried}):
            names = {ran: name for (on_data, ran), name in sorted(tried.items()) if on_data == data}
            if len(names) > 1:
                found.append((records, data, names))
    return found


def steps(grid: Grid) -> Table:
    """Accuracy on dev with more or fewer steps than in training."""
    rows = []
    for records, data, names in step_curves(grid):
        for ran, name in names.items():
            runs = on(records, name)
            usual = " (the recipe's)" if name == data else ""
            rows.append(
                (Cell(_about(records[0], data)), Cell(f"{ran}{usual}"), *accuracy_cells(runs), count_cell(len(runs)))
            )
    return Table(
        "our-steps",
        "Our network with other numbers of steps at test time, accuracy on dev in %",
        (*columns(("task, trained with", "steps"), (ACCURACIES,)), Column("seeds")),
        tuple(rows),
        INTERVALS,
        labels=2,
    )


def starts(grid: Grid) -> Table:
    """Several noisy starts: accuracy of the first, of the one that the network chooses, and of any."""
    rows = []
    for records in ours(grid).by_recipe():
        names = {name: e for record in records for name, e in record.evaluations.items() if e.chosen}
        for name, about in sorted(names.items(), key=lambda item: (item[1].data.name, item[1].starts)):
            runs, data = on(records, name), about.data.name
            how = name.removeprefix(data).strip("-")
            row = [
                Cell(_about(records[0], data)),
                Cell(str(about.starts) if how == f"starts{about.starts}" else how),
            ]
            for way in WAYS:
                parts = [(record, scores_of(evaluation, way)) for record, evaluation in runs]
                means = [summarise((record, one.of(subset).accuracy) for record, one in parts) for subset in SUBSETS]
                row += [Cell() if m is None else Cell(f"{m.mean:.2f}", {"mean": m.mean}, commands(runs)) for m in means]
            rows.append((*row, count_cell(len(runs))))
    return Table(
        "our-starts",
        "Our network from several noisy starts, accuracy in %",
        (
            *columns(("task, trained with", "starts"), ((way, ACCURACIES[1]) for way in WAYS.values())),
            Column("seeds"),
        ),
        tuple(rows),
        "Mean over seeds, on dev if no other data is named. One trajectory: the first start. Chosen without the rules: "
        "the start whose belief moved least in its last step. Chosen with the checker: any start is a solution.",
        labels=2,
    )


def _about(record: Record, data: str = "") -> str:
    """``N-Queens, MinLoss``, and the data if it is not the task's dev set."""
    more = [] if data in ("", f"{record.task}-dev") else [data]
    return ", ".join([name_of(record.task), method_of(record), *more])


def our_charts(grid: Grid) -> list[Chart]:
    """The figures that have numbers."""
    steps = [
        (name_of(records[0].task), {x: on(records, name) for x, name in names.items()})
        for records, data, names in step_curves(grid)
        if _main(records) and data == f"{records[0].task}-dev"
    ]
    sizes = [
        (name_of(records[0].task), {x: on(records, name) for x, name in names.items()})
        for records, names in size_curves(grid)
        if _main(records)
    ]
    found = []
    if steps:
        caption = "MinLoss, mean over seeds, one trajectory, on dev."
        found.append(_chart("our-steps", "Our network: accuracy against steps at test time", caption, steps, log=True))
    if sizes:
        caption = "MinLoss, mean over seeds, one trajectory. Trained on 10 queens, 5x5 Futoshiki and 9x9 Sudoku."
        found.append(_chart("our-sizes", "Our network: accuracy against the size of the boards", caption, sizes))
    return found


def _main(records: Sequence[Record]) -> bool:
    return (records[0].objective, variant_of(records[0])) == (MAIN_OBJECTIVE, OUR_VARIANT)


def _chart(name: str, title: str, caption: str, panels: list[Panel], log: bool = False) -> Chart:
    made = [command for _, places in panels for runs in places.values() for command in commands(runs)]
    draw = partial(_draw, panels=panels, log=log)
    return Chart(name, title, caption, draw, tuple(dict.fromkeys(made)), size=(4.6, 2.5))


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
        # A narrow panel has room for four labels: with more places, every second or third one from the end.
        apart = math.ceil(len(places) / 4)
        labels = [str(x) if i % apart == 0 else "" for i, x in enumerate(reversed(places))][::-1]
        axes.set_xticks(list(places), labels, fontsize=9)
        axes.minorticks_off()
        axes.grid(axis="x", visible=False)
    all_axes[0].set(ylabel="accuracy, %")
    figure.supxlabel("steps" if log else "size", fontsize=10.5)
    legend(figure, all_axes[0], columns=2)
