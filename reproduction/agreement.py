"""Agreement of our means with the paper's: mean by mean, counted by task, and the order of the objectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot

from oneofmany.evaluation.record import SUBSETS, Record, Subset
from oneofmany.evaluation.statistics import SeedSummary
from oneofmany.report.cells import difference, number_cell, test_commands
from oneofmany.report.grid import OBJECTIVES, TASKS, Grid, name_of, over_runs
from oneofmany.report.table import Cell, Column, Table, columns, signed
from reproduction import paper
from reproduction.cells import seeds_cell
from reproduction.evidence import OurResults, PapersResults, Results
from reproduction.paper import AWARE, BASELINES
from reproduction.replication import LEAST, exact_replication
from reproduction.runs import CONTROLS, counting, instead

ONE_SEED = f"{CONTROLS}/one-seed-choice"
"""The folder of the runs that Table 2 would have if one seed, instead of three, had chosen the settings."""
LESS_MS = f"{CONTROLS}/less-ms"
"""The folder of the runs that Table 2 had before the grid of Futoshiki's sampling was changed."""
FLAT = f"in all, flat {LEAST:.0f} points"
GAPS = (("unique", "naive"), ("selectr", "unique"), ("selectr", "minloss"))
"""(higher, lower): the gaps on MS queries that the paper is about."""


@dataclass(frozen=True)
class Compared:
    """A mean of Table 2, ours and the paper's."""

    task: str
    objective: str
    subset: Subset
    ours: SeedSummary
    records: tuple[Record, ...]

    @property
    def points(self) -> float:
        """Ours minus the paper's."""
        return self.ours.mean - paper.TABLE_2[self.task, self.objective, self.subset].mean

    @property
    def allowed(self) -> float:
        """How far apart they may be: two standard errors of the difference, at least two points.

        With one seed our standard error is unknown and counts as 0, which allows less.
        """
        theirs = paper.STANDARD_ERRORS[self.task, self.objective, self.subset]
        return max(LEAST, 2 * hypot(theirs, self.ours.standard_error or 0.0))

    @property
    def agrees(self) -> bool:
        """Whether the difference is allowed."""
        return abs(self.points) <= self.allowed

    @property
    def within_least(self) -> bool:
        """Whether they differ by at most two points, however large the standard errors are."""
        return abs(self.points) <= LEAST


def compare(grid: Grid) -> list[Compared]:
    """Every mean of Table 2 for which there are runs, in the paper's order."""
    found = []
    for task, variant in counting(grid).variants.items():
        for objective in OBJECTIVES:
            records = tuple(grid.at(task, objective, variant))
            summaries: dict[Subset, SeedSummary | None] = {subset: over_runs(records, subset) for subset in SUBSETS}
            found += [Compared(task, objective, s, ours, records) for s, ours in summaries.items() if ours is not None]
    return found


def before(grid: Grid, *folders: str) -> list[Compared]:
    """The same means with runs that Table 2 had before; empty if a folder has none."""
    for folder in folders:
        if not any(record.apart == folder for record in grid.apart):
            return []
        grid = replace(instead(grid, folder), apart=grid.apart)
    return compare(grid)


def agreement(grid: Grid) -> Table:
    """How many means agree, by task and queries, with a flat bound, and with the settings that one seed chose."""
    found, one_seed = compare(grid), before(grid, ONE_SEED)
    rows = []
    for task in (*TASKS, None) if found else ():
        of_task, of_one = ([one for one in means if task in (None, one.task)] for means in (found, one_seed))
        row = [Cell("all" if task is None else name_of(task))]
        for subset in (*SUBSETS, None):
            row.append(_count([one for one in of_task if subset in (None, one.subset)]))
        flat = sum(one.within_least for one in of_task)
        row.append(Cell(f"{flat} of {len(of_task)}", {"agree": flat}) if of_task else Cell())
        row += [replace(_count(of_one), commands=())] if one_seed else []
        whole = len(OBJECTIVES) * len(SUBSETS) * (len(TASKS) if task is None else 1)
        rows.append((*row, Cell(f"{len(of_task)} of {whole}", {"measured": len(of_task)})))
    counted = (*map(name_of, SUBSETS), "in all", FLAT, *(("in all, one seed's choice",) if one_seed else ()))
    choice = " One seed's choice: the same count with the settings that a single seed preferred on dev, if they "
    choice += f"differ (control {ONE_SEED.removeprefix(f'{CONTROLS}/')} in the table of other settings)."
    expected = exact_replication()
    return Table(
        "agreement",
        "How many means agree with the paper's",
        (*columns(("task",), (("", counted),)), Column("measured")),
        tuple(rows),
        f"Two means agree if they differ by at most {LEAST:.0f} points or by two standard errors of their "
        "difference, 2·√(paper's² + ours²), whichever is more. The paper prints a standard error for each of its "
        "means. With one seed, ours is unknown and counts as 0, which allows less. So the tolerance grows with our own "
        f"noise; the column *{FLAT}* has no such slack. Overall follows from OS and MS. An exact replication, "
        f"simulated with the paper's standard errors, would score {expected.mean:.0f} "
        f"[{expected.low}, {expected.high}] of {len(paper.TABLE_2)}."
        f"{choice if one_seed else ''}",
    )


def _count(found: Sequence[Compared]) -> Cell:
    if not found:
        return Cell()
    agree = sum(one.agrees for one in found)
    return Cell(f"{agree} of {len(found)}", {"agree": agree, "measured": len(found)}, compared_commands(found))


def compared_commands(found: Sequence[Compared]) -> tuple[str, ...]:
    """The commands behind these means, each once."""
    return tuple(dict.fromkeys(command for one in found for command in test_commands(one.records)))


def agreement_by_mean(grid: Grid) -> Table:
    """For every mean: its difference from the paper's, the allowed difference, and whether it agrees."""
    found = {(one.task, one.objective, one.subset): one for one in compare(grid)}
    rows = []
    for task, objective in dict.fromkeys((task, objective) for task, objective, _ in found):
        row = [Cell(name_of(task)), Cell(name_of(objective))]
        of_row = {subset: found.get((task, objective, subset)) for subset in SUBSETS}
        for one in of_row.values():
            if one is None:
                row += [Cell()] * 3
                continue
            row.append(Cell(signed(one.points), {"points": one.points}, test_commands(one.records)))
            row.append(Cell(f"{one.allowed:.2f}", {"points": one.allowed}))
            row.append(Cell("yes") if one.agrees else Cell("no", tone="wrong"))
        records = next(one.records for one in of_row.values() if one is not None)
        rows.append((*row, seeds_cell(records)))
    each = ("difference", "allowed", "agrees")
    return Table(
        "agreement-by-mean",
        "Mean by mean: ours minus the paper's, points",
        (*columns(("task", "objective"), ((name_of(s), each) for s in SUBSETS)), Column("seeds")),
        tuple(rows),
        labels=2,
    )


def ms_order(grid: Grid) -> Table:
    """The order of the objectives on MS queries and the gaps between them, ours and the paper's."""
    ours, papers = OurResults(grid), PapersResults()
    rows = []
    for task in TASKS:
        made = compared_commands([one for one in compare(grid) if (one.task, one.subset) == (task, "ms")])
        mine, held = in_order(ours, task), order_holds(ours, task)
        words = {None: "", True: "the groups are in order", False: "the groups are not in order"}[held]
        order = (Cell(mine, commands=made if mine else ()), Cell(in_order(papers, task)), Cell(words))
        rows.append((Cell(name_of(task)), Cell("worst to best"), *order))
        for higher, lower in GAPS:
            gaps = [_gap(results, task, higher, lower) for results in (ours, papers)]
            row = [Cell(name_of(task)), Cell(f"{name_of(higher)} − {name_of(lower)}")]
            row += [Cell() if gap is None else Cell(signed(gap), {"points": gap}) for gap in gaps]
            if gaps[0] is not None and gaps[1] is not None:
                row[2] = Cell(row[2].text, row[2].numbers, made)
                rows.append((*row, difference(gaps[0], gaps[1])))
            else:
                rows.append((*row, Cell()))
    return Table(
        "ms-order",
        "MS queries: the order of the objectives, and the gaps between them in points",
        columns(("task", ""), (("", ("ours", "paper", "difference")),)),
        tuple(rows),
        "Means over seeds. The paper's order of groups: every multiplicity-aware objective (CC-Loss, MinLoss, I-ExplR, "
        "SelectR) is above Unique, and Unique is above Naive and Random.",
        labels=2,
    )


def in_order(results: Results, task: str) -> str:
    """The objectives from the lowest mean on MS queries to the highest; those without a mean are left out."""
    means = {objective: results.mean(task, objective, "ms") for objective in OBJECTIVES}
    known = {objective: mean for objective, mean in means.items() if mean is not None}
    return " < ".join(name_of(objective) for objective in sorted(known, key=lambda objective: known[objective]))


def order_holds(results: Results, task: str) -> bool | None:
    """Whether the paper's order of groups holds; None if missing means would decide it. One reversed pair decides."""
    pairs = [(o, "unique") for o in BASELINES if o != "unique"] + [("unique", o) for o in AWARE]
    held = [_gap(results, task, higher, lower) for lower, higher in pairs]
    if any(points is not None and points <= 0 for points in held):
        return False
    return None if None in held else True


def _gap(results: Results, task: str, higher: str, lower: str) -> float | None:
    high, low = (results.mean(task, objective, "ms") for objective in (higher, lower))
    return None if high is None or low is None else high - low


def _post_hoc(grid: Grid) -> str:
    """What a reader of the count must know about how it came about; empty without the earlier runs."""
    earlier = [before(grid, ONE_SEED), before(grid, ONE_SEED, LESS_MS)]
    counts = [f"{sum(one.agrees for one in means)} of {len(means)}" for means in earlier if means]
    if not counts:
        return ""
    whole = sum(one.agrees for one in compare(grid))
    return (
        f" The count ({whole} in all) is post hoc: it was lower ({', '.join(counts)}) before changes that were made "
        "after test results were read."
    )


def summary(grid: Grid) -> Table:
    """A summary: MS accuracy of every objective, ours and the paper's, and how many means agree."""
    found = compare(grid)
    rows = []
    for objective in OBJECTIVES if found else ():
        row = [Cell(name_of(objective))]
        for task in TASKS:
            ours = [one for one in found if (one.task, one.objective, one.subset) == (task, objective, "ms")]
            row += [Cell(f"{one.ours.mean:.2f}", {"mean": one.ours.mean}, compared_commands(ours)) for one in ours] or [
                Cell()
            ]
            row.append(number_cell(paper.TABLE_2[task, objective, "ms"].mean))
        rows.append(tuple(row))
    if found:
        counts = [_count([one for one in found if one.task == task]) for task in TASKS]
        rows.append((Cell("means that agree (OS, MS, overall)"), *(cell for one in counts for cell in (one, Cell()))))
    seeds = sorted({record.seed for one in found for record in one.records})
    part = any(len(one.records) < len(seeds) for one in found)
    return Table(
        "reproduction",
        "The paper's Table 2 again: accuracy on MS queries, %",
        columns(("objective",), ((name_of(task), ("ours", "paper")) for task in TASKS)),
        tuple(rows),
        f"Means over the seeds {', '.join(map(str, seeds))}{', as far as they exist' if part else ''}. "
        f"{counting(grid)} Means agree within {LEAST:.0f} points or two standard errors of the difference."
        f"{_post_hoc(grid)}",
    )
