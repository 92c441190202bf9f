"""The dataset file: queries with their listed solutions, in one safetensors file per split."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from oneofmany.files import FileError
from oneofmany.problems import OwnRules, Problem, SequenceProblem, find_task
from oneofmany.problems import own_rules as rules_of_queries
from oneofmany.tensor_files import explained, read_header, read_sealed, sealed, write_tensors

FORMAT = 2
"""The newest format. Data without rules of the queries' own is still written in format 1."""
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
OWN = {f"own_{name}": dtype for name, dtype in rules_of_queries.DTYPES.items()}
"""The tensors of rules of the queries' own, which other files do not have."""
KINDS = {"task": str, "size": int, "options": dict, "variables": int, "values": int, "built": dict}
"""The types of the header's fields, apart from format, version and checksum."""
OTHERWISE = "not a dataset"
MOST_CHOICES = 2**22
"""The largest number of choices that a file may name without the rules of its task."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Q queries of one problem with S listed solutions.

    If the queries bring rules of their own, ``problem`` has what they share. Structures of different sizes have the
    variables of the largest; those that a query does not need are given (value 1).

    Args:
        problem: the problem of all queries.
        query: uint8 [Q, R], 0 = blank, 1..V = given.
        solutions: uint8 [S, R], values 1..V; those of query q are rows offsets[q] to offsets[q+1].
        offsets: int64 [Q+1].
        total: int32 [Q], how many solutions exist, which may be more than are listed; -1 if unknown.
        relations: int16 [Q, M, 2], pairs (a, b) meaning variable a < variable b, or a != b if that is the problem's
            relation; -1 for padding.
        group: int32 [Q], queries of one group are in one split (Sudokus whose solution grids are of one class).
        built: how the queries were made: the builder, its arguments and its seed.
        own: the rules that the queries bring of their own; None if they bring none.
    """

    problem: Problem
    query: np.ndarray
    solutions: np.ndarray
    offsets: np.ndarray
    total: np.ndarray
    relations: np.ndarray
    group: np.ndarray
    built: dict[str, Any] = field(default_factory=dict)
    own: OwnRules | None = None

    def __post_init__(self) -> None:
        for name, dtype in DTYPES.items():
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype))
        _check_tensors(self.problem, {name: getattr(self, name) for name in DTYPES})
        if self.own is not None:
            if len(self.own) != len(self):
                raise ValueError(f"own: expected the rules of every query, {len(self)}, got those of {len(self.own)}")
            object.__setattr__(self, "own", self.own.checked(self.problem))

    def __len__(self) -> int:
        return len(self.query)

    def __getitem__(self, query: int) -> dict[str, Any]:
        """Return one query and its listed solutions, for a ``DataLoader`` with ``collate_fn=collate``.

        ``query`` int64 [R] (0 = blank) and ``solutions`` int64 [K, R], values 0..V-1 as objectives take them; and
        ``relations`` int64 [M, 2], if the task has them.
        """
        if not -len(self) <= query < len(self):
            raise IndexError(f"query: expected one of {len(self)}, got {query}")
        query %= len(self)
        item = {
            "query": self.query[query].astype(np.int64),
            "solutions": self.solutions_of(query).astype(np.int64) - 1,
        }
        if self.problem.relation_kind is not None:
            item["relations"] = self.relations[query].astype(np.int64)
        return item

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
            None if self.own is None else self.own.take(rows),
        )

    def problem_of(self, query: int) -> Problem:
        """Return the problem of one query, with its own rules."""
        return self.problem if self.own is None else self.problem.with_rules(self.own.rules(query))

    # ---- the file --------------------------------------------------------------------------------------------------

    def _tensors(self) -> dict[str, np.ndarray]:
        tensors = {name: getattr(self, name) for name in DTYPES}
        return tensors if self.own is None else tensors | {name: getattr(self.own, name[4:]) for name in OWN}

    def header(self) -> dict[str, Any]:
        """Return the file's header, with its checksum."""
        about = {
            "format": 1 if self.own is None else 2,
            "task": self.problem.task,
            "size": self.problem.size,
            "options": self.problem.options,
            "variables": self.problem.variables,
            "values": self.problem.values,
            "built": self.built,
            "version": BUILDERS,
        }
        if self.own is not None:
            kinds = {"kinds": self.own.kinds, "own_kinds": self.problem.own_kinds, "own_sums": self.problem.own_sums}
            about["own"] = {name: list(names) for name, names in kinds.items()}
        return sealed(about, self._tensors())

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the file in one step; an existing one only with ``force``."""
        write_tensors(path, self._tensors(), self.header(), force=force)

    @classmethod
    def load(cls, path: str | Path, problem: Problem | None = None) -> Dataset:
        """Read and check a file; raises FileError with one sentence if something is wrong with it.

        A task of your own is known after ``use_task_file``; otherwise its rules come from ``problem``, or are left out.
        """
        header, tensors = _read(path)
        with explained(path, OTHERWISE):
            own = problem_of(header, problem)
            if tensors["relations"].size and problem is None and find_task(own.task) is None:
                raise FileError(f"{path} has relations of the task {own.task!r}, so it needs its file (--task-file)")
            _check_tensors(own, {name: tensors[name] for name in DTYPES})
            rules = None
            if "own" in header:
                kinds = tuple(map(str, header["own"]["kinds"]))
                rules = OwnRules(kinds, **{name[4:]: tensors.pop(name) for name in OWN}).checked(own)
        return cls(own, **tensors, built=header["built"], own=rules)


def problem_of(header: dict[str, Any], problem: Problem | None = None) -> Problem:
    """Return the problem of a file's header, or ``problem`` if it fits; ValueError if the header is damaged."""
    for key, kind in KINDS.items():
        if not isinstance(header[key], kind):
            raise ValueError(f"its header has no valid {key!r}")
    own = _problem_of(header) if problem is None else problem
    if (own.variables, own.values) != (header["variables"], header["values"]):
        raise ValueError(
            f"it holds {header['variables']} variables of {header['values']} values, which does not fit {own}"
        )
    return own


def _problem_of(header: dict[str, Any]) -> Problem:
    task = find_task(header["task"])
    if task is None:
        if header["variables"] * header["values"] > MOST_CHOICES:
            raise ValueError(
                f"it names {header['variables']} variables of {header['values']} values, expected at most "
                f"{MOST_CHOICES} choices"
            )
        bare = Problem(header["task"], header["size"], header["variables"], header["values"], ())
        kinds, sums = (tuple(map(str, header.get("own", {}).get(name, ()))) for name in ("own_kinds", "own_sums"))
        return replace(bare, own_kinds=kinds, own_sums=sums)
    try:
        return task.problem(header["size"], **header["options"])
    except TypeError as error:
        raise ValueError(f"its options do not belong to {header['task']} ({error})") from None


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if read_header(path, otherwise=OTHERWISE).get("task") == SequenceProblem.task:
        raise FileError(
            f"{path} holds sequences, not queries with variables: load_data reads it, data show describes it"
        )
    header, tensors = read_sealed(path, otherwise=OTHERWISE, newest=FORMAT, dtypes=DTYPES | OWN, optional=tuple(OWN))
    with explained(path, OTHERWISE):
        if ("own" in header) + sum(name in tensors for name in OWN) not in (0, 1 + len(OWN)):
            raise ValueError("it has only a part of the rules of its queries")
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
