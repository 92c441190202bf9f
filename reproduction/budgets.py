"""The training budgets of the paper's tables, the runs that are missing, and the cost."""

from __future__ import annotations

import math
from collections.abc import Iterable

from oneofmany.evaluation.record import Record
from oneofmany.report.cells import test_commands
from oneofmany.report.grid import OBJECTIVES, TASKS, Grid, commands_of, name_of, tested
from oneofmany.report.table import Cell, Table, columns
from reproduction import paper
from reproduction.paper import SEEDS
from reproduction.runs import CONTROLS, LITERAL, PAPER_NETWORKS, TUNING, apart_in, counting, table_2

SECOND = ("iexplr", "selectr")
"""The objectives with a second phase."""


def budget(record: Record, phase: str) -> str:
    """``6,250 x 32``: the limit of updates of a phase and their batch; ``cosine`` names that schedule."""
    updates, batch, minutes, rate = (
        record.setting(f"{phase}.{n}") for n in ("updates", "batch", "minutes", "schedule")
    )
    words = [" x ".join(f"{number:,}" for number in (updates, batch) if isinstance(number, int))]
    words += ["cosine"] if rate == "cosine" else []
    return ", ".join([*words, f"at most {minutes:g} min"] if isinstance(minutes, int | float) else words)


def schedule(grid: Grid) -> Table:
    """The schedule that all objectives of a task share, and which runs exist."""
    rows, remarks = [], ""
    for task, variant in counting(grid).variants.items():
        of = {objective: grid.at(task, objective, variant) for objective in OBJECTIVES}
        runs = [record for records in of.values() for record in records]
        evaluated = [record for record, _ in tested(runs)]
        expected = len(OBJECTIVES) * len(SEEDS)
        row = [Cell(name_of(task)), Cell("/".join(filter(None, (task, "OBJECTIVE", variant))) if runs else "")]
        for name, theirs, objectives in (
            ("first", paper.FIRST_PHASE, OBJECTIVES),
            ("second", paper.SECOND_PHASE, SECOND),
        ):
            words = _shared({objective: of[objective] for objective in objectives}, name)
            row.append(Cell(words, commands=test_commands(evaluated) if words else ()))
            row.append(Cell(" x ".join(f"{number:,}" for number in theirs[task])))
        row.append(Cell(f"{len(evaluated)} of {expected}", {"runs": len(evaluated)}))
        rows.append((*row, Cell(_missing(of))))
        remarks += _remarks(task, runs)
    measured = any(cell.commands for row in rows for cell in row)
    return Table(
        "schedule",
        "How the runs of Table 2 were trained",
        columns(
            ("task", "recipes"),
            (
                ("first phase, updates x batch", ("ours", "paper")),
                ("second phase (I-ExplR, SelectR)", ("ours", "paper")),
                ("", ("runs", "missing")),
            ),
        ),
        tuple(rows) if measured else (),
        "The limit of updates of each phase. A phase ends earlier when dev stops improving, unless this note says "
        "otherwise. The paper's: 200 epochs of 250 (N-Queens, Futoshiki) or 625 updates (Sudoku). Runs: those "
        f"evaluated on the test set, of seven objectives with three seeds.{remarks}",
        labels=2,
    )


def _remarks(task: str, runs: list[Record]) -> str:
    """How often dev is evaluated, if not once in an epoch of the paper's, and whether no phase ends early."""
    epoch = paper.FIRST_PHASE[task][0] // paper.EPOCHS
    found = sorted({record.setting("evaluate_every") for record in runs} - {None, epoch})
    words = [f"dev is evaluated every {' or '.join(map(str, found))} updates"] if found else []
    phases = [(r, name) for r in runs for name in ("first", "second") if r.setting(f"{name}.updates")]
    if phases and all(r.flat.get(f"{name}.stop_after", 0) is None for r, name in phases):
        words.append("every phase runs to its end")
    return f" {name_of(task)}: {', '.join(words)}." if words else ""


def _shared(of: dict[str, list[Record]], phase: str) -> str:
    """The budget of a phase; if objectives differ, the budget of each."""
    found: dict[str, list[str]] = {}
    for objective, records in of.items():
        for record in records:
            names = found.setdefault(budget(record, phase), [])
            if name_of(objective) not in names:
                names.append(name_of(objective))
    if len(found) < 2:
        return "".join(found)
    return "not the same: " + "; ".join(f"{words} ({', '.join(names)})" for words, names in found.items())


def _missing(of: dict[str, list[Record]]) -> str:
    """``SelectR 1729, 3120; ...``; empty if no run is missing."""
    if not any(of.values()):
        return "all"
    parts = []
    for objective, records in of.items():
        seeds = {record.seed for record, _ in tested(records)}
        left = [str(seed) for seed in SEEDS if seed not in seeds]
        if left:
            parts.append(name_of(objective) + (f" {', '.join(left)}" if len(left) < len(SEEDS) else ""))
    return "; ".join(parts)


def cost(grid: Grid) -> Table:
    """Minutes of training and evaluation by task and purpose."""
    table = [record for task in TASKS for record in table_2(grid, task) if _of_paper(record)]
    others = [r for r in grid.runs if _of_paper(r) and not any(r is one for one in table)]
    parts = {
        "Table 2": table,
        "literal runs": apart_in(grid, LITERAL),
        "tuning": apart_in(grid, TUNING),
        "controls": apart_in(grid, CONTROLS),
        "other runs": others,
    }
    parts = {name: [record for record in records if _of_paper(record)] for name, records in parts.items()}
    everything = [record for records in parts.values() for record in records]
    rows = []
    for task in (*TASKS, None) if everything else ():
        of_task = {name: [r for r in records if task in (None, r.task)] for name, records in parts.items()}
        row = [Cell("all" if task is None else name_of(task)), *map(_minutes, of_task.values())]
        rows.append((*row, _minutes(_once(r for records in of_task.values() for r in records))))
    devices = {record.device for record in everything}
    return Table(
        "cost",
        "What it cost, minutes",
        columns(("task",), (("", (*parts, "in all")),)),
        tuple(rows),
        f"Training and evaluation of every run, added up ({', '.join(sorted(devices)) or 'no device'}); in parentheses "
        "the number of runs. Many runs share a device (`--jobs`): the minutes before “of” are those in which at least "
        "one of them was working, if all records say when. A pre-training that several runs start from counts once, "
        "and a run that appears in several columns counts once in the last. The paper's runs take about 1,100 hours of "
        "a K40, not counting its tuning.",
    )


def _once(records: Iterable[Record]) -> list[Record]:
    """Every run once, identified by its times: a run of Table 2 may also be a point of the tuning."""
    found: dict[object, Record] = {}
    for record in records:
        times = record.history.time
        who = (record.task, record.objective, record.seed)
        found.setdefault((*who, *times) if any(times) else id(record), record)
    return list(found.values())


def _of_paper(record: Record) -> bool:
    return record.network in PAPER_NETWORKS and record.task in TASKS


def _minutes(records: Iterable[Record]) -> Cell:
    records = list(records)
    if not records:
        return Cell()
    evaluations = [evaluation for record in records for evaluation in record.evaluations.values()]
    seconds = sum(each.seconds or 0.0 for each in (*records, *evaluations))
    text, numbers = f"{seconds / 60:,.1f} ({len(records)})", {"minutes": seconds / 60, "runs": len(records)}
    if (busy := busy_minutes(records)) is not None:
        text, numbers["busy"] = f"{busy:,.1f} of {text}", busy
    return Cell(text, numbers, commands_of(records, evaluations))


def busy_minutes(records: Iterable[Record]) -> float | None:
    """Minutes in which at least one of the runs was trained or evaluated; None if a record has no times."""
    spans: list[tuple[float, float]] = []
    for record in records:
        reached = record.history.seconds
        ends = [*zip(record.history.time, reached, (0.0, *reached), strict=False)]
        ends += [(one.time, one.seconds, 0.0) for one in record.evaluations.values()]
        for end, seconds, before in ends:
            if end is None or seconds is None or before is None:
                return None
            spans.append((end - (seconds - before), end))
        if not reached:
            return None
    busy, until = 0.0, -math.inf
    for start, end in sorted(spans):
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    return busy / 60
