"""Graph colouring on RandCSPBench: percentages of the solvable test graphs that runs colour, by size and degree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from oneofmany.data.graphs import DEGREES, PARTS, SIZES
from oneofmany.evaluation.record import Evaluation, Record, Scores
from oneofmany.evaluation.scores import Score
from oneofmany.pictures.lines import Line, draw_lines, legend_room
from oneofmany.pictures.searches import STYLES
from oneofmany.pictures.themes import Chart
from oneofmany.report.cells import number_cell, wilson_cell, with_interval
from oneofmany.report.grid import OBJECTIVES, Grid, commands_of, summarise
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction.experiments import PAIRS
from reproduction.other_papers import COLOURING
from reproduction.paired import distinct
from reproduction.runs import ours, train_name
from reproduction.solvable import solvable_graphs

Row = tuple[Cell, ...]
SOLVABLE = {3: (1_516, 2_059, 2_409, 2_781, 2_985), 5: (2, 654, 2_111, 2_984, 3_433)}
"""Colours -> the number of test graphs of every size that any published solver has coloured."""
ALL = "-all"
"""In the names of data with all 4,000 test graphs of a size, which are in the order of their mean degrees."""
EARLIER = ", earlier network"
SHORT = {
    f"colouring/{objective}/equivariant{colours}"
    for objective in (*OBJECTIVES, "rules")
    for colours in ("", "/5-colours")
}
"""The recipes that compare objectives at one short budget."""


class Way(NamedTuple):
    """How graphs are answered: the most steps of a trajectory, the number of starts, when an answer is final."""

    steps: int
    starts: int
    patience: int | None

    def trajectory(self) -> str:
        """``one trajectory, at most 1,024 steps``; with patience it ends when the answer does not change any more."""
        return f"one trajectory, {'at most ' * (self.patience is not None)}{self.steps:,} steps"


def way_of(one: Evaluation) -> Way:
    """How an evaluation was made."""
    return Way(one.steps or 1, one.starts, one.patience or None)


def solved(record: Record, colours: int, way: Way) -> dict[int, Evaluation]:
    """The evaluations of a run made in this way, by number of nodes; those on all test graphs come first."""
    found: dict[int, Evaluation] = {}
    for nodes in SIZES:
        names = [f"colouring-{colours}-size-{nodes}{name}-test" for name in (ALL, "")]
        own = [one for one in record.evaluations.values() if one.data.name in names and way_of(one) == way]
        if own:
            found[nodes] = min(own, key=lambda one: names.index(one.data.name))
    return found


def known(one: Evaluation) -> int:
    """How many graphs are known to have a colouring by the file of an evaluation, or by its answers."""
    if f"{ALL}-" not in one.data.name:
        return one.data.queries
    return max(found.overall.correct for found in (one.scores, one.chosen, one.checked) if found is not None)


def _answers(way: Way) -> dict[str, Callable[[Evaluation], Scores | None]]:
    """How starts become one answer."""
    if way.starts == 1:
        return {way.trajectory(): lambda one: one.scores}
    return {
        way.trajectory(): lambda one: one.scores,
        f"{way.starts} starts, the network chooses": lambda one: one.chosen,
        f"any of {way.starts} starts, with the checker": lambda one: one.checked,
    }


class Tested(NamedTuple):
    """A recipe's runs and how they answer: for every run its evaluations by number of nodes.

    ``earlier``: runs of the network in which every edge was a rule of its own (``experiments/colouring-pairs``).
    """

    recipe: str
    earlier: bool
    way: Way
    runs: dict[Record, dict[int, Evaluation]]

    @property
    def name(self) -> str:
        """The recipe, and whether the runs are of the earlier network."""
        return f"{self.recipe}{EARLIER * self.earlier}"

    @property
    def sizes(self) -> list[int]:
        """The sizes that all runs were tested on."""
        return [nodes for nodes in SIZES if all(nodes in own for own in self.runs.values())]


def tested(grid: Grid, colours: int) -> Iterator[Tested]:
    """The runs that were tested on graphs with this number of colours, which they were trained on."""
    own = ours(grid)
    pairs = [record for record in own.apart if record.apart == PAIRS]
    others = distinct(replace(own, apart=tuple(record for record in own.apart if record.apart != PAIRS)))
    of_recipe: dict[tuple[str, bool], list[Record]] = {}
    for record in sorted((*others, *pairs), key=lambda record: (record.apart == PAIRS, record.recipe, record.seed)):
        if (train_name(record) or "").startswith(f"colouring-{colours}-"):
            of_recipe.setdefault((record.recipe, record.apart == PAIRS), []).append(record)
    for (recipe, earlier), records in of_recipe.items():
        every = {way_of(one) for record in records for one in record.evaluations.values()}
        for way in sorted(every, key=lambda way: (way.starts, way.steps, way.patience or 0)):
            runs = {record: found for record in records if (found := solved(record, colours, way))}
            if runs:
                yield Tested(recipe, earlier, way, runs)


def _scores(of: Tested, colours: int, sizes: Sequence[int], kept: Callable[[Evaluation], Scores | None]) -> list[Score]:
    """For every run, how many graphs of these sizes it colours, of the solvable ones."""
    published: dict[int, int] = dict(zip(SIZES, SOLVABLE[colours], strict=True))
    scores = []
    for own in of.runs.values():
        found = [kept(own[nodes]) for nodes in sizes]
        # A graph that published solvers have coloured and our searches have not may not be in the file: not solved.
        total = sum(max(published[nodes], known(own[nodes])) for nodes in sizes)
        scores.append(Score(sum(one.overall.correct for one in found if one is not None), total))
    return scores


def percent(of: Tested, colours: int, sizes: Sequence[int], kept: Callable[[Evaluation], Scores | None]) -> float:
    """The same in percent, mean over seeds."""
    return float(np.mean([100 * score.correct / score.total for score in _scores(of, colours, sizes, kept)]))


def row_of(of: Tested, colours: int, kept: Callable[[Evaluation], Scores | None]) -> Row:
    """The cells of runs that differ in the seed: every size that all of them were tested on, and all sizes together."""

    def cell(sizes: Sequence[int]) -> Cell:
        if not set(sizes) <= set(of.sizes):
            return Cell()
        scores = _scores(of, colours, sizes, kept)
        made = commands_of(of.runs, [own[nodes] for own in of.runs.values() for nodes in sizes])
        if len(scores) == 1:
            return wilson_cell(scores[0], made)
        shares = [(record, score.accuracy) for record, score in zip(of.runs, scores, strict=True)]
        return with_interval(summarise(shares, [score.total for score in scores]), made)

    return (*(cell([nodes]) for nodes in SIZES), cell(SIZES))


def _seconds(of: Tested) -> Cell:
    """Seconds for all graphs of all sizes, mean over seeds, if all were measured."""
    taken = [one.seconds for own in of.runs.values() for one in own.values()]
    if of.sizes != list(SIZES) or any(one is None for one in taken):
        return Cell()
    return number_cell(float(sum(one for one in taken if one is not None)) / len(of.runs), ",.0f")


def graph_table(grid: Grid, colours: int) -> Table:
    """The runs that were evaluated on the graphs of RandCSPBench, size by size; seeds of a recipe are one row.

    Networks that were trained on graphs with another number of colours are left out, and so are the short runs that
    compare objectives.
    """
    rows: list[Row] = []
    shown = [of for of in tested(grid, colours) if of.recipe not in SHORT]
    for of in shown:
        views = list(_answers(of.way).items())
        if any(
            other.name == of.name and other.way == of.way._replace(starts=1) for other in shown if of.way.starts > 1
        ):
            views = views[1:]  # the first start has a row of its own
        for place, (answers, kept) in enumerate(views):
            about = Cell(of.name), Cell(str(len(of.runs))), Cell(answers)
            rows.append((*about, *row_of(of, colours, kept), Cell() if place else _seconds(of)))
    if rows:
        rows += [
            (Cell(f"{name}, published"), Cell(), Cell(one.search), *map(number_cell, one.by_nodes), Cell())
            for name, one in COLOURING[colours].items()
        ]
    return Table(
        f"colouring-{colours}",
        f"Graph colouring with {colours} colours: % of the solvable test graphs that were coloured",
        (*columns(("recipe", "seeds", "answers"), (("nodes", (*map(str, SIZES), "all")),)), Column("seconds")),
        tuple(rows),
        "Mean over seeds. Brackets: 95 % interval over seeds, of one seed Wilson's interval over the graphs. Solvable: "
        "coloured by any published solver or by ours. Seconds: for all starts on all test graphs, on a GPU that "
        "other work shared or, for recipes named after one core, on that. Earlier network: every edge was a rule of "
        "its own.",
        labels=3,
    )


def graph_tables(grid: Grid) -> list[Table]:
    """The tables for 3 and 5 colours, by size and by mean degree."""
    return [table(grid, colours) for table in (graph_table, density_table) for colours in SOLVABLE]


# ---- by mean degree -------------------------------------------------------------------------------------------------


def best_trajectory(grid: Grid, colours: int) -> Tested | None:
    """One trajectory on all graphs of all sizes: that which colours most graphs of dev; None without one.

    Of equal ways the one with more steps; runs of the earlier network only if there are no others.
    """
    whole = [of for of in tested(grid, colours) if of.way.starts == 1 and of.sizes == list(SIZES)]
    whole = [of for of in whole if all(f"{ALL}-" in one.data.name for own in of.runs.values() for one in own.values())]

    def on_dev(of: Tested) -> tuple[bool, float, int]:
        shares = [record.dev.overall or 0.0 for record in of.runs if record.dev is not None]
        return not of.earlier, float(np.mean(shares)) if shares else 0.0, of.way.steps

    return max(whole, key=on_dev, default=None)


def by_degree(of: Tested, nodes: int) -> np.ndarray:
    """The percentage of all graphs of a size and mean degree that one trajectory colours, mean over seeds: [10]."""
    number = PARTS["test"][1]
    return np.mean([100 * own[nodes].valid.reshape(-1, number).mean(1) for own in of.runs.values()], 0)


def density_table(grid: Grid, colours: int) -> Table:
    """How many of all graphs of a size and mean degree are coloured, by the network and by our searches."""
    of, searched = best_trajectory(grid, colours), solvable_graphs()[colours]
    rows: list[Row] = []
    for nodes in SIZES:
        if of is None:
            break
        made = commands_of(of.runs, [own[nodes] for own in of.runs.values()])
        cells = [Cell(f"{share:.1f}", {"share": float(share)}, made) for share in by_degree(of, nodes)]
        rows.append((Cell(str(nodes)), Cell("network"), *cells))
        if nodes in searched:
            shares = [100 * number / PARTS["test"][1] for number in searched[nodes]]
            rows.append((Cell(str(nodes)), Cell("searches"), *(number_cell(share, ".1f") for share in shares)))
    about = "" if of is None else f"Network: {of.name}, {of.way.trajectory()}, mean over {len(of.runs)} seeds. "
    return Table(
        f"colouring-density-{colours}",
        f"Graph colouring with {colours} colours: % of the 400 test graphs of every size and mean degree",
        columns(("nodes", "coloured by"), (("mean degree", [f"{degree:.2f}" for degree in DEGREES[colours]]),)),
        tuple(rows),
        f"{about.replace('1 seeds', 'one seed')}Most graphs of a high mean degree have no colouring. Searches: the "
        "graphs for which our exhaustive or local searches found one; on large graphs there may be more.",
        labels=2,
    )


def largest_trained(record: Record) -> int:
    """The number of nodes of the largest graphs that a run was trained on."""
    name = train_name(record) or ""
    return next((nodes for part, nodes in (("-small-", 32), ("-medium-", 64)) if part in name), SIZES[-1])


def graph_chart(grid: Grid) -> Chart | None:
    """Percentage of the solvable graphs by size: one trajectory and several starts beside published solvers."""
    panels, made, trained = [], [], [0]
    for colours in SOLVABLE:
        best = best_trajectory(grid, colours)
        lines = []
        if best is not None:
            trained += [largest_trained(record) for record in best.runs]
        for of in tested(grid, colours):
            if best is None or of.name != best.name or of.sizes != list(SIZES):
                continue
            for place, (answers, kept) in enumerate(_answers(of.way).items()):
                if place == 0 and of.way.starts > 1:
                    continue
                points = [(float(n), percent(of, colours, [n], kept), None, None) for n in SIZES]
                lines.append(
                    Line(f"ours{EARLIER * of.earlier}, {answers}", "minloss", points, *STYLES[len(lines) % len(STYLES)])
                )
            made += commands_of(of.runs, [own[nodes] for own in of.runs.values() for nodes in SIZES])
        for name, one in COLOURING[colours].items():
            known_sizes = [(n, share) for n, share in zip(SIZES, one.by_nodes, strict=False) if share is not None]
            points = [(float(n), float(share), None, None) for n, share in known_sizes]
            if lines and points:
                lines.append(Line(f"{name}, published", "ink", points, "x", ":"))
        if lines:
            panels.append((f"{colours} colours", lines))
    if not panels:
        return None
    return Chart(
        "colouring",
        "Graph colouring: how it falls with size",
        "Percentage of the solvable test graphs of RandCSPBench that are coloured, by number of nodes. The networks "
        f"were trained on graphs of up to {max(trained)} nodes.",
        partial(
            draw_lines, panels=panels, xlabel="nodes", ticks={float(nodes): str(nodes) for nodes in SIZES}, log=True
        ),
        tuple(dict.fromkeys(made)),
        size=(4.8, 2.2 * len(panels) + 0.9 + legend_room(panels[0][1:] and [panels[0]])),
    )


def graph_answer(grid: Grid) -> str:
    """What part of the solvable test graphs is coloured, beside the published numbers; empty without runs."""
    parts = []
    for colours in SOLVABLE:
        best = best_trajectory(grid, colours)
        if best is None:
            continue
        found = []
        for of in tested(grid, colours):
            if of.name != best.name or of.sizes != list(SIZES) or (of.way.starts == 1 and of.way != best.way):
                continue
            for place, (answers, kept) in enumerate(_answers(of.way).items()):
                if place == 0 and of.way.starts > 1:
                    continue
                found.append(f"**{percent(of, colours, SIZES, kept):.1f} %** ({answers})")
        others = ", ".join(f"{name} {one.by_nodes[-1]:.1f}" for name, one in COLOURING[colours].items())
        seeds = "one seed" if len(best.runs) == 1 else f"mean of {len(best.runs)} seeds"
        about = f"`{best.recipe}`{EARLIER * best.earlier}, {seeds}"
        parts.append(f"* **{colours} colours**, {about}: {'; '.join(found)}. Published: {others}.")
    return "\n".join(parts)
