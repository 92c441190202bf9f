"""Write the commands of records as recipe and seed, for runs that a sweep made with more options.

``oneofmany sweep`` names data and folders (``--data data --out runs/...``). A record whose settings and data are those
of its recipe can be made by the short command, so it gets that, and the original goes to ``made_by``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from oneofmany.evaluation.record import Evaluation, Record
from oneofmany.evaluation.record_file import read_record, save_record
from oneofmany.recipes import data_of
from oneofmany.recipes.comparing import departures
from reproduction.runs import RECORDS

_EVALUATE = re.compile(r"oneofmany evaluate \S+ \S+(.*)")


def shortened(record: Record) -> Record:
    """The record with short commands; ValueError if its settings or data are not those of its recipe."""
    if different := departures(record.settings):
        raise ValueError(f"{record.name} does not have the settings of its recipe: {'; '.join(different)}")
    names = tuple(record.data[part].name for part in ("train", "dev"))
    if names != data_of(record.recipe):
        raise ValueError(
            f"{record.name}: expected the data {', '.join(data_of(record.recipe))}, got {', '.join(names)}"
        )
    evaluations = {name: _evaluation(one, record.name) for name, one in record.evaluations.items()}
    command = f"oneofmany train {record.recipe} --seed {record.seed}"
    return replace(record, command=command, made_by=_original(record, command), evaluations=evaluations)


def _evaluation(one: Evaluation, name: str) -> Evaluation:
    found = _EVALUATE.fullmatch(one.command or "")
    if found is None:
        return one
    command = f"oneofmany evaluate runs/{name} data/{one.data.name}.safetensors{found[1]}"
    return replace(one, command=command, made_by=_original(one, command))


def _original(one: Record | Evaluation, command: str) -> str | None:
    return one.made_by or (None if one.command == command else one.command)


def shorten(folder: Path = RECORDS) -> list[str]:
    """Shorten the commands of all records below a folder; return the names of the files that changed.

    Commands that name the file of a task stay as they are: without it the recipe is not known.
    """
    changed = []
    for path in sorted(folder.rglob("*.json")):
        record = read_record(path)
        if "--task-file" in (record.command or ""):
            continue
        short = shortened(record)
        commands = [(one.command, [e.command for e in one.evaluations.values()]) for one in (record, short)]
        if commands[0] != commands[1]:
            save_record(short, path, force=True)
            changed.append(str(path.relative_to(folder)))
    return changed
