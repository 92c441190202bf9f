"""A task of your own: colouring the Petersen graph. Nodes are variables, colours are values."""

import numpy as np

from oneofmany.exact import count
from oneofmany.problems import Problem, Query, Rule, Task
from oneofmany.problems.tasks.task import NO_RELATIONS, Paint, plain
from oneofmany.testing import check_task

EDGES = (
    [(i, (i + 1) % 5) for i in range(5)] + [(i, i + 5) for i in range(5)] + [(5 + i, 5 + (i + 2) % 5) for i in range(5)]
)
NAMES = "rgbcmykw"


def colouring(colours: int) -> Problem:
    """Return the problem: for every edge and colour, at most one end of the edge takes the colour."""
    rules = [
        Rule("edge", (a * colours + colour, b * colours + colour), exact=False)
        for a, b in EDGES
        for colour in range(colours)
    ]
    return Problem("petersen", colours, variables=10, values=colours, rules=tuple(rules))


def parse(text: str) -> Query:
    """Read ``3 r....g...b``: the number of colours, then a letter for every node, ``.`` for blank."""
    colours, _, letters = text.strip().partition(" ")
    if colours not in "12345678" or len(letters) != 10 or not set(letters) <= set("." + NAMES[: int(colours)]):
        raise ValueError(f"expected the number of colours and ten letters, got {text!r}")
    return Query(colouring(int(colours)), np.array([NAMES.find(c) + 1 for c in letters], np.uint8), NO_RELATIONS)


def format_line(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
    return f"{problem.values} " + "".join(NAMES[v - 1] if v else "." for v in values)


def draw(
    problem: Problem,
    values: np.ndarray,
    relations: np.ndarray = NO_RELATIONS,
    given: np.ndarray | None = None,
    paint: Paint = plain,
) -> str:
    return "  ".join(f"{node}:{NAMES[v - 1] if v else '.'}" for node, v in enumerate(values))


TASK = Task("petersen", colouring, parse, format_line, draw)

if __name__ == "__main__":
    check_task(TASK, [1, 2, 3, 4])
    for colours in (2, 3, 4):
        number = count(colouring(colours), np.zeros((1, 10), np.uint8))[0]
        print(f"the Petersen graph has {number:,} colourings with {colours} colours")
    print("with node 0 red and node 1 green:", count(colouring(3), parse("3 rg........").values[None])[0])
