"""The data of the benchmark, with fixed seeds. Dev is made like test, never like train."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from oneofmany.data.dataset import Dataset
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.splits import Split
from oneofmany.data.sudoku import build_sudoku
from oneofmany.files import FileError

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

SIZES: dict[str, Callable[..., Dataset]] = {
    **{f"nqueens{n}-test": partial(build_nqueens, n, n - n // 2, 1_000, "test", seed=3) for n in (12, 14, 16, 20)},
    **{f"futoshiki{n}-test": partial(build_futoshiki, n, n * n // 2, 5, 1_000, "test", seed=3) for n in (7, 9)},
    "sudoku16-test": partial(build_sudoku, 1_000, "test", seed=3, size=16, givens=(154, 154)),
}
"""Larger boards than those of training, with half of the queens or cells given, or 60 % of a Sudoku's cells."""

_SPLITS: tuple[tuple[Split, int, int], ...] = (("train", 2000, 1), ("dev", 300, 2), ("test", 300, 3))
TINY: dict[str, Callable[..., Dataset]] = {
    **{f"nqueens-tiny-{s}": partial(build_nqueens, 8, 6, split=s, seed=seed) for s, _, seed in _SPLITS},
    **{f"futoshiki-tiny-{s}": partial(build_futoshiki, 4, 9, 3, n, s, seed) for s, n, seed in _SPLITS},
    **{
        f"sudoku-tiny-{s}": partial(build_sudoku, n, s, seed=seed, size=4, givens=(4, 7), listed=50)
        for s, n, seed in _SPLITS
    },
}
"""Data for a minute on a laptop: 8 queens, Futoshiki 4x4, Sudoku 4x4."""


def build_benchmark(name: str, clues: str | Path | None = None) -> Dataset:
    """Build one data set of the benchmark; ``clues`` is the list of 17-clue puzzles, for Sudoku alone."""
    builders = BENCHMARK | SIZES | TINY
    if name not in builders:
        raise ValueError(f"name: expected one of {', '.join(builders)}, got {name!r}")
    return builders[name](clues=clues) if name.startswith("sudoku") and name in BENCHMARK else builders[name]()


def find_benchmark(
    name: str,
    folder: str | Path,
    clues: str | Path | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Path:
    """The file of a data set in a folder; built there first where it is missing.

    Sudokus without a list of clues come from our own minimal puzzles and are named ``sudoku-own-...``; a file with the
    list's name that stands there already is taken.
    """
    path = Path(folder) / f"{name}.safetensors"
    if not path.exists() and clues is None and name.startswith("sudoku") and name in BENCHMARK:
        path = Path(folder) / f"{name.replace('sudoku-', 'sudoku-own-')}.safetensors"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        say(f"building {path}, once")
        built = build_benchmark(name, clues)
        try:
            built.save(path)
        except FileError:
            # Another process may have built the same file in the meantime.
            if not path.exists():
                raise
    return path
