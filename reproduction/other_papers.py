"""Published numbers of other papers on N-Queens with many solutions, typed from their text.

arXiv 2605.19376, section 4.2: 8x8 boards with 5 to 7 queens removed, 10x10 boards with 7 to 9 removed, split by query.
Coverage is that of 20 samples, as we read it: different valid answers over the number of solutions.
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
