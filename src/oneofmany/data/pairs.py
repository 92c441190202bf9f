"""Import of your own input-output pairs, grouped into queries with listed solutions; export to Parquet."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.data.parquet import pyarrow_parquet
from oneofmany.data.records import Fields, Source, name_of, read_records
from oneofmany.data.sequences import SequenceData
from oneofmany.exact import LIMIT, count
from oneofmany.files import FileError, write_whole
from oneofmany.problems import Problem, find_task, task_named
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


def import_pairs(
    source: Source,
    task: str | None = None,
    *,
    fields: Fields = Fields(),  # noqa: B008 - frozen
) -> tuple[Dataset, PairSummary]:
    """Group the pairs of a JSONL, Parquet or CSV file, or of records in memory, into queries with listed solutions.

    With ``task`` inputs and outputs are in the task's text form (an output may be a list of values 1..V), every output
    is checked against the rules, and the solutions that exist are counted. Without it, both are lists of integers of
    the same length, or texts with one character per variable: 0 (or ``.``) is blank in the input, and the only rule is
    that an output keeps its input's givens. ``import_sequences`` takes anything else.
    """
    name = name_of(source)
    read = _Reader(task)
    problem: Problem | None = None
    queries: dict[tuple[bytes, bytes], dict[bytes, int]] = {}
    pairs = 0
    for number, given, outputs in read_records(source, fields):
        for output in outputs:
            try:
                own, query, relations, answer = read.pair(given, output)
                if problem is not None and own is not problem and (own is None or not own.same_as(problem)):
                    raise ValueError(f"it is a query of {own}, but earlier ones are of {problem}")
                problem = own
            except ValueError as error:
                raise FileError(f"pair {number} of {name}: {error}") from None
            answers = queries.setdefault((query.tobytes(), relations.tobytes()), {})
            answers.setdefault(answer.tobytes(), number)
            pairs += 1
    if not pairs:
        raise FileError(f"{name}: expected at least one pair, got none")
    dataset = _grouped(queries, problem or read.bare_problem(name), Path(name).name, task)
    return dataset, summary_of(pairs, dataset.listed)


def summary_of(pairs: int, listed: np.ndarray) -> PairSummary:
    """Summarise ``pairs`` pairs that were grouped into queries with int64 [Q] ``listed`` answers each."""
    several = listed[listed > 1]
    return PairSummary(
        pairs,
        pairs - int(listed.sum()),
        len(listed),
        len(several),
        int(several.sum()),
        float(several.mean()) if len(several) else 0.0,
        int(listed.max()),
    )


def looks_like_fill_in(given: Any, output: Any) -> bool:
    """Return whether a pair is a query with blanks and an output of the same length."""
    try:
        query, answer = _integers(given, "input"), _integers(output, "output")
    except ValueError:
        return False
    return len(query) == len(answer) > 0 and bool((query == 0).any())


class _Reader:
    """Turns inputs and outputs into arrays, and keeps the number of variables and the largest value."""

    def __init__(self, task: str | None) -> None:
        self.task = None if task is None else task_named(task)
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
            output[None].astype(np.int64) - 1, query.values[None], query.relations[None]
        ):
            raise ValueError("output is not a solution of its input")
        order = np.lexsort(query.relations.T[::-1])
        return query.problem, query.values, query.relations[order], output

    def bare_problem(self, path: str) -> Problem:
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


def _grouped(
    queries: dict[tuple[bytes, bytes], dict[bytes, int]], problem: Problem, file: str, task: str | None
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
    built = {"builder": "pairs", "file": file, "task": task, "drawn": "the file's distinct pairs, in its order"}
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


def export_parquet(
    dataset: Dataset | SequenceData, path: str | Path, *, pairs: bool = False, force: bool = False
) -> None:
    """Write a dataset as Parquet, one row per query with all fields, or one row per pair (``input``, ``output``).

    The pairs of the package's own tasks are written in their text form, others as lists; ``import_data`` reads both.
    Sequences have the columns ``input`` and ``outputs``, or ``input`` and ``output``, as lists of tokens.
    """
    if isinstance(dataset, Dataset) and dataset.own is not None:
        raise ValueError("Parquet files have no place for rules that queries bring of their own: use the dataset file")
    parquet = pyarrow_parquet()
    import pyarrow

    if isinstance(dataset, SequenceData):
        table = pyarrow.table(_sequence_columns(dataset, pairs))
    elif pairs:
        task = find_task(dataset.problem.task)
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


def _sequence_columns(data: SequenceData, pairs: bool) -> dict[str, list[Any]]:
    words = [[None, *tokens] for tokens in (data.problem.inputs, data.problem.outputs)]
    inputs = [[words[0][token] for token in data.input_of(q)] for q in range(len(data))]
    answers = [[[words[1][token] for token in answer] for answer in data.solutions_of(q)] for q in range(len(data))]
    if not pairs:
        return {"input": inputs, "outputs": answers}
    rows = [(given, answer) for given, each in zip(inputs, answers, strict=True) for answer in each]
    return {"input": [given for given, _ in rows], "output": [answer for _, answer in rows]}
