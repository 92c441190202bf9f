"""Recognise a test set, also one that was exported and imported again, which forgets how it was built."""

from __future__ import annotations

import numpy as np

from oneofmany.data.dataset import Dataset
from oneofmany.data.sequences import SequenceData
from oneofmany.data.splits import in_split, relation_rows, texts_in_split
from oneofmany.exact.symmetry import canonical_sudoku
from oneofmany.files import canonical_json

FEWEST = 8
"""Fewer queries can be in the test split by chance; eight are with a probability of 10^-8."""
MOST = 256
"""More queries need not be looked at."""


def is_test_set(data: Dataset | SequenceData) -> bool:
    """Whether data was built as a test set, or all of its queries are in the test split by their hash."""
    if data.built.get("split") is not None:
        return data.built["split"] == "test"
    found = _in_test_split(data)
    return len(found) >= FEWEST and bool(found.all())


def _in_test_split(data: Dataset | SequenceData) -> np.ndarray:
    """Which of the first queries are in the test split, as builders and imports decide it: bool [N]."""
    if isinstance(data, SequenceData):
        rows = range(min(len(data), MOST))
        given = ([data.problem.inputs[token - 1] for token in data.input_of(row)] for row in rows)
        return texts_in_split([canonical_json(tokens) for tokens in given], "test")
    if data.problem.task == "sudoku" and data.problem.size == 9:
        # The class of the solution grid decides; an MS query does not tell which of its solutions that was.
        one = data.offsets[:-1][data.listed == 1][:MOST]
        return in_split(canonical_sudoku(data.solutions[one]), "test")
    return in_split(relation_rows(data.query[:MOST], data.relations[:MOST]), "test")
