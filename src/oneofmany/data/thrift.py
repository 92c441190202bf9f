"""Read the metadata at the end of a Parquet file: a struct of Thrift's compact protocol.

pyarrow reads it too, but ends the whole process if the metadata of a column is damaged.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

Footer = dict[int, Any]
"""The fields of a struct by their number."""
MAGIC = b"PAR1"
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12


def read_footer(path: Path) -> Footer:
    """Return the fields of a Parquet file's metadata; ValueError or LookupError if they are damaged."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(0, end - 8))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MAGIC or length > end - 8:
            raise ValueError("it does not end as a Parquet file does")
        file.seek(end - 8 - length)
        return _Reader(file.read(length)).fields()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def fields(self) -> Footer:
        found: Footer = {}
        number = 0
        while head := self._take(1)[0]:
            number = number + (head >> 4) if head >> 4 else self._signed()
            found[number] = head & 15 == TRUE if head & 15 in (TRUE, FALSE) else self._value(head & 15)
        return found

    def _value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE, BYTE):  # truth values in a list
            return self._take(1)[0]
        if kind in (4, 5, 6):  # integers of 16, 32 and 64 bits
            return self._signed()
        if kind == DOUBLE:
            return struct.unpack("<d", self._take(8))[0]
        if kind == BINARY:
            return self._take(self._number())
        if kind in (LIST, SET):
            head = self._take(1)[0]
            length = head >> 4 if head >> 4 < 15 else self._number()
            # Every element takes a byte at least.
            return [self._value(head & 15) for _ in range(min(length, len(self.data) + 1))]
        if kind == MAP:
            length = self._number()
            kinds = self._take(1)[0] if length else 0
            return [(self._value(kinds >> 4), self._value(kinds & 15)) for _ in range(min(length, len(self.data) + 1))]
        if kind == STRUCT:
            return self.fields()
        raise ValueError(f"its metadata has a field of unknown type {kind}")

    def _take(self, length: int) -> bytes:
        taken = self.data[self.at : self.at + length]
        if len(taken) != length:
            raise ValueError("its metadata ends too early")
        self.at += length
        return taken

    def _number(self) -> int:
        found = 0
        for place in range(10):
            byte = self._take(1)[0]
            found |= (byte & 127) << 7 * place
            if byte < 128:
                return found
        raise ValueError("its metadata has a number of more than 64 bits")

    def _signed(self) -> int:
        found = self._number()
        return (found >> 1) ^ -(found & 1)
