"""Find the records of runs: in run folders, record files, and folders that hold either."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from oneofmany.evaluation.record import Record
from oneofmany.evaluation.record_file import read_record
from oneofmany.files import FileError, read_json


def read_records(
    paths: Iterable[str | Path], tell: Callable[[str], None] = lambda sentence: None, *, evaluated: bool = True
) -> list[Record]:
    """Read every record under ``paths``; FileError if one is damaged or there is none.

    Args:
        paths: run folders, record files (.json), or folders that are searched for both.
        tell: called with a sentence about every file of a searched folder that is left out.
        evaluated: whether the runs need evaluations; those that ``paths`` names must have some, and at least one.
    """
    records, without = [], []
    for path, named in find_runs(paths, tell):
        record = read_record(path)
        if not record.evaluations:
            if evaluated and named:
                run = path if path.is_dir() else "RUN"
                raise FileError(f"{path} has no evaluations: run `oneofmany evaluate {run} DATA` first")
            without.append(path)
        records.append(record)
    if not evaluated:
        return records
    if without:
        others = f", and {len(without) - 1} more" if len(without) > 1 else ""
        tell(f"no evaluations in {without[0]}{others}: `oneofmany evaluate RUN DATA` makes them")
    if len(without) == len(records):
        raise FileError(f"none of the {len(records)} runs found has an evaluation: run `oneofmany evaluate` first")
    return records


def find_runs(
    paths: Iterable[str | Path], tell: Callable[[str], None] = lambda sentence: None
) -> list[tuple[Path, bool]]:
    """(run folder or record file, whether ``paths`` names it) for everything under ``paths``; FileError for none."""
    paths = [Path(path) for path in paths]
    if not paths:
        raise ValueError("no runs: name run folders, record files or folders that hold them")
    found: list[tuple[Path, bool]] = []
    for path in paths:
        if not path.exists():
            raise FileError(f"{path} does not exist: name a run folder, a record or a folder that holds them")
        if path.is_file() or _is_run(path):
            found.append((path, True))
        else:
            found += [(one, False) for one in _search(path, tell)]
    if not found:
        raise FileError(f"no runs found in {', '.join(map(str, paths))}: expected run folders or records (.json)")
    return found


def _is_run(path: Path) -> bool:
    return (path / "config.json").is_file()


def _search(folder: Path, tell: Callable[[str], None]) -> Iterator[Path]:
    """Run folders and records under a folder, in order."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if _is_run(path):
                yield path
            elif not path.name.startswith("."):
                yield from _search(path, tell)
        elif path.suffix == ".json":
            if _looks_like_record(path):
                yield path
            else:
                tell(f"{path} is not the record of a run: left out")


def _looks_like_record(path: Path) -> bool:
    """Whether a file looks like a record, also if it is damaged: its reader then raises the error."""
    try:
        return "recipe" in read_json(path)
    except FileError as error:
        return "JSON object" not in str(error)
