"""Read and write records. A record file is read without torch; a run folder needs torch."""

from __future__ import annotations

import json
from pathlib import Path

from oneofmany.evaluation.record import Record
from oneofmany.evaluation.record_json import from_json, to_json
from oneofmany.files import FileError, read_json, write_whole


def read_record(path: str | Path) -> Record:
    """Read the record of a run folder or a .json file; a bad one raises FileError."""
    path = Path(path)
    if path.is_dir():
        from oneofmany.evaluation.recording import record_of

        return record_of(path)
    if path.suffix != ".json" or not path.is_file():
        raise FileError(f"{path} is neither a run folder nor a record (.json)")
    return from_json(read_json(path), str(path))


def save_record(record: Record, path: str | Path, force: bool = False) -> None:
    """Write a record, one line per part; an existing file is replaced only with ``force``."""
    parts = (f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in to_json(record).items())
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    write_whole(path, lambda beside: beside.write_text(text, encoding="utf-8"), force)
