"""The dataset file of sequences of any lengths: inputs with their listed answers, in one safetensors file per split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.files import FileError
from oneofmany.problems import Problem, SequenceProblem
from oneofmany.tensor_files import explained, read_header, read_sealed, sealed, write_tensors

FORMAT = 1
DTYPES = {
    "inputs": np.int32,
    "input_offsets": np.int64,
    "outputs": np.int32,
    "output_offsets": np.int64,
    "offsets": np.int64,
}
OTHERWISE = "not a dataset of sequences"


@dataclass(frozen=True, eq=False)
class SequenceData:
    """Q inputs with S listed answers.

    Args:
        problem: the vocabularies.
        inputs: int32 [I], the tokens of all inputs, from 1; those of input q are ``input_offsets[q]`` to
            ``input_offsets[q+1]``.
        input_offsets: int64 [Q+1].
        outputs: int32 [O], the tokens of all answers, from 1; those of answer s are ``output_offsets[s]`` to
            ``output_offsets[s+1]``.
        output_offsets: int64 [S+1].
        offsets: int64 [Q+1], the answers of input q are ``offsets[q]`` to ``offsets[q+1]``.
        built: how the data was made.
    """

    problem: SequenceProblem
    inputs: np.ndarray
    input_offsets: np.ndarray
    outputs: np.ndarray
    output_offsets: np.ndarray
    offsets: np.ndarray
    built: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, dtype in DTYPES.items():
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype))
        self._check()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, query: int) -> dict[str, Any]:
        """Return one input and its answers, for a ``DataLoader`` with ``collate_fn=collate``: arrays of int64."""
        if not -len(self) <= query < len(self):
            raise IndexError(f"query: expected one of {len(self)}, got {query}")
        query %= len(self)
        return {"query": self.input_of(query), "solutions": self.solutions_of(query)}

    @property
    def listed(self) -> np.ndarray:
        """int64 [Q]: the number of listed answers."""
        return np.diff(self.offsets)

    @property
    def total(self) -> np.ndarray:
        """int32 [Q]: -1, because it is not known how many answers exist."""
        return np.full(len(self), -1, np.int32)

    @property
    def multiple(self) -> np.ndarray:
        """bool [Q]: MS queries, with more than one listed answer."""
        return self.listed > 1

    def input_of(self, query: int) -> np.ndarray:
        """Return the tokens of an input, int64 [S]."""
        return self.inputs[self.input_offsets[query] : self.input_offsets[query + 1]].astype(np.int64)

    def solutions_of(self, query: int) -> list[np.ndarray]:
        """Return the listed answers of an input, int64 [L] each."""
        places = range(self.offsets[query], self.offsets[query + 1])
        ends = self.output_offsets
        return [self.outputs[ends[place] : ends[place + 1]].astype(np.int64) for place in places]

    def take(self, rows: np.ndarray) -> SequenceData:
        """Return the dataset of some of the inputs, in the order of ``rows`` int64 [N]."""
        inputs, input_offsets = _taken(self.inputs, self.input_offsets, rows)
        answers, offsets = _taken(np.arange(len(self.output_offsets) - 1), self.offsets, rows)
        outputs, output_offsets = _taken(self.outputs, self.output_offsets, answers)
        return SequenceData(self.problem, inputs, input_offsets, outputs, output_offsets, offsets, self.built)

    def in_words_of(self, problem: SequenceProblem) -> SequenceData:
        """Return the same data in the vocabularies of another problem; ValueError if a token is not in them."""
        if problem.same_as(self.problem):
            return self
        coded = []
        for name in ("inputs", "outputs"):
            place = {token: number for number, token in enumerate(getattr(problem, name), 1)}
            own, used = getattr(self.problem, name), getattr(self, name)
            table = np.array([0, *(place.get(token, -1) for token in own)], np.int32)
            if (table[used] < 0).any():
                token = own[int(used[table[used] < 0][0]) - 1]
                raise ValueError(f"{name}: the vocabulary of the training data has no {token!r}: leave it out")
            coded.append(table[used])
        inputs, outputs = coded
        return SequenceData(problem, inputs, self.input_offsets, outputs, self.output_offsets, self.offsets, self.built)

    # ---- the file --------------------------------------------------------------------------------------------------

    def _tensors(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in DTYPES}

    def header(self) -> dict[str, Any]:
        """Return the file's header, with its checksum."""
        about = {"format": FORMAT, "task": self.problem.task, "options": self.problem.options, "built": self.built}
        return sealed(about, self._tensors())

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the file in one step; an existing one only with ``force``."""
        write_tensors(path, self._tensors(), self.header(), force=force)

    @classmethod
    def load(cls, path: str | Path) -> SequenceData:
        """Read and check a file; raises FileError with one sentence if something is wrong with it."""
        header, tensors = read_sealed(path, otherwise=OTHERWISE, newest=FORMAT, dtypes=DTYPES)
        with explained(path, OTHERWISE):
            if not isinstance(header["built"], dict):
                raise ValueError("its header has no valid 'built'")
            return cls(SequenceProblem.of(header["options"]), **tensors, built=header["built"])

    def _check(self) -> None:
        """Raise ValueError unless the arrays fit each other and the vocabularies."""

        def need(condition: bool | np.bool_, sentence: str) -> None:
            if not condition:
                raise ValueError(sentence)

        ends = {"input_offsets": len(self.inputs), "output_offsets": len(self.outputs)}
        need(self.output_offsets.ndim == 1 and len(self.output_offsets) > 0, "output_offsets: expected [S+1]")
        ends["offsets"] = len(self.output_offsets) - 1
        for name, last in ends.items():
            found = getattr(self, name)
            rises = found.ndim == 1 and len(found) > 0 and found[0] == 0 and found[-1] == last
            need(rises and (np.diff(found) >= 0).all(), f"{name} do not rise from 0 to {last}")
        need(len(self.input_offsets) == len(self.offsets), "input_offsets and offsets: expected the same length")
        need((np.diff(self.input_offsets) > 0).all(), "inputs: one is empty")
        for name in ("inputs", "outputs"):
            tokens, most = getattr(self, name), len(getattr(self.problem, name))
            need(tokens.ndim == 1, f"{name}: expected one axis, got {tokens.ndim}")
            need(tokens.min(initial=1) >= 1 and tokens.max(initial=1) <= max(most, 1), f"{name}: tokens 1 to {most}")


def _taken(values: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ragged rows of values, one after the other, and their offsets."""
    lengths = np.diff(offsets)[rows]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return values[np.repeat(offsets[:-1][rows] - ends[:-1], lengths) + np.arange(ends[-1])], ends


def from_lists(
    problem: SequenceProblem,
    inputs: Sequence[Sequence[int]],
    answers: Sequence[Sequence[Sequence[int]]],
    built: dict[str, Any],
) -> SequenceData:
    """Make a dataset of coded inputs and, for each, its answers."""
    flat = [answer for each in answers for answer in each]
    return SequenceData(
        problem,
        _joined(inputs),
        _offsets(inputs),
        _joined(flat),
        _offsets(flat),
        _offsets(answers),
        built,
    )


def _joined(rows: Sequence[Sequence[int]]) -> np.ndarray:
    return np.array([token for row in rows for token in row], np.int32)


def _offsets(rows: Sequence[Any]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])


def load_data(path: str | Path, problem: Problem | None = None) -> Dataset | SequenceData:
    """Read a data file of either kind: a ``Dataset`` or a ``SequenceData``.

    ``problem`` is for ``Dataset.load``: needed for a task of your own that has rules.
    """
    if read_header(path, otherwise="not a dataset").get("task") != SequenceProblem.task:
        return Dataset.load(path, problem)
    if problem is not None:
        raise FileError(f"{path} holds sequences, which have no rules: leave problem out")
    return SequenceData.load(path)
