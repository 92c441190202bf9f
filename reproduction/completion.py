"""N-Queens with many solutions: accuracy of one answer and coverage of several, with published numbers of others."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from oneofmany.evaluation.outcomes import coverage
from oneofmany.evaluation.record import Evaluation, Record
from oneofmany.networks.building import build_network
from oneofmany.problems import nqueens
from oneofmany.recipes import recipe
from oneofmany.report.cells import SAME_ACCURACY, Runs, commands, count_cell, number_cell, wilson_cell, with_interval
from oneofmany.report.grid import Grid, commands_of, summarise, summary_of
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction.experiments import COMPLETION
from reproduction.other_papers import COMPLETION as PUBLISHED
from reproduction.other_papers import SAMPLES
from reproduction.runs import ours

SIZES = (8, 10)
SPLITS = {"": "by query", "-by-class": "by symmetry class"}
"""End of a folder's name -> how its data is split."""
SOLUTIONS = {"1": (1, 1), "2–5": (2, 5), "6–15": (6, 15), "16 or more": (16, math.inf)}
"""Bins of the number of solutions, both ends included."""


def completion_of(grid: Grid, size: int, split: str) -> Runs:
    """The runs trained on boards of a size and split, with their evaluation by ``SAMPLES`` answers to each query."""
    name = f"nqueens-completion-{size}{split}-test"
    records = [record for record in ours(grid).apart if record.apart == f"{COMPLETION}{size}{split}"]
    found = [(r, e) for r in records for e in r.evaluations.values() if e.data.name == name and e.starts == SAMPLES]
    return [(record, evaluation) for record, evaluation in found if evaluation.distinct is not None]


def covered(evaluation: Evaluation) -> float | None:
    """The share of a query's solutions among the answers, mean over queries."""
    return coverage(evaluation.distinct, evaluation.total)


def uniform_coverage(total: np.ndarray) -> float:
    """What a sampler that gives every solution with equal probability would cover.

    Args:
        total: int32 [Q], the number of solutions of each query.
    """
    return float((1 - (1 - 1 / total) ** SAMPLES).mean())


@cache
def parameters() -> int:
    """The number of parameters of the network, which does not depend on the size of the board."""
    settings = recipe("nqueens/minloss/equivariant")
    return sum(one.numel() for one in build_network(settings.network, nqueens(10)).parameters())


def completion(grid: Grid) -> Table:
    """Accuracy and coverage of our network for both splits, of a uniform sampler, and as published for others."""
    of = {(size, split): completion_of(grid, size, split) for size in SIZES for split in SPLITS}
    measured = any(of.values())
    rows = []
    for split, about in SPLITS.items() if measured else ():
        cells = [cell for size in SIZES for cell in _cells(of[size, split])]
        seeds = count_cell(max(len(of[size, split]) for size in SIZES))
        rows.append((Cell("ours"), Cell(about), Cell(f"{parameters():,}"), *cells, seeds))
    for split, about in SPLITS.items() if measured else ():
        cells = [cell for size in SIZES for cell in (Cell(), _uniform(of[size, split]))]
        rows.append((Cell("a uniform sampler of solutions"), Cell(about), Cell(), *cells, Cell()))
    for name, one in PUBLISHED.items() if measured else ():
        numbers = [number_cell(values.get(size), ".1f") for size in SIZES for values in (one.accuracy, one.coverage)]
        rows.append((Cell(f"{name}, published"), Cell("by query"), Cell(one.parameters), *numbers, Cell()))
    each = ("accuracy", "coverage")
    return Table(
        "completion",
        "N-Queens with many solutions: accuracy of one answer and coverage of 20, in %",
        (
            *columns(("method", "split", "parameters"), ((f"{size}x{size}", each) for size in SIZES)),
            Column("seeds"),
        ),
        tuple(rows),
        f"Ours: {_WHAT} {_INTERVALS} A uniform sampler gives every solution with the same probability; its coverage is "
        "computed from the numbers of solutions. Published: arXiv 2605.19376, section 4.2; how coverage is sampled "
        "there is as we read it.",
        labels=3,
    )


_WHAT = (
    f"MinLoss with `follow_noise` 3; accuracy of one trajectory; coverage is the number of different valid answers in "
    f"{SAMPLES} samples over the number of solutions, mean over queries."
)
_INTERVALS = f"Mean over seeds, with Student's t interval (95 %) over seeds, cut at 0 and 100. {SAME_ACCURACY}"


def _cells(runs: Runs) -> tuple[Cell, Cell]:
    """Accuracy and coverage over seeds."""
    made = commands(runs)
    shares = summarise((record, covered(evaluation)) for record, evaluation in runs)
    return with_interval(summary_of(runs, "overall"), made), with_interval(shares, made)


def _uniform(runs: Runs) -> Cell:
    return number_cell(100 * uniform_coverage(runs[0][1].total)) if runs else Cell()


def completion_by_solutions(grid: Grid) -> Table:
    """The same by number of solutions, mean over seeds."""
    rows = []
    for size in SIZES:
        for split, about in SPLITS.items():
            runs = completion_of(grid, size, split)
            for label, (low, high) in SOLUTIONS.items() if runs else ():
                total = runs[0][1].total
                inside = (total >= low) & (total <= high)
                if not inside.any():
                    continue
                right = np.mean([evaluation.valid[inside].mean() for _, evaluation in runs])
                found = np.mean([share for _, e in runs if (share := _covered_in(e, inside)) is not None])
                numbers = (right, found, uniform_coverage(total[inside]))
                cells = (Cell(f"{100 * x:.2f}", {"": 100 * float(x)}, commands(runs)) for x in numbers)
                rows.append((Cell(f"{size}x{size}, {about}"), Cell(label), count_cell(int(inside.sum())), *cells))
    return Table(
        "completion-solutions",
        "N-Queens with many solutions by the number of solutions, in %",
        columns(("test data", "solutions"), (("", ("queries", "accuracy", "coverage", "a uniform sampler covers")),)),
        tuple(rows),
        f"Mean over seeds. {_WHAT}",
        labels=2,
    )


def _covered_in(evaluation: Evaluation, inside: np.ndarray) -> float | None:
    found = evaluation.distinct
    return None if found is None else coverage(found[inside], evaluation.total[inside])


def completion_runs(grid: Grid) -> Table:
    """Every run, with Wilson's interval of its accuracy."""
    rows = []
    for size in SIZES:
        for split, about in SPLITS.items():
            for record, evaluation in completion_of(grid, size, split):
                rows.append((Cell(f"{size}x{size}, {about}"), *_run(record, evaluation)))
    return Table(
        "completion-runs",
        "Every run on N-Queens with many solutions",
        columns(
            ("test data", "run"),
            (
                ("", ("training queries", "test queries", "accuracy", "coverage", "dev")),
                ("training", ("updates", "seconds")),
            ),
        ),
        tuple(rows),
        "In brackets Wilson's 95 % interval over the queries. Dev: accuracy of the kept weights.",
        labels=2,
    )


def _run(record: Record, evaluation: Evaluation) -> tuple[Cell, ...]:
    made, share = commands_of([record], [evaluation]), covered(evaluation)
    dev = None if record.dev is None or record.dev.overall is None else 100 * record.dev.overall
    train = record.data.get("train")
    return (
        Cell(record.name),
        count_cell(train.queries if train else 0),
        count_cell(evaluation.data.queries),
        wilson_cell(evaluation.scores.overall, made),
        Cell() if share is None else Cell(f"{100 * share:.2f}", {"": 100 * share}, made),
        number_cell(dev),
        number_cell(record.updates, ",.0f"),
        number_cell(record.seconds, ",.0f"),
    )
