"""The answers of a network to a dataset, and how many of them are correct."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oneofmany.evaluation.scores import Judge, Score

DTYPES = {
    "answers": np.uint8,
    "valid": np.bool_,
    "listed": np.bool_,
    "cells": np.int32,
    "confidence": np.float32,
    "steps": np.int32,
    "total": np.int32,
    "givens": np.int32,
    "multiple": np.bool_,
    "chosen": np.bool_,
    "checked": np.bool_,
    "distinct": np.int32,
    "tokens": np.int32,
    "edits": np.int32,
    "lengths": np.int32,
}
OPTIONAL = ("chosen", "checked", "distinct", "tokens", "edits", "lengths")


@dataclass(frozen=True, eq=False)
class Outcomes:
    """A network's answers to Q queries and whether they are valid: numpy arrays with one entry per query.

    All but ``chosen``, ``checked`` and ``distinct`` describe one trajectory: the first start.

    Args:
        answers: uint8 [Q, R], values 1..V; 0 if the readout gives a variable no value or several.
        valid: bool [Q], the answer is correct: it keeps the givens and satisfies every rule or, if the problem has no
            rules, is one of the listed solutions.
        listed: bool [Q], the answer is one of the listed solutions.
        cells: int32 [Q], how many variables agree with the closest listed solution, givens included; -1 if none is
            listed.
        confidence: float32 [Q], log-probability of the answer.
        steps: int32 [Q], steps run.
        total: int32 [Q], number of solutions; -1 if unknown.
        givens: int32 [Q], number of given variables.
        multiple: bool [Q], MS queries: total > 1 or, if the total is unknown, more than one listed solution.
        chosen: bool [Q], validity of the start chosen without knowledge of the rules; None with one start.
        checked: bool [Q], whether any start is valid (for users who have a checker); None with one start.
        distinct: int32 [Q], number of different valid answers of all starts; None with one start.
        tokens: int32 [Q, L], the answers that are sequences, tokens from 1 and then 0; ``answers`` is then [Q, 0], and
            ``givens`` the lengths of the inputs. None for other problems, and so are the next two.
        edits: int32 [Q], the insertions, deletions and replacements between the answer and the nearest listed one.
        lengths: int32 [Q], the number of tokens of that nearest one.
        judged_by: the judge of ``valid``: the rules, or the listed solutions.
    """

    answers: np.ndarray
    valid: np.ndarray
    listed: np.ndarray
    cells: np.ndarray
    confidence: np.ndarray
    steps: np.ndarray
    total: np.ndarray
    givens: np.ndarray
    multiple: np.ndarray
    chosen: np.ndarray | None = None
    checked: np.ndarray | None = None
    distinct: np.ndarray | None = None
    tokens: np.ndarray | None = None
    edits: np.ndarray | None = None
    lengths: np.ndarray | None = None
    judged_by: Judge = "rules"

    def __post_init__(self) -> None:
        if np.ndim(self.answers) != 2:
            raise ValueError(f"answers: expected [Q, R], got {list(np.shape(self.answers))}")
        if (self.chosen is None) != (self.checked is None):
            raise ValueError("chosen and checked: expected both or none of them")
        for name, dtype in DTYPES.items():
            if name in OPTIONAL and getattr(self, name) is None:
                continue
            array = np.ascontiguousarray(getattr(self, name), dtype)
            if name == "tokens" and (array.ndim, len(array)) != (2, len(self)):
                raise ValueError(f"tokens: expected [{len(self)}, L], got {list(array.shape)}")
            if name not in ("answers", "tokens") and array.shape != (len(self),):
                raise ValueError(f"{name}: expected [{len(self)}], got {list(array.shape)}")
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def variables(self) -> int:
        """R, the number of variables."""
        return self.answers.shape[1]

    @property
    def error_rate(self) -> float | None:
        """Edits to the nearest listed answers over the tokens of these; None if the answers are not sequences."""
        if self.edits is None or self.lengths is None:
            return None
        return float(self.edits.sum() / max(int(self.lengths.sum()), 1))

    def summary(self) -> dict[str, Any]:
        """Return all scores as plain numbers for JSON; each score is a ``Score.as_dict()``.

        ``listed`` and ``cell_accuracy`` cover the queries with listed solutions (None if there are none).
        ``coverage`` is the share of a query's solutions that the starts found, mean over queries (None with one start).
        ``error_rate`` is that of sequences (else None).
        ``per_solutions`` and ``per_givens`` split ``overall`` by ``total`` (-1: unknown) and by ``givens``.
        """
        known = self.cells >= 0
        return self._split(self.valid) | {
            "judged_by": self.judged_by,
            "cell_accuracy": float(self.cells[known].mean() / self.variables) if known.any() else None,
            "listed": _score(self.listed[known]),
            "per_solutions": self._per("solutions", self.total),
            "per_givens": self._per("givens", self.givens),
            "chosen": None if self.chosen is None else self._split(self.chosen),
            "checked": None if self.checked is None else self._split(self.checked),
            "coverage": coverage(self.distinct, self.total),
            "error_rate": self.error_rate,
        }

    def _split(self, right: np.ndarray) -> dict[str, Any]:
        return {"os": _score(right[~self.multiple]), "ms": _score(right[self.multiple]), "overall": _score(right)}

    def _per(self, name: str, number: np.ndarray) -> list[dict[str, Any]]:
        values, group = np.unique(number, return_inverse=True)
        counts, right = np.bincount(group), np.bincount(group, self.valid)
        return [
            {name: int(value), **Score(int(correct), int(count)).as_dict()}
            for value, correct, count in zip(values, right, counts, strict=True)
        ]


def coverage(distinct: np.ndarray | None, total: np.ndarray) -> float | None:
    """Return the share of a query's solutions that were found, mean over the queries with a known total.

    Args:
        distinct: int32 [Q], number of different valid answers; None if they were not counted.
        total: int32 [Q], number of solutions; -1 if unknown.
    """
    known = total > 0
    return float((distinct[known] / total[known]).mean()) if distinct is not None and known.any() else None


def _score(right: np.ndarray) -> dict[str, Any]:
    return Score(int(right.sum()), len(right)).as_dict()
