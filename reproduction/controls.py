"""Controls: a second phase of equal budget, the authors' Naive, other settings, repeated runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from oneofmany.evaluation.record import SUBSETS, Record
from oneofmany.report.cells import SAME_ACCURACY, against, count_cell, difference, number_cell, test_commands
from oneofmany.report.grid import OBJECTIVES, Grid, name_of, order_of, over_dev, over_runs, tested
from oneofmany.report.table import Cell, Column, Table, columns, signed
from reproduction import paper
from reproduction.budgets import SECOND, budget
from reproduction.cells import accuracy_cell, dev_cells, seeds_cell
from reproduction.differences import changes, different, repeated_runs
from reproduction.runs import (
    CONTROLS,
    OUR_RECIPE,
    TEN_SEEDS,
    THESIS,
    apart_in,
    goes_on,
    is_authors_naive,
    table_2,
    training_data_of,
)

REPEATED = f"{CONTROLS}/repeated"
"""The folder of runs that were made a second time with the same command."""


def start_of(record: Record) -> str:
    """The start of the second phase: ``Unique``, ``the better of MinLoss and Unique``."""
    named = {part for path in record.setting("pretrained") or () for part in path.split("/")}
    if not named and record.objective in SECOND:
        asked = record.setting("pretraining") or "both"
        named = {"minloss", "unique"} if asked == "both" else {asked}
    starts = [name_of(o) for o in sorted(OBJECTIVES) if o in named] or [name_of(record.objective)]
    return starts[0] if len(starts) == 1 else f"the better of {' and '.join(starts)}"


def _controls(grid: Grid) -> list[Record]:
    elsewhere = (REPEATED, THESIS, OUR_RECIPE, TEN_SEEDS)
    return [record for record in apart_in(grid, CONTROLS) if record.apart not in elsewhere]


def equal_budgets(grid: Grid) -> dict[tuple[str, str], dict[str, list[Record]]]:
    """(task, folder) -> objective -> runs, for controls that give a second phase to an objective without one."""
    groups: dict[tuple[str, str], dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in _controls(grid):
        if goes_on(record):
            groups[record.task, record.apart][record.objective].append(record)
    return {where: of for where, of in groups.items() if not of.keys() <= {*SECOND}}


def second_phase(grid: Grid) -> Table:
    """Every objective with a second phase compared with SelectR: the control's own, or else that of Table 2."""
    groups, rows = equal_budgets(grid), []
    for (task, apart), of in sorted(groups.items(), key=lambda item: (order_of(item[0][0], ""), item[0][1])):
        beside = {o: table_2(grid, task, o) for o in SECOND if o not in of}
        selectr = of.get("selectr") or beside.get("selectr", [])
        for objective in OBJECTIVES:
            records = of.get(objective) or beside.get(objective)
            if not records:
                continue
            label = name_of(objective) + ("" if objective in of else " (of Table 2)")
            words = (name_of(task), label, apart.removeprefix(f"{CONTROLS}/"), start_of(records[0]))
            row = [*map(Cell, words), Cell(budget(records[0], "second"))]
            row += [dev_cells(records)[-1], *(accuracy_cell(records, subset) for subset in SUBSETS)]
            row += _behind(records, [] if objective == "selectr" else selectr)
            rows.append((*row, seeds_cell(records)))
    return Table(
        "second-phase",
        "A second phase of equal budget for every objective, accuracy in %",
        (
            *columns(
                ("task", "objective", "control", "start", "second phase"),
                (
                    ("dev", ("overall",)),
                    ("test", tuple(map(name_of, SUBSETS))),
                    ("SelectR is ahead by", ("MS", "Overall", "p")),
                ),
            ),
            Column("seeds"),
        ),
        tuple(rows),
        "In the paper only I-ExplR and SelectR get a second phase after a trained network. Ahead by: SelectR's mean "
        "minus this one over the seeds that both have, in points. p: exact McNemar test with the first of these seeds, "
        "not corrected for the number of tests.",
        labels=5,
    )


def _behind(records: Sequence[Record], selectr: Sequence[Record]) -> list[Cell]:
    """SelectR minus these runs, on MS and on all queries, and McNemar's p."""
    seeds = {record.seed for record, _ in tested(records)} & {record.seed for record, _ in tested(selectr)}
    ours, theirs = ([r for r in runs if r.seed in seeds] for runs in (records, selectr))
    cells = []
    for subset in ("ms", "overall"):
        low, high = over_runs(ours, subset), over_runs(theirs, subset)
        made = test_commands([*ours, *theirs])
        points = None if low is None or high is None else high.mean - low.mean
        cells.append(Cell() if points is None else Cell(signed(points), {"points": points}, made))
    return [*cells, against(tested(theirs), tested(ours))]


def naive_authors(grid: Grid) -> Table:
    """N-Queens' Naive by Eq. 1, and with the padding mistake of the authors' code, with the paper's numbers."""
    found: dict[int, Record] = {}
    for record in filter(is_authors_naive, (*grid.runs, *apart_in(grid, CONTROLS))):
        found.setdefault(record.seed, record)
    authors = [found[seed] for seed in sorted(found)]
    rows = []
    if authors:
        equation = _nearest_naive(grid, authors[0])
        for label, records in (("every solution alike (Eq. 1)", equation), ("the last solution most often", authors)):
            row = [Cell(label)]
            for subset in SUBSETS:
                published, ours = paper.TABLE_2["nqueens", "naive", subset].mean, over_runs(records, subset)
                row += [accuracy_cell(records, subset), number_cell(published)]
                row.append(Cell() if ours is None else difference(ours.mean, published))
            rows.append((*row, _dev(records), seeds_cell(records)))
    each = ("ours", "paper", "difference")
    return Table(
        "naive-authors",
        "N-Queens, Naive: Eq. 1 and the authors' padded lists, accuracy in %",
        (
            *columns(("solutions of a query are drawn",), ((name_of(subset), each) for subset in SUBSETS)),
            Column("dev"),
            Column("seeds"),
        ),
        tuple(rows),
        "The authors' N-Queens code pads a list of solutions by repeating the last one, then draws a solution from it "
        "(recipe nqueens/naive-authors). Both rows show the paper's number. Dev: all queries. Eq. 1: the runs of Table "
        "2 or of the controls whose other settings are the same, or nearest.",
    )


def _nearest_naive(grid: Grid, authors: Record) -> list[Record]:
    """N-Queens' Naive of Table 2 or of a control, whichever settings are nearer to the authors' run."""
    groups = {"": table_2(grid, "nqueens", "naive")}
    for record in _controls(grid):
        if (record.task, record.objective) == ("nqueens", "naive") and not is_authors_naive(record):
            groups.setdefault(record.apart, []).append(record)
    known = [records for records in groups.values() if records]
    return min(known, key=lambda records: len(different(authors, records[0])), default=[])


def other_settings(grid: Grid) -> Table:
    """The effect of other settings on dev, compared with the runs of Table 2 with the same seeds."""
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    elsewhere = equal_budgets(grid)
    for record in _controls(grid):
        equal_budget = (record.task, record.apart) in elsewhere
        if not (equal_budget or training_data_of(record) or is_authors_naive(record)):
            groups[record.task, record.objective, record.apart].append(record)
    rows, names = [], tuple(map(name_of, SUBSETS))
    for (task, objective, apart), found in sorted(groups.items(), key=lambda item: (order_of(*item[0][:2]), item[0])):
        beside = {r.seed: r for r in table_2(grid, task, objective)}
        records = [record for record in found if record.seed in beside]
        if records:
            table = [beside[record.seed] for record in records]
            words = (name_of(task), name_of(objective), apart.removeprefix(f"{CONTROLS}/"))
            differs = Cell(changes(records[0], table[0]) or "nothing")
            rows.append((*map(Cell, words), differs, *dev_cells(records), *dev_cells(table), count_cell(len(records))))
    return Table(
        "other-settings",
        "Other settings of the paper's networks, accuracy on dev in %",
        (
            *columns(("task", "objective", "control", "what differs"), (("with it", names), ("Table 2", names))),
            Column("seeds"),
        ),
        tuple(rows),
        "Dev queries, the kept weights; in brackets the 95 % interval over seeds. Table 2: its runs with these seeds. "
        f"{SAME_ACCURACY}",
        labels=4,
    )


def repeated(grid: Grid) -> Table:
    """Runs of the paper's networks that were made twice with the same command."""
    return repeated_runs(grid, REPEATED, "repeated")


def _dev(records: Sequence[Record]) -> Cell:
    summary = over_dev(records, "overall")
    return number_cell(None if summary is None else summary.mean)
