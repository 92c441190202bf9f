"""The datasets of the benchmark, with fixed seeds. A dev set is built like the test set, not like the training set."""

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
    "futoshiki-20-blanks-dev": partial(build_futoshiki, 6, 20, 5, 1_000, "dev", seed=2),
    "futoshiki-20-blanks-test": partial(build_futoshiki, 6, 20, 5, 10_000, "test", seed=3),
    "sudoku-train": partial(build_sudoku, 20_000, "train", seed=1),
    "sudoku-dev": partial(build_sudoku, 2_000, "dev", seed=2),
    "sudoku-test": partial(build_sudoku, 10_004, "test", seed=3, ms_queries=5_004),
    "sudoku-os-train": partial(build_sudoku, 180_000, "train", seed=4, ms_queries=0),
}
"""Name of a dataset -> its builder. Table 2 used 18 blanks for Futoshiki's test set (the text says 20)."""

EXPERIMENTS: dict[str, Callable[..., Dataset]] = {
    "sudoku-all-train": partial(build_sudoku, 20_000, "train", seed=1, listed=50),
    "sudoku-puzzle-train": partial(build_sudoku, 20_000, "train", seed=1, split_by="puzzle"),
    "sudoku-puzzle-dev": partial(build_sudoku, 2_000, "dev", seed=2, split_by="puzzle"),
    "sudoku-puzzle-test": partial(build_sudoku, 10_000, "test", seed=3, split_by="puzzle"),
}
"""Datasets of experiments: ``sudoku-train`` with all solutions listed; Sudokus split by puzzle, not by grid class."""

SIZES: dict[str, Callable[..., Dataset]] = {
    **{
        f"nqueens-size-{n}-test": partial(build_nqueens, n, n - n // 2, 1_000, "test", seed=3) for n in (12, 14, 16, 20)
    },
    **{f"futoshiki-size-{n}-test": partial(build_futoshiki, n, n * n // 2, 5, 1_000, "test", seed=3) for n in (7, 9)},
    "sudoku-size-16-test": partial(build_sudoku, 1_000, "test", seed=3, size=16, givens=(154, 154)),
}
"""Boards larger than in training, with half of the queens or cells given, or 60 % of a Sudoku's cells."""

_SPLITS: tuple[tuple[Split, int, int], ...] = (("train", 2000, 1), ("dev", 300, 2), ("test", 300, 3))
TINY: dict[str, Callable[..., Dataset]] = {
    **{f"nqueens-tiny-{s}": partial(build_nqueens, 8, 6, split=s, seed=seed) for s, _, seed in _SPLITS},
    **{f"futoshiki-tiny-{s}": partial(build_futoshiki, 4, 9, 3, n, s, seed) for s, n, seed in _SPLITS},
    **{
        f"sudoku-tiny-{s}": partial(build_sudoku, n, s, seed=seed, size=4, givens=(4, 7), listed=50)
        for s, n, seed in _SPLITS
    },
}
"""Datasets for a minute of training on a laptop: 8 queens, Futoshiki 4x4, Sudoku 4x4."""


def build_benchmark(name: str, clues: str | Path | None = None) -> Dataset:
    """Build one dataset of the benchmark; ``clues`` is the list of 17-clue puzzles, which only Sudoku uses."""
    builders = BENCHMARK | EXPERIMENTS | SIZES | TINY
    if name not in builders:
        raise ValueError(f"name: expected one of {', '.join(builders)}, got {name!r}")
    return builders[name](clues=clues) if _takes_clues(name) else builders[name]()


def file_name(name: str, clues: str | Path | None) -> str:
    """Return the file name of a dataset; Sudokus that are not from a list of clues are named ``sudoku-own-...``."""
    own = clues is None and _takes_clues(name)
    return f"{name.replace('sudoku-', 'sudoku-own-', 1) if own else name}.safetensors"


def former_name(name: str) -> str:
    """Return the name before version 0.1.0, such as ``futoshiki20-test`` or ``nqueens12-test``; most are unchanged."""
    return name.replace("-20-blanks-", "20-").replace("-size-", "")


def _takes_clues(name: str) -> bool:
    return name.startswith("sudoku") and name in BENCHMARK | EXPERIMENTS


def find_benchmark(
    name: str,
    folder: str | Path,
    clues: str | Path | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Path:
    """Return the path of a dataset in a folder, and build it first if it is missing.

    Sudokus without a list of clues are built from our own minimal puzzles and named ``sudoku-own-...``. An existing
    file with the name of the list's Sudokus, or with the former name, is used instead.
    """
    for known in (f"{name}.safetensors", f"{former_name(name)}.safetensors"):
        if (Path(folder) / known).exists():
            return Path(folder) / known
    path = Path(folder) / file_name(name, clues)
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
