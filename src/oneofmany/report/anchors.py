"""The literal run of every task, with the paper's batch and number of updates, beside the schedule of Table 2."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import hypot
from typing import Any

from oneofmany.evaluation.scores import Score
from oneofmany.report.cells import count_cell, number_cell, test_commands, wilson_cell, with_error
from oneofmany.report.experiments import changes
from oneofmany.report.paper import STANDARD_ERRORS, SUBSETS, TABLE_2, name_of
from oneofmany.report.records import Grid, Record, commands_of, test_evaluation
from oneofmany.report.table import Cell, Table, columns, signed
from oneofmany.report.themes import Chart, Theme

KIND = "anchor"


def pairs(grid: Grid) -> list[tuple[Record, Record | None]]:
    """(literal run, the run of the same task, objective and seed in another schedule), where there is one.

    That is a run of another recipe that stands beside it in ``anchor``, or else the one of Table 2.
    """
    records, variants = grid.set_apart(KIND), grid.counting().variants
    literal = [record for record in records if record["recipe"] == f"{record['task']}/{record['objective']}"]
    found = []
    for one in literal:
        beside = [record for record in records if record["recipe"] != one["recipe"]]
        if one["task"] in variants:
            beside += grid.at(one["task"], one["objective"], variants[one["task"]])
        same = [r for r in beside if all(r[key] == one[key] for key in ("task", "objective", "seed"))]
        found.append((one, next((r for r in same if _schedule(r) != _schedule(one)), None)))
    return found


def _schedule(record: Record) -> dict[str, Any]:
    """The first phase without what is tuned."""
    return {name: value for name, value in (record["settings"].get("first") or {}).items() if name != "sampling"}


def dev_scores(record: Record) -> dict[str, Score]:
    """Queries -> how many of dev the kept weights answered, as training saw it; those of which there are some."""
    dev, about = record.get("dev") or {}, (record.get("data") or {}).get("dev") or {}
    queries, several = about.get("queries"), about.get("ms_queries")
    if queries is None or record["settings"].get("dev_queries") is not None:
        return {}
    totals = {"overall": queries}
    if several is not None:
        totals |= {"os": queries - several, "ms": several}
    known = {subset: total for subset, total in totals.items() if total and dev.get(subset) is not None}
    return {subset: Score(round(dev[subset] * total), total) for subset, total in known.items()}


def noise(first: Score, second: Score) -> tuple[float, float, float]:
    """The difference of two shares in points and both ends of its 95 % interval, from Wilson's (Newcombe, 1998)."""
    ends = [(score.accuracy, score.low, score.high) for score in (first, second)]
    (p, low, high), (q, bottom, top) = [[100 * (x or 0.0) for x in one] for one in ends]
    return p - q, p - q - hypot(p - low, top - q), p - q + hypot(high - p, q - bottom)


def anchors(grid: Grid) -> Table:
    """Dev of the literal runs, of the runs beside them, and whether the difference is more than noise."""
    rows = []
    for literal, other in pairs(grid):
        task = Cell(name_of(literal["task"]))
        runs = grid.table_2(literal["task"])
        shared = runs and all(_schedule(record) == _schedule(literal) for record in runs)
        words = "the paper's schedule" + (", which all runs of Table 2 have" if shared else "")
        rows.append((task, Cell(literal["name"]), *_run(literal), Cell(words)))
        if other is not None:
            rows.append((task, Cell(other["name"]), *_run(other), Cell(changes(other, literal) or "nothing")))
            rows.append((task, Cell("difference"), *_difference(other, literal)))
    return Table(
        "anchors",
        "The literal run of every task beside the shared schedule, dev accuracy in %",
        columns(
            ("task", "run"),
            (
                ("", ("updates", "queries seen")),
                ("dev", tuple(map(name_of, SUBSETS))),
                ("", ("seconds", "what differs")),
            ),
        ),
        tuple(rows),
        "Dev queries, the kept weights, in brackets Wilson's 95 % interval over the queries. Below, ours minus the "
        "literal run with the 95 % interval that follows from the two (Newcombe): within noise where each holds 0. Of "
        "both runs the best of many looks at dev is kept, so neither number is an estimate for new queries.",
        labels=2,
    )


def literal_tests(grid: Grid) -> Table:
    """The literal runs on the test set, beside the paper's means."""
    rows = []
    for record, _ in pairs(grid):
        evaluation = test_evaluation(record)
        if evaluation is not None:
            row = [Cell(name_of(record["task"])), Cell(record["name"])]
            for subset in SUBSETS:
                cell = (record["task"], record["objective"], subset)
                row.append(wilson_cell(evaluation[subset], test_commands([record])))
                row.append(with_error(TABLE_2[cell].mean, STANDARD_ERRORS[cell]))
            rows.append(tuple(row))
    return Table(
        "literal-tests",
        "The literal run of every task on the test set beside the paper's mean, accuracy in %",
        columns(("task", "run"), ((name_of(subset), ("ours", "paper")) for subset in SUBSETS)),
        tuple(rows),
        "Ours: one run, nothing tuned, in brackets Wilson's 95 % interval over the queries. The paper's: mean and "
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
    row = [count_cell(record.get("updates") or 0), count_cell(_seen(record))]
    row += [wilson_cell(scores[subset].as_dict(), made) if subset in scores else Cell() for subset in SUBSETS]
    if not scores:  # shares without a number of queries
        dev = record.get("dev") or {}
        row[2:] = [Cell() if dev.get(s) is None else Cell(f"{100 * dev[s]:.2f}", {}, made) for s in SUBSETS]
    return [*row, number_cell(record.get("seconds"), ",.0f")]


def _seen(record: Record) -> int:
    """Queries that training drew; of runs with one phase."""
    return (record.get("updates") or 0) * ((record["settings"].get("first") or {}).get("batch") or 0)


def anchor_charts(grid: Grid) -> list[Chart]:
    """Dev over the queries seen, of the literal run and of the one beside it."""
    charts = []
    for literal, other in pairs(grid):
        runs = [r for r in (literal, other) if r is not None and len((r.get("history") or {}).get("update", [])) > 1]
        if len(runs) < 2:
            continue
        charts.append(
            Chart(
                f"anchor-{literal['task']}-{literal['objective']}-{literal['seed']}",
                f"{name_of(literal['task'])}: the literal run and the shared schedule on dev",
                f"{name_of(literal['objective'])}, seed {literal['seed']}: accuracy on all dev queries (solid) and on "
                "MS queries (dashed) against the training queries seen, the first phase.",
                partial(_draw, runs=runs),
                commands_of(runs),
            )
        )
    return charts


def _draw(figure: Any, theme: Theme, runs: Sequence[Record]) -> None:
    axes = figure.add_subplot()
    for record, colour, name in zip(runs, ("unique", "minloss"), ("literal", "shared schedule"), strict=True):
        history, batch = record["history"], (record["settings"].get("first") or {}).get("batch") or 1
        for key, dashes in (("dev_overall", "-"), ("dev_ms", "--")):
            phases = zip(history["phase"], history["update"], history[key], strict=True)
            points = [(update * batch, 100 * y) for phase, update, y in phases if phase == "train" and y is not None]
            label = f"{record['recipe']}, {name}" if key == "dev_overall" else None
            axes.plot(*zip(*points, strict=True), dashes, color=theme[colour], linewidth=1.4, label=label)
    axes.set(xlabel="training queries seen", ylabel="dev accuracy, %")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=5)  # long numbers
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=2, handlelength=1.6, columnspacing=1.4)
