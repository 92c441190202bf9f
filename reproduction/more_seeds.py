"""Table 2's MinLoss and SelectR on N-Queens with more seeds than the paper's three."""

from __future__ import annotations

from oneofmany.evaluation.record import SUBSETS
from oneofmany.report.cells import SAME_ACCURACY, Runs, count_cell
from oneofmany.report.grid import Grid, name_of, tested
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction import paper
from reproduction.cells import accuracy_cells, with_error
from reproduction.paired import PAIRED, difference, of_recipe, paired_cells

COMPARED = ("minloss", "selectr")


def runs_of_seeds(grid: Grid) -> dict[str, Runs]:
    """Objective -> its runs on N-Queens with the settings of Table 2, one for each seed; both have the same seeds."""
    found = {name: tested(of_recipe(grid, f"nqueens/{name}/table-2")) for name in COMPARED}
    seeds = set.intersection(*({record.seed for record, _ in runs} for runs in found.values()))
    return {name: [one for one in runs if one[0].seed in seeds] for name, runs in found.items()}


def more_seeds(grid: Grid) -> Table:
    """Both objectives beside the paper's means, and their difference; empty with no more than the paper's seeds."""
    of, rows = runs_of_seeds(grid), []
    for name, runs in of.items():
        published = [
            with_error(paper.TABLE_2["nqueens", name, subset].mean, paper.STANDARD_ERRORS["nqueens", name, subset])
            for subset in SUBSETS
        ]
        rows.append((Cell(name_of(name)), *accuracy_cells(runs), *published, count_cell(len(runs))))
    gains = [paired_cells(difference(of["selectr"], of["minloss"], subset), *of.values())[0] for subset in SUBSETS]
    rows.append((Cell("SelectR minus MinLoss"), *gains, *(Cell() for _ in SUBSETS), count_cell(len(of["selectr"]))))
    names = tuple(map(name_of, SUBSETS))
    return Table(
        "more-seeds",
        "N-Queens with more seeds, accuracy on the test set in %",
        (*columns(("objective",), (("ours", names), ("paper", names))), Column("seeds")),
        tuple(rows) if len(of["selectr"]) > len(paper.SEEDS) else (),
        "The settings of Table 2, which dev chose with three seeds. Mean over seeds, with Student's t interval (95 %) "
        f"over seeds, cut at 0 and 100; the paper's with its standard error of three seeds. {SAME_ACCURACY} {PAIRED}",
    )
