"""Import of your own input-output pairs, grouped into queries with listed solutions; export to Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from oneofmany.data.dataset import Dataset
from oneofmany.exact import LIMIT, count
from oneofmany.extras import require
from oneofmany.files import FileError, write_whole
from oneofmany.problems import TASKS, Problem
from oneofmany.problems.tasks.task import BLANKS, SYMBOLS


@dataclass(frozen=True)
class PairSummary:
    """How many inputs of a set of pairs have several answers."""

    pairs: int
    repeated_pairs: int
    queries: int
    ms_queries: int
    pairs_of_ms_queries: int
    answers_per_ms_query: float
    most_answers: int

    def sentence(self) -> str:
        """Return the summary as text."""
        share = self.ms_queries / self.queries
        conflict = self.pairs_of_ms_queries / (self.pairs - self.repeated_pairs)
        text = f"{self.pairs:,} pairs of {self.queries:,} inputs ({self.repeated_pairs:,} repeated pairs left out). "
        if not self.ms_queries:
            return text + "Every input has one answer: this is ordinary supervised learning."
        return text + (
            f"{self.ms_queries:,} inputs ({share:.1%}) have several answers, {self.answers_per_ms_query:.1f} on "
            f"average and {self.most_answers} at most; {conflict:.1%} of the distinct pairs contradict another one "
            "when they are learnt one by one."
        )


def import_pairs(path: str | Path, task: str | None = None) -> tuple[Dataset, PairSummary]:
    """Group pairs of a JSONL or Parquet file with the fields ``input`` and ``output``.

    With ``task`` both are in the task's text form (``output`` may be a list of values 1..V), every output is checked
    against the rules, and the solutions that exist are counted. Without it, both are lists of integers of the same
    length, or texts with one character per variable: 0 (or ``.``) is blank in the input, and the only rule is that an
    output keeps its input's givens.
    """
    path = Path(path)
    if task is not None and task not in TASKS:
        raise ValueError(f"task: expected one of {', '.join(TASKS)}, got {task!r}")
    read = _Reader(task)
    problem: Problem | None = None
    queries: dict[tuple[bytes, bytes], dict[bytes, int]] = {}
    pairs = 0
    for number, record in _records(path):
        try:
            if not isinstance(record, dict) or not {"input", "output"} <= record.keys():
                raise ValueError("expected an object with the fields input and output")
            own, query, relations, answer = read.pair(record["input"], record["output"])
            if problem is not None and own is not problem and (own is None or not own.same_as(problem)):
                raise ValueError(f"it is a query of {own}, but earlier ones are of {problem}")
            problem = own
        except ValueError as error:
            raise FileError(f"pair {number} of {path}: {error}") from None
        answers = queries.setdefault((query.tobytes(), relations.tobytes()), {})
        answers.setdefault(answer.tobytes(), number)
        pairs += 1
    if not pairs:
        raise FileError(f"{path} has no pairs")
    dataset = _grouped(queries, problem or read.bare_problem(path), path, task)
    listed = dataset.listed
    several = listed[listed > 1]
    summary = PairSummary(
        pairs,
        pairs - int(listed.sum()),
        len(listed),
        len(several),
        int(several.sum()),
        float(several.mean()) if len(several) else 0.0,
        int(listed.max()),
    )
    return dataset, summary


class _Reader:
    """Turns inputs and outputs into arrays, and keeps the number of variables and the largest value."""

    def __init__(self, task: str | None) -> None:
        self.task = None if task is None else TASKS[task]
        self.variables = 0
        self.values = 1

    def pair(self, given: Any, answer: Any) -> tuple[Problem | None, np.ndarray, np.ndarray, np.ndarray]:
        if self.task is None:
            query, output = _integers(given, "input"), _integers(answer, "output")
            if len(query) != len(output) or len(query) != (self.variables or len(query)) or not len(query):
                expected = self.variables or "the same number, at least 1"
                raise ValueError(f"input and output have {len(query)} and {len(output)} variables, expected {expected}")
            self.variables, self.values = len(query), max(self.values, int(output.max()), int(query.max()))
            if output.min() < 1:
                raise ValueError("output: a variable is blank, expected a value from 1")
            if ((query > 0) & (query != output)).any():
                raise ValueError("output does not keep the givens of its input")
            return None, query, np.zeros((0, 2), np.int16), output
        if not isinstance(given, str):
            raise ValueError(f"input: expected the text form of {self.task.name}, got {type(given).__name__}")
        query = self.task.parse(given)
        output = self.task.parse(answer).values if isinstance(answer, str) else _integers(answer, "output")
        if len(output) != query.problem.variables or not query.problem.check(
            torch.as_tensor(output, dtype=torch.int64)[None] - 1,
            torch.as_tensor(query.values)[None],
            torch.tensor(query.relations)[None],
        ):
            raise ValueError("output is not a solution of its input")
        order = np.lexsort(query.relations.T[::-1])
        return query.problem, query.values, query.relations[order], output

    def bare_problem(self, path: Path) -> Problem:
        if self.values > 255:
            raise FileError(f"{path} has values up to {self.values}, expected at most 255")
        return Problem("pairs", self.variables, self.variables, self.values, ())


def _integers(value: Any, name: str) -> np.ndarray:
    if isinstance(value, str):
        known = dict.fromkeys(BLANKS, 0) | {s: i + 1 for i, s in enumerate(SYMBOLS)}
        fields = value.split() if " " in value.strip() else list(value.strip())
        value = [known.get(f) if len(f) == 1 else (int(f) if f.isascii() and f.isdigit() else None) for f in fields]
    if not isinstance(value, list) or not all(
        isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= 255 for v in value
    ):
        raise ValueError(f"{name}: expected a list of integers from 0 to 255, or text with one character per variable")
    return np.array(value, np.uint8)


def _records(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the numbered records of a file: lines of JSON, or rows of Parquet."""
    if not path.is_file():
        raise FileError(f"{path} is not a file")
    if path.suffix == ".parquet":
        parquet = _pyarrow()
        try:
            table = parquet.read_table(path, columns=["input", "output"])
        except (OSError, ValueError, KeyError) as error:
            raise FileError(f"{path} cannot be read as Parquet with the columns input and output: {error}") from None
        yield from enumerate(table.to_pylist(), 1)
        return
    if path.suffix != ".jsonl":
        raise FileError(f"{path}: expected a file that ends in .jsonl or .parquet")
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not text: {error}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise FileError(f"line {number} of {path} is not JSON: {error}") from None


def _grouped(
    queries: dict[tuple[bytes, bytes], dict[bytes, int]], problem: Problem, path: Path, task: str | None
) -> Dataset:
    query = np.stack([np.frombuffer(key[0], np.uint8) for key in queries])
    listed = [len(answers) for answers in queries.values()]
    solutions = np.stack([np.frombuffer(a, np.uint8) for answers in queries.values() for a in answers])
    each = [np.frombuffer(key[1], np.int16).reshape(-1, 2) for key in queries]
    relations = np.full((len(query), max(map(len, each)), 2), -1, np.int16)
    for row, pairs in zip(relations, each, strict=True):
        row[: len(pairs)] = pairs
    total = np.full(len(query), -1)
    if task is not None:
        total = count(problem, query, relations)
        total[total >= LIMIT] = -1
    built = {"builder": "pairs", "file": path.name, "task": task, "drawn": "the file's distinct pairs, in its order"}
    return Dataset(
        problem,
        query,
        solutions,
        np.concatenate([[0], np.cumsum(listed)]),
        total,
        relations,
        np.arange(len(query)),
        built,
    )


def export_parquet(dataset: Dataset, path: str | Path, *, pairs: bool = False, force: bool = False) -> None:
    """Write a dataset as Parquet, one row per query with all fields, or one row per pair (``input``, ``output``).

    The pairs of the package's own tasks are written in their text form, others as lists; ``import_pairs`` reads both.
    """
    parquet = _pyarrow()
    import pyarrow

    if pairs:
        task = TASKS.get(dataset.problem.task)
        if task is None:
            inputs, outputs = dataset.query.tolist(), dataset.solutions.tolist()
        else:
            empty = dataset.relations[0, :0] if len(dataset) else np.zeros((0, 2), np.int16)
            inputs = [task.format(dataset.problem, q, r) for q, r in zip(dataset.query, dataset.relations, strict=True)]
            outputs = [task.format(dataset.problem, s, empty) for s in dataset.solutions]
        rows = np.repeat(np.arange(len(dataset)), dataset.listed)
        table = pyarrow.table({"input": [inputs[row] for row in rows], "output": outputs})
    else:
        table = pyarrow.table(
            {
                "query": pyarrow.array(dataset.query.tolist(), pyarrow.list_(pyarrow.uint8())),
                "solutions": pyarrow.array(
                    [dataset.solutions_of(q).tolist() for q in range(len(dataset))],
                    pyarrow.list_(pyarrow.list_(pyarrow.uint8())),
                ),
                "total": pyarrow.array(dataset.total),
                "relations": pyarrow.array(
                    [pairs[pairs[:, 0] >= 0].tolist() for pairs in dataset.relations],
                    pyarrow.list_(pyarrow.list_(pyarrow.int16())),
                ),
                "group": pyarrow.array(dataset.group),
            }
        )
    table = table.replace_schema_metadata({"oneofmany": json.dumps(dataset.header(), sort_keys=True)})
    write_whole(path, lambda beside: parquet.write_table(table, beside), force)


def _pyarrow() -> Any:
    require("pyarrow")
    from pyarrow import parquet

    return parquet
