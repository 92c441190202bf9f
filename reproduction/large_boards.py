"""Large Sudokus: accuracy by the number of givens, of networks trained on 9x9 and on 16x16."""

from __future__ import annotations

from functools import partial

from oneofmany.data.benchmark import LARGE
from oneofmany.evaluation.record import Record
from oneofmany.pictures.lines import Line, draw_lines, legend_room
from oneofmany.pictures.searches import STYLES
from oneofmany.pictures.themes import Chart
from oneofmany.report.cells import accuracy_cell
from oneofmany.report.grid import Grid, commands_of
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction.hard import runs_by_way, seeds_cell
from reproduction.ours import INTERVALS

TESTS = {
    name: (int(size), int(givens))
    for name, (_, _, size, _, givens, _) in ((name, name.split("-")) for name in LARGE if "-givens-" in name)
}
"""Test set -> rows of the board, and givens."""
SIZES = sorted({size for size, _ in TESTS.values()})
OWN = "sudoku-size-16-train"


def large_boards(grid: Grid) -> Table:
    """Accuracy on 16x16 and 25x25 by the number of givens."""
    rows = []
    for recipe, ways in runs_by_way(grid, TESTS).items():
        for way, tests in ways.items():
            cells = [accuracy_cell(tests[test], "overall") if test in tests else Cell() for test in TESTS]
            records = [record for runs in tests.values() for record, _ in runs]
            rows.append((Cell(recipe), Cell(trained_on(records[0])), Cell(str(way)), *cells, seeds_cell(tests)))
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


def trained_on(record: Record) -> str:
    """The size of the boards in training; after the network that it began with."""
    own = "16x16" if record.data["train"].name == OWN else "9x9"
    return f"9x9, then {own}" if record.settings.get("initial") else own


def large_chart(grid: Grid) -> Chart | None:
    """Accuracy on 16x16 against the number of givens, a line for every network; one trajectory."""
    lines, records = [], []
    for recipe, ways in runs_by_way(grid, TESTS).items():
        way, tests = next(iter(ways.items()))
        places = {TESTS[test][1]: runs for test, runs in tests.items() if TESTS[test][0] == SIZES[0]}
        if not places or way.starts > 1:
            continue
        of_recipe = [record for runs in places.values() for record, _ in runs]
        points = []
        for givens, runs in sorted(places.items()):
            found = accuracy_cell(runs, "overall").numbers  # as in the table
            points.append(
                (float(givens), found.get("mean", found.get("accuracy")), found.get("low"), found.get("high"))
            )
        label = f"trained on {trained_on(of_recipe[0])}: {recipe}"
        lines.append(Line(label, "minloss", points, *STYLES[len(lines)]))
        records += of_recipe
    if not lines:
        return None
    ticks = {float(givens): str(givens) for size, givens in TESTS.values() if size == SIZES[0]}
    return Chart(
        "large-boards",
        "16x16 Sudokus: accuracy by the number of givens",
        "Accuracy of one trajectory on 1,000 Sudokus of 256 cells for every number of givens.",
        partial(draw_lines, panels=[("", lines)], xlabel="givens", ticks=ticks),
        commands_of(records),
        size=(4.8, 2.9 + legend_room([("", lines)])),
    )
