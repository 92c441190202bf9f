"""The selection module, or the second phase? N-Queens with the paper's network, every second phase from both starts."""

from __future__ import annotations

from oneofmany.evaluation.record import SUBSETS
from oneofmany.report.cells import SAME_ACCURACY, Runs, count_cell
from oneofmany.report.grid import Grid, name_of, tested
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction.cells import accuracy_cells
from reproduction.paired import (
    HIGHER,
    LOWER,
    PAIRED,
    UNDECIDED,
    difference,
    in_points,
    mean_difference,
    paired_cells,
    verdict,
)
from reproduction.runs import THESIS

STARTS = {"unique": "second-phase-from-unique", "minloss": "second-phase"}
"""Objective of the first phase -> the change that names its second phases."""
NONE = ""
SECOND = (NONE, "minloss", "ccloss", "iexplr", "selectr")
"""Objectives of the second phase; none: the first phase alone."""


def second_phases(grid: Grid) -> dict[tuple[str, str], Runs]:
    """(start, objective of the second phase) -> its runs, one for each seed."""
    found = {}
    for start, change in STARTS.items():
        for second in SECOND:
            name = f"nqueens/{second}/table-2/{change}" if second else f"nqueens/{start}/table-2"
            found[start, second] = tested(r for r in grid.apart if (r.apart, r.recipe) == (THESIS, name))
    return found


def thesis(grid: Grid) -> Table:
    """Every second phase from both starts, compared with none and with SelectR."""
    of, rows = second_phases(grid), []
    for (start, second), runs in of.items():
        if not runs:
            continue
        gain = None if second == NONE else difference(runs, of[start, NONE], "overall")
        behind = None if second == "selectr" else difference(of[start, "selectr"], runs, "overall")
        row = [Cell(name_of(start)), Cell(name_of(second) if second else "none"), *accuracy_cells(runs)]
        row += paired_cells(gain, runs, of[start, NONE])
        rows.append((*row, *paired_cells(behind, runs, of[start, "selectr"]), count_cell(len(runs))))
    return Table(
        "thesis",
        "The selection module, or the second phase? N-Queens, accuracy in %",
        (
            *columns(
                ("start", "second phase"),
                (
                    ("test", tuple(map(name_of, SUBSETS))),
                    ("minus none", ("points", "")),
                    ("SelectR minus this", ("points", "")),
                ),
            ),
            Column("seeds"),
        ),
        tuple(rows) if len(rows) > 1 else (),
        "The paper's network; all second phases of a start and seed continue from the same run, with the settings of "
        "SelectR's second phase. Mean over seeds, with Student's t interval (95 %) over seeds, cut at 0 and 100. "
        f"{SAME_ACCURACY} Differences are on all queries. {PAIRED}",
        labels=2,
    )


def thesis_answer(grid: Grid) -> str:
    """What a second phase gives and what the selection module adds, as means over both starts; empty without runs."""
    of = second_phases(grid)
    phase = mean_difference([(of[start, "minloss"], of[start, NONE]) for start in STARTS], "overall")
    selection = mean_difference([(of[start, "selectr"], of[start, "minloss"]) for start in STARTS], "overall")
    if phase is None or selection is None:
        return ""
    decided = {
        (HIGHER, HIGHER): "both the second phase and the selection module help",
        (HIGHER, UNDECIDED): "the second phase helps; whether the selection module adds to it is undecided",
        (HIGHER, LOWER): "the second phase helps, and the selection module costs accuracy",
        (UNDECIDED, HIGHER): "the selection module helps; whether a second phase alone does is undecided",
        (LOWER, HIGHER): "the selection module helps, not a second phase alone",
    }
    words = decided.get((verdict(phase), verdict(selection)), "neither is shown to help")
    seeds = len({record.seed for record, _ in of["minloss", "selectr"]} & {r.seed for r, _ in of["unique", "selectr"]})
    return (
        f"**On N-Queens {words}.** A second phase with MinLoss instead of none gives {in_points(phase)} points on all "
        f"queries, SelectR instead of that second phase {in_points(selection)} (means over both starts, paired by "
        f"{seeds} seeds)."
    )
