"""Text on a terminal: what comes from a file cannot control it, and every output can be encoded."""

from __future__ import annotations

import codecs
import os
import re
import sys
from io import TextIOWrapper

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and newline, and those that change the direction of text."""


def printable(text: str) -> str:
    """Return text that a terminal shows as it is: control characters are written as ``\\x1b``."""
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def sentence(text: str) -> str:
    """Return printable text on one line."""
    return printable(re.sub(r"\s*\n\s*", " ", text.strip()))


def prepare_streams() -> None:
    """Let every output be written: streams that were closed go nowhere, other encodings than UTF-8 show a ?."""
    # In this order, each gets the number of the closed stream, which no data file can get any more.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the end
    codecs.register_error("oneofmany", _encoded)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="oneofmany")


def _encoded(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write the bytes of a file name that is not text as they are, and other characters as a ?."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    part = error.object[error.start : error.end]
    return b"".join(bytes([ord(c) & 0xFF]) if "\udc80" <= c <= "\udcff" else b"?" for c in part), error.end
