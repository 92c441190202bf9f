"""Published numbers of other papers, typed in: N-Queens with many solutions, and hard Sudokus.

N-Queens: arXiv 2605.19376, section 4.2: 8x8 boards with 5 to 7 queens removed, 10x10 boards with 7 to 9 removed, split
by query. Coverage is that of 20 samples, as we read it: different valid answers over the number of solutions.

Hard Sudokus: accuracy on a public collection (Sudoku-Extreme) by networks that were trained on 1,000 puzzles of the
same collection, with symmetries as augmentation.
"""

from __future__ import annotations

from typing import NamedTuple

SAMPLES = 20
"""Answers drawn for each query."""


class Published(NamedTuple):
    """A method: its parameters, and its accuracy and coverage in percent by size of the board."""

    parameters: str
    accuracy: dict[int, float]
    coverage: dict[int, float]


COMPLETION = {
    "TRM": Published("7 M", {8: 66.8, 10: 17.5}, {}),
    "HRM": Published("", {8: 78.7, 10: 37.4}, {}),
    "autoregressive": Published("", {8: 96.3, 10: 90.0}, {}),
    "GRAM": Published("10 M", {8: 99.7, 10: 89.7}, {8: 90.3, 10: 57.5}),
}
"""Name of a method -> its published numbers; what is missing was not given."""


class PublishedHard(NamedTuple):
    """A method on hard Sudokus: accuracy in percent, parameters, search at test time, and minutes of training."""

    accuracy: float
    parameters: str = ""
    search: str = ""
    minutes: str = ""


HARD_SUDOKU = {
    "HRM": PublishedHard(55.0, "27 M"),
    "TRM": PublishedHard(87.4, "5 M", minutes="2,160, NVIDIA L40S"),
    "SE-RRM": PublishedHard(93.7),
    "GRAM": PublishedHard(97.0, search="20 samples"),
    "DEC": PublishedHard(99.2, "0.8 M", "one pass"),
    "EqR": PublishedHard(99.8, search="128 restarts"),
}
"""Name of a method -> its published numbers; what is empty was not given."""


class PublishedColouring(NamedTuple):
    """A method on RandCSPBench: % of the solvable test graphs by number of nodes and, last, of all sizes."""

    by_nodes: tuple[float | None, ...]
    search: str = ""


COLOURING = {
    3: {
        "QuerySAT": PublishedColouring((None, None, None, None, None, 63.2)),
        "rPI-GNN": PublishedColouring((99.5, 98.6, 96.8, 91.3, 82.3, 92.5), "trained on each graph, five trials"),
        "simulated annealing": PublishedColouring((None, None, None, None, None, 90.3)),
        "a classical solver": PublishedColouring((None, None, None, None, None, 100.0)),
    },
    5: {
        "QuerySAT": PublishedColouring((None, None, None, None, None, 39.3)),
        "rPI-GNN": PublishedColouring((100.0, 75.7, 78.8, 74.2, 68.4, 73.2), "trained on each graph, five trials"),
        "simulated annealing": PublishedColouring((None, None, None, None, None, 79.5)),
        "a classical solver": PublishedColouring((None, None, None, None, None, 100.0)),
    },
}
"""Number of colours -> name of a method -> its published numbers (arXiv 2602.18419); None was not given."""
