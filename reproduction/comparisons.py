"""SelectR compared with MinLoss, and training on unique puzzles alone."""

from __future__ import annotations

from oneofmany.evaluation.statistics import gain, mcnemar, p_text
from oneofmany.report.cells import difference, number_cell, test_commands
from oneofmany.report.grid import TASKS, Grid, name_of, over_runs
from oneofmany.report.table import Cell, Column, Table, columns, signed, slug
from reproduction import paper
from reproduction.cells import accuracy_cell, seeds_cell
from reproduction.runs import Schedule, by_seed, compared_pair, counting, unique_runs


def seed_gains(grid: Grid, schedule: Schedule | None = None) -> Table:
    """The appendix's table of gains of SelectR over MinLoss, seed by seed, in points."""
    schedule = schedule or counting(grid)
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
        used = [r for o in ("minloss", "selectr") for r in grid.at(task, o, variant) if r.seed in shared]
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
        "Gain of SelectR over MinLoss by seed, points on all test queries" + schedule.title,
        columns(("seed",), ((name_of(task), ("ours", "paper")) for task in TASKS)),
        (*rows, tuple(last)),
        "Seeds that both objectives have; ± is the standard error of the paired differences.",
    )


def significance(grid: Grid, schedule: Schedule | None = None) -> Table:
    """McNemar's exact test of SelectR against MinLoss: the runs that dev picks, on the whole test set."""
    schedule, rows = schedule or counting(grid), []
    for task, variant in schedule.variants.items():
        published = Cell(p_text(paper.MCNEMAR[task]), {"p": paper.MCNEMAR[task]})
        pair = compared_pair(grid, task, variant)
        if pair is None:
            rows.append((Cell(name_of(task)), *[Cell()] * 5, published))
            continue
        records, (first, second) = pair
        commands = test_commands(records)
        found = mcnemar(first, second)
        both, neither = int((first & second).sum()), int((~first & ~second).sum())
        counts = [Cell(f"{n:,}", {"": n}, commands) for n in (found.only_first, found.only_second, both, neither)]
        rows.append((Cell(name_of(task)), *counts, Cell(p_text(found.p), {"p": found.p}, commands), published))
    return Table(
        slug("mcnemar", schedule.name),
        "SelectR against MinLoss: exact McNemar test" + schedule.title,
        columns(
            ("task",),
            (
                ("queries answered correctly", ("by SelectR alone", "by MinLoss alone", "by both", "by neither")),
                ("p", ("ours", "paper")),
            ),
        ),
        tuple(rows),
        "The runs that the dev set picks, on the whole test set; two-sided, not corrected. Empty if the two were not "
        "evaluated on the same data.",
    )


def unique_training(grid: Grid, schedule: Schedule | None = None) -> Table:
    """The RRN on 10k or 180k OS queries, stopped on OS dev or on mixed dev, with the paper's two numbers."""
    schedule = schedule or counting(grid)
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
        "Sudoku RRN trained on unique puzzles alone, accuracy in %" + schedule.title,
        (*columns(("OS training queries", "dev queries"), (("OS", each), ("MS", each))), Column("seeds")),
        tuple(rows),
        "The named dev queries decide which weights are kept and when training stops. The paper evaluates a published "
        "network for 180k and its own Unique for 10k, so it cannot separate the two causes.",
        labels=2,
    )
