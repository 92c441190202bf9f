"""Tables that compare: SelectR against MinLoss, and training on unique puzzles alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oneofmany.evaluation.statistics import gain, mcnemar
from oneofmany.report import paper
from oneofmany.report.cells import accuracy_cell, number_cell, seeds_cell, test_commands
from oneofmany.report.paper import TASKS, name_of
from oneofmany.report.records import (
    PAPER_VARIANTS,
    Grid,
    Record,
    Schedule,
    change_of,
    of_schedule,
    over_runs,
    percent,
    test_evaluation,
    valid_of,
    variant_of,
)
from oneofmany.report.table import Cell, Column, Table, columns, difference, signed, slug


def by_seed(records: Sequence[Record], subset: str) -> dict[int, float]:
    """Seed -> accuracy on these test queries, in percent."""
    found = {record["seed"]: test_evaluation(record) for record in records}
    scores = {seed: percent(evaluation[subset]) for seed, evaluation in found.items() if evaluation is not None}
    return {seed: score for seed, score in scores.items() if score is not None}


def seed_gains(grid: Grid, schedule: Schedule | None = None) -> Table:
    """The appendix's table: points that SelectR gains over MinLoss, seed by seed."""
    schedule = schedule or grid.counting()
    ours: dict[str, dict[int, float]] = {}
    commands: dict[str, tuple[str, ...]] = {}
    means: dict[str, Cell] = {}
    for task, variant in schedule.variants.items():
        selectr, minloss = (by_seed(grid.at(task, o, variant), "overall") for o in ("selectr", "minloss"))
        shared = sorted(selectr.keys() & minloss.keys())
        if not shared:
            continue
        found = gain({seed: selectr[seed] for seed in shared}, {seed: minloss[seed] for seed in shared})
        ours[task] = found.each
        used = [r for o in ("minloss", "selectr") for r in grid.at(task, o, variant) if r["seed"] in shared]
        commands[task] = test_commands(used)
        text = signed(found.mean) + ("" if found.standard_error is None else f" ± {found.standard_error:.2f}")
        means[task] = Cell(text, {"points": found.mean}, commands[task])
    seeds = sorted({*paper.SEEDS, *(seed for each in ours.values() for seed in each)})
    rows = []
    for seed in seeds:
        row = [Cell(str(seed))]
        for task in TASKS:
            points, published = ours.get(task, {}).get(seed), paper.SEED_GAINS[task].get(seed)
            row.append(Cell() if points is None else Cell(signed(points), {"points": points}, commands[task]))
            row.append(Cell() if published is None else Cell(signed(published), {"points": published}))
        rows.append(tuple(row))
    last = [Cell("mean")]
    for task in TASKS:
        published = paper.MEAN_GAINS[task]
        last += [means.get(task, Cell()), Cell(signed(published), {"points": published})]
    return Table(
        slug("seed-gains", schedule.name),
        "Gain of SelectR over MinLoss by seed, points on all test queries" + of_schedule(schedule),
        columns(("seed",), ((name_of(task), ("ours", "paper")) for task in TASKS)),
        (*rows, tuple(last)),
        "Only seeds that both have; ± is the standard error of the paired differences.",
    )


def significance(grid: Grid, schedule: Schedule | None = None) -> Table:
    """McNemar's exact test of SelectR against MinLoss: the runs that dev picks, on the whole test set."""
    schedule, rows = schedule or grid.counting(), []
    for task, variant in schedule.variants.items():
        published = Cell(f"{paper.MCNEMAR[task]:.3g}", {"p": paper.MCNEMAR[task]})
        pair = compared_pair(grid, task, variant)
        if pair is None:
            rows.append((Cell(name_of(task)), *[Cell()] * 5, published))
            continue
        records, (first, second) = pair
        commands = test_commands(records)
        found = mcnemar(first, second)
        both, neither = int((first & second).sum()), int((~first & ~second).sum())
        counts = [Cell(f"{n:,}", {"": n}, commands) for n in (found.only_first, found.only_second, both, neither)]
        rows.append((Cell(name_of(task)), *counts, Cell(f"{found.p:.3g}", {"p": found.p}, commands), published))
    return Table(
        slug("mcnemar", schedule.name),
        "SelectR against MinLoss: exact McNemar test" + of_schedule(schedule),
        columns(
            ("task",),
            (
                ("queries answered correctly", ("by SelectR alone", "by MinLoss alone", "by both", "by neither")),
                ("p", ("ours", "paper")),
            ),
        ),
        tuple(rows),
        "The runs that the dev set picks, on the whole test set; two-sided. Empty where both were not evaluated on the "
        "same data.",
    )


def compared_pair(grid: Grid, task: str, variant: str = "") -> tuple[list[Record], list[np.ndarray]] | None:
    """The dev-best runs of SelectR and MinLoss and which queries each got right, if they saw the same data."""
    records = [record for o in ("selectr", "minloss") if (record := grid.best(task, o, variant)) is not None]
    evaluations = [evaluation for record in records if (evaluation := test_evaluation(record)) is not None]
    if len(evaluations) < 2 or evaluations[0]["data"]["checksum"] != evaluations[1]["data"]["checksum"]:
        return None
    return records, [valid_of(evaluation) for evaluation in evaluations]


UNIQUE_DATA = {"sudoku-train": "10k", "sudoku-os-train": "180k"}
"""Name of a training set -> how many OS queries the comparison says it has."""
UNIQUE_CHANGES = ("os-dev", "180k", "180k-os-dev")
"""The controls of Table 2's Unique that the comparison is made of."""


def training_data_of(record: Record) -> tuple[str, str, str] | None:
    """(10k or 180k, os or mixed, one of ``PAPER_VARIANTS``): the cell of the comparison that a run is in, or None."""
    size = UNIQUE_DATA.get(((record.get("data") or {}).get("train") or {}).get("name", ""))
    if (record["task"], record["objective"], record["network"]) != ("sudoku", "unique", "rrn") or size is None:
        return None
    only_os = record["settings"].get("select_on") == "os" or (record.get("dev") or {}).get("ms") is None
    last = variant_of(record).split("/")[-1]
    return size, "os" if only_os else "mixed", last if last in PAPER_VARIANTS else ""


def unique_runs(grid: Grid, size: str, stopped: str, schedule: Schedule) -> list[Record]:
    """The runs of a cell of the comparison, among those that count and among the controls, ordered by seed."""
    # A control with the settings of Table 2's Unique (a second phase, say) is another experiment.
    controls = [
        record
        for record in grid.set_apart("controls")
        if variant_of(record) not in PAPER_VARIANTS or change_of(record) in UNIQUE_CHANGES
    ]
    found: dict[int, Record] = {}
    for record in (*grid.runs, *controls):
        if training_data_of(record) == (size, stopped, schedule.variants.get("sudoku")):
            found.setdefault(record["seed"], record)
    return [found[seed] for seed in sorted(found)]


def unique_training(grid: Grid, schedule: Schedule | None = None) -> Table:
    """RRN on 10k or 180k OS queries, stopped on OS dev or on mixed dev, beside the paper's two numbers."""
    schedule = schedule or grid.counting()
    ten = {subset: paper.TABLE_2["sudoku", "unique", subset].mean for subset in ("os", "ms")}
    published = {("180k", "os"): paper.UNIQUE_180K, ("10k", "mixed"): ten}
    rows = []
    for size in ("10k", "180k"):
        for stopped in ("os", "mixed"):
            records = unique_runs(grid, size, stopped, schedule)
            row = [Cell(size), Cell("OS alone" if stopped == "os" else "OS and MS")]
            for subset in ("os", "ms"):
                summary, theirs = over_runs(records, subset), published.get((size, stopped), {}).get(subset)
                row += [accuracy_cell(records, subset), number_cell(theirs)]
                row.append(Cell() if summary is None or theirs is None else difference(summary.mean, theirs))
            rows.append((*row, seeds_cell(records)))
    each = ("ours", "paper", "difference")
    return Table(
        slug("unique-training", schedule.name),
        "Sudoku RRN trained on unique puzzles alone, accuracy in %" + of_schedule(schedule),
        (*columns(("OS training queries", "dev queries"), (("OS", each), ("MS", each))), Column("seeds")),
        tuple(rows),
        "Which weights are kept, and when training stops, is decided on the dev queries named. The paper evaluates a "
        "published network for 180k and its own Unique for 10k, so it cannot tell the two causes apart.",
        labels=2,
    )
