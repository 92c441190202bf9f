"""Read input-output records from JSONL, Parquet and CSV files, or from any iterable of dictionaries."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oneofmany.data.parquet import parquet_rows
from oneofmany.files import FileError

Source = str | Path | Iterable[Mapping[str, Any]]
"""A file, or records in memory, such as a Hugging Face ``datasets.Dataset``."""
ENDINGS = (".jsonl", ".parquet", ".csv", ".tsv")


@dataclass(frozen=True)
class Fields:
    """The fields of a record.

    Args:
        input: the field of the input.
        output: the field of one right output; several records may have the same input.
        outputs: a field with the list of all right outputs, instead of ``output``.
    """

    input: str = "input"
    output: str = "output"
    outputs: str | None = None

    @property
    def answer(self) -> str:
        """The field of the output or outputs."""
        return self.output if self.outputs is None else self.outputs


def name_of(source: Source) -> str:
    """The name of a source, for messages."""
    return str(source) if isinstance(source, str | Path) else "the records"


def read_records(source: Source, fields: Fields) -> Iterator[tuple[int, Any, list[Any]]]:
    """Yield (number, input, its outputs) of every record; a bad one raises FileError, which names it."""
    for number, record in _records(source, fields):
        if not isinstance(record, Mapping) or not {fields.input, fields.answer} <= record.keys():
            got = ", ".join(map(str, record)) if isinstance(record, Mapping) else type(record).__name__
            raise FileError(
                f"pair {number} of {name_of(source)}: expected an object with the fields {fields.input} and "
                f"{fields.answer}, got {got or 'none'}"
            )
        answers = _plain(record[fields.answer])
        if fields.outputs is not None and (not isinstance(answers, list) or not answers):
            raise FileError(
                f"pair {number} of {name_of(source)}: {fields.outputs}: expected a list of at least one output"
            )
        outputs = [answers] if fields.outputs is None else [_plain(answer) for answer in answers]
        yield number, _plain(record[fields.input]), outputs


def _plain(value: Any) -> Any:
    """Arrays, tensors and tuples as lists, their single numbers as numbers."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _records(source: Source, fields: Fields) -> Iterator[tuple[int, Any]]:
    if not isinstance(source, str | Path):
        yield from enumerate(source, 1)
        return
    path = Path(source)
    if not path.is_file():
        raise FileError(f"{path} is not a file")
    if path.suffix == ".parquet":
        yield from enumerate(parquet_rows(path, (fields.input, fields.answer)), 1)
    elif path.suffix == ".jsonl":
        yield from _json_lines(path)
    elif path.suffix in (".csv", ".tsv"):
        yield from _csv_rows(path, fields)
    else:
        raise FileError(f"{path}: expected a file that ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise FileError(f"line {number} of {path} is not JSON: {error}") from None


def _csv_rows(path: Path, fields: Fields) -> Iterator[tuple[int, Any]]:
    if fields.outputs is not None:
        raise FileError(f"{path}: a column of a CSV file has one output a row: name it with --output-field")
    # Not splitlines, which also breaks a line at characters such as U+2028.
    lines = io.StringIO(read_text(path), newline="")
    reader = csv.DictReader(lines, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)
    try:
        columns = reader.fieldnames or ()
        if twice := [name for name in (fields.input, fields.output) if columns.count(name) > 1]:
            raise FileError(f"{path} has several columns {twice[0]}: expected one")
        for number, row in enumerate(reader, 1):
            if more := row.pop(None, None):
                got = len(columns) + len(more)
                raise FileError(f"pair {number} of {path}: expected {len(columns)} columns as in the header, got {got}")
            yield number, {name: value for name, value in row.items() if value is not None}
    except csv.Error as error:
        # The line of DictReader itself is that of the row before.
        raise FileError(f"line {reader.reader.line_num} of {path} is not CSV: {error}") from None


def read_text(path: Path) -> str:
    """Read a text file in UTF-8, with or without a byte order mark."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not text: {error}") from None
