"""Differences between two runs in settings and training data, and runs that were made twice."""

from __future__ import annotations

from typing import Any

from oneofmany.evaluation.record import SUBSETS, Record, flattened
from oneofmany.report.cells import against
from oneofmany.report.grid import Grid, deciding, name_of, tested
from oneofmany.report.table import Cell, Table, columns
from reproduction.cells import accuracy_cells
from reproduction.runs import goes_on


def different(record: Record, base: Record) -> dict[str, tuple[Any, Any]]:
    """Setting -> (here, in ``base``) for every difference that decides the result, including the training data."""
    here, there = (flattened(deciding(r)) for r in (record, base))
    # A setting that only one version of the library has is no difference.
    found = {name: (here[name], there[name]) for name in here if name in there and here[name] != there[name]}
    data, other = (r.data.get("train") for r in (record, base))
    if (data and data.checksum) != (other and other.checksum):
        found["training data"] = (data and data.name, other and other.name)
    return found


def changes(record: Record, base: Record) -> str:
    """``burn_in 0 instead of 0, 16``: the differences in words, without a second phase that no run has."""
    found = different(record, base)
    if not any(goes_on(r) for r in (record, base)):
        found = {name: values for name, values in found.items() if not name.startswith("second.")}
    return "; ".join(f"{name} {_word(here)} instead of {_word(there)}" for name, (here, there) in found.items())


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_word, value)) or "nothing"
    return "not set" if value is None else str(value)


def repeated_runs(grid: Grid, apart: str, name: str) -> Table:
    """Runs that were made a second time with the same command, and the test accuracy of both.

    Args:
        grid: the runs, including the repeated ones.
        apart: the folder of the repeated runs: ``experiments/repeated``.
        name: of the table.
    """
    runs = {(record.recipe, record.seed): record for record in grid.runs}
    rows = []
    for again in (record for record in grid.apart if record.apart == apart):
        first = runs.get((again.recipe, again.seed))
        pair = [] if first is None else [tested([first]), tested([again])]
        if first is not None and all(pair):
            row = [Cell(again.name), *accuracy_cells(pair[0]), *accuracy_cells(pair[1]), against(*pair)]
            rows.append((*row, Cell(changes(again, first) or "nothing")))
    names = tuple(map(name_of, SUBSETS))
    return Table(
        name,
        "The same command a second time, accuracy on the test set in %",
        columns(("run",), (("first", names), ("again", names), ("", ("p", "what differs in its settings")))),
        tuple(rows),
        "p: exact McNemar test between the two networks on all queries.",
    )
