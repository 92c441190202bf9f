"""The paper's published values, transcribed from its LaTeX: Tables 1 and 2, the appendix's tables and statements.

Accuracies are in percent as printed. The columns of every row are ``OBJECTIVES``.
"""

from __future__ import annotations

from typing import NamedTuple

from oneofmany.report.grid import OBJECTIVES

BASELINES = OBJECTIVES[:3]
AWARE = OBJECTIVES[3:]
"""The multiplicity-aware objectives."""
SEEDS = (42, 1729, 3120)
TEST_SIZES = {"nqueens": 11, "futoshiki": 6, "sudoku": 9}


class DataStatistics(NamedTuple):
    """A column of Table 1."""

    queries: int
    ms_percent: float
    solutions_per_ms_query: float


TABLE_1 = {
    "nqueens-train": DataStatistics(165_744, 7.04, 2.1),
    "nqueens-test": DataStatistics(10_000, 16.67, 2.2),
    "futoshiki-train": DataStatistics(10_000, 17.05, 2.2),
    "futoshiki-test": DataStatistics(10_000, 24.95, 2.4),
    "sudoku-train": DataStatistics(20_000, 50.0, 13.8),
    "sudoku-test": DataStatistics(10_000, 50.0, 13.7),
}


class Accuracy(NamedTuple):
    """A cell of Table 2: the mean over three seeds and, in parentheses there, the run that dev picks."""

    mean: float
    best: float


_TABLE_2 = {
    ("nqueens", "os"): "70.59 70.56  72.91 73.86  75.09 75.76  75.31 76.19  77.29 78.00  77.35 79.01  79.73 80.12",
    ("nqueens", "ms"): "55.34 60.97  61.13 61.81  66.85 69.48  75.76 75.36  77.22 77.82  79.46 81.95  79.68 82.37",
    ("nqueens", "overall"): "68.04 68.96  70.94 71.85  73.72 74.71  75.39 76.05  77.28 77.97  77.7 79.50  79.72 80.50",
    ("futoshiki", "os"): "65.59 66.8  65.49 65.22  67.63 69.49  77.68 78.36  76.78 78.24  78.15 77.96  78.01 78.36",
    ("futoshiki", "ms"): "14.99 18.04  14.22 18.84  19.13 23.33  69.3 68.62  70.35 69.06  70.88 73.71  71.57 72.42",
    ("futoshiki", "overall"): "52.96 54.63  52.7 53.65  55.53 57.97  75.59 75.93  75.18 75.95  76.33 76.90  76.4 76.88",
    ("sudoku", "os"): "87.85 89.08  87.53 86.24  89.19 90.24  88.26 86.78  88.25 88.22  88.73 89.62  88.69 87.94",
    ("sudoku", "ms"): "09.13 10.59  13.65 16.07  66.39 70.20  76.58 78.38  76.93 78.94  80.19 81.45  81.73 85.45",
    ("sudoku", "overall"): "48.49 49.84  50.59 51.15  77.79 80.22  82.42 82.58  82.59 83.58  84.46 85.54  85.21 86.70",
}
"""Mean and best of every objective."""

# As printed, except that the headers Random and Unique are swapped back: the appendix's column Random has Table 2's
# means of Unique, and the reverse.
_STANDARD_ERRORS = {
    ("nqueens", "os"): (0.09, 0.65, 0.33, 0.45, 0.38, 1.07, 0.34),
    ("nqueens", "ms"): (2.82, 1.13, 2.46, 1.60, 1.28, 3.31, 1.35),
    ("nqueens", "overall"): (0.46, 0.71, 0.59, 0.47, 0.48, 1.40, 0.46),
    ("futoshiki", "os"): (0.62, 0.28, 0.96, 0.34, 0.81, 0.65, 0.70),
    ("futoshiki", "ms"): (2.17, 2.77, 3.14, 1.76, 1.16, 1.48, 1.02),
    ("futoshiki", "overall"): (0.96, 0.74, 1.44, 0.46, 0.64, 0.65, 0.36),
    ("sudoku", "os"): (0.84, 0.82, 1.12, 0.88, 0.35, 0.68, 0.55),
    ("sudoku", "ms"): (0.89, 1.79, 2.82, 1.63, 1.50, 1.51, 2.00),
    ("sudoku", "overall"): (0.86, 0.49, 1.96, 0.45, 0.62, 0.69, 0.76),
}
SWAPPED_HEADERS = (
    "The appendix's table of standard errors has the headers Random and Unique swapped (its means are Table 2's of the "
    "other column); corrected here."
)


def _pairs(row: str) -> list[Accuracy]:
    numbers = [float(word) for word in row.split()]
    return [Accuracy(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]


TABLE_2: dict[tuple[str, str, str], Accuracy] = {
    (task, objective, subset): accuracy
    for (task, subset), row in _TABLE_2.items()
    for objective, accuracy in zip(OBJECTIVES, _pairs(row), strict=True)
}
"""(task, objective, subset) -> accuracy."""

STANDARD_ERRORS: dict[tuple[str, str, str], float] = {
    (task, objective, subset): error
    for (task, subset), row in _STANDARD_ERRORS.items()
    for objective, error in zip(OBJECTIVES, row, strict=True)
}
"""(task, objective, subset) -> standard error over three seeds."""

SEED_GAINS = {
    "nqueens": {42: 3.40, 1729: 2.53, 3120: 1.39},
    "futoshiki": {42: 0.69, 1729: 1.21, 3120: 1.77},
    "sudoku": {42: 3.12, 1729: 2.75, 3120: 1.98},
}
"""Gain of SelectR over MinLoss on all test queries in points, by seed (the appendix's table)."""
MEAN_GAINS = {"nqueens": 2.44, "futoshiki": 1.22, "sudoku": 2.61}
"""Their means as printed."""

MCNEMAR = {"nqueens": 1.00e-16, "futoshiki": 0.03, "sudoku": 1.69e-18}
"""p-values of SelectR against MinLoss, the dev-best runs (section 4.3)."""

UNIQUE_180K = {"os": 94.32, "ms": 24.48}
"""The published RRN, trained on 180,000 OS queries (the appendix's comparison)."""

EXPLORATORY = (3.0, 10.0)
"""Percentage of exploratory training queries in SelectR's first batches; 0 for I-ExplR by definition."""

MS_GAIN = (13.0, 52.0)
"""Gain of SelectR over Unique on MS queries in points: smallest and largest of the three tasks (section 4.3)."""

EXAMPLE_2_BOUNDARY = -0.55
"""The final decision boundary of MinLoss in Example 2."""

FIRST_PHASE = {"nqueens": (50_000, 4), "futoshiki": (50_000, 4), "sudoku": (125_000, 32)}
"""Limit of updates of the first phase and their batch: 200 epochs of 250 or 625 updates (the authors' commands)."""
SECOND_PHASE = {"nqueens": (50_000, 4), "futoshiki": (50_000, 4), "sudoku": (125_000, 16)}
"""The same for the second phase of I-ExplR and SelectR."""
EPOCHS = 200
"""Limit of epochs of a phase, with an evaluation on dev after each."""
