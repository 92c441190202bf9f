"""What a board has besides cells and relations, as plain JSON for a viewer that draws the cells itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneofmany.pictures.boards import Board, is_graph, is_grid
from oneofmany.pictures.cages import cages_of, space_before
from oneofmany.pictures.graphs import node_places
from oneofmany.pictures.shapes import Words
from oneofmany.problems import Problem


def form_of(problem: Problem) -> str:
    """How the boards of a problem look: ``grid``, ``graph`` or ``rows``."""
    return "graph" if is_graph(problem) else "grid" if is_grid(problem) else "rows"


def marks_of(board: Board, cell: float) -> dict[str, Any]:
    """The ``absent`` variables, the ``places`` of a graph's nodes, and the ``marks`` of a grid's sums; {} without any.

    Marks are lines and words from the point (``before``, ``before``) on, with cells ``cell`` wide.
    """
    found: dict[str, Any] = {"absent": sorted(board.absent)} if board.absent else {}
    if is_graph(board.problem):
        pairs = np.array(board.pairs, np.int16).reshape(-1, 2)
        found["places"] = node_places(len(board.values) - len(board.absent), pairs).round(3).tolist()
    elif is_grid(board.problem) and (marks := cages_of(board.problem, cell, board.absent)):
        found["before"] = space_before(board.problem)
        found["marks"] = [
            {"x": mark.x, "y": mark.y, "text": mark.text, "on": mark.fill, "left": mark.left, "size": mark.size}
            if isinstance(mark, Words)
            else {"line": [*mark.points[0], *mark.points[1]]}
            for mark in marks
        ]
    return found
