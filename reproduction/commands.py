"""The commands behind every table, in one Markdown file next to the records."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from oneofmany.report.table import Table

FILE = Path("reproduction") / "records" / "COMMANDS.md"
HEAD = """# The commands behind the tables

`make results` writes this file from the records. Every published run is a recipe and a seed. For each line below:

```text
oneofmany train RECIPE --seed SEED
oneofmany evaluate runs/RECIPE/SEED data/DATA.safetensors OPTIONS
```

The second command runs once for every entry under *evaluated on*, which gives DATA and OPTIONS, if any. A line without
an entry uses the validation (dev) accuracy that training measures itself. A row of a table appears once, in the first
section that needs it; later sections name that section. `oneofmany data benchmark` makes the data, and
`oneofmany sweep` runs many recipes and seeds at once. A line with a whole command is that command.
"""
_TRAIN = re.compile(r"oneofmany train (\S+) --seed (\d+)")
_EVALUATE = re.compile(r"oneofmany evaluate runs/(\S+)/(\d+) data/([\w-]+)\.safetensors(.*)")


def commands_page(tables: Iterable[Table]) -> str:
    """The whole file: a section for every table that has runs behind it, named like the table."""
    sections, listed = [], {}
    for table in tables:
        rows, elsewhere = [], {}
        for what, commands in table.commands():
            if set(commands) <= listed.keys():
                elsewhere |= dict.fromkeys(listed[command] for command in commands)
            else:
                rows += _lines(what, commands)
        for _, commands in table.commands():
            for command in commands:
                listed.setdefault(command, table.name)
        if table.filled:
            sections.append(_section(table, rows, [name for name in elsewhere if name != table.name]))
    return "\n".join([HEAD, *sections])


def _section(table: Table, rows: Sequence[str], elsewhere: Sequence[str]) -> str:
    lines = [f"## {table.name}", "", f"{table.title}.", ""]
    if rows:
        lines += ["| row | recipe | seeds | evaluated on |", "| --- | --- | --- | --- |", *rows, ""]
    if elsewhere:
        links = ", ".join(f"[{name}](#{name})" for name in elsewhere)
        lines += [f"{'Its other' if rows else 'Its'} runs are listed under {links}.", ""]
    return "\n".join(lines)


def _lines(what: str, commands: Sequence[str]) -> list[str]:
    """A line for every recipe of a row; seeds that were evaluated on the same data share one."""
    runs: dict[tuple[str, str], list[str]] = defaultdict(list)
    other = []
    for command in commands:
        if trained := _TRAIN.fullmatch(command):
            runs[trained[1], trained[2]] += []
        elif (evaluated := _EVALUATE.fullmatch(command)) and "--task-file" not in command:
            runs[evaluated[1], evaluated[2]].append(evaluated[3] + evaluated[4])
        else:
            other.append(f"| {_plain(what)} | `{command}` | | |")
    shared: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (recipe, seed), data in runs.items():
        shared[recipe, tuple(data)].append(seed)
    return other + [
        f"| {_plain(what)} | {recipe} | {', '.join(seeds)} | {', '.join(data)} |"
        for (recipe, data), seeds in shared.items()
    ]


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
