"""The settings that were tried on dev, and those of the runs of Table 2."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean

from oneofmany.evaluation.record import SUBSETS, Record, flattened
from oneofmany.report.grid import Grid, commands_of, deciding, dev_score, name_of, order_of, over_dev
from oneofmany.report.table import Cell, Column, Table, columns
from reproduction.runs import TABLE_2, TUNING, apart_in, base_of, base_variant, change_of, table_2


def tuning(grid: Grid) -> Table:
    """Every setting that was tried, on dev; the best is bold, and one is used."""
    groups: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in apart_in(grid, TUNING):
        groups[base_of(record)][_point(record)].append(record)
    rows, counts = [], defaultdict(set)
    for points in sorted((list(points.values()) for points in groups.values()), key=lambda found: _place(found[0][0])):
        first, most = points[0][0], max(map(len, points))
        counts[first.task].add(len(points))
        label = name_of(first.objective) + (
            f", {variant}" if (variant := base_variant(first)) not in ("", TABLE_2) else ""
        )
        # Means over fewer seeds are not compared.
        top = max(_score(records) for records in points if len(records) == most)
        used = _used(grid, [records[0] for records in points])
        for records in points:
            made = commands_of(records)
            row = [
                Cell(name_of(first.task)),
                Cell(label),
                Cell(_point(records[0]).replace(",", ", ") or "as the recipe"),
            ]
            for subset in SUBSETS:
                summary = over_dev(records, subset)
                best = subset == (first.setting("select_on") or "overall")
                best = best and len(records) == most and _score(records) == top
                row.append(Cell() if summary is None else Cell(f"{summary.mean:.2f}", {"": summary.mean}, made, best))
            row.append(Cell("" if not used else "used" if any(records[0] is one for one in used) else "not used"))
            rows.append((*row, Cell(", ".join(str(record.seed) for record in records))))
    equal = {task: found.pop() for task, found in counts.items() if len(found) == 1}
    cut = "".join(_cut(grid, task) for task in counts)
    numbers = ", ".join(f"{count} settings of every objective of {name_of(task)}" for task, count in equal.items())
    return Table(
        "tuning",
        "The tuning grid, dev accuracy in %",
        (
            *columns(("task", "objective", "setting"), (("dev", tuple(map(name_of, SUBSETS))),)),
            Column("in Table 2"),
            Column("seeds"),
        ),
        tuple(rows),
        f"{numbers + '. ' if numbers else ''}Means over the seeds named, the kept weights, dev alone: no run here was "
        "chosen by a test set. Bold: the best on the dev queries that choose. Used: the setting of Table 2's runs, if "
        f"there are any.{cut}",
        labels=3,
    )


def _score(records: list[Record]) -> float:
    return fmean(map(dev_score, records))


def _cut(grid: Grid, task: str) -> str:
    """The number of updates that a task was tuned with, if Table 2 has another number."""
    runs = table_2(grid, task)
    tried = [record for record in apart_in(grid, TUNING) if record.task == task]
    ours, theirs = ({r.setting("first.updates") for r in records} for records in (tried, runs))
    if not runs or not (short := sorted(n for n in ours - theirs if n)):
        return ""
    return f" {name_of(task)} was tuned with {' or '.join(f'{n:,}' for n in short)} updates of the first phase."


def _place(record: Record) -> tuple[object, ...]:
    return (*order_of(record.task, record.objective), record.recipe, record.seed)


def _point(record: Record) -> str:
    """The setting that was tried: what the recipe's name adds, or else the folder of the record."""
    return change_of(record) or record.apart.removeprefix(TUNING).strip("/")


def _used(grid: Grid, records: list[Record]) -> list[Record]:
    """The tried records with the tuned settings of Table 2's runs; none if there are no such runs."""
    first = records[0]
    runs = table_2(grid, first.task, first.objective)
    if not runs:
        return []
    table, *tried = (flattened(deciding(r)) for r in (runs[0], *records))
    tuned = [key for key in tried[0] if any(one.get(key) != tried[0][key] for one in tried)]
    return [r for r, one in zip(records, tried, strict=True) if all(one.get(k) == table.get(k) for k in tuned)]
