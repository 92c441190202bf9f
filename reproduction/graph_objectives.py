"""Graph colouring: every objective at the same short budget, beside the loss from the rules alone."""

from __future__ import annotations

from oneofmany.data.graphs import SIZES
from oneofmany.evaluation.record import Evaluation, Scores
from oneofmany.report.cells import count_cell
from oneofmany.report.grid import NAMES, OBJECTIVES, Grid
from oneofmany.report.table import Cell, Table, columns
from reproduction.cells import updates_cell
from reproduction.graphs import EARLIER, SHORT, SOLVABLE, Tested, percent, row_of, tested

TRAINED_ON = SIZES[:2]
"""The sizes that they are trained on."""


def objectives_tables(grid: Grid) -> list[Table]:
    """The tables for 3 and 5 colours."""
    return [objectives_table(grid, colours) for colours in SOLVABLE]


def short_runs(grid: Grid, colours: int) -> list[Tested]:
    """The short runs that compare objectives, one trajectory each; the best one first."""
    found = [of for of in tested(grid, colours) if of.recipe in SHORT and of.way.starts == 1]
    return sorted(found, key=lambda of: (of.earlier, -percent(of, colours, of.sizes[-1:], _one) if of.sizes else 0.0))


def _one(evaluation: Evaluation) -> Scores | None:
    return evaluation.scores


def objectives_table(grid: Grid, colours: int) -> Table:
    """Every objective at the same short budget: percentages of the solvable graphs of the sizes of training."""
    rows = []
    for of in short_runs(grid, colours):
        about = NAMES[next(iter(of.runs)).objective] + EARLIER * of.earlier, of.way.trajectory()
        made = row_of(of, colours, _one)[: len(TRAINED_ON)]
        rows.append((*map(Cell, about), *made, updates_cell(list(of.runs)), count_cell(len(of.runs))))
    return Table(
        f"colouring-objectives-{colours}",
        f"Every objective at the same budget, {colours} colours: % of the solvable test graphs that were coloured",
        columns(("trained with", "answers"), (("nodes", tuple(map(str, TRAINED_ON))), ("", ("updates", "seeds")))),
        tuple(rows),
        "Brackets: 95 % interval over seeds, of one seed Wilson's interval over the graphs. No checker in training or "
        "test. Updates: pre-trainings are included. Rules only: the expected violation of the rules, without listed "
        "solutions. Earlier network: every edge was a rule of its own.",
        labels=2,
    )


def objectives_answer(grid: Grid) -> str:
    """Every objective, the best one first, and the loss from the rules alone; empty unless all were run."""
    colours, nodes = 3, TRAINED_ON[-1]
    runs = {
        next(iter(of.runs)).objective: of for of in short_runs(grid, colours) if not of.earlier and nodes in of.sizes
    }
    if not {"rules", *OBJECTIVES} <= set(runs):
        return ""
    share = {objective: percent(of, colours, [nodes], _one) for objective, of in runs.items()}
    ranked = sorted(OBJECTIVES, key=lambda objective: -share[objective])
    said = [f"{NAMES[objective]} **{share[objective]:.1f}**" for objective in ranked]
    least = min(len(of.runs) for of in runs.values())
    return (
        f"% of the solvable test graphs with {nodes} nodes, {colours} colours: {', '.join(said)}; without listed "
        f"solutions, with the loss from the rules, **{share['rules']:.1f}** "
        f"({'one seed' if least == 1 else f'{least} seeds'})."
    )
