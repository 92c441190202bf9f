"""The data of the benchmark, with fixed seeds. Dev is made like test, never like train."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from oneofmany.data.dataset import Dataset
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.sudoku import build_sudoku

BENCHMARK: dict[str, Callable[..., Dataset]] = {
    "nqueens-train": partial(build_nqueens, 10, 5, seed=1),
    "nqueens-dev": partial(build_nqueens, 11, 6, 1_000, "dev", seed=2),
    "nqueens-test": partial(build_nqueens, 11, 6, 10_000, "test", seed=3),
    "futoshiki-train": partial(build_futoshiki, 5, 14, 5, 10_000, "train", seed=1),
    "futoshiki-dev": partial(build_futoshiki, 6, 18, 5, 1_000, "dev", seed=2),
    "futoshiki-test": partial(build_futoshiki, 6, 18, 5, 10_000, "test", seed=3),
    "futoshiki20-dev": partial(build_futoshiki, 6, 20, 5, 1_000, "dev", seed=2),
    "futoshiki20-test": partial(build_futoshiki, 6, 20, 5, 10_000, "test", seed=3),
    "sudoku-train": partial(build_sudoku, 20_000, "train", seed=1),
    "sudoku-dev": partial(build_sudoku, 2_000, "dev", seed=2),
    "sudoku-test": partial(build_sudoku, 10_004, "test", seed=3, ms_queries=5_004),
    "sudoku-os-train": partial(build_sudoku, 180_000, "train", seed=4, ms_queries=0),
}
"""Name of a file -> its builder. Table 2 used 18 blanks for Futoshiki's test (the text says 20: ``futoshiki20``)."""


def build_benchmark(name: str, clues: str | Path | None = None) -> Dataset:
    """Build one data set of the benchmark; ``clues`` is the list of 17-clue puzzles, for Sudoku alone."""
    if name not in BENCHMARK:
        raise ValueError(f"name: expected one of {', '.join(BENCHMARK)}, got {name!r}")
    return BENCHMARK[name](clues=clues) if name.startswith("sudoku") else BENCHMARK[name]()
