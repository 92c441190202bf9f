"""The paper's tables from records: ours, the paper's and the difference; a partial grid gives empty cells."""

from __future__ import annotations

from oneofmany.report import paper
from oneofmany.report.agreement import agreement, agreement_by_mean, ms_order, summary
from oneofmany.report.anchors import anchors, literal_tests
from oneofmany.report.cells import accuracy_cell, interval_cell, seeds_cell, test_commands, with_error
from oneofmany.report.comparisons import seed_gains, significance, training_data_of, unique_training
from oneofmany.report.controls import is_authors_naive, naive_authors, other_settings, repeated, second_phase
from oneofmany.report.learned import our_tables
from oneofmany.report.other_tables import every_run, other_data, own_results, several_starts
from oneofmany.report.ours import is_ours
from oneofmany.report.paper import OBJECTIVES, SUBSETS, name_of
from oneofmany.report.records import (
    Evaluation,
    Grid,
    Schedule,
    commands_of,
    of_schedule,
    over_runs,
    totals_of,
    variant_of,
)
from oneofmany.report.schedules import cost, schedule
from oneofmany.report.table import Cell, Column, Table, columns, difference, slug
from oneofmany.report.tuned import tuning


def all_tables(grid: Grid) -> list[Table]:
    """Every table of the report, in order, and the short one of a README."""
    return [*general_tables(grid), *our_tables(grid), summary(grid)]


def general_tables(grid: Grid) -> list[Table]:
    """The paper's tables and those of all runs but our network's, which has tables of its own."""
    schedules = grid.schedules()
    others = Grid(
        tuple(record for record in grid.runs if not is_ours(record)),
        apart=tuple(record for record in grid.apart if not is_ours(record)),
    )
    compared = {record["recipe"] for record in others.runs if training_data_of(record) or is_authors_naive(record)}
    own = [v for v in others.other_variants() if {r["recipe"] for r in others.runs if variant_of(r) == v} - compared]
    more = (standard_errors, seed_gains, significance, unique_training)
    return [
        accuracy(grid),
        *(table(grid) for table in (schedule, agreement, agreement_by_mean, ms_order)),
        *(accuracy(grid, other) for other in schedules[1:]),
        *(own_results(others, variant) for variant in own),
        *(table(grid, one) for one in schedules for table in more),
        *(table(grid) for table in (second_phase, naive_authors, other_settings)),
        *(table(grid) for table in (literal_tests, anchors, tuning, repeated, cost)),
        several_starts(others),
        other_data(others),
        data_statistics(grid),
        every_run(others),
    ]


def data_statistics(grid: Grid) -> Table:
    """Table 1: queries, share of MS queries and solutions per MS query of every data set that the runs saw."""
    found: dict[tuple[str, str], tuple[dict[str, float], tuple[str, ...]]] = {}
    for record in grid.runs:
        for part in (record.get("data") or {}).values():
            numbers = {"queries": float(part["queries"])}
            if part.get("ms_queries") is not None:
                numbers["ms_percent"] = 100 * part["ms_queries"] / part["queries"]
            if part.get("solutions_per_ms_query"):
                numbers["solutions_per_ms_query"] = part["solutions_per_ms_query"]
            found.setdefault((part["name"], part["checksum"]), (numbers, commands_of([record])))
        for evaluation in record["evaluations"].values():
            part = evaluation["data"]
            # What the evaluation says is complete, so it goes before what a training record says of the same file.
            found[part["name"], part["checksum"]] = (_statistics(evaluation), commands_of([], [evaluation]))
    order = {name: i for i, name in enumerate(paper.TABLE_1)}
    known = sorted(found, key=lambda key: (order.get(key[0], len(order)), key))
    names = {name for name, _ in found}
    rows = []
    for name, checksum in [*known, *((name, "") for name in order if name not in names)]:
        numbers, commands = found.get((name, checksum), ({}, ()))
        several = sum(other == name for other, _ in found) > 1
        row = [Cell(f"{name} ({checksum[:8]})" if several else name)]
        published = paper.TABLE_1.get(name)
        for key, form in (("queries", ",.0f"), ("ms_percent", ".2f"), ("solutions_per_ms_query", ".2f")):
            ours, theirs = numbers.get(key), None if published is None else float(getattr(published, key))
            row.append(Cell() if ours is None else Cell(format(ours, form), {"": ours}, commands))
            theirs_form = ".1f" if key == "solutions_per_ms_query" else form
            row.append(Cell() if theirs is None else Cell(format(theirs, theirs_form), {"": theirs}))
        rows.append(tuple(row))
    both = ("ours", "paper")
    return Table(
        "table-1-data",
        "Table 1: data sets",
        columns(("data",), (("queries", both), ("MS queries, %", both), ("solutions per MS query", both))),
        tuple(rows),
        "The paper's 7.04 % MS queries of N-Queens' training data cannot be had from its own construction, which gives "
        "9.16 %. The dev sets are built as the test sets are.",
    )


def _statistics(evaluation: Evaluation) -> dict[str, float]:
    queries, multiple, totals = evaluation["data"]["queries"], evaluation["ms"]["total"], totals_of(evaluation)
    numbers = {"queries": float(queries), "ms_percent": 100 * multiple / max(queries, 1)}
    if (totals > 1).any():
        numbers["solutions_per_ms_query"] = float(totals[totals > 1].mean())
    return numbers


def accuracy(grid: Grid, schedule: Schedule | None = None) -> Table:
    """Table 2: mean (best by dev) accuracy over seeds beside the paper's."""
    schedule, rows = schedule or grid.counting(), []
    for task, variant in schedule.variants.items():
        of = {(o, s): over_runs(grid.at(task, o, variant), s) for o in OBJECTIVES for s in SUBSETS}
        top = {s: max((x.mean for o in OBJECTIVES if (x := of[o, s]) is not None), default=None) for s in SUBSETS}
        for objective in OBJECTIVES:
            records = grid.at(task, objective, variant)
            row = [Cell(name_of(task)), Cell(name_of(objective))]
            for subset in SUBSETS:
                summary, published = of[objective, subset], paper.TABLE_2[task, objective, subset]
                row += [
                    accuracy_cell(records, subset, top=summary is not None and summary.mean == top[subset]),
                    Cell(f"{published.mean:.2f} ({published.best:.2f})", published._asdict()),
                    Cell() if summary is None else difference(summary.mean, published.mean),
                ]
            rows.append((*row, seeds_cell(records)))
    each = ("ours", "paper", "difference")
    return Table(
        slug("table-2-accuracy", schedule.name),
        "Table 2: accuracy, %" + of_schedule(schedule),
        (*columns(("task", "objective"), ((name_of(s), each) for s in SUBSETS)), Column("seeds")),
        tuple(rows),
        "Mean over seeds and, in parentheses, the run that the dev set picks. An answer is right where it is a "
        f"solution, listed or not. Differences are between means, in points. {schedule}",
        labels=2,
    )


def standard_errors(grid: Grid, schedule: Schedule | None = None) -> Table:
    """The appendix's table: mean ± standard error, with ours as a t interval over seeds as well."""
    schedule, rows = schedule or grid.counting(), []
    for task, variant in schedule.variants.items():
        for objective in OBJECTIVES:
            records = grid.at(task, objective, variant)
            row = [Cell(name_of(task)), Cell(name_of(objective))]
            for subset in SUBSETS:
                cell, summary = (task, objective, subset), over_runs(records, subset)
                if summary is None or summary.standard_error is None:
                    row += [Cell(), Cell()]
                else:
                    row.append(with_error(summary.mean, summary.standard_error, test_commands(records)))
                    row.append(interval_cell(records, subset))
                row.append(with_error(paper.TABLE_2[cell].mean, paper.STANDARD_ERRORS[cell]))
            rows.append((*row, seeds_cell(records)))
    each = ("ours", "95 % interval", "paper")
    return Table(
        slug("standard-errors", schedule.name),
        "Standard errors over seeds" + of_schedule(schedule),
        (*columns(("task", "objective"), ((name_of(s), each) for s in SUBSETS)), Column("seeds")),
        tuple(rows),
        "Standard error: standard deviation (n - 1) over the square root of n; the interval is Student's t over "
        f"seeds. {paper.SWAPPED_HEADERS}",
        labels=2,
    )
