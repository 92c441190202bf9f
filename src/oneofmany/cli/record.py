"""``oneofmany record``: write the records of runs as JSON files that are small enough to publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from oneofmany.cli.options import Flag
from oneofmany.cli.terminal import say
from oneofmany.files import FileError, check_writable


def record(
    runs: Annotated[
        tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN ...", help_behavior_hint="(required)")
    ],
    *,
    out: Path,
    force: Flag = False,
    allow_dirty: Flag = False,
) -> None:
    """Write a record of every run: a small JSON file, named after recipe and seed, with all that a report needs.

    Example: oneofmany record runs/nqueens/*/42 --out records/nqueens

    Args:
        runs: run folders; the log files of a sweep are ignored.
        out: the folder for the files; it is created if it does not exist.
        force: overwrite existing files.
        allow_dirty: also record runs that were made with uncommitted changes in the source tree of oneofmany; the
            revision in the record ends with a +.
    """
    from oneofmany.evaluation import read_record, save_record

    runs = tuple(run for run in runs if run.suffix != ".log" or run.is_dir())
    if not runs:
        raise ValueError("name at least one run folder")
    records = {}
    sources: dict[Path, Path] = {}
    for run in runs:
        one = read_record(run)
        if one.dirty and not allow_dirty:
            raise FileError(
                f"{run} was made with uncommitted changes in the source tree: commit them and make it again, or record "
                "it with --allow-dirty"
            )
        path = out / f"{one.name.replace('/', '-')}.json"
        if path in sources:
            raise FileError(
                f"{sources[path]} and {run} have the same recipe and seed ({one.name}): write their records into "
                "different folders"
            )
        records[path], sources[path] = one, run
    out.mkdir(parents=True, exist_ok=True)
    for path in records:
        check_writable(path, force)
    for path, one in records.items():
        save_record(one, path, force)
        print(path)
        if not one.finished:
            say(f"{sources[path]} is not finished; its record says so")
        if not one.evaluations:
            say(f"{sources[path]} has no evaluations: run `oneofmany evaluate {sources[path]} DATA` first")
