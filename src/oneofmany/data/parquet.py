"""Read pairs from Parquet files, which may be small and yet name gigabytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from oneofmany.data.thrift import Footer, read_footer
from oneofmany.extras import require
from oneofmany.files import FileError

AT_ONCE = 256
"""Rows in memory at a time."""
LONGEST = 2**18
"""The largest number of characters or values in a row."""
LARGEST_GROUP = 2**27
"""The largest number of values in a row group; a quarter of it is the largest number of rows."""
LARGEST_BYTES = 2**29
"""The largest number of unpacked bytes in a column of a row group."""
PER_BYTE = 100
"""The largest number of values, characters or unpacked bytes for every byte of the file."""


def pyarrow_parquet() -> Any:
    """The module ``pyarrow.parquet``; an error says how to install it."""
    require("pyarrow")
    from pyarrow import parquet

    return parquet


def parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of these columns; a bad file raises FileError.

    Equal values next to each other take no space in a Parquet file. So all sizes are compared with limits before
    memory is taken for them.
    """
    parquet = pyarrow_parquet()
    import pyarrow

    errors = (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, pyarrow.ArrowException)
    try:
        size = path.stat().st_size
        _check_sizes(read_footer(path), size)
        schema = parquet.read_schema(path)
        if missing := [name for name in columns if name not in schema.names]:
            raise ValueError(f"it has no column {' and '.join(missing)}")
        # A text that is repeated is in memory once.
        texts = [name for name in columns if _is_text(schema.field(name).type)]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            unpacked = 0
            for batch in file.iter_batches(AT_ONCE, columns=list(columns), use_threads=False):
                for column in batch.columns:
                    _check_lengths(column)
                rows = batch.to_pylist()
                unpacked += sum(_size(value) for row in rows for value in row.values())
                _compare(unpacked, size)
                yield from rows
    except errors as error:
        why = next(iter(str(error).splitlines()), type(error).__name__)
        named = " and ".join(columns)
        raise FileError(f"{path} cannot be read as Parquet with the columns {named}: {why}") from None


def _check_sizes(footer: Footer, size: int) -> None:
    """Compare the sizes in a file's metadata with the limits.

    The numbers are those of parquet.thrift: 3 is the number of rows and 4 the row groups of a file, 1 the columns and 3
    the number of rows of a group, 3 the metadata of a column; there 5 is the number of values and 6 the unpacked size.
    """
    values = packed = 0
    for group in footer[4]:
        about = [column[3] for column in group[1]]
        most = max((one[5] for one in about), default=0)
        if most > LARGEST_GROUP or group[3] > LARGEST_GROUP // 4:
            raise ValueError(f"a row group has {most} values, expected at most {LARGEST_GROUP}")
        most = max((one[6] for one in about), default=0)
        if most > LARGEST_BYTES:
            raise ValueError(f"a column of a row group has {most} bytes, expected at most {LARGEST_BYTES}")
        values += sum(one[5] for one in about)
        packed += sum(one[6] for one in about)
    _compare(max(values, packed, footer[3]), size)


def _compare(unpacked: int, size: int) -> None:
    if unpacked > PER_BYTE * size:
        raise ValueError(f"it names at least {unpacked} values or characters, but has only {size} bytes")


def _size(value: Any) -> int:
    """The number of characters or values, in nested lists too."""
    if isinstance(value, list):
        return len(value) + sum(_size(one) for one in value if isinstance(one, list | str))
    return len(value) if isinstance(value, str) else 1


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind)


def _check_lengths(column: Any) -> None:
    import pyarrow.compute
    from pyarrow import types

    own: Any = pyarrow.compute
    if types.is_dictionary(column.type):
        column = column.dictionary
    if types.is_list(column.type) or types.is_large_list(column.type):
        longest = own.max(own.list_value_length(column)).as_py()
        inner = column.type.value_type
        if (types.is_list(inner) or types.is_large_list(inner) or _is_text(inner)) and (longest or 0) <= LONGEST:
            _check_lengths(column.flatten())
    elif _is_text(column.type):
        longest = own.max(own.binary_length(column)).as_py()
    elif types.is_integer(column.type):
        longest = 1
    else:
        raise ValueError(f"expected texts, integers or lists of them, got {column.type}")
    if (longest or 0) > LONGEST:
        raise ValueError(f"a row has {longest} characters or values, expected at most {LONGEST}")
