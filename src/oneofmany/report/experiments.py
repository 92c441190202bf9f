"""Tables of experiments: runs with other settings or data than their recipe's, beside the recipe."""

from __future__ import annotations

from typing import Any

from oneofmany.report.cells import count_cell
from oneofmany.report.ours import (
    INTERVALS,
    MAIN_OBJECTIVE,
    VARIANT,
    accuracy_cells,
    against,
    dev_cells,
    on,
    ours,
    training_cell,
)
from oneofmany.report.paper import SUBSETS, name_of
from oneofmany.report.records import Grid, Record, base_of, deciding, goes_on, test_evaluation
from oneofmany.report.table import Cell, Column, Table, columns

LISTED = {"sudoku-train": 5, "sudoku-all-train": 50}
"""Name of a training set -> how many solutions of a query it lists at most; no query has more than 50."""
PUZZLE_TRAIN, PUZZLE_TEST = "sudoku-puzzle-train", "sudoku-puzzle-test"
"""Sudokus split by puzzle: grids of one class may stand in both."""
REPEATED = "learned/repeated"
"""Where the records of runs stand that were made a second time, by the command of the first."""
_NAMES = tuple(map(name_of, SUBSETS))


def listed_of(record: Record) -> int:
    """How many solutions of a training query the run was shown at most."""
    most = LISTED[record["data"]["train"]["name"]]
    asked = record["settings"].get("listed")
    return most if asked is None else min(asked, most)


def listed(grid: Grid) -> Table:
    """Sudoku with 1, 2, 5 or all solutions listed; nothing else differs from the recipe."""
    own = ours(grid)
    groups: dict[int, dict[int, Record]] = {}
    for record in [*own.at("sudoku", MAIN_OBJECTIVE, VARIANT), *_only(own, "listed", "training data")]:
        if _train_name(record) in LISTED:
            groups.setdefault(listed_of(record), {}).setdefault(record["seed"], record)
    rows = []
    for count, seeds in sorted(groups.items()):
        records = list(seeds.values())
        label = "all (at most 50)" if count == max(LISTED.values()) else str(count)
        row = [Cell(label), *dev_cells(records), *accuracy_cells(on(records, "sudoku-test"))]
        rows.append((*row, count_cell(len(records)), training_cell(records)))
    return Table(
        "our-listed",
        "Our network on Sudoku by the number of listed solutions, accuracy in %",
        (*columns(("listed solutions",), (("dev", _NAMES), ("test", _NAMES))), Column("seeds"), Column("training")),
        tuple(rows) if len(rows) > 1 else (),
        f"{INTERVALS} MinLoss. Test is empty for runs that were not evaluated on it.",
    )


def by_puzzle(own: Grid) -> list[Record]:
    """Runs of Sudoku's recipe on data split by puzzle, which have a table of their own."""
    found = _only(own, "training data")
    return [record for record in found if _train_name(record) == PUZZLE_TRAIN and PUZZLE_TEST in record["evaluations"]]


def _only(own: Grid, *names: str) -> list[Record]:
    """Experiments with Sudoku's recipe that differ from it in nothing but these."""
    base = own.at("sudoku", MAIN_OBJECTIVE, VARIANT)[:1]
    return [r for b in base for r in own.apart if base_of(r) == b["recipe"] and set(different(r, b)) <= {*names}]


def _train_name(record: Record) -> str | None:
    return ((record.get("data") or {}).get("train") or {}).get("name")


def different(record: Record, base: Record) -> dict[str, tuple[Any, Any]]:
    """Setting -> (here, in ``base``) for everything that decides the result and differs, the training data too."""
    here, there = (flat(deciding(r)) for r in (record, base))
    # A setting that only one of the two versions knows tells nothing.
    found = {name: (here[name], there[name]) for name in here if name in there and here[name] != there[name]}
    data, other = ((r.get("data") or {}).get("train") or {} for r in (record, base))
    if data.get("checksum") != other.get("checksum"):
        found["training data"] = (data.get("name"), other.get("name"))
    return found


def changes(record: Record, base: Record) -> str:
    """``burn_in 0 instead of 0, 16``: what ``different`` finds, names and phases that no run has aside."""
    found = different(record, base)
    if not any(goes_on(r) for r in (record, base)):
        found = {name: values for name, values in found.items() if not name.startswith("second.")}
    return "; ".join(f"{name} {_word(here)} instead of {_word(there)}" for name, (here, there) in found.items())


def flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by their full names, ``first.lr``."""
    found = {}
    for name, value in settings.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_word, value)) or "nothing"
    return "not set" if value is None else str(value)


def experiments(grid: Grid) -> Table:
    """Everything else that was tried and is not the recipe, good or bad, beside the recipe with the same seeds."""
    own = ours(grid)
    shown = by_puzzle(own)
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in (record for record in own.apart if record not in shown and record["apart"] != REPEATED):
        groups.setdefault((base_of(record), record["apart"].removeprefix("learned/")), []).append(record)
    rows = []
    for (recipe, name), records in groups.items():
        seeds = {record["seed"] for record in records}
        every = [record for record in own.runs if record["recipe"] == recipe]
        base = [record for record in every if record["seed"] in seeds] or every
        text = changes(records[0], base[0]) if base else "there is no run of the recipe"
        row = [Cell(recipe), Cell(name), Cell(text or "nothing")]
        row += [*dev_cells(records), *dev_cells(base), count_cell(len(records))]
        rows.append((*row, training_cell(records), training_cell(base)))
    return Table(
        "our-experiments",
        "Other settings that were tried, accuracy on dev in %",
        (
            *columns(("recipe", "experiment", "what differs"), (("with it", _NAMES), ("recipe", _NAMES))),
            Column("seeds"),
            *columns((), (("training", ("with it", "recipe")),)),
        ),
        tuple(rows),
        "Dev queries, the kept weights. The recipe stands beside it with the same seeds where it has them.",
        labels=3,
    )


def repeated(grid: Grid) -> Table:
    """Runs of our network that were made twice by the same command."""
    return made_twice(ours(grid), REPEATED, "our-repeated")


def made_twice(grid: Grid, apart: str, name: str) -> Table:
    """The runs whose second make stands apart, and what both answered on the test set.

    Args:
        grid: the runs, and those that were made again.
        apart: where the second ones stand: ``learned/repeated``.
        name: the table's.
    """
    runs = {(record["recipe"], record["seed"]): record for record in grid.runs}
    rows = []
    for again in (record for record in grid.apart if record["apart"] == apart):
        first = runs.get((again["recipe"], again["seed"]))
        tested = [[(r, e)] for r in (first, again) if r is not None and (e := test_evaluation(r)) is not None]
        if first is not None and len(tested) == 2:
            row = [Cell(again["name"]), *accuracy_cells(tested[0]), *accuracy_cells(tested[1]), against(*tested)]
            rows.append((*row, Cell(changes(again, first) or "nothing")))
    return Table(
        name,
        "The same command a second time, accuracy on the test set in %",
        columns(("run",), (("first", _NAMES), ("again", _NAMES), ("", ("p", "what differs in its settings")))),
        tuple(rows),
        "p: exact McNemar test between the two networks on all queries.",
    )
