"""The datasets of the benchmark, with fixed seeds. A dev set is built like the test set, not like the training set."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from oneofmany.data.colouring import NO_SEARCH, build_benchmark_colouring, build_colouring
from oneofmany.data.dataset import Dataset
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.graphs import SIZES as NODES
from oneofmany.data.hard_sudoku import build_hard_sudoku
from oneofmany.data.large_sudoku import build_large_sudoku
from oneofmany.data.nqueens import build_completions, build_nqueens
from oneofmany.data.own_task import USUAL, build_own_task
from oneofmany.data.splits import SPLITS, Split
from oneofmany.data.sudoku import build_sudoku
from oneofmany.files import FileError
from oneofmany.problems import find_task

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

FRESH: dict[str, Callable[..., Dataset]] = {
    "nqueens-fresh-test": partial(build_nqueens, 11, 6, 10_000, "test", seed=5),
    "futoshiki-fresh-test": partial(build_futoshiki, 6, 18, 5, 10_000, "test", seed=5),
    "sudoku-fresh-test": partial(build_sudoku, 10_004, "test", seed=5, ms_queries=5_004),
}
"""Second test sets: other samples of the test splits, read once for each run."""

COMPLETION: dict[str, Callable[..., Dataset]] = {
    f"nqueens-completion-{n}{name}-{split}": partial(build_completions, n, blanks, split, by_class=bool(name), seed=1)
    for n, blanks in ((8, (5, 6, 7)), (10, (7, 8, 9)))
    for name in ("", "-by-class")
    for split in SPLITS
}
"""N-Queens with many solutions, as used to test generative solvers: all boards with 1 to 3 queens left."""

HARD: dict[str, Callable[..., Dataset]] = {
    "sudoku-hard-train": partial(
        build_hard_sudoku, 120_000, "train", ((0, 1000), (80, 1000)), seed=1, ms_queries=30_000
    ),
    "sudoku-hard-dev": partial(build_hard_sudoku, 2_000, "dev", (10, 1000), seed=2),
    "sudoku-hard-test": partial(build_hard_sudoku, 4_000, "test", (10, 1000), seed=3),
    "sudoku-extreme-train": partial(build_hard_sudoku, 100_000, "train", (80, 500), seed=6, ms_queries=25_000),
    "sudoku-extreme-dev": partial(build_hard_sudoku, 1_000, "dev", (120, 2000), seed=7, ms_queries=0),
    "sudoku-extreme-test": partial(build_hard_sudoku, 2_000, "test", (120, 2000), seed=4, ms_queries=0),
    "sudoku-extreme-ms-test": partial(build_hard_sudoku, 2_000, "test", (120, 2000), seed=5, ms_queries=2_000),
    "sudoku-pairs-dev": partial(build_hard_sudoku, 500, "dev", (100, 2000), seed=8, ms_queries=0, pairs=True),
    "sudoku-pairs-test": partial(build_hard_sudoku, 1_000, "test", (100, 2000), seed=9, ms_queries=0, pairs=True),
    **{
        f"sudoku-rating-{low}-{high}-test": partial(build_hard_sudoku, 1_000, "test", (low, high), seed=seed)
        for seed, (low, high) in enumerate(((0, 10), (10, 30), (30, 100), (100, 300)), 11)
    },
}
"""Sudokus that need much search, by rating; made without a list of clues. A training set spans all ratings."""

SIZES: dict[str, Callable[..., Dataset]] = {
    **{
        f"nqueens-size-{n}-test": partial(build_nqueens, n, n - n // 2, 1_000, "test", seed=3) for n in (12, 14, 16, 20)
    },
    **{f"futoshiki-size-{n}-test": partial(build_futoshiki, n, n * n // 2, 5, 1_000, "test", seed=3) for n in (7, 9)},
    "sudoku-size-16-test": partial(build_sudoku, 1_000, "test", seed=3, size=16, givens=(154, 154)),
}
"""Boards larger than in training, with half of the queens or cells given, or 60 % of a Sudoku's cells."""

LARGE: dict[str, Callable[..., Dataset]] = {
    "sudoku-size-16-train": partial(build_large_sudoku, 16, 20_000, "train", (96, 160), seed=1),
    "sudoku-size-16-dev": partial(build_large_sudoku, 16, 500, "dev", (96, 160), seed=2),
    **{
        f"sudoku-size-16-givens-{n}-test": partial(build_large_sudoku, 16, 1_000, "test", (n, n), seed=3)
        for n in (96, 104, 112, 128, 144)
    },
    **{
        f"sudoku-size-25-givens-{n}-test": partial(build_large_sudoku, 25, 200, "test", (n, n), seed=3)
        for n in (300, 340, 380)
    },
}
"""Large Sudokus with few givens: test sets by the number of givens, and 16x16 to train on."""

COLOURING: dict[str, Callable[..., Dataset]] = {
    **{
        f"colouring-{colours}{name}-{part}": partial(build_benchmark_colouring, colours, part, sizes)
        for colours in (3, 5)
        for name, sizes in (("", NODES), ("-medium", NODES[:3]), ("-small", NODES[:2]))
        for part in SPLITS
    },
    **{
        f"colouring-{colours}-size-{nodes}{name}-test": partial(
            build_benchmark_colouring, colours, "test", (nodes,), **more
        )
        for colours in (3, 5)
        for nodes in NODES
        for name, more in (("", {}), ("-all", {"unsolved": True, "effort": NO_SEARCH}))
    },
}
"""The graphs of RandCSPBench that 3 and 5 colours suffice for: of all sizes, up to 64 and 32 nodes, and of each size.

``colouring-K-size-N-all-test`` has all 4,000 test graphs, also those that nobody has coloured.
"""

SAME_SIZE: dict[str, Callable[..., Dataset]] = {
    "nqueens-same-size-train": partial(build_nqueens, 10, 5, split="train", seed=1),
    "nqueens-same-size-dev": partial(build_nqueens, 10, 5, 1_000, "dev", seed=2),
    "nqueens-same-size-test": partial(build_nqueens, 10, 5, 10_000, "test", seed=3),
    "futoshiki-same-size-dev": partial(build_futoshiki, 5, 14, 5, 1_000, "dev", seed=2),
    "futoshiki-same-size-test": partial(build_futoshiki, 5, 14, 5, 10_000, "test", seed=3),
}
"""For networks that know one size only: dev and test of the training size. ``nqueens-train`` has every such query, so
N-Queens also needs another training set; ``futoshiki-train`` and the Sudoku data fit as they are."""

_SPLITS: tuple[tuple[Split, int, int], ...] = (("train", 2000, 1), ("dev", 300, 2), ("test", 300, 3))
TINY: dict[str, Callable[..., Dataset]] = {
    **{f"nqueens-tiny-{s}": partial(build_nqueens, 8, 6, split=s, seed=seed) for s, _, seed in _SPLITS},
    **{f"futoshiki-tiny-{s}": partial(build_futoshiki, 4, 9, 3, n, s, seed) for s, n, seed in _SPLITS},
    **{
        f"sudoku-tiny-{s}": partial(build_sudoku, n, s, seed=seed, size=4, givens=(4, 7), listed=50)
        for s, n, seed in _SPLITS
    },
    **{
        f"colouring-tiny-{s}": partial(build_colouring, n, (7, 8, 9, 10), 3, s, seed, degrees=(2, 4))
        for s, n, seed in _SPLITS
    },
}
"""Datasets for a minute of training on a laptop: 8 queens, Futoshiki 4x4, Sudoku 4x4, graphs of 7 to 10 nodes."""

CMUDICT: dict[str, str] = {
    f"cmudict-{part}{split}": f"oneofmany data cmudict FILE --no-stress{option} --split {split}"
    for part, option in (("", ""), ("several-", " --several"))
    for split in SPLITS
}
"""Pronunciations -> the command that builds them, since only the user has the dictionary; without stress marks."""

NAMED = BENCHMARK | EXPERIMENTS | FRESH | COMPLETION | HARD | SIZES | SAME_SIZE | LARGE | COLOURING | TINY
"""All datasets that are built by name."""


def build_benchmark(name: str, clues: str | Path | None = None) -> Dataset:
    """Build one dataset of the benchmark; ``clues`` is the list of 17-clue puzzles, which only Sudoku uses.

    A task of your own has the datasets ``TASK-train``, ``TASK-dev`` and ``TASK-test``, of its usual size.
    """
    task, _, split = name.rpartition("-")
    if name not in NAMED and split in SPLITS and (own := find_task(task)):
        queries, seed = USUAL[split]
        return build_own_task(own, queries, split, seed)
    if name not in NAMED:
        raise ValueError(f"name: expected one of {', '.join(NAMED)}, got {name!r}")
    return NAMED[name](clues=clues) if _takes_clues(name) else NAMED[name]()


def file_name(name: str, clues: str | Path | None) -> str:
    """Return the file name of a dataset; Sudokus that are not from a list of clues are named ``sudoku-own-...``."""
    own = clues is None and _takes_clues(name)
    return f"{name.replace('sudoku-', 'sudoku-own-', 1) if own else name}.safetensors"


def former_name(name: str) -> str:
    """Return the name before version 0.1.0, such as ``futoshiki20-test`` or ``nqueens12-test``; most are unchanged."""
    return name.replace("-20-blanks-", "20-").replace("-size-", "")


def _takes_clues(name: str) -> bool:
    return name.startswith("sudoku") and name in BENCHMARK | EXPERIMENTS | FRESH


def path_of(name: str, folder: str | Path, clues: str | Path | None = None) -> Path:
    """Return the path of a dataset in a folder; the file may not exist.

    Sudokus without a list of clues are named ``sudoku-own-...``. An existing file with the name of the list's Sudokus,
    or with the former name, is used instead.
    """
    for known in (f"{name}.safetensors", f"{former_name(name)}.safetensors"):
        if (Path(folder) / known).exists():
            return Path(folder) / known
    return Path(folder) / file_name(name, clues)


def check_buildable(name: str, path: Path) -> None:
    """Raise FileError, with the command, if the user has to build a dataset that is missing."""
    if name in CMUDICT:
        raise FileError(f"{path} does not exist: make it with {CMUDICT[name]} --out {path}")


def find_benchmark(
    name: str,
    folder: str | Path,
    clues: str | Path | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Path:
    """Return the path of a dataset in a folder, as ``path_of``, and build it first if it is missing.

    Sudokus without a list of clues are built from our own minimal puzzles.
    """
    path = path_of(name, folder, clues)
    if not path.exists():
        check_buildable(name, path)
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
