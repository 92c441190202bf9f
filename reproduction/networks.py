"""Why our network wins: network x recipe x objective on the same queries."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from oneofmany.evaluation.record import SUBSETS, Record
from oneofmany.recipes.ingredients import NETWORK_OBJECTIVES, SHORT, SHORT_RECIPE
from oneofmany.report.cells import Runs, count_cell, number_cell, training_cell
from oneofmany.report.grid import Grid, name_of
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction import paper
from reproduction.cells import accuracy_cells
from reproduction.ours import INTERVALS, TITLES, on
from reproduction.paired import PAIRED, UNDECIDED, in_points, mean_difference, of_recipe, paired_cells, verdict
from reproduction.runs import table_2

OURS, THEIRS = "ours", "the paper's"


class Setup(NamedTuple):
    """A network, its recipe (each ours or the paper's) and the objective."""

    network: str
    recipe: str
    objective: str


SETUPS = tuple(Setup(*one) for one in product((OURS, THEIRS), (OURS, THEIRS), NETWORK_OBJECTIVES))


def records_of(grid: Grid, task: str, setup: Setup) -> list[Record]:
    """The runs of a row; the paper's network under its own recipe is that of our Table 2."""
    base = f"{task}/{setup.objective}"
    if (setup.network, setup.recipe) == (THEIRS, THEIRS):
        return table_2(grid, task, setup.objective)
    names = {
        (OURS, OURS): f"{base}/equivariant/same-budget",
        (OURS, THEIRS): f"{base}/equivariant/paper-schedule",
        (THEIRS, OURS): f"{base}/table-2/our-recipe",
    }
    name = names[setup.network, setup.recipe]
    return of_recipe(grid, SHORT_RECIPE if name == "sudoku/minloss/equivariant/same-budget" else name)


def _measured(grid: Grid, task: str) -> bool:
    """Whether there is a run that only this comparison needs."""
    return any("our-recipe" in r.recipe or "paper-schedule" in r.recipe for r in grid.all if r.task == task)


def by_steps(records: list[Record], task: str) -> dict[int | None, Runs]:
    """Steps at test time -> the runs on the first test set with one start."""
    found: dict[int | None, Runs] = {}
    for record in records:
        for name, evaluation in record.evaluations.items():
            asked = (f"{task}-test", f"{task}-test-steps{evaluation.steps}")
            if evaluation.data.name == asked[0] and evaluation.starts == 1 and name in asked:
                found[evaluation.steps] = [*found.get(evaluation.steps, ()), (record, evaluation)]
    return {steps: found[steps] for steps in sorted(found, key=lambda one: one or 0)}


def networks(grid: Grid) -> Table:
    """Every network under every recipe with both objectives, by steps at test time, and the published numbers."""
    rows = []
    for task in (task for task in SHORT if _measured(grid, task)):
        title, paper_network = Cell(TITLES[task]), name_of("rrn" if task == "sudoku" else "nlm")
        for setup in SETUPS:
            records = records_of(grid, task, setup)
            words = (paper_network if setup.network == THEIRS else OURS, setup.recipe, name_of(setup.objective))
            for steps, runs in by_steps(records, task).items():
                row = (title, *map(Cell, words), Cell("" if steps is None else str(steps)), *accuracy_cells(runs))
                rows.append((*row, count_cell(len(runs)), training_cell([record for record, _ in runs])))
        for objective in NETWORK_OBJECTIVES:
            means = [number_cell(paper.TABLE_2[task, objective, subset].mean) for subset in SUBSETS]
            words = (paper_network, "published", name_of(objective), "")
            rows.append((title, *map(Cell, words), *means, count_cell(len(paper.SEEDS)), Cell()))
    budgets = " and ".join(f"{updates:,} on {name_of(task)}" for task, updates in SHORT.items())
    return Table(
        "networks",
        "Network, recipe and objective on the same queries, accuracy in %",
        (
            *columns(("data", "network", "recipe", "objective", "test steps"), (("", tuple(map(name_of, SUBSETS))),)),
            *map(Column, ("seeds", "training")),
        ),
        tuple(rows),
        f"{INTERVALS} The first test sets, except for the published numbers. Our recipe: batches of 512, cosine, "
        f"moving average of the weights, on Sudoku revealed cells; {budgets} updates, of which SelectR's pre-training "
        "with MinLoss has half. Only our network has burn-in. The paper's recipe: that of our Table 2, in which "
        "SelectR's second phase follows a whole run. A network under the other's recipe was not tuned.",
        labels=5,
    )


def _effects(grid: Grid, task: str) -> dict[str, list[tuple[Runs, Runs]]]:
    """What is compared -> pairs of runs that differ in it alone."""
    of = {setup: on(records_of(grid, task, setup), f"{task}-test") for setup in SETUPS}
    rest = list(product((OURS, THEIRS), NETWORK_OBJECTIVES))
    whose = product((OURS, THEIRS), (OURS, THEIRS))
    return {
        "our network instead of the paper's": [(of[Setup(OURS, *r)], of[Setup(THEIRS, *r)]) for r in rest],
        "our recipe instead of the paper's": [(of[Setup(n, OURS, o)], of[Setup(n, THEIRS, o)]) for n, o in rest],
        "SelectR instead of MinLoss": [(of[Setup(*w, "selectr")], of[Setup(*w, "minloss")]) for w in whose],
    }


def network_effects(grid: Grid) -> Table:
    """What the network, the recipe and the objective give, each as the mean over the others."""
    rows = []
    for task in SHORT:
        for name, pairs in _effects(grid, task).items():
            found = [mean_difference(pairs, subset) for subset in SUBSETS]
            if any(found):
                cells = [c for one in found for c in paired_cells(one, *(runs for pair in pairs for runs in pair))]
                rows.append((Cell(TITLES[task]), Cell(name), *cells))
    return Table(
        "network-effects",
        "What the network, the recipe and the objective give, in points",
        columns(("data", "what changes"), ((name_of(subset), ("points", "")) for subset in SUBSETS)),
        tuple(rows),
        f"Means over the four pairs of the table below that differ in this alone, with a recipe's own steps. {PAIRED}",
        labels=2,
    )


def networks_answer(grid: Grid) -> str:
    """A line for every task: what the network, the recipe and the objective give on all queries; empty without runs."""
    lines = []
    for task in SHORT:
        parts = []
        for name, pairs in _effects(grid, task).items():
            if (found := mean_difference(pairs, "overall")) is not None:
                shown = f" ({UNDECIDED})" if verdict(found) == UNDECIDED else ""
                parts.append(f"{name} {in_points(found)}{shown}")
        if parts:
            lines.append(f"* **{TITLES[task]}**, all queries, in points: {', '.join(parts)}.")
    return "\n".join(lines)
