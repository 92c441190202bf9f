"""The data files of a recipe: the user's own, or the benchmark's, which are built where they are missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oneofmany.data.benchmark import find_benchmark
from oneofmany.recipes import data_of


@dataclass(frozen=True)
class DataFiles:
    """Where the data of recipes lies.

    Args:
        folder: of the benchmark's data; what is missing is built there. ``data`` if None.
        clues: a list of 17-clue Sudokus to build the Sudoku data from; own minimal puzzles if None.
        train: training data of your own instead of the benchmark's.
        dev: dev data of your own.
    """

    folder: str | Path | None = None
    clues: str | Path | None = None
    train: str | Path | None = None
    dev: str | Path | None = None

    def options(self) -> tuple[str, ...]:
        """The options of ``oneofmany train`` that say the same."""
        given = {"--data": self.folder, "--clues": self.clues, "--train": self.train, "--dev": self.dev}
        return tuple(part for name, value in given.items() if value is not None for part in (name, str(value)))

    def find(self, recipe: str, say: Callable[[str], None] = lambda sentence: None) -> tuple[Path, Path]:
        """The training and dev files of a recipe; ``say`` is told what is built."""
        folder = "data" if self.folder is None else self.folder
        train, dev = (
            find_benchmark(wanted, folder, self.clues, say) if own is None else Path(own)
            for own, wanted in zip((self.train, self.dev), data_of(recipe), strict=True)
        )
        return train, dev
