"""Sums of a grid: cages have a thin line around their cells, and the sum in the first of them, as in Killer Sudoku.

If they cross each other, as the runs of a Kakuro do, every sum is in front of its row or above its column instead.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise

from oneofmany.pictures.shapes import Outline, Shape, Words
from oneofmany.problems import Problem

INSET = 3.5
BEFORE = 26.0
"""The space for sums in front of the first column and above the first row."""


@lru_cache(maxsize=256)  # a problem is its own key: it is compared by identity
def sums_of(problem: Problem) -> tuple[tuple[list[int], int], ...]:
    """The variables and the sum of every rule that the values 1..V of some variables have a sum."""
    V, found = problem.values, []
    for rule in problem.rules:
        low, high = rule.bounds
        if rule.linear and low == high and all(weight == choice % V + 1 for choice, weight in rule.weighed()):
            found.append((sorted({choice // V for choice in rule.choices}), low))
    return tuple(found)


def space_before(problem: Problem) -> float:
    """How far sums that cross each other move a grid to the right and down; 0 if there are none."""
    return BEFORE if _cross(problem) else 0.0


def cages_of(problem: Problem, cell: float, black: Collection[int] = ()) -> list[Shape]:
    """The sums of a problem whose variables are the cells of a square, ``cell`` wide each, from ``space_before`` on.

    ``black`` are cells that are painted dark.
    """
    n, before, shapes = problem.size, space_before(problem), []
    for cells, sum_of in sums_of(problem):
        x, y = cells[0] % n * cell + before, cells[0] // n * cell + before
        if not before:
            shapes += _around(set(cells), n, cell)
            shapes.append(Words(x + INSET + 2, y + INSET + 5, 9, str(sum_of), "muted", left=True))
            continue
        steps = {b - a for a, b in pairwise(cells)} or {1}
        across = steps == {1} and cells[0] // n == cells[-1] // n
        if across:
            outside, ahead, place = cells[0] % n == 0, cells[0] - 1, (x - 12, y + 12)
            place = (x - BEFORE / 2, y + cell / 2) if outside else place
        elif steps == {n}:
            outside, ahead, place = cells[0] < n, cells[0] - n, (x + 12, y - 11)
            place = (x + cell / 2, y - BEFORE / 2) if outside else place
        else:
            continue  # neither a row nor a column: a diagonal of a magic square
        dark = not outside and ahead in black
        shapes.append(Words(*place, 12, str(sum_of), "paper" if dark else "muted", dark))
    return shapes


def _cross(problem: Problem) -> bool:
    cells = [cell for own, _ in sums_of(problem) for cell in own]
    return len(set(cells)) < len(cells)


def _around(cells: set[int], n: int, cell: float) -> list[Shape]:
    """The line around the cells of a cage."""
    shapes: list[Shape] = []
    for at in sorted(cells):
        x, y = at % n * cell, at // n * cell
        near = {
            "left": at % n > 0 and at - 1 in cells,
            "right": at % n < n - 1 and at + 1 in cells,
            "above": at - n in cells,
            "below": at + n in cells,
        }
        left, right = (x + INSET * (not near["left"]), x + cell - INSET * (not near["right"]))
        top, bottom = (y + INSET * (not near["above"]), y + cell - INSET * (not near["below"]))
        sides = {
            "left": ((left, top), (left, bottom)),
            "right": ((right, top), (right, bottom)),
            "above": ((left, top), (right, top)),
            "below": ((left, bottom), (right, bottom)),
        }
        lines = (side for name, side in sides.items() if not near[name])
        shapes += [Outline(line, stroke="muted", width=0.8, closed=False) for line in lines]
    return shapes
