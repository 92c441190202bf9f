"""Large Sudokus: accuracy by the number of givens, of networks trained on 9x9 and on 16x16."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from oneofmany.data.benchmark import LARGE
from oneofmany.evaluation.searching import Searched, SearchPoint
from oneofmany.evaluation.statistics import over_seeds_or_queries
from oneofmany.pictures.lines import Line, draw_lines, legend_room
from oneofmany.pictures.searches import RESTARTS, STYLES
from oneofmany.pictures.themes import Chart
from oneofmany.recipes import data_of, recipe
from oneofmany.report.cells import accuracy_cell, wilson_cell, with_interval
from oneofmany.report.grid import Grid
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction.hard import runs_by_way, seeds_cell
from reproduction.ours import INTERVALS
from reproduction.searches import command_of, grouped

TESTS = {
    name: (int(size), int(givens))
    for name, (_, _, size, _, givens, _) in ((name, name.split("-")) for name in LARGE if "-givens-" in name)
}
"""Test set -> rows of the board, and givens."""
SIZES = sorted({size for size, _ in TESTS.values()})
OWN = "sudoku-size-16-train"


class Row(NamedTuple):
    """A network and how it answers; test set -> cell, the commands behind each among them."""

    network: str
    trained_on: str
    answers: str
    cells: dict[str, Cell]
    seeds: Cell


def evaluated(grid: Grid) -> list[Row]:
    """Runs that were evaluated with all steps."""
    rows = []
    for network, ways in runs_by_way(grid, TESTS).items():
        for way, tests in ways.items():
            cells = {test: accuracy_cell(runs, "overall") for test, runs in tests.items()}
            record = next(iter(tests.values()))[0][0]
            trained = trained_on(record.data["train"].name, bool(record.settings.get("initial")))
            rows.append(Row(network, trained, str(way), cells, seeds_cell(tests)))
    return rows


def searched(searches: Sequence[Searched]) -> list[Row]:
    """Searches by noise: trajectories that stop when they have settled."""
    found: dict[tuple[str, str], dict[str, list[tuple[Searched, SearchPoint]]]] = {}
    for size in SIZES:
        for group, points in grouped(searches, size).items():
            for starts, own in points.items():
                how = "one trajectory" if starts == 1 else f"up to {starts} starts"
                again = "" if starts == 1 else f", {RESTARTS[group.restart]}"
                answers = f"{how}, at most {group.steps:,} steps, until settled{again}"
                found.setdefault((group.network, answers), {})[group.data] = own
    rows = []
    for (network, answers), tests in found.items():
        trained = trained_on(data_of(network)[0], recipe(network).initial is not None)
        rows.append(
            Row(network, trained, answers, {test: _cell(own) for test, own in tests.items()}, seeds_cell(tests))
        )
    return rows


def _cell(points: Sequence[tuple[Searched, SearchPoint]]) -> Cell:
    made, scores = tuple(command_of(one) for one, _ in points), [point.overall for _, point in points]
    if len(scores) == 1:
        return wilson_cell(scores[0], made)
    shares = [score.accuracy or 0.0 for score in scores]
    return with_interval(over_seeds_or_queries(shares, [0.0] * len(shares), [score.total for score in scores]), made)


def large_boards(grid: Grid, searches: Sequence[Searched] = ()) -> Table:
    """Accuracy on 16x16 and 25x25 by the number of givens."""
    rows = [
        (
            *(Cell(text) for text in (row.network, row.trained_on, row.answers)),
            *(row.cells.get(test, Cell()) for test in TESTS),
            row.seeds,
        )
        for row in (*evaluated(grid), *searched(searches))
    ]
    by_size = [
        (f"{size}x{size}, givens of {size**2}", [str(givens) for other, givens in TESTS.values() if other == size])
        for size in SIZES
    ]
    return Table(
        "large-boards",
        "Large Sudokus by the number of givens: accuracy in %",
        (*columns(("network", "trained on", "answers"), by_size), Column("seeds")),
        tuple(rows),
        f"{INTERVALS} One seed: Wilson's interval over the queries. Half of the queries have several solutions. "
        "No checker in training or test.",
        labels=3,
    )


def trained_on(train: str, begun: bool) -> str:
    """The size of the boards of a training set; after that of the network that training began with."""
    own = "16x16" if train == OWN else "9x9"
    return f"9x9, then {own}" if begun else own


def large_chart(grid: Grid, searches: Sequence[Searched] = ()) -> Chart | None:
    """Accuracy on 16x16 against the number of givens, a line for every network; one trajectory."""
    lines, made, drawn = [], [], set()
    for row in (*evaluated(grid), *searched(searches)):
        at = {TESTS[test][1]: cell for test, cell in row.cells.items() if TESTS[test][0] == SIZES[0]}
        if not at or row.network in drawn or not row.answers.startswith("one trajectory"):
            continue
        drawn.add(row.network)
        points = []
        for givens, cell in sorted(at.items()):
            found = cell.numbers  # as in the table
            mean = found.get("mean", found.get("accuracy"))
            points.append((float(givens), mean, found.get("low"), found.get("high")))
            made += cell.commands
        label = f"trained on {row.trained_on}"
        lines.append(Line(label, "minloss", points, *STYLES[len(lines)]))
    if not lines:
        return None
    ticks = {float(givens): str(givens) for size, givens in TESTS.values() if size == SIZES[0]}
    return Chart(
        "large-boards",
        "16x16 Sudokus: accuracy by the number of givens",
        "Accuracy of one trajectory on 1,000 Sudokus of 256 cells for every number of givens.",
        partial(draw_lines, panels=[("", lines)], xlabel="givens", ticks=ticks),
        tuple(dict.fromkeys(made)),
        size=(4.8, 2.9 + legend_room([("", lines)])),
    )
