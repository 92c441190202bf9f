"""Tables of experiments: runs with other settings or data than their recipe's, beside the recipe."""

from __future__ import annotations

from typing import Any

from oneofmany.report.cells import count_cell
from oneofmany.report.ours import (
    INTERVALS,
    MAIN_OBJECTIVE,
    VARIANT,
    accuracy_cells,
    dev_cells,
    on,
    ours,
    training_cell,
)
from oneofmany.report.paper import SUBSETS, name_of
from oneofmany.report.records import NO_RESULT, Grid, Record
from oneofmany.report.table import Cell, Column, Table, columns

LISTED = {"sudoku-train": 5, "sudoku-all-train": 50}
"""Name of a training set -> how many solutions of a query it lists at most; no query has more than 50."""
_NAMES = tuple(map(name_of, SUBSETS))


def listed_of(record: Record) -> int:
    """How many solutions of a training query the run was shown at most."""
    most = LISTED[record["data"]["train"]["name"]]
    asked = record["settings"].get("listed")
    return most if asked is None else min(asked, most)


def listed(grid: Grid) -> Table:
    """Sudoku with 1, 2, 5 or all solutions listed; nothing else differs from the recipe."""
    own = ours(grid)
    base = own.at("sudoku", MAIN_OBJECTIVE, VARIANT)
    more = [r for r in own.apart if base and r["recipe"] == base[0]["recipe"] and _only_listing(r, base[0])]
    groups: dict[int, dict[int, Record]] = {}
    for record in [*base, *more]:
        if ((record.get("data") or {}).get("train") or {}).get("name") in LISTED:
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


def _only_listing(record: Record, base: Record) -> bool:
    return set(different(record, base)) <= {"listed", "training data"}


def different(record: Record, base: Record) -> dict[str, tuple[Any, Any]]:
    """Setting -> (here, in ``base``) for everything that decides the result and differs, the training data too."""
    here, there = (flat({k: v for k, v in r["settings"].items() if k not in NO_RESULT}) for r in (record, base))
    # A setting that only one of the two versions knows tells nothing.
    found = {name: (here[name], there[name]) for name in here if name in there and here[name] != there[name]}
    data, other = ((r.get("data") or {}).get("train") or {} for r in (record, base))
    if data.get("checksum") != other.get("checksum"):
        found["training data"] = (data.get("name"), other.get("name"))
    return found


def changes(record: Record, base: Record) -> str:
    """``burn_in 0 instead of 0, 16``: what ``different`` finds, names and phases that no run has aside."""
    found = {name: values for name, values in different(record, base).items() if name != "recipe"}
    if not any((r["settings"].get("second") or {}).get("updates") for r in (record, base)):
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
    """Everything that was tried and is not the recipe, good or bad, beside the recipe with the same seeds."""
    own = ours(grid)
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in own.apart:
        groups.setdefault((record["recipe"], record["apart"].removeprefix("learned/")), []).append(record)
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
