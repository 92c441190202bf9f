"""Experiments: runs with other settings or data, compared with their recipe."""

from __future__ import annotations

from oneofmany.evaluation.record import SUBSETS, Record
from oneofmany.recipes.ingredients import ingredient_recipes
from oneofmany.report.cells import count_cell, training_cell
from oneofmany.report.grid import Grid, name_of
from oneofmany.report.results import ACCURACIES
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction.cells import accuracy_cells, dev_cells
from reproduction.differences import changes, different, repeated_runs
from reproduction.ours import INTERVALS, MAIN_OBJECTIVE, on
from reproduction.runs import CHECKER_VARIANT, EXPERIMENTS, base_of, ours, train_name

LISTED = {"sudoku-train": 5, "sudoku-all-train": 50}
"""Name of a training set -> the largest number of solutions listed for a query; no query has more than 50."""
PUZZLE_TRAIN, PUZZLE_TEST = "sudoku-puzzle-train", "sudoku-puzzle-test"
"""Sudokus split by puzzle: grids of one class may be in both."""
COMPLETION = f"{EXPERIMENTS}/completion-"
"""How the folders of runs on N-Queens with many solutions begin; they have their own tables."""
GRAPHS = f"{EXPERIMENTS}/colouring"
"""The folder of runs on graphs, which have their own page."""
PAIRS = f"{GRAPHS}-pairs"
"""The folder of runs of the earlier network, in which every edge of a graph was a rule of its own."""
GALLERY = f"{EXPERIMENTS}/gallery"
"""How the folders of runs on the tasks of the gallery begin, which are not in the package."""
REPEATED = f"{EXPERIMENTS}/repeated"
"""The folder of runs that were made a second time with the same command."""
OWN_TABLES = frozenset(one.name for one in ingredient_recipes())
"""Recipes that have their own tables."""
_NAMES = tuple(map(name_of, SUBSETS))


def listed_of(record: Record) -> int:
    """The largest number of solutions that the run saw for a training query."""
    most = LISTED[record.data["train"].name]
    asked = record.setting("listed")
    return most if asked is None else min(asked, most)


def listed(grid: Grid) -> Table:
    """Sudoku with the checker and up to 1, 2, 5 or all solutions listed; nothing else differs from the recipe."""
    own = ours(grid)
    groups: dict[int, dict[int, Record]] = {}
    for record in [*own.at("sudoku", MAIN_OBJECTIVE, CHECKER_VARIANT), *_only(own, "listed", "training data")]:
        if train_name(record) in LISTED:
            groups.setdefault(listed_of(record), {}).setdefault(record.seed, record)
    rows = []
    for count, seeds in sorted(groups.items()):
        records = list(seeds.values())
        label = "all (at most 50)" if count == max(LISTED.values()) else str(count)
        row = [Cell(label), *dev_cells(records), *accuracy_cells(on(records, "sudoku-test"))]
        rows.append((*row, count_cell(len(records)), training_cell(records)))
    return Table(
        "our-listed",
        "Our network on Sudoku with the checker, by the number of listed solutions, accuracy in %",
        (*columns(("listed solutions",), (("dev", _NAMES), ("test", _NAMES))), Column("seeds"), Column("training")),
        tuple(rows) if len(rows) > 1 else (),
        f"{INTERVALS} MinLoss, trained with the checker (`{CHECKER_VARIANT}`). Test: the first test set.",
    )


def by_puzzle(own: Grid) -> list[Record]:
    """Runs of Sudoku's recipe with the checker on data split by puzzle, which have their own table."""
    found = _only(own, "training data")
    return [record for record in found if train_name(record) == PUZZLE_TRAIN and PUZZLE_TEST in record.evaluations]


def _only(own: Grid, *names: str) -> list[Record]:
    """Experiments that differ from Sudoku's recipe with the checker only in these settings."""
    base = own.at("sudoku", MAIN_OBJECTIVE, CHECKER_VARIANT)[:1]
    return [r for b in base for r in own.apart if base_of(r) == b.recipe and set(different(r, b)) <= {*names}]


def experiments(grid: Grid) -> Table:
    """All other experiments, good or bad, compared with the recipe with the same seeds."""
    own = ours(grid)
    shown = [
        *by_puzzle(own),
        *(r for r in own.apart if r.apart in (GRAPHS, PAIRS, REPEATED) or r.apart.startswith((COMPLETION, GALLERY))),
    ]
    shown += [record for record in own.apart if record.recipe in OWN_TABLES]
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in (record for record in own.apart if record not in shown):
        groups.setdefault((base_of(record), record.apart.removeprefix(f"{EXPERIMENTS}/")), []).append(record)
    rows = []
    for (recipe, name), records in groups.items():
        seeds = {record.seed for record in records}
        every = [record for record in own.runs if record.recipe == recipe]
        base = [record for record in every if record.seed in seeds] or every
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
        "Dev queries, the kept weights. The recipe is shown with the same seeds if it has them.",
        labels=3,
    )


def splits(grid: Grid) -> Table:
    """Sudoku split by grid class, as everywhere else, and split by puzzle, each with its own training and test."""
    own = ours(grid)
    of_class = on(own.at("sudoku", MAIN_OBJECTIVE, CHECKER_VARIANT), "sudoku-test")
    of_puzzle = on(by_puzzle(own), PUZZLE_TEST)
    rows = [
        (Cell(label), count_cell(runs[0][1].data.queries), *accuracy_cells(runs), count_cell(len(runs)))
        for label, runs in (("by grid class", of_class), ("by puzzle", of_puzzle))
        if runs and of_puzzle
    ]
    return Table(
        "our-split",
        "Our network on Sudoku split by grid class and by puzzle, accuracy in %",
        (*columns(("split",), (("", ("queries",)), ACCURACIES)), Column("seeds")),
        tuple(rows),
        f"{INTERVALS} MinLoss, trained with the checker (`{CHECKER_VARIANT}`), the same settings; each row is trained "
        "and tested on data of its own split. Grids that turn into each other by symmetries are one class. A split by "
        "puzzle allows queries made from grids of one class in both training and test; a split by grid class does not.",
    )


def our_repeated(grid: Grid) -> Table:
    """Runs of our network that were made twice with the same command."""
    return repeated_runs(ours(grid), REPEATED, "our-repeated")
