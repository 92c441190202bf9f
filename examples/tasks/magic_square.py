"""Magic squares: n x n different numbers from 1 to n * n; all rows, columns and both diagonals have the same sum."""

import numpy as np

from oneofmany.problems import Problem, Query, Task, all_different, total
from oneofmany.problems.tasks.task import NO_RELATIONS, Paint, plain


def magic_square(size: int = 3) -> Problem:
    """Return the problem: one rule for the numbers, and one for the sum of every line."""
    cells = np.arange(size * size).reshape(size, size)
    lines = [*cells, *cells.T, cells.diagonal(), cells[:, ::-1].diagonal()]
    numbers, each = size * size, size * (size * size + 1) // 2
    rules = all_different("number", range(numbers), numbers)
    for line in lines:
        rules += total("line", line.tolist(), numbers, low=each, high=each)
    return Problem("magic-square", size, variables=numbers, values=numbers, rules=tuple(rules))


def parse(text: str) -> Query:
    """Read ``8 . . . 5 . . . .``: the numbers row by row, ``.`` for blank."""
    words = text.split()
    size = round(len(words) ** 0.5)
    if size * size != len(words) or size < 1:
        raise ValueError(f"expected n * n numbers, got {len(words)}")
    for word in words:
        if word != "." and not (word.isdecimal() and 1 <= int(word) <= len(words)):
            raise ValueError(f"{word!r}: expected . or a number from 1 to {len(words)}")
    return Query(magic_square(size), np.array([0 if w == "." else int(w) for w in words], np.uint8), NO_RELATIONS)


def write(problem: Problem, values: np.ndarray, relations: np.ndarray = NO_RELATIONS) -> str:
    return " ".join(str(value) if value else "." for value in values)


def draw(
    problem: Problem,
    values: np.ndarray,
    relations: np.ndarray = NO_RELATIONS,
    given: np.ndarray | None = None,
    paint: Paint = plain,
) -> str:
    wide, known = len(str(problem.values)), np.ones(len(values), bool) if given is None else given
    words = [(str(value) if value else "·").rjust(wide) for value in values]
    cells = [paint(word, bool(k)) if v else word for word, v, k in zip(words, values, known, strict=True)]
    return "\n".join(" ".join(cells[at : at + problem.size]) for at in range(0, len(cells), problem.size))


TASK = Task("magic-square", magic_square, parse, write, draw)

if __name__ == "__main__":
    from oneofmany.exact import count
    from oneofmany.testing import check_task

    check_task(TASK, sizes=[1, 2, 3])
    print("magic squares of 3 x 3 numbers:", count(magic_square(), np.zeros((1, 9), np.uint8))[0])
