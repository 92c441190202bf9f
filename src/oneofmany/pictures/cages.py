"""Cages of a grid: a thin line around the cells whose values have a given sum, and the sum in their first cell."""

from __future__ import annotations

from oneofmany.pictures.shapes import Outline, Shape, Words
from oneofmany.problems import Problem

INSET = 3.5


def cages_of(problem: Problem, cell: float) -> list[Shape]:
    """The cages of a problem whose variables are the cells of a square, ``cell`` wide each.

    A cage is a rule that the values 1..V of some variables have a sum.
    """
    n, V, shapes = problem.size, problem.values, []
    for rule in problem.rules:
        low, high = rule.bounds
        if not rule.linear or low != high or any(weight != choice % V + 1 for choice, weight in rule.weighed()):
            continue
        cells = {choice // V for choice in rule.choices}
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
        first = min(cells)
        place = first % n * cell + INSET + 2, first // n * cell + INSET + 5
        shapes.append(Words(*place, 9, str(low), "muted", left=True))
    return shapes
