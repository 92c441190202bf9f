"""The literal run of every task, with the paper's batch and updates, compared with the schedule of Table 2."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import hypot
from typing import Any

from oneofmany.evaluation.record import SUBSETS, Record
from oneofmany.evaluation.scores import Score
from oneofmany.pictures.themes import Chart, Theme
from oneofmany.report.cells import count_cell, number_cell, test_commands, wilson_cell
from oneofmany.report.figures import legend
from oneofmany.report.grid import Grid, commands_of, name_of, tested
from oneofmany.report.table import Cell, Table, columns, signed
from reproduction.cells import with_error
from reproduction.differences import changes
from reproduction.paper import STANDARD_ERRORS, TABLE_2
from reproduction.runs import LITERAL, apart_in, counting, table_2


def pairs(grid: Grid) -> list[tuple[Record, Record | None]]:
    """(literal run, the run of the same task, objective and seed with another schedule, if any).

    The second is a run of another recipe in the same folder, or else the run of Table 2.
    """
    records, variants = apart_in(grid, LITERAL), counting(grid).variants
    literal = [record for record in records if record.recipe == f"{record.task}/{record.objective}"]
    found = []
    for one in literal:
        beside = [record for record in records if record.recipe != one.recipe]
        if one.task in variants:
            beside += grid.at(one.task, one.objective, variants[one.task])
        same = [r for r in beside if (r.task, r.objective, r.seed) == (one.task, one.objective, one.seed)]
        found.append((one, next((r for r in same if _schedule(r) != _schedule(one)), None)))
    return found


def _schedule(record: Record) -> dict[str, Any]:
    """The settings of the first phase that are not tuned."""
    return {k: v for k, v in record.flat.items() if k.startswith("first.") and k != "first.sampling"}


def dev_scores(record: Record) -> dict[str, Score]:
    """Subset -> score of the kept weights on dev, as training measured it; subsets without queries are left out."""
    dev, about = record.dev, record.data.get("dev")
    if dev is None or about is None or record.setting("dev_queries") is not None:
        return {}
    totals = {"overall": about.queries}
    if about.ms_queries is not None:
        totals |= {"os": about.queries - about.ms_queries, "ms": about.ms_queries}
    shares = ((subset, dev.of(subset), totals.get(subset)) for subset in SUBSETS)
    return {subset: Score(round(x * total), total) for subset, x, total in shares if x is not None and total}


def noise(first: Score, second: Score) -> tuple[float, float, float]:
    """The difference of two shares in points and its 95 % interval from Wilson's intervals (Newcombe, 1998)."""
    ends = [(score.accuracy, score.low, score.high) for score in (first, second)]
    (p, low, high), (q, bottom, top) = [[100 * (x or 0.0) for x in one] for one in ends]
    return p - q, p - q - hypot(p - low, top - q), p - q + hypot(high - p, q - bottom)


def literal_runs(grid: Grid) -> Table:
    """Dev accuracy of the literal runs and of the paired runs, and whether they differ by more than noise."""
    rows = []
    for literal, other in pairs(grid):
        task = Cell(name_of(literal.task))
        runs = table_2(grid, literal.task)
        shared = runs and all(_schedule(record) == _schedule(literal) for record in runs)
        words = "the paper's schedule" + (", which all runs of Table 2 have" if shared else "")
        rows.append((task, Cell(literal.name), *_run(literal), Cell(words)))
        if other is not None:
            rows.append((task, Cell(other.name), *_run(other), Cell(changes(other, literal) or "nothing")))
            rows.append((task, Cell("difference"), *_difference(other, literal)))
    return Table(
        "literal-runs",
        "The literal run of every task and the shared schedule, dev accuracy in %",
        columns(
            ("task", "run"),
            (
                ("", ("updates", "queries seen")),
                ("dev", tuple(map(name_of, SUBSETS))),
                ("", ("seconds", "what differs")),
            ),
        ),
        tuple(rows),
        "Dev queries, the kept weights; in brackets Wilson's 95 % interval over the queries. Difference: ours minus "
        "the literal run, with the 95 % interval that follows from the two (Newcombe); within noise if each has 0. "
        "Both runs keep the best of many evaluations on dev, so neither number is an estimate for new queries.",
        labels=2,
    )


def literal_tests(grid: Grid) -> Table:
    """The literal runs on the test set, with the paper's means."""
    rows = []
    for record, evaluation in tested(record for record, _ in pairs(grid)):
        row = [Cell(name_of(record.task)), Cell(record.name)]
        for subset in SUBSETS:
            cell = (record.task, record.objective, subset)
            row.append(wilson_cell(evaluation.scores.of(subset), test_commands([record])))
            row.append(with_error(TABLE_2[cell].mean, STANDARD_ERRORS[cell]))
        rows.append(tuple(row))
    return Table(
        "literal-tests",
        "The literal run of every task on the test set and the paper's mean, accuracy in %",
        columns(("task", "run"), ((name_of(subset), ("ours", "paper")) for subset in SUBSETS)),
        tuple(rows),
        "Ours: one run, nothing tuned; in brackets Wilson's 95 % interval over the queries. The paper's: mean and "
        "standard error of three runs with tuned settings.",
        labels=2,
    )


def _difference(other: Record, literal: Record) -> list[Cell]:
    row, within = [Cell(), Cell()], []
    for subset in SUBSETS:
        scores = [dev_scores(record).get(subset) for record in (other, literal)]
        if scores[0] is None or scores[1] is None:
            row.append(Cell())
            continue
        points, low, high = noise(scores[0], scores[1])
        within.append(low <= 0 <= high)
        numbers = {"points": points, "low": low, "high": high}
        row.append(Cell(f"{signed(points)} [{signed(low)}, {signed(high)}]", numbers))
    verdict = "" if not within else "within noise" if all(within) else "more than noise"
    return [*row, Cell(), Cell(verdict)]


def _run(record: Record) -> list[Cell]:
    made, scores = commands_of([record]), dev_scores(record)
    row = [count_cell(record.updates or 0), count_cell(_seen(record))]
    if scores or record.dev is None:
        row += [wilson_cell(scores.get(subset), made) for subset in SUBSETS]
    else:  # shares without a number of queries
        shares = map(record.dev.of, SUBSETS)
        row += [Cell() if share is None else Cell(f"{100 * share:.2f}", {}, made) for share in shares]
    return [*row, number_cell(record.seconds, ",.0f")]


def _seen(record: Record) -> int:
    """Number of training queries drawn, for runs with one phase."""
    return (record.updates or 0) * (record.setting("first.batch") or 0)


def literal_charts(grid: Grid) -> list[Chart]:
    """Dev accuracy against the queries seen, of the literal run and of the paired run."""
    charts = []
    for literal, other in pairs(grid):
        runs = [r for r in (literal, other) if r is not None and len(r.history) > 1]
        if len(runs) < 2:
            continue
        charts.append(
            Chart(
                f"literal-{literal.task}-{literal.objective}-{literal.seed}",
                f"{name_of(literal.task)}: the literal run and the shared schedule on dev",
                f"{name_of(literal.objective)}, seed {literal.seed}: accuracy on all dev queries (solid) and on "
                "MS queries (dashed) against the training queries seen, the first phase.",
                partial(_draw, runs=runs),
                commands_of(runs),
            )
        )
    return charts


def _draw(figure: Any, theme: Theme, runs: Sequence[Record]) -> None:
    axes = figure.add_subplot()
    for record, colour, name in zip(runs, ("unique", "minloss"), ("literal", "shared schedule"), strict=True):
        history, batch = record.history, record.setting("first.batch") or 1
        for key, dashes in (("dev_overall", "-"), ("dev_ms", "--")):
            phases = zip(history.phase, history.update, getattr(history, key), strict=True)
            points = [(update * batch, 100 * y) for phase, update, y in phases if phase == "train" and y is not None]
            label = f"{record.recipe}, {name}" if key == "dev_overall" else None
            axes.plot(*zip(*points, strict=True), dashes, color=theme[colour], linewidth=1.4, label=label)
    axes.set(xlabel="training queries seen", ylabel="dev accuracy, %")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=5)  # long numbers
    legend(figure, axes, columns=2)
