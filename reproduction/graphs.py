"""Graph colouring on RandCSPBench: percentages of the solvable test graphs that runs colour, by number of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oneofmany.data.graphs import SIZES
from oneofmany.evaluation.record import Evaluation, Record, Scores
from oneofmany.evaluation.scores import Score
from oneofmany.report.cells import wilson_cell, with_interval
from oneofmany.report.grid import Grid, commands_of, summarise
from oneofmany.report.table import Cell, Table, columns
from reproduction.paired import distinct
from reproduction.runs import ours, train_name

Row = tuple[Cell, ...]
SOLVABLE = {3: (1_516, 2_059, 2_409, 2_781, 2_985), 5: (2, 654, 2_111, 2_984, 3_433)}
"""Colours -> the number of test graphs of every size that any published solver has coloured."""


def solved(record: Record, colours: int, starts: int) -> dict[int, Evaluation]:
    """The evaluations of a run with this many starts, by number of nodes; those on all test graphs come first."""
    found: dict[int, Evaluation] = {}
    for nodes in SIZES:
        names = [f"colouring-{colours}-size-{nodes}{name}-test" for name in ("-all", "")]
        own = [one for one in record.evaluations.values() if one.data.name in names and one.starts == starts]
        if own:
            found[nodes] = min(own, key=lambda one: names.index(one.data.name))
    return found


def known(one: Evaluation) -> int:
    """How many graphs are known to have a colouring by the file of an evaluation, or by its answers."""
    if "-all-" not in one.data.name:
        return one.data.queries
    return max(found.overall.correct for found in (one.scores, one.chosen, one.checked) if found is not None)


def _ways(starts: int) -> dict[str, Callable[[Evaluation], Scores | None]]:
    """How starts become one answer."""
    if starts == 1:
        return {"one trajectory": lambda one: one.scores}
    return {
        "one trajectory": lambda one: one.scores,
        f"{starts} starts, the network chooses": lambda one: one.chosen,
        f"any of {starts} starts, with the checker": lambda one: one.checked,
    }


def _row(runs: dict[Record, dict[int, Evaluation]], colours: int, way: Callable[[Evaluation], Scores | None]) -> Row:
    """The cells of runs that differ in the seed: every size that all of them were tested on, and all sizes together."""
    published: dict[int, int] = dict(zip(SIZES, SOLVABLE[colours], strict=True))
    every = [nodes for nodes in SIZES if all(nodes in own for own in runs.values())]

    def solvable(nodes: int, one: Evaluation) -> int:
        # A graph that published solvers have coloured and our searches have not may not be in the file: not solved.
        return max(published[nodes], known(one))

    def cell(sizes: Sequence[int]) -> Cell:
        if not set(sizes) <= set(every):
            return Cell()
        scores = []
        for own in runs.values():
            found = [way(own[nodes]) for nodes in sizes]
            right = sum(one.overall.correct for one in found if one is not None)
            scores.append(Score(right, sum(solvable(nodes, own[nodes]) for nodes in sizes)))
        made = commands_of(runs, [own[nodes] for own in runs.values() for nodes in sizes])
        if len(scores) == 1:
            return wilson_cell(scores[0], made)
        shares = [(record, score.accuracy) for record, score in zip(runs, scores, strict=True)]
        return with_interval(summarise(shares, [score.total for score in scores]), made)

    return (*(cell([nodes]) for nodes in SIZES), cell(SIZES))


def graph_table(grid: Grid, colours: int) -> Table:
    """The runs that were evaluated on the graphs of RandCSPBench, size by size; seeds of a recipe are one row.

    Networks that were trained on graphs with another number of colours are left out.
    """
    rows: list[Row] = []
    of_recipe: dict[str, list[Record]] = {}
    for record in sorted(distinct(ours(grid)), key=lambda record: (record.recipe, record.seed)):
        if (train_name(record) or "").startswith(f"colouring-{colours}-"):
            of_recipe.setdefault(record.recipe, []).append(record)
    for recipe, records in of_recipe.items():
        for starts in sorted({one.starts for record in records for one in record.evaluations.values()}):
            runs = {record: found for record in records if (found := solved(record, colours, starts))}
            for way, scores_of in _ways(starts).items() if runs else ():
                rows.append((Cell(recipe), Cell(str(len(runs))), Cell(way), *_row(runs, colours, scores_of)))
    return Table(
        f"colouring-{colours}",
        f"Graph colouring with {colours} colours: % of the solvable test graphs that were coloured",
        columns(("recipe", "seeds", "way"), (("nodes", (*map(str, SIZES), "all")),)),
        tuple(rows),
        "Mean over seeds. Brackets: 95 % interval over seeds, of one seed Wilson's interval over the graphs. Solvable: "
        "coloured by any published solver or by ours.",
        labels=3,
    )


def graph_tables(grid: Grid) -> list[Table]:
    """The tables for 3 and 5 colours."""
    return [graph_table(grid, colours) for colours in SOLVABLE]
