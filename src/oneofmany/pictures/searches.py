"""The figure of a search by noise: accuracy against starts, a line for every number of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from oneofmany.pictures.lines import Line, Point, draw_lines
from oneofmany.pictures.themes import Chart

STYLES = tuple(zip("oDsv^PX", ("-", "--", "-.", ":", "-", "--", "-."), strict=True))
"""Marker and dashes of a line."""
RESTARTS = {"noise": "starts with new noise", "perturbed": "starts from perturbed states"}


def search_chart(curves: Mapping[str, Mapping[int, Sequence[Point]]], caption: str) -> Chart:
    """Draw accuracy against the number of starts, one panel for every way to start again.

    Args:
        curves: way to start again -> most steps of a start -> points: starts, accuracy in percent and its interval.
        caption: in sentences.
    """
    panels = [
        (
            RESTARTS.get(restart, restart),
            [
                Line(f"{steps:,} steps", "", points, *STYLES[place % len(STYLES)])
                for place, (steps, points) in enumerate(sorted(lines.items()))
            ],
        )
        for restart, lines in curves.items()
    ]
    draw = partial(draw_lines, panels=panels, xlabel="starts at most", log=True)
    return Chart(
        "search", "Accuracy over starts and steps", caption, draw, size=(4.8, 1.4 + 1.9 * len(panels))
    )  # fmt: skip
