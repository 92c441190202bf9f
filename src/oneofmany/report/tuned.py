"""The settings that were tried on dev with one seed, and which of them the runs of Table 2 have."""

from __future__ import annotations

from collections import Counter, defaultdict

from oneofmany.report.experiments import flat
from oneofmany.report.paper import SUBSETS, name_of, order_of
from oneofmany.report.records import Grid, Record, commands_of, deciding, dev_score, percent, variant_of
from oneofmany.report.table import Cell, Column, Table, columns

KIND = "tuning"


def tuning(grid: Grid) -> Table:
    """Every setting that was tried of every objective, on dev; the best is bold, and one is used."""
    groups: dict[tuple[str, str, int], list[Record]] = defaultdict(list)
    for record in grid.set_apart(KIND):
        groups[record["recipe"], record["objective"], record["seed"]].append(record)
    rows, tried = [], Counter()
    for (_, objective, seed), records in sorted(groups.items(), key=lambda item: _place(item[1][0])):
        task = records[0]["task"]
        tried[task, objective, seed] += len(records)
        top, used = max(map(dev_score, records)), _used(grid, records)
        for record in records:
            dev, made = record.get("dev") or {}, commands_of([record])
            label = name_of(objective) + (f", {variant}" if (variant := variant_of(record)) else "")
            row = [Cell(name_of(task)), Cell(label), Cell(_point(record))]
            for subset in SUBSETS:
                score = percent({"accuracy": dev.get(subset)})
                best = dev_score(record) == top and subset == record["settings"].get("select_on", "overall")
                row.append(Cell() if score is None else Cell(f"{score:.2f}", {"": score}, made, best=best))
            words = {None: "", True: "used", False: "not used"}
            rows.append((*row, Cell(words[any(record is one for one in used) if used else None]), Cell(str(seed))))
    counts = {task: {count for (t, *_), count in tried.items() if t == task} for task, *_ in tried}
    equal = {task: found.pop() for task, found in counts.items() if len(found) == 1}
    cut = "".join(_cut(grid, task) for task in counts)
    numbers = ", ".join(f"{count} settings of every objective of {name_of(task)}" for task, count in equal.items())
    return Table(
        "tuning",
        "The tuning grid, dev accuracy in %",
        (
            *columns(("task", "objective", "setting"), (("dev", tuple(map(name_of, SUBSETS))),)),
            Column("in Table 2"),
            Column("seed"),
        ),
        tuple(rows),
        f"{numbers + '. ' if numbers else ''}One seed, the kept weights, dev alone: no run here was chosen by a test "
        "set. Bold is the best on the dev queries that choose; used is what the runs of Table 2 have, as far as there "
        f"are any.{cut}",
        labels=3,
    )


def _cut(grid: Grid, task: str) -> str:
    """Says with how many updates a task was tuned, where Table 2 has another number."""
    runs = grid.table_2(task)
    tried = [record for record in grid.set_apart(KIND) if record["task"] == task]
    ours, theirs = ({(r["settings"].get("first") or {}).get("updates") for r in records} for records in (tried, runs))
    if not runs or not (short := sorted(n for n in ours - theirs if n)):
        return ""
    return f" {name_of(task)} was tuned with {' or '.join(f'{n:,}' for n in short)} updates of the first phase."


def _place(record: Record) -> tuple[object, ...]:
    return (*order_of(record["task"], record["objective"]), record["recipe"], record["seed"])


def _point(record: Record) -> str:
    return record["apart"].removeprefix(KIND).strip("/").replace(",", ", ") or "as the recipe"


def _used(grid: Grid, records: list[Record]) -> list[Record]:
    """Those of the tried records whose tuned settings are the ones of Table 2's runs; none where there are no runs."""
    first = records[0]
    runs = grid.table_2(first["task"], first["objective"])
    if not runs:
        return []
    table, *tried = (flat(deciding(r)) for r in (runs[0], *records))
    tuned = [key for key in tried[0] if any(one.get(key) != tried[0][key] for one in tried)]
    return [r for r, one in zip(records, tried, strict=True) if all(one.get(k) == table.get(k) for k in tuned)]
