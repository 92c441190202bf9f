"""The tasks of the gallery: a small network for each, trained on one CPU core by the recipe of any task."""

from __future__ import annotations

from oneofmany.evaluation.record import SUBSETS
from oneofmany.report.cells import accuracy_cell, count_cell, training_cell
from oneofmany.report.grid import Grid
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction.cells import updates_cell
from reproduction.experiments import GALLERY
from reproduction.runs import ours


def gallery(grid: Grid) -> Table:
    """Accuracy of one trajectory on every task's test queries, by the rules."""
    runs = [record for record in ours(grid).apart if record.apart.startswith(GALLERY)]
    rows = [
        (
            *map(Cell, (record.task, str(test.data.size), f"{record.task.replace('-', '_')}.py")),
            *(accuracy_cell([(record, test)], subset) for subset in SUBSETS),
            count_cell(test.data.queries),
            updates_cell([record]),
            training_cell([record]),
        )
        for record in runs
        for test in record.evaluations.values()
        if test.data.name.endswith("-test")
    ]
    return Table(
        "gallery",
        "A small network for every task of the gallery: accuracy in %",
        (
            *columns(("task", "size", "file"), (("", ("OS", "MS", "Overall")),)),
            *map(Column, ("queries", "updates", "training")),
        ),
        tuple(rows),
        "MinLoss, the recipe `TASK/minloss/equivariant` of any task as it is, one seed, one thread. One trajectory; no "
        "checker in training, and the rules only judge at test time. Brackets: Wilson's 95 % interval over queries, "
        "which are built like those of training and are of another split. The files are in `examples/tasks`.",
        labels=3,
    )
