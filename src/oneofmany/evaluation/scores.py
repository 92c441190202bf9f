"""Accuracy with its 95% interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any, Literal

Judge = Literal["rules", "listed"]
"""What decides whether an answer is correct: the rules of its problem or, if it has none, the listed answers."""
JUDGED: dict[Judge, str] = {"rules": "valid by the rules", "listed": "among the listed answers"}
"""What a correct answer is, in words."""


def judged(judge: Judge | str | None) -> str:
    """Return what a correct answer is, in words; files of earlier versions do not name a judge: it was the rules."""
    return JUDGED["listed" if judge == "listed" else "rules"]


def wilson(correct: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval (low, high) of the share correct / total."""
    _check(correct, total)
    if not total:
        raise ValueError("total: expected at least 1, got 0")
    if not 0 < level < 1:
        raise ValueError(f"level: expected a share between 0 and 1, got {level}")
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = (correct + z * z / 2) / (total + z * z)
    half = z * sqrt(correct * (total - correct) / total + z * z / 4) / (total + z * z)
    # The ends are exact at 0 and 1; rounding may miss them.
    return (middle - half if correct else 0.0), (middle + half if correct < total else 1.0)


@dataclass(frozen=True)
class Score:
    """The share of queries answered correctly, with its 95% Wilson interval.

    Args:
        correct: number of correct answers.
        total: number of queries; if it is 0, accuracy, low and high are None.
    """

    correct: int
    total: int

    def __post_init__(self) -> None:
        _check(self.correct, self.total)

    @property
    def accuracy(self) -> float | None:
        """The share of correct answers, 0 to 1."""
        return self.correct / self.total if self.total else None

    @property
    def low(self) -> float | None:
        """Lower end of the interval."""
        return wilson(self.correct, self.total)[0] if self.total else None

    @property
    def high(self) -> float | None:
        """Upper end of the interval."""
        return wilson(self.correct, self.total)[1] if self.total else None

    def as_dict(self) -> dict[str, Any]:
        """Return correct, total, accuracy, low and high as plain numbers for JSON."""
        return {
            "correct": int(self.correct),
            "total": int(self.total),
            "accuracy": self.accuracy,
            "low": self.low,
            "high": self.high,
        }


def _check(correct: int, total: int) -> None:
    if not 0 <= correct <= total:
        raise ValueError(f"correct: expected 0 to {total}, the total, got {correct}")
