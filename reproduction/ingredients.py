"""What the checker, revealed cells, burn-in, listed solutions and the objective each give: Sudoku, short runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

from oneofmany.evaluation.record import SUBSETS, Record
from oneofmany.evaluation.statistics import SeedSummary
from oneofmany.pictures.themes import Chart
from oneofmany.recipes.ingredients import (
    ALIKE,
    ALIKE_FIRST,
    SHORT,
    SHORT_CHECKER,
    SHORT_RECIPE,
)
from oneofmany.recipes.ingredients import factorial as factorial_recipes
from oneofmany.report.cells import Runs, commands, count_cell, number_cell, training_cell
from oneofmany.report.grid import OBJECTIVES, Grid, commands_of, name_of, summary_of
from oneofmany.report.results import ACCURACIES
from oneofmany.report.table import Cell, Column, Table, columns, signed
from reproduction.cells import accuracy_cells, dev_cells
from reproduction.curves import steps_of
from reproduction.forest import forest, image
from reproduction.ours import INTERVALS, MAIN_OBJECTIVE, on
from reproduction.paired import (
    HIGHER,
    LOWER,
    PAIRED,
    UNDECIDED,
    difference,
    in_points,
    mean_difference,
    of_recipe,
    paired_cells,
    verdict,
)

TEST = "sudoku-test"
NO, SPARING, CHECKER = "no", "no, settled queries are left out", "yes"
"""Whether the checker takes part in training."""
HELPS = {HIGHER: "helps", LOWER: "hurts", UNDECIDED: UNDECIDED}
LAST_PART = 0.2
"""The last part of the last phase, in which dev should be flat."""


class Setup(NamedTuple):
    """A cell of the factorial design."""

    checker: str
    reveal: bool
    burn_in: bool


@cache
def _setups() -> dict[Setup, str]:
    """Cell -> recipe."""
    found = {}
    for one in factorial_recipes():
        s = one.settings
        checker = CHECKER if s.discover else SPARING if s.spare_settled else NO
        found[Setup(checker, s.reveal > 0, s.burn_in != (0,))] = one.name
    return dict(sorted(found.items(), key=lambda item: (item[0][1:], (NO, SPARING, CHECKER).index(item[0].checker))))


def factorial_runs(grid: Grid) -> dict[Setup, Runs]:
    """Cell -> its runs on the first test set."""
    return {setup: on(of_recipe(grid, name), TEST) for setup, name in _setups().items()}


def _effects() -> dict[str, list[tuple[Setup, Setup]]]:
    """What is compared -> pairs of cells that differ in it alone: (with, without)."""
    both = (False, True)
    cells = list(product((NO, CHECKER), both))
    return {
        "the checker": [(Setup(CHECKER, *rest), Setup(NO, *rest)) for rest in product(both, both)],
        "revealed cells": [(Setup(c, True, b), Setup(c, False, b)) for c, b in cells],
        "burn-in without the checker": [(Setup(NO, r, True), Setup(NO, r, False)) for r in both],
        "burn-in with the checker": [(Setup(CHECKER, r, True), Setup(CHECKER, r, False)) for r in both],
        "leaving settled queries out": [(Setup(SPARING, r, True), Setup(NO, r, True)) for r in both],
    }


def factorial(grid: Grid) -> Table:
    """Checker x revealed cells x burn-in, at one short budget."""
    rows = []
    for setup, name in _setups().items():
        if records := of_recipe(grid, name):
            labels = (setup.checker, "80 %" if setup.reveal else "no", "0, 16, 32" if setup.burn_in else "no")
            runs = on(records, TEST)
            row = (*map(Cell, labels), dev_cells(records)[-1], *accuracy_cells(runs))
            rows.append((*row, count_cell(len(records)), training_cell(records)))
    return Table(
        "factorial",
        "Checker, revealed cells and burn-in on Sudoku, accuracy in %",
        (
            *columns(
                ("checker in training", "revealed cells", "burn-in"),
                (("dev", ("overall",)), ("test", ACCURACIES[1])),
            ),
            *map(Column, ("seeds", "training")),
        ),
        tuple(rows),
        f"{INTERVALS} MinLoss, {SHORT['sudoku']:,} updates each, the first test set.",
        labels=3,
    )


def factorial_effects(grid: Grid) -> Table:
    """The main effect of every ingredient, and that of burn-in by whether the checker takes part."""
    of, rows = factorial_runs(grid), []
    for name, pairs in _effects().items():
        own = [(of[a], of[b]) for a, b in pairs]
        found = [mean_difference(own, subset) for subset in SUBSETS]
        runs = [one for pair in own for one in pair]
        if any(found):
            rows.append((Cell(name), *(cell for one in found for cell in paired_cells(one, *runs))))
    return Table(
        "factorial-effects",
        "What each ingredient gives on Sudoku, in points",
        columns(("with it minus without it",), ((name_of(subset), ("points", "")) for subset in SUBSETS)),
        tuple(rows),
        "Means over the pairs of the table below that differ in this alone; the last only with burn-in and without the "
        f"checker. {PAIRED}",
    )


def _factorial_ms(grid: Grid) -> dict[str, SeedSummary]:
    """Ingredient -> its effect on MS queries; those without a number are left out."""
    of = factorial_runs(grid)
    found = {name: mean_difference([(of[a], of[b]) for a, b in pairs], "ms") for name, pairs in _effects().items()}
    return {name: one for name, one in found.items() if one is not None}


def factorial_answer(grid: Grid) -> str:
    """One line for every ingredient, on MS queries, and the figure; empty without runs."""
    found = _factorial_ms(grid)
    lines = [
        f"* {name[:1].upper()}{name[1:]}: {in_points(one)} points on MS queries: **{HELPS[verdict(one)]}**."
        for name, one in found.items()
    ]
    return "\n".join([*lines, "", image("factorial", "Effects of the ingredients on MS queries")] if lines else [])


def factorial_chart(grid: Grid) -> Chart | None:
    """The effect of every ingredient on MS queries."""
    made = dict.fromkeys(command for runs in factorial_runs(grid).values() for command in commands(runs))
    title = "What each ingredient gives on Sudoku"
    return forest("factorial", title, "points on MS queries", _factorial_ms(grid), tuple(made))


def factorial_steps(grid: Grid) -> Table:
    """Dev accuracy of the same weights with other numbers of steps at test time."""
    found: dict[Setup, dict[int, Runs]] = {}
    for setup, name in _setups().items():
        records = of_recipe(grid, name)
        names = {ran: evaluation for record in records for evaluation, ran in steps_of(record).items()}
        found[setup] = {ran: on(records, evaluation) for ran, evaluation in names.items()}
    steps = sorted({ran for of in found.values() for ran in of})
    rows = []
    for setup, of in found.items():
        if of:
            labels = (setup.checker, "80 %" if setup.reveal else "no", "0, 16, 32" if setup.burn_in else "no")
            rows.append((*map(Cell, labels), *(_mean(of.get(ran, ())) for ran in steps)))
    return Table(
        "factorial-steps",
        "The same weights with other numbers of steps at test time, accuracy on dev in %",
        columns(("checker in training", "revealed cells", "burn-in"), (("steps", tuple(map(str, steps))),)),
        tuple(rows) if len(steps) > 1 else (),
        "All dev queries, mean over seeds. Training has 16 steps, after those of burn-in.",
        labels=3,
    )


def _mean(runs: Runs) -> Cell:
    summary = summary_of(runs, "overall")
    made = commands_of([r for r, _ in runs], [e for _, e in runs])
    return Cell() if summary is None else Cell(f"{summary.mean:.2f}", {"mean": summary.mean}, made)


_WITHOUT, _WITH = "sudoku/minloss/equivariant/short-listed", "sudoku/minloss/equivariant-checker/short-listed"
LISTED = {
    "1": (f"{_WITHOUT}-1", f"{_WITH}-1"),
    "2": (f"{_WITHOUT}-2", f"{_WITH}-2"),
    "5": (SHORT_RECIPE, SHORT_CHECKER),
    "all (at most 50)": (f"{_WITHOUT}-all", f"{_WITH}-all"),
}
"""Listed solutions -> the recipes without and with the checker."""


def listed_checker(grid: Grid) -> Table:
    """The number of listed solutions with and without the checker in training."""
    rows = []
    for label, names in LISTED.items():
        records = [of_recipe(grid, name) for name in names]
        without, checker = (on(own, TEST) for own in records)
        if any(records):
            cells = (*accuracy_cells(without), *accuracy_cells(checker))
            gain = paired_cells(difference(checker, without), checker, without)
            rows.append((Cell(label), *cells, *gain, *(count_cell(len(own)) for own in records)))
    names = tuple(map(name_of, SUBSETS))
    return Table(
        "listed-both",
        "Listed solutions with and without the checker on Sudoku, accuracy in %",
        columns(
            ("listed solutions",),
            (
                ("without the checker", names),
                ("with the checker", names),
                ("the checker gives on MS", ("points", "")),
                ("seeds", ("without", "with")),
            ),
        ),
        tuple(rows) if len(rows) > 1 else (),
        f"{INTERVALS} MinLoss, {SHORT['sudoku']:,} updates, 80 % of the queries with revealed cells, the first test "
        f"set. Without the checker, settled queries are left out. {PAIRED}",
    )


def listed_answer(grid: Grid) -> str:
    """What the checker gives by the number of listed solutions, in one sentence; empty for fewer than two numbers."""
    parts = []
    for label, names in LISTED.items():
        without, checker = (on(of_recipe(grid, name), TEST) for name in names)
        if (found := difference(checker, without)) is not None:
            word = label.split(" ")[0]
            parts.append(f"{in_points(found)} points with {word} listed (**{HELPS[verdict(found)]}**)")
    return f"On MS queries the checker gives {', '.join(parts)}." if len(parts) > 1 else ""


def _alike() -> dict[str, str]:
    """Name of a row -> recipe."""
    found = {name_of(objective): f"sudoku/{objective}/equivariant/alike" for objective in OBJECTIVES}
    return found | {"MinLoss, two phases": "sudoku/minloss/equivariant/alike-two-phases"}


def alike(grid: Grid) -> Table:
    """All objectives without the checker, with equal numbers of updates."""
    rows = []
    base = on(of_recipe(grid, _alike()[name_of(MAIN_OBJECTIVE)]), TEST)
    for label, name in _alike().items():
        records = of_recipe(grid, name)
        if records:
            runs = on(records, TEST)
            found = None if label == name_of(MAIN_OBJECTIVE) else difference(runs, base)
            row = (Cell(label), dev_cells(records)[-1], *accuracy_cells(runs), *paired_cells(found, runs, base))
            rows.append((*row, _rise_cell(records), count_cell(len(records)), training_cell(records)))
    start = of_recipe(grid, "sudoku/minloss/equivariant/alike-start")
    if start and rows:
        cells = (dev_cells(start)[-1], *accuracy_cells(on(start, TEST)), Cell(), Cell(), _rise_cell(start))
        rows.append((Cell("the pre-training alone"), *cells, count_cell(len(start)), training_cell(start)))
    return Table(
        "alike",
        "All objectives on Sudoku with equal numbers of updates, accuracy in %",
        (
            *columns(
                ("objective",),
                (
                    ("dev", ("overall",)),
                    ("test", tuple(map(name_of, SUBSETS))),
                    ("MS minus MinLoss", ("points", "")),
                ),
            ),
            *map(Column, ("dev at the end", "seeds", "training")),
        ),
        tuple(rows) if len(rows) > 1 else (),
        f"{INTERVALS} The first test set. {ALIKE:,} updates each. I-ExplR, SelectR and “MinLoss, two phases” continue "
        f"from one pre-training with MinLoss of {ALIKE_FIRST:,} updates; the division was not tuned. Dev at the end: "
        f"how much dev rose in the last {100 * LAST_PART:.0f} % of the last phase, in points, mean over seeds. "
        f"{PAIRED}",
    )


def rise(record: Record) -> float | None:
    """By how many points dev rose in the last part of the last phase; None if it was evaluated once."""
    history = record.history
    own = [
        (update, score)
        for phase, update, score in zip(history.phase, history.update, history.dev_overall, strict=True)
        if phase == history.phase[-1] and score is not None
    ]
    before = [score for update, score in own if update <= (1 - LAST_PART) * own[-1][0]]
    return 100 * (own[-1][1] - before[-1]) if before else None


def _rise_cell(records: Sequence[Record]) -> Cell:
    found = [one for one in map(rise, records) if one is not None]
    return Cell(signed(mean := sum(found) / len(found)), {"points": mean}) if found else number_cell(None)


def _alike_ms(grid: Grid) -> dict[str, SeedSummary]:
    """Objective -> its accuracy on MS queries minus MinLoss's; those without a number are left out."""
    of = {label: on(of_recipe(grid, name), TEST) for label, name in _alike().items()}
    base = of.pop(name_of(MAIN_OBJECTIVE))
    found = {label: difference(runs, base) for label, runs in of.items()}
    return {label: one for label, one in found.items() if one is not None}


def alike_answer(grid: Grid) -> str:
    """Which objectives differ from MinLoss on MS queries, in one sentence, and the figure; empty without runs."""
    found: dict[str, list[str]] = {}
    for label, one in _alike_ms(grid).items():
        found.setdefault(verdict(one), []).append(f"{label} {in_points(one)}")
    parts = [f"**{word}** {', '.join(found[word])}" for word in (HIGHER, LOWER, UNDECIDED) if word in found]
    if not parts:
        return ""
    sentence = f"Compared with MinLoss on MS queries, in points: {'; '.join(parts)}."
    return f"{sentence}\n\n{image('alike', 'Accuracy of every objective on MS queries minus that of MinLoss')}"


def alike_chart(grid: Grid) -> Chart | None:
    """Every objective compared with MinLoss on MS queries."""
    runs = [on(of_recipe(grid, name), TEST) for name in _alike().values()]
    made = dict.fromkeys(command for own in runs for command in commands(own))
    title = "Objectives on Sudoku with equal numbers of updates"
    return forest("alike", title, "points on MS queries, minus MinLoss", _alike_ms(grid), tuple(made))
