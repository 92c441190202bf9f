"""One process's share of a large training file: it reads and holds only its own shards of the queries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oneofmany.data.dataset import DTYPES, FORMAT, OTHERWISE, Dataset, problem_of
from oneofmany.files import FileError
from oneofmany.problems import Problem, SequenceProblem
from oneofmany.tensor_files import check_content, opened


@dataclass(frozen=True, eq=False)
class Share:
    """Some of the N shards of a file: consecutive queries, of which shards differ in number by at most one.

    Args:
        data: the queries of the share.
        shards: the numbers of its shards.
        counts: int64 [N, 2], the OS and MS queries of every shard of the file.
        most_listed: the most listed solutions of a query in the file.
        ms_solutions: the number of solutions of all MS queries in the file.
        about: the header of the file, with its checksum.
    """

    data: Dataset
    shards: range
    counts: np.ndarray
    most_listed: int
    ms_solutions: int
    about: dict[str, Any]

    @property
    def problem(self) -> Problem:
        """The problem of all queries."""
        return self.data.problem

    @property
    def bounds(self) -> list[int]:
        """The first query of every shard of the file, and the number of all queries: N+1 numbers."""
        return [0, *np.cumsum(self.counts.sum(1)).tolist()]

    @property
    def first(self) -> int:
        """The place of the share's first query in the file."""
        return self.bounds[self.shards.start]

    def header(self) -> dict[str, Any]:
        """Return the header of the whole file, with its checksum."""
        return self.about


def read_share(path: str | Path, shards: int, held: range, *, check: bool = True) -> Share:
    """Read some of the shards of a file; raises FileError with one sentence if something is wrong with it.

    Besides, 12 bytes of every query of the file are read to count solutions, and are not kept.

    Args:
        path: the file of a ``Dataset`` whose queries bring no rules of their own.
        shards: the number of shards.
        held: the numbers of the shards to read.
        check: compare the content of the whole file with its checksum, piece by piece.
    """
    with opened(path, otherwise=OTHERWISE, newest=FORMAT) as (header, tensors):
        if "own" in header or header["task"] == SequenceProblem.task:
            what = "queries with rules of their own" if "own" in header else "sequences"
            raise FileError(f"{path} holds {what}, which cannot be read in shards: train with --shards 1")
        if set(tensors) != set(DTYPES) or not isinstance(header["checksum"], str):
            raise ValueError(f"its tensors are not {', '.join(DTYPES)}, or it has no checksum")
        if check:
            check_content(path, header, tensors)
        problem, queries = problem_of(header), tensors["query"].get_shape()[0]
        if shards > queries:
            raise FileError(f"{path} has {queries} queries, fewer than the {shards} shards: use fewer")
        bounds = [queries * shard // shards for shard in range(shards + 1)]
        first, last = bounds[held.start], bounds[held.stop]
        offsets, total = tensors["offsets"][:], tensors["total"][:]
        if offsets.shape != (queries + 1,) or total.shape != (queries,):
            raise ValueError("its tensors do not fit each other")
        listed = np.diff(offsets)
        solutions = np.where(total >= 0, total, listed)
        multiple = solutions > 1
        ms = np.add.reduceat(multiple.astype(np.int64), bounds[:-1])
        start, stop = int(offsets[first]), int(offsets[last])
        own: dict[str, Any] = {name: tensors[name][first:last] for name in ("query", "total", "relations", "group")}
        # safetensors refuses to read no rows.
        own["solutions"] = tensors["solutions"][start:stop] if start < stop else np.zeros_like(own["query"][:0])
        own["offsets"] = offsets[first : last + 1] - start
        if any(array.dtype != DTYPES[name] for name, array in own.items()):
            raise ValueError("its tensors have other types")
        data = Dataset(problem, **own, built=header["built"])
        counts = np.stack([np.diff(bounds) - ms, ms], 1)
        return Share(data, held, counts, int(listed.max()), int(solutions[multiple].sum()), header)
