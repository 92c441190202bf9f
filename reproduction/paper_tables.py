"""Tables 1 and 2 and the appendix's standard errors: ours, the paper's and the difference."""

from __future__ import annotations

from oneofmany.evaluation.record import SUBSETS, DataInfo, Evaluation
from oneofmany.report.cells import difference, test_commands
from oneofmany.report.grid import OBJECTIVES, Grid, commands_of, name_of, over_runs
from oneofmany.report.table import Cell, Column, Table, columns, slug
from reproduction import paper
from reproduction.cells import accuracy_cell, seeds_cell, with_error
from reproduction.runs import Schedule, counting


def data_statistics(grid: Grid) -> Table:
    """Table 1: queries, share of MS queries and solutions per MS query of every data set of the runs."""
    found: dict[tuple[str, str], tuple[dict[str, float], tuple[str, ...]]] = {}
    for record in grid.runs:
        for about in record.data.values():
            found.setdefault((about.name, about.checksum), (_said(about), commands_of([record])))
        for evaluation in record.evaluations.values():
            about = evaluation.data
            # An evaluation has all numbers, a training record may not: it takes precedence for the same file.
            found[about.name, about.checksum] = (_counted(evaluation), commands_of([], [evaluation]))
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
        "The paper's construction cannot give its 7.04 % MS queries of N-Queens' training data; it gives 9.16 %. The "
        "dev sets are built like the test sets.",
    )


def _said(about: DataInfo) -> dict[str, float]:
    numbers = {"queries": float(about.queries)}
    if about.ms_queries is not None:
        numbers["ms_percent"] = 100 * about.ms_queries / about.queries
    if about.solutions_per_ms_query:
        numbers["solutions_per_ms_query"] = about.solutions_per_ms_query
    return numbers


def _counted(evaluation: Evaluation) -> dict[str, float]:
    queries, totals = evaluation.data.queries, evaluation.total
    numbers = {"queries": float(queries), "ms_percent": 100 * evaluation.scores.ms.total / max(queries, 1)}
    if (totals > 1).any():
        numbers["solutions_per_ms_query"] = float(totals[totals > 1].mean())
    return numbers


def accuracy(grid: Grid, schedule: Schedule | None = None) -> Table:
    """Table 2: mean accuracy over seeds (and the run that dev picks), ours and the paper's."""
    schedule, rows = schedule or counting(grid), []
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
        f"Table 2: accuracy, %{schedule.title}",
        (*columns(("task", "objective"), ((name_of(s), each) for s in SUBSETS)), Column("seeds")),
        tuple(rows),
        "Mean over seeds and, in parentheses, the run that the dev set picks. An answer is right if it is a solution, "
        f"listed or not. Differences are between means, in points. {schedule}",
        labels=2,
    )


def standard_errors(grid: Grid, schedule: Schedule | None = None) -> Table:
    """The appendix's table: mean ± standard error, and our t interval over seeds."""
    schedule, rows = schedule or counting(grid), []
    for task, variant in schedule.variants.items():
        for objective in OBJECTIVES:
            records = grid.at(task, objective, variant)
            row = [Cell(name_of(task)), Cell(name_of(objective))]
            for subset in SUBSETS:
                cell, ours = (task, objective, subset), over_runs(records, subset)
                if ours is None or ours.standard_error is None or ours.low is None or ours.high is None:
                    row += [Cell(), Cell()]
                else:
                    row.append(with_error(ours.mean, ours.standard_error, test_commands(records)))
                    low, high = max(ours.low, 0.0), min(ours.high, 100.0)
                    row.append(Cell(f"{low:.1f} – {high:.1f}", {"low": low, "high": high}))
                row.append(with_error(paper.TABLE_2[cell].mean, paper.STANDARD_ERRORS[cell]))
            rows.append((*row, seeds_cell(records)))
    each = ("ours", "95 % interval", "paper")
    return Table(
        slug("standard-errors", schedule.name),
        f"Standard errors over seeds{schedule.title}",
        (*columns(("task", "objective"), ((name_of(s), each) for s in SUBSETS)), Column("seeds")),
        tuple(rows),
        "Standard error: standard deviation (n - 1) divided by the square root of n. The interval is Student's t over "
        f"seeds, cut at 0 and 100. {paper.SWAPPED_HEADERS}",
        labels=2,
    )
