"""Tables of our own network: its accuracy on the test sets, every run, and the seven objectives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from oneofmany.evaluation.statistics import SeedSummary, mcnemar
from oneofmany.report import paper
from oneofmany.report.cells import count_cell, number_cell, wilson_cell, with_interval
from oneofmany.report.paper import OBJECTIVES, SUBSETS, TEST_SIZES, name_of
from oneofmany.report.records import (
    Evaluation,
    Grid,
    Record,
    commands_of,
    over_dev,
    percent,
    summarise,
    valid_of,
    variant_of,
)
from oneofmany.report.table import Cell, Column, Table, columns

VARIANT = "equivariant"
"""Recipes ``TASK/OBJECTIVE/equivariant``; ``equivariant-flags`` sees inequalities as the paper's NLM does."""
MAIN_OBJECTIVE = "minloss"
TESTS = {
    "nqueens-test": ("nqueens", "N-Queens 11"),
    "futoshiki-test": ("futoshiki", "Futoshiki 6, 18 blanks"),
    "futoshiki-20-blanks-test": ("futoshiki", "Futoshiki 6, 20 blanks"),
    "sudoku-test": ("sudoku", "Sudoku 9"),
}
"""Name of a test set -> its task and what readers call it."""
WITHOUT_INEQUALITIES = {"os": 81.0, "ms": 83.0, "overall": 81.5}
"""Futoshiki 6 with 18 blanks: what the best possible answer that never looks at an inequality, a Latin square that
keeps the givens, can expect. Only above it a network has shown that it uses the inequalities."""

Runs = Sequence[tuple[Record, Evaluation]]
"""Runs with one evaluation each."""
INTERVALS = "Mean over seeds, with Student's t interval (95 %) over seeds, cut at 0 and 100."


def ours(grid: Grid) -> Grid:
    """The runs of our network's recipes alone, and all that stands apart with our network."""
    runs = [record for record in grid.runs if is_ours(record)]
    return Grid(tuple(runs), apart=tuple(record for record in grid.apart if is_ours(record)))


def is_ours(record: Record) -> bool:
    """Whether a run is of our network's recipes, the tiny ones of the demo aside."""
    return record["network"] == "equivariant" and is_our_variant(variant_of(record))


def is_our_variant(variant: str) -> bool:
    """Whether recipes of this variant are of our network."""
    return variant == VARIANT or variant.startswith(f"{VARIANT}-")


def method_of(record: Record) -> str:
    """The objective and what else tells a recipe from its sisters: ``MinLoss``, ``MinLoss, flags``."""
    more = variant_of(record).removeprefix(VARIANT).strip("-")
    return name_of(record["objective"]) + (f", {more}" if more else "")


def recipes_of(records: Iterable[Record]) -> list[list[Record]]:
    """The runs of each recipe, in their order."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record["recipe"], []).append(record)
    return list(found.values())


def on(records: Iterable[Record], name: str) -> Runs:
    """The runs that have an evaluation of this name; on a test set, of the size that it has."""
    found = [(record, record["evaluations"][name]) for record in records if name in record["evaluations"]]
    if name not in TESTS:
        return found
    task = TESTS[name][0]
    return [(r, e) for r, e in found if r["task"] == task and e["data"].get("size") == TEST_SIZES[task]]


def commands(runs: Runs) -> tuple[str, ...]:
    """The commands that trained and evaluated."""
    return commands_of((record for record, _ in runs), (evaluation for _, evaluation in runs))


def summary_of(runs: Runs, subset: str) -> SeedSummary | None:
    """Over seeds, in percent."""
    return summarise([(record, evaluation[subset]) for record, evaluation in runs])


def accuracy_cells(runs: Runs) -> list[Cell]:
    """OS, MS and overall over seeds."""
    return [with_interval(summary_of(runs, subset), commands(runs)) for subset in SUBSETS]


def dev_cells(records: Sequence[Record]) -> list[Cell]:
    """The same on dev, of the kept weights, as training saw it."""
    return [with_interval(over_dev(records, subset), commands_of(records)) for subset in SUBSETS]


def training_cell(records: Sequence[Record]) -> Cell:
    """``93 s, NVIDIA H200``: mean seconds of training over seeds, and on what."""
    seconds = [record["seconds"] for record in records if record.get("seconds") is not None]
    if not seconds:
        return Cell()
    devices = {(record.get("environment") or {}).get("device") for record in records}
    mean = float(np.mean(seconds))
    return Cell(", ".join([f"{mean:,.0f} s", *sorted(filter(None, devices))]), {"seconds": mean})


def main_table(grid: Grid) -> Table:
    """Accuracy of MinLoss, and of every objective with all of the paper's seeds, beside the paper's best."""
    rows = []
    for name, (task, label) in TESTS.items():
        found = []
        for records in recipes_of(ours(grid).runs):
            runs = on(records, name)
            seeds = {record["seed"] for record, _ in runs}
            if runs and (records[0]["objective"] == MAIN_OBJECTIVE or seeds >= set(paper.SEEDS)):
                found.append(
                    (
                        Cell(label),
                        Cell(method_of(records[0])),
                        *accuracy_cells(runs),
                        count_cell(len(runs)),
                        training_cell([record for record, _ in runs]),
                    )
                )
        if found:
            # MinLoss is what the recipes were made with; the others follow in the paper's order.
            rows += sorted(found, key=lambda row: not row[1].text.startswith(name_of(MAIN_OBJECTIVE)))
            rows += _beside(name, task, label)
    return Table(
        "ours",
        "Our network on the test sets, accuracy in %",
        (
            *columns(("data", "trained with"), (("", tuple(map(name_of, SUBSETS))),)),
            Column("seeds"),
            Column("training"),
        ),
        tuple(rows),
        f"{INTERVALS} One trajectory, no checker. Our network sees the structure of a task as rules, the paper's "
        "networks see it as relations. Futoshiki's inequalities are rules too, which is more than the paper's network "
        "is shown; with “flags” ours is shown no more than that. “Without the inequalities” is what the best answer "
        "that never looks at them can expect.",
        labels=2,
    )


def _beside(name: str, task: str, label: str) -> list[tuple[Cell, ...]]:
    """Rows of others: the paper's best where the data is the paper's, and what no inequality is needed for."""
    rows = []
    if name == f"{task}-test":
        published = [number_cell(paper.TABLE_2[task, "selectr", subset].mean) for subset in SUBSETS]
        network = name_of("rrn" if task == "sudoku" else "nlm")
        title = Cell(f"the paper's best: {network}, {name_of('selectr')}")
        rows.append((Cell(label), title, *published, count_cell(len(paper.SEEDS)), Cell()))
    if name == "futoshiki-test":
        level = [number_cell(WITHOUT_INEQUALITIES[subset]) for subset in SUBSETS]
        rows.append((Cell(label), Cell("without the inequalities"), *level, Cell(), Cell()))
    return rows


def each_run(grid: Grid) -> Table:
    """Every run on every test set, with Wilson's interval."""
    rows = []
    for name, (_, label) in TESTS.items():
        for record, evaluation in on(ours(grid).runs, name):
            made = commands_of([record], [evaluation])
            row = [Cell(label), Cell(record["name"]), *(wilson_cell(evaluation[subset], made) for subset in SUBSETS)]
            row.append(number_cell(percent({"accuracy": (record.get("dev") or {}).get("overall")})))
            row.append(number_cell(record.get("seconds"), ",.0f"))
            rows.append((*row, Cell((record.get("environment") or {}).get("device") or "")))
    test = tuple(map(name_of, SUBSETS))
    return Table(
        "our-runs",
        "Every run of our network",
        columns(("data", "run"), (("test, %", test), ("", ("dev",)), ("training", ("seconds", "device")))),
        tuple(rows),
        "In brackets Wilson's 95 % interval over the queries. Dev: all dev queries, the kept weights, in training.",
        labels=2,
    )


def objectives(grid: Grid) -> Table:
    """The seven objectives with the same network and number of updates; at least two of a task."""
    rows = []
    for name, (task, label) in TESTS.items():
        of = {o: runs for o in OBJECTIVES if (runs := on(ours(grid).at(task, o, VARIANT), name))}
        if len(of) < 2 or name != f"{task}-test":
            continue
        found = {(o, subset): summary_of(runs, subset) for o, runs in of.items() for subset in SUBSETS}
        top = {s: max((x.mean for o in of if (x := found[o, s]) is not None), default=None) for s in SUBSETS}
        for objective, runs in of.items():
            row = [Cell(label), Cell(name_of(objective))]
            for subset in SUBSETS:
                summary = found[objective, subset]
                best = summary is not None and summary.mean == top[subset]
                row.append(with_interval(summary, commands(runs), best))
            row += [against(runs, of.get(MAIN_OBJECTIVE, ())), count_cell(len(runs))]
            updates = [record["updates"] for record, _ in runs if record.get("updates") is not None]
            row.append(number_cell(float(np.mean(updates)) if updates else None, ",.0f"))
            rows.append((*row, training_cell([record for record, _ in runs])))
    return Table(
        "our-objectives",
        "Our network with each objective, the same number of updates, accuracy in %",
        (
            *columns(("data", "objective"), (("", (*map(name_of, SUBSETS), "p")),)),
            *map(Column, ("seeds", "updates", "training")),
        ),
        tuple(rows),
        f"{INTERVALS} p: exact McNemar test against MinLoss on all queries, the first seed that both have. I-ExplR and "
        "SelectR share their updates among two pre-trainings and the rest; updates are those that were made.",
        labels=2,
    )


def against(runs: Runs, others: Runs) -> Cell:
    """McNemar's p between the first runs of the same seed and data."""
    by_seed = {record["seed"]: (record, evaluation) for record, evaluation in others}
    for record, evaluation in runs:
        other, theirs = by_seed.get(record["seed"], (record, evaluation))
        if other is not record and theirs["data"]["checksum"] == evaluation["data"]["checksum"]:
            found = mcnemar(valid_of(evaluation), valid_of(theirs))
            return Cell(f"{found.p:.3g}", {"p": found.p}, commands([(record, evaluation), (other, theirs)]))
    return Cell()
