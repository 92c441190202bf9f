"""Where the published records come from: how many were made from a clean commit in the history, by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from oneofmany.evaluation.record import Record
from oneofmany.report.grid import Grid, commands_of
from oneofmany.report.table import Cell, Column, Table
from reproduction.runs import EXPERIMENTS, is_ours

GROUPS = ("our network", "our experiments", "Table 2")
"""The groups that come first; those of the paper's networks that are kept apart follow."""

LOST = frozenset({"b50d10d0951d", "d8db37fb2fba", "f1988f8506a0"})
"""Clean commits that records name and that are not in the history: their branch was lost before it was merged."""


def group_of(record: Record) -> str:
    """``our network``, ``our experiments``, ``Table 2``, or the folder of the paper's records that are kept apart."""
    if record.apart.startswith(EXPERIMENTS):
        return "our experiments"
    if record.apart:
        return f"the paper's networks, {record.apart.split('/')[0]}"
    return "our network" if is_ours(record) else "Table 2"


def provenance(grid: Grid) -> Table:
    """Every group of records: how many come from a dirty commit, how many from a lost one, and which."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in grid.all:
        groups[group_of(record)].append(record)
    rows = []
    for name in sorted(groups, key=lambda one: (GROUPS.index(one) if one in GROUPS else len(GROUPS), one)):
        count = Cell(f"{len(groups[name]):,}", {"": len(groups[name])}, commands_of(groups[name]))
        rows.append((Cell(name), count, *_named(_dirty(groups[name])), *_named(_lost(groups[name]))))
    return Table(
        "provenance",
        "Records by the state of the source tree that made them",
        (
            Column("group"),
            Column("records"),
            Column("from a dirty commit"),
            Column("recipes (seeds) of those"),
            Column("from a lost commit"),
            Column("recipes (seeds) of those"),
        ),
        tuple(rows),
        f"{len(_dirty(grid.all))} of the {len(grid.all)} records come from a dirty commit: training or an evaluation "
        "ran with changes that were not committed, so the revision that the record names may lack a part of the code. "
        f"{len(_lost(grid.all))} come from a clean commit that is not in the history any more, because its branch was "
        "lost; the same changes were committed again later, but the exact tree cannot be looked up. All others come "
        "from a clean commit in the history.",
    )


def _dirty(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.dirty]


def _lost(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.revisions & LOST]


def _named(records: list[Record]) -> tuple[Cell, Cell]:
    which = ", ".join(dict.fromkeys(f"{record.recipe} ({_seeds(records, record)})" for record in records))
    return Cell(str(len(records)), {"": len(records)}), Cell(which)


def _seeds(records: list[Record], like: Record) -> str:
    return ", ".join(str(record.seed) for record in records if record.recipe == like.recipe)
