"""Import of your own data: fill-in queries, or sequences of any lengths and vocabularies."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.data.pairs import PairSummary, import_pairs, looks_like_fill_in, summary_of
from oneofmany.data.records import Fields, Source, name_of, read_records
from oneofmany.data.sequences import SequenceData, from_lists
from oneofmany.data.splits import Split, in_split, relation_rows, texts_in_split
from oneofmany.files import FileError, canonical_json
from oneofmany.problems import SequenceProblem
from oneofmany.problems.sequences import Token

Form = Literal["fill-in", "sequences"]
"""``fill-in``: the output fills the blanks of the input. ``sequences``: anything else."""
Tokens = Literal["characters", "words"]
"""How a text becomes tokens: its characters, or its words between white space."""


def import_sequences(
    source: Source,
    *,
    fields: Fields = Fields(),  # noqa: B008 - frozen
    input_tokens: Tokens = "characters",
    output_tokens: Tokens = "characters",
    split: Split | None = None,
) -> tuple[SequenceData, PairSummary]:
    """Group input-output records into inputs with their listed answers, of any lengths.

    An input or output is a text, or a list, array or tensor of texts or whole numbers, which are its tokens; a single
    whole number, such as a label, is one token. Equal answers of an input are listed once. The vocabularies are those
    of the whole source, whatever the split.

    Args:
        source: a .jsonl, .parquet, .csv or .tsv file, or records in memory: any iterable of dictionaries, for example
            a Hugging Face ``datasets.Dataset``.
        fields: the names of the fields.
        input_tokens: how a text of an input becomes tokens.
        output_tokens: how a text of an output becomes tokens.
        split: keep only the inputs of this split; a hash of the input decides: 80 % train, 10 % dev, 10 % test.

    Returns:
        The dataset, and the summary of all records.
    """
    queries: dict[tuple[Token, ...], dict[tuple[Token, ...], None]] = {}
    pairs = 0
    for number, given, outputs in read_records(source, fields):
        try:
            tokens = _tokens(given, fields.input, input_tokens)
            if not tokens:
                raise ValueError(f"{fields.input} is empty")
            answers = queries.setdefault(tokens, {})
            for output in outputs:
                answers.setdefault(_tokens(output, fields.answer, output_tokens))
                pairs += 1
        except ValueError as error:
            raise FileError(f"pair {number} of {name_of(source)}: {error}") from None
    if not pairs:
        raise FileError(f"{name_of(source)}: expected at least one pair, got none")
    built = {
        "builder": "sequences",
        "file": Path(name_of(source)).name,
        "input": f"{fields.input} as {input_tokens}",
        "output": f"{fields.answer} as {output_tokens}",
        "split": split,
    }
    return grouped(queries, split, built), summary_of(pairs, np.array([len(each) for each in queries.values()]))


def grouped(
    queries: dict[tuple[Token, ...], dict[tuple[Token, ...], None]], split: Split | None, built: dict[str, Any]
) -> SequenceData:
    """Code inputs and their answers, and keep those of a split."""
    outputs = [answer for answers in queries.values() for answer in answers]
    problem = SequenceProblem(_vocabulary(queries), _vocabulary(outputs), max(map(len, outputs)))
    places = [{token: number for number, token in enumerate(one, 1)} for one in (problem.inputs, problem.outputs)]
    inputs = [[places[0][token] for token in given] for given in queries]
    answers = [[[places[1][token] for token in answer] for answer in each] for each in queries.values()]
    data = from_lists(problem, inputs, answers, built)
    if split is None:
        return data
    kept = np.flatnonzero(texts_in_split([canonical_json(list(given)) for given in queries], split))
    if not len(kept):
        raise FileError(f"split {split} has no inputs: the data has only {len(data)}")
    return data.take(kept)


def _vocabulary(sequences: Any) -> tuple[Token, ...]:
    found = set(chain.from_iterable(sequences))
    return (*sorted(t for t in found if isinstance(t, int)), *sorted(t for t in found if isinstance(t, str)))


def _tokens(value: Any, name: str, how: Tokens) -> tuple[Token, ...]:
    if isinstance(value, str):
        return tuple(value) if how == "characters" else tuple(value.split())
    if isinstance(value, int) and not isinstance(value, bool):  # a label
        return (value,)
    if not isinstance(value, list):
        raise ValueError(f"{name}: expected a text, a list of tokens or a whole number, got {type(value).__name__}")
    if not all(isinstance(token, str | int) and not isinstance(token, bool) for token in value):
        raise ValueError(f"{name}: expected texts or whole numbers as tokens")
    return tuple(value)


def import_data(
    source: Source,
    *,
    task: str | None = None,
    form: Form | None = None,
    fields: Fields = Fields(),  # noqa: B008 - frozen
    input_tokens: Tokens = "characters",
    output_tokens: Tokens = "characters",
    split: Split | None = None,
) -> tuple[Dataset | SequenceData, PairSummary]:
    """Import fill-in queries (``import_pairs``) or sequences (``import_sequences``).

    Without ``task`` and ``form`` the first record decides: it is a fill-in query if its input has blanks (0 or ``.``)
    and its output has the same length.
    """
    if form is None:
        form = "fill-in" if task is not None or _first_is_fill_in(source, fields) else "sequences"
    if form == "sequences":
        if task is not None:
            raise ValueError(f"form: {task} has rules, expected fill-in, got sequences")
        return import_sequences(
            source, fields=fields, input_tokens=input_tokens, output_tokens=output_tokens, split=split
        )
    try:
        dataset, summary = import_pairs(source, task, fields=fields)
    except FileError as error:
        hint = "" if task is not None else "; --form sequences takes inputs and outputs of any lengths and tokens"
        raise FileError(f"{error}{hint if str(error).startswith('pair') else ''}") from None
    if split is not None:
        kept = np.flatnonzero(in_split(relation_rows(dataset.query, dataset.relations), split))
        if not len(kept):
            raise FileError(f"split {split} has no inputs: the data has only {len(dataset)}")
        dataset = dataset.take(kept)
    return dataset, summary


def _first_is_fill_in(source: Source, fields: Fields) -> bool:
    if not isinstance(source, str | Path) and iter(source) is source:
        raise ValueError("source: expected records that can be read twice, such as a list, or form")
    first = next(islice(read_records(source, fields), 1), None)
    return first is not None and looks_like_fill_in(first[1], first[2][0])
