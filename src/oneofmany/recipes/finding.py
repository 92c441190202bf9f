"""The data files of a recipe: the user's own, or the benchmark's, which are built if they are missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oneofmany.data.benchmark import check_buildable, find_benchmark, path_of
from oneofmany.recipes import data_of


@dataclass(frozen=True)
class DataFiles:
    """The location of the data of recipes.

    Args:
        folder: the folder of the benchmark's data; missing files are built there. None means ``data``.
        clues: a file of 17-clue Sudokus for building the Sudoku data; if None, minimal puzzles are generated.
        train: your training data instead of the benchmark's.
        dev: your dev data instead of the benchmark's.
    """

    folder: str | Path | None = None
    clues: str | Path | None = None
    train: str | Path | None = None
    dev: str | Path | None = None

    def options(self) -> tuple[str, ...]:
        """The same as options of ``oneofmany train``."""
        given = {"--data": self.folder, "--clues": self.clues, "--train": self.train, "--dev": self.dev}
        return tuple(part for name, value in given.items() if value is not None for part in (name, str(value)))

    def missing(self, recipe: str) -> list[Path]:
        """The files of a recipe that ``find`` would build; FileError if it could not."""
        folder = "data" if self.folder is None else self.folder
        wanted = zip((self.train, self.dev), data_of(recipe), strict=True)
        files = {path_of(name, folder, self.clues): name for own, name in wanted if own is None and name}
        missing = [file for file in files if not file.exists()]
        for file in missing:
            check_buildable(files[file], file)
        return missing

    def find(self, recipe: str, say: Callable[[str], None] = lambda sentence: None) -> tuple[Path, Path]:
        """The training and dev files of a recipe; ``say`` is called with a sentence for every file that is built."""
        folder = "data" if self.folder is None else self.folder
        if not all(data_of(recipe)) and (self.train is None or self.dev is None):
            raise ValueError(f"{recipe} has no data of its own: name yours with --train FILE and --dev FILE")
        train, dev = (
            find_benchmark(wanted, folder, self.clues, say) if own is None else Path(own)
            for own, wanted in zip((self.train, self.dev), data_of(recipe), strict=True)
        )
        return train, dev
