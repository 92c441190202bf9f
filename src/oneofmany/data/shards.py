"""Build a dataset in shards, on one machine or on many::

    from oneofmany.data.shards import Build, build_in_shards

    arguments = {"size": 6, "blanks": 18, "inequalities": 5, "queries": 10_000, "split": "train"}
    build = Build("futoshiki", arguments, shards=8)
    build_in_shards(build, "shards").save("train.safetensors")

Every shard draws its share of every quota with a seed of its own. A query that two shards have drawn is kept once, and
what is missing then is drawn again. So the same number of shards gives the same bytes, wherever they are built.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from oneofmany.data.dataset import DTYPES, Dataset
from oneofmany.data.futoshiki import FutoshikiSource
from oneofmany.data.hard_sudoku import HardSource
from oneofmany.data.large_sudoku import LargeSource
from oneofmany.data.listing import Distinct, Seed, Source, groups_of, list_drawn
from oneofmany.data.nqueens import QueensSource
from oneofmany.data.splits import relation_rows, stable_hash
from oneofmany.data.sudoku import SudokuSource
from oneofmany.files import FileError, read_json, write_json
from oneofmany.launching import Command, Launcher, finish
from oneofmany.tensor_files import read_sealed, sealed, write_tensors

SOURCES: dict[str, Callable[..., Source]] = {
    "nqueens": QueensSource,
    "futoshiki": FutoshikiSource,
    "sudoku": SudokuSource,
    "hard_sudoku": HardSource,
    "large_sudoku": LargeSource,
}
FORMAT = 1
PROGRAM = (sys.executable, "-m", "oneofmany.data.shards")


@dataclass(frozen=True)
class Build:
    """A dataset in shards.

    Args:
        builder: the name of the builder: nqueens (more than 12), futoshiki, sudoku, hard_sudoku or large_sudoku.
        arguments: its arguments by name, as in ``oneofmany.data``; numbers, texts and lists only.
        shards: the number of shards; it is an argument too, since another number gives other queries.
    """

    builder: str
    arguments: dict[str, Any]
    shards: int

    def __post_init__(self) -> None:
        queries = sum(self.source.quotas)
        if not 1 <= self.shards <= queries:
            raise ValueError(f"shards: expected 1 to {queries:,}, the number of queries, got {self.shards}")

    @cached_property
    def source(self) -> Source:
        """What draws the queries."""
        if self.builder not in SOURCES:
            raise ValueError(f"builder: expected one of {', '.join(SOURCES)}, got {self.builder!r}")
        return SOURCES[self.builder](**self.arguments)

    def quotas(self, index: int) -> list[int]:
        """The share of a shard in every quota; both shares and sums of shares differ by at most one."""
        shares, before = [], 0
        for quota in self.source.quotas:
            rest = quota % self.shards
            shares.append(quota // self.shards + ((index - before) % self.shards < rest))
            before += rest
        return shares

    def seed(self, index: int) -> tuple[int, ...]:
        """The seed of a shard, of what is drawn after them (``shards``, ...), or of the order (-1)."""
        return self.arguments.get("seed", 0) % 2**63, self.shards, index + 1


@dataclass(frozen=True)
class Part:
    """Some queries of a dataset, and the keys of their groups: uint8 [Q, W]."""

    data: Dataset
    key: np.ndarray

    def take(self, rows: np.ndarray) -> Part:
        """Return some of the queries."""
        return Part(self.data.take(rows), self.key[rows])

    @property
    def hashes(self) -> np.ndarray:
        """uint64 [Q], equal for equal queries."""
        return stable_hash(relation_rows(self.data.query, self.data.relations))


def build_part(source: Source, quotas: Sequence[int], seed: Seed, distinct: Distinct) -> Part:
    """Draw the queries of a part and list their solutions."""
    drawn = source.draw(quotas, seed, distinct)
    key = np.zeros((len(drawn.query), 0), np.uint8) if drawn.key is None else drawn.key
    order = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]) >> 2
    return Part(list_drawn(source, drawn, order), key)


def together(parts: Sequence[Part]) -> Part:
    """One part of several."""
    each = [part.data for part in parts]
    ends = np.cumsum([0, *(len(data.solutions) for data in each)])
    names = ("query", "solutions", "total", "relations", "group")
    tensors: dict[str, Any] = {name: np.concatenate([getattr(data, name) for data in each]) for name in names}
    offsets = np.concatenate([*(data.offsets[:-1] + end for data, end in zip(each, ends, strict=False)), ends[-1:]])
    data = Dataset(each[0].problem, offsets=offsets, built=each[0].built, **tensors)
    return Part(data, np.concatenate([part.key for part in parts]))


def merge(build: Build, parts: Sequence[Part]) -> Dataset:
    """The dataset of all shards: every query once, every quota full, in random order."""
    source, kept = build.source, _once(together(parts), build.source)
    after = build.shards
    while True:
        have = np.bincount(source.kind(kept.data), minlength=len(source.quotas))
        missing = [int(number) for number in np.array(source.quotas) - have]
        if not any(missing):
            break
        try:
            more = build_part(source, missing, build.seed(after), Distinct(np.sort(kept.hashes)))
        except ValueError as error:  # there are too few
            raise ValueError(f"{error}, beside the {len(kept.data):,} of all shards") from None
        kept, after = _once(together([kept, more]), source), after + 1
    kept = kept.take(np.random.default_rng(build.seed(-1)).permutation(len(kept.data)))
    group = groups_of(kept.key) if kept.key.shape[1] else np.arange(len(kept.data))
    return replace(kept.data, group=group, built=source.built | {"shards": build.shards})


def _once(part: Part, source: Source) -> Part:
    """The first of equal queries, and at most so many of a group as the source wants."""
    part = part.take(np.sort(np.unique(part.hashes, return_index=True)[1]))
    if source.most_of_a_group is None:
        return part
    group = groups_of(part.key)
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], group[order])
    return part.take(np.sort(order[np.arange(len(order)) - first < source.most_of_a_group]))


# ---- shards on disk -------------------------------------------------------------------------------------------------


def build_in_shards(
    build: Build,
    folder: str | Path,
    launcher: Launcher | None = None,
    *,
    at_once: int | None = None,
    tell: Callable[[int, int], object] = lambda done, of: None,
) -> Dataset:
    """Build every shard in a folder, here or by a launcher, and merge them; shards that exist already are kept.

    With a launcher, the folder must be on storage that all machines share.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    about = folder / "build.json"
    if about.exists() and read_json(about) != _json(build):
        raise FileError(f"{folder} holds shards of another build: delete it, or choose another place")
    write_json(about, _json(build))
    missing = [index for index in range(build.shards) if not _file(folder, index).exists()]
    if launcher is None:
        for done, index in enumerate(missing):
            tell(build.shards - len(missing) + done, build.shards)
            write_shard(folder, index)
    else:
        place = str(folder.absolute())
        commands = [Command((*PROGRAM, place, str(i)), folder.absolute() / f"shard-{i}.log") for i in missing]
        finish(commands, launcher, at_once=at_once, tell=tell)
    return merge(build, [_read(build, _file(folder, index)) for index in range(build.shards)])


def write_shard(folder: str | Path, index: int) -> None:
    """Build one shard of the build that a folder describes."""
    build = Build(**read_json(Path(folder) / "build.json"))
    part = build_part(build.source, build.quotas(index), build.seed(index), Distinct())
    tensors = {name: getattr(part.data, name) for name in DTYPES} | {"key": part.key}
    header = sealed({"format": FORMAT, "build": _json(build), "shard": index}, tensors)
    write_tensors(_file(Path(folder), index), tensors, header, force=True)  # two writers write the same bytes


def _read(build: Build, path: Path) -> Part:
    dtypes = DTYPES | {"key": np.uint8}
    header, found = read_sealed(path, otherwise="not a shard", newest=FORMAT, dtypes=dtypes)
    if header["build"] != _json(build):
        raise FileError(f"{path} is a shard of another build: delete it")
    tensors: dict[str, Any] = found
    key = tensors.pop("key")
    return Part(Dataset(build.source.problem, **tensors, built=build.source.built), key)


def _file(folder: Path, index: int) -> Path:
    return folder / f"shard-{index}.safetensors"


def _json(build: Build) -> dict[str, Any]:
    return json.loads(json.dumps(asdict(build)))  # as it is read again: tuples are lists


def main(folder: str, index: str) -> int:
    """``python -m oneofmany.data.shards FOLDER INDEX``."""
    try:
        write_shard(folder, int(index))
    except ValueError as error:
        print(f"oneofmany: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
