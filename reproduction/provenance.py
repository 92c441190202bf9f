"""Where the published records come from: how many were made from a clean commit, by group."""

from __future__ import annotations

from collections import defaultdict

from oneofmany.evaluation.record import Record
from oneofmany.report.grid import Grid, commands_of
from oneofmany.report.table import Cell, Column, Table
from reproduction.runs import EXPERIMENTS, is_ours

GROUPS = ("our network", "our experiments", "Table 2")
"""The groups that come first; those of the paper's networks that are kept apart follow."""


def group_of(record: Record) -> str:
    """``our network``, ``our experiments``, ``Table 2``, or the folder of the paper's records that are kept apart."""
    if record.apart.startswith(EXPERIMENTS):
        return "our experiments"
    if record.apart:
        return f"the paper's networks, {record.apart.split('/')[0]}"
    return "our network" if is_ours(record) else "Table 2"


def provenance(grid: Grid) -> Table:
    """Every group of records: how many there are, how many of them come from a dirty commit, and which."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in grid.all:
        groups[group_of(record)].append(record)
    rows = []
    for name in sorted(groups, key=lambda one: (GROUPS.index(one) if one in GROUPS else len(GROUPS), one)):
        dirty = [record for record in groups[name] if record.dirty]
        which = ", ".join(dict.fromkeys(f"{record.recipe} ({_seeds(dirty, record)})" for record in dirty))
        count = Cell(f"{len(groups[name]):,}", {"": len(groups[name])}, commands_of(groups[name]))
        rows.append((Cell(name), count, Cell(str(len(dirty)), {"": len(dirty)}), Cell(which)))
    dirty = sum(record.dirty for record in grid.all)
    return Table(
        "provenance",
        "Records by the state of the source tree that made them",
        (Column("group"), Column("records"), Column("from a dirty commit"), Column("recipes (seeds) of those")),
        tuple(rows),
        f"{dirty} of the {len(grid.all)} records come from a dirty commit: training or an evaluation ran with changes "
        "that were not committed, so the revision that the record names may lack a part of the code. All others come "
        "from a clean commit.",
    )


def _seeds(records: list[Record], like: Record) -> str:
    return ", ".join(str(record.seed) for record in records if record.recipe == like.recipe)
