"""Graph colouring on RandCSPBench: percentages of the solvable test graphs that runs colour, by number of nodes."""

from __future__ import annotations

from typing import NamedTuple

from oneofmany.data.graphs import SIZES
from oneofmany.evaluation.record import Evaluation, Record
from oneofmany.evaluation.scores import Score
from oneofmany.report.cells import wilson_cell
from oneofmany.report.grid import Grid, commands_of
from oneofmany.report.table import Cell, Table, columns
from reproduction.runs import ours

SOLVABLE = {3: (1_516, 2_059, 2_409, 2_781, 2_985), 5: (2, 654, 2_111, 2_984, 3_433)}
"""Colours -> the number of test graphs of every size that any published solver has coloured."""


class Solved(NamedTuple):
    """An evaluation on the graphs of one size: those coloured in one trajectory, and by any of the starts."""

    evaluation: Evaluation
    one: int
    checked: int


def solved(record: Record, colours: int, starts: int) -> dict[int, Solved]:
    """The evaluations of a run with this many starts, by number of nodes."""
    found = {}
    for one in record.evaluations.values():
        for nodes in SIZES:
            if one.data.name == f"colouring-{colours}-size-{nodes}-test" and one.starts == starts:
                checked = one.checked or one.scores
                found[nodes] = Solved(one, one.scores.overall.correct, checked.overall.correct)
    return found


def _rows(record: Record, colours: int, starts: int) -> list[tuple[Cell, ...]]:
    own = solved(record, colours, starts)
    made = commands_of([record], [one.evaluation for one in own.values()])
    ways = {"one trajectory": {nodes: one.one for nodes, one in own.items()}}
    if starts > 1:
        ways[f"any of {starts} starts, with the checker"] = {nodes: one.checked for nodes, one in own.items()}
    # A graph that published solvers have coloured and our searches have not is not in the file: not solved.
    published: dict[int, int] = dict(zip(SIZES, SOLVABLE[colours], strict=True))
    totals = {nodes: max(published[nodes], one.evaluation.data.queries) for nodes, one in own.items()}
    rows = []
    for way, right in ways.items():
        scores = {nodes: Score(right[nodes], totals[nodes]) for nodes in own}
        every = Score(sum(right.values()), sum(totals.values())) if len(own) == len(SIZES) else None
        cells = [wilson_cell(scores.get(nodes), made) for nodes in SIZES]
        rows.append((Cell(record.recipe), Cell(way), *cells, wilson_cell(every, made)))
    return rows


def graph_table(grid: Grid, colours: int) -> Table:
    """The runs that were evaluated on the graphs of RandCSPBench, size by size."""
    rows: list[tuple[Cell, ...]] = []
    own = ours(grid)
    for record in sorted((*own.runs, *own.apart), key=lambda record: record.name):
        tried = {evaluation.starts for evaluation in record.evaluations.values()}
        for starts in sorted(tried):
            if solved(record, colours, starts):
                rows += _rows(record, colours, starts)
    return Table(
        f"colouring-{colours}",
        f"Graph colouring with {colours} colours: % of the solvable test graphs that were coloured",
        columns(("recipe", "way"), (("nodes", (*map(str, SIZES), "all")),)),
        tuple(rows),
        "Brackets: Wilson's interval (95 %) over the graphs. Solvable: coloured by any published solver or by ours.",
        labels=2,
    )


def graph_tables(grid: Grid) -> list[Table]:
    """The tables for 3 and 5 colours."""
    return [graph_table(grid, colours) for colours in SOLVABLE]
