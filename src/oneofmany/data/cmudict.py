"""Pronunciations of English words, from a file of the CMU Pronouncing Dictionary that the user names."""

from __future__ import annotations

import re
from pathlib import Path

from oneofmany.data.importing import grouped
from oneofmany.data.records import read_text
from oneofmany.data.sequences import SequenceData
from oneofmany.data.splits import Split
from oneofmany.files import FileError
from oneofmany.problems.sequences import Token

VARIANT = re.compile(r"\(\d+\)$")
PHONE = re.compile(r"[A-Z]{1,2}[0-2]?")


def build_cmudict(
    path: str | Path, *, stress: bool = True, several: bool = False, split: Split | None = None
) -> SequenceData:
    """Return words as characters with all their pronunciations as phones, in the order of the file.

    Args:
        path: the dictionary's text file: lines such as ``tomato(2) T AH0 M AA1 T OW2 # comment``.
        stress: False leaves out the stress marks of vowels; pronunciations that are then equal are listed once.
        several: keep only the words with several pronunciations.
        split: keep only the words of this split; a hash of the word decides: 80 % train, 10 % dev, 10 % test.
    """
    path = Path(path)
    if not path.is_file():
        raise FileError(f"{path} is not a file")
    queries: dict[tuple[Token, ...], dict[tuple[Token, ...], None]] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        fields = line.partition("#")[0].split()
        if not fields or line.startswith(";;;"):
            continue
        word, phones = VARIANT.sub("", fields[0]), fields[1:]
        if not phones or not word or not all(PHONE.fullmatch(phone) for phone in phones):
            raise FileError(f"line {number} of {path}: expected a word and its phones, got {line.strip()!r}")
        if not stress:
            phones = [phone.rstrip("012") for phone in phones]
        queries.setdefault(tuple(word.lower()), {}).setdefault(tuple(phones))
    if several:
        queries = {word: found for word, found in queries.items() if len(found) > 1}
    if not queries:
        raise FileError(f"{path} has no words{' with several pronunciations' if several else ''}")
    about = {"builder": "cmudict", "file": path.name, "stress": stress, "split": split}
    return grouped(queries, split, about | ({"several": True} if several else {}))
