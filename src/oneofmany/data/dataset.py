"""The dataset file: queries of one problem with their listed solutions, in one safetensors file per split."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from oneofmany.problems import TASKS, Problem
from oneofmany.tensor_files import explained, read_sealed, sealed, write_tensors

FORMAT = 1
BUILDERS = "0.1.0.dev0"
"""The first version of the package whose builders give this data. Runs and records identify their data by the checksum,
which covers this text. Later versions keep it, and change it only if the builders give other data."""
DTYPES = {
    "query": np.uint8,
    "solutions": np.uint8,
    "offsets": np.int64,
    "total": np.int32,
    "relations": np.int16,
    "group": np.int32,
}
KINDS = {"task": str, "size": int, "options": dict, "variables": int, "values": int, "built": dict}
"""The types of the header's fields, apart from format, version and checksum."""
OTHERWISE = "not a dataset"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Q queries of one problem with S listed solutions.

    Args:
        problem: the problem of all queries.
        query: uint8 [Q, R], 0 = blank, 1..V = given.
        solutions: uint8 [S, R], values 1..V; those of query q are rows offsets[q] to offsets[q+1].
        offsets: int64 [Q+1].
        total: int32 [Q], how many solutions exist, which may be more than are listed; -1 if unknown.
        relations: int16 [Q, M, 2], pairs (a, b) meaning variable a < variable b, -1 for padding.
        group: int32 [Q], queries of one group are in one split (Sudokus whose solution grids are of one class).
        built: how the queries were made: the builder, its arguments and its seed.
    """

    problem: Problem
    query: np.ndarray
    solutions: np.ndarray
    offsets: np.ndarray
    total: np.ndarray
    relations: np.ndarray
    group: np.ndarray
    built: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, dtype in DTYPES.items():
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype))
        _check_tensors(self.problem, self._tensors())

    def __len__(self) -> int:
        return len(self.query)

    @property
    def listed(self) -> np.ndarray:
        """int64 [Q]: the number of listed solutions."""
        return np.diff(self.offsets)

    @property
    def multiple(self) -> np.ndarray:
        """bool [Q]: MS queries. If the total is unknown, the listed solutions decide."""
        return np.where(self.total >= 0, self.total, self.listed) > 1

    def solutions_of(self, query: int) -> np.ndarray:
        """Return the listed solutions of one query: uint8 [K, R], values 1..V."""
        return self.solutions[self.offsets[query] : self.offsets[query + 1]]

    def take(self, rows: np.ndarray) -> Dataset:
        """Return the dataset of some of the queries, in the order of ``rows`` int64 [N]."""
        listed = self.listed[rows]
        offsets = np.concatenate([[0], np.cumsum(listed)])
        picked = np.repeat(self.offsets[:-1][rows] - offsets[:-1], listed) + np.arange(offsets[-1])
        return Dataset(
            self.problem,
            self.query[rows],
            self.solutions[picked],
            offsets,
            self.total[rows],
            self.relations[rows],
            self.group[rows],
            self.built,
        )

    # ---- the file --------------------------------------------------------------------------------------------------

    def _tensors(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in DTYPES}

    def header(self) -> dict[str, Any]:
        """Return the file's header, with its checksum."""
        about = {
            "format": FORMAT,
            "task": self.problem.task,
            "size": self.problem.size,
            "options": self.problem.options,
            "variables": self.problem.variables,
            "values": self.problem.values,
            "built": self.built,
            "version": BUILDERS,
        }
        return sealed(about, self._tensors())

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the file in one step; an existing one only with ``force``."""
        write_tensors(path, self._tensors(), self.header(), force=force)

    @classmethod
    def load(cls, path: str | Path, problem: Problem | None = None) -> Dataset:
        """Read and check a file; raises FileError with one sentence if something is wrong with it.

        ``problem`` is needed for a task of your own that has rules; it must fit the file.
        """
        header, tensors = _read(path)
        with explained(path, OTHERWISE):
            own = _problem_of(header) if problem is None else problem
            if (own.variables, own.values) != (header["variables"], header["values"]):
                raise ValueError(
                    f"it holds {header['variables']} variables of {header['values']} values, which does not fit {own}"
                )
            _check_tensors(own, tensors)
        return cls(own, **tensors, built=header["built"])


def _problem_of(header: dict[str, Any]) -> Problem:
    task = TASKS.get(header["task"])
    if task is None:
        return Problem(header["task"], header["size"], header["variables"], header["values"], ())
    try:
        return task.problem(header["size"], **header["options"])
    except TypeError as error:
        raise ValueError(f"its options do not belong to {header['task']} ({error})") from None


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    header, tensors = read_sealed(path, otherwise=OTHERWISE, newest=FORMAT, dtypes=DTYPES)
    with explained(path, OTHERWISE):
        for key, kind in KINDS.items():
            if not isinstance(header[key], kind):
                raise ValueError(f"its header has no valid {key!r}")
    return header, tensors


def _check_tensors(problem: Problem, tensors: dict[str, np.ndarray]) -> None:
    """Raise ValueError unless the tensors fit each other and the problem."""
    query, solutions, offsets = tensors["query"], tensors["solutions"], tensors["offsets"]
    total, relations, group = tensors["total"], tensors["relations"], tensors["group"]
    R, V = problem.variables, problem.values

    def need(condition: bool | np.bool_, sentence: str) -> None:
        if not condition:
            raise ValueError(sentence)

    need(query.ndim == 2 and query.shape[1] == R, f"query: expected [Q, {R}], got {list(query.shape)}")
    need(solutions.ndim == 2 and solutions.shape[1] == R, f"solutions: expected [S, {R}], got {list(solutions.shape)}")
    Q, S = len(query), len(solutions)
    need(offsets.shape == (Q + 1,), f"offsets: expected [{Q + 1}], got {list(offsets.shape)}")
    need(total.shape == (Q,) and group.shape == (Q,), f"total and group: expected [{Q}]")
    need(
        relations.ndim == 3 and relations.shape[::2] == (Q, 2),
        f"relations: expected [{Q}, M, 2], got {list(relations.shape)}",
    )
    need(offsets[0] == 0 and offsets[-1] == S and (np.diff(offsets) >= 0).all(), "offsets do not rise from 0 to S")
    need(query.max(initial=0) <= V, f"query: expected values 0 to {V}")
    need(solutions.min(initial=1) >= 1 and solutions.max(initial=1) <= V, f"solutions: expected values 1 to {V}")
    listed = np.diff(offsets)
    need(((total < 0) | (total >= listed)).all(), "total: fewer solutions than are listed")
    given = np.repeat(query, listed, axis=0)
    need(((given == 0) | (given == solutions)).all(), "solutions: one does not keep the givens of its query")
    need(not relations.shape[1] or problem.relation_kind is not None, f"relations: {problem.task} has none")
    need(
        relations.min(initial=0) >= -1 and relations.max(initial=0) < R, f"relations: expected variables up to {R - 1}"
    )
    need(((relations[..., 0] < 0) == (relations[..., 1] < 0)).all(), "relations: half of a pair is padding")
    code = np.sort(relations[..., 0].astype(np.int64) * R + relations[..., 1], axis=1)
    need(((code[:, 1:] != code[:, :-1]) | (code[:, 1:] < 0)).all(), "relations: a query lists a pair twice")
