"""Diagonal Sudoku (Sudoku X): a Sudoku in which both diagonals hold every value once, too."""

from oneofmany.problems import Problem, Rule, grid_task, sudoku


def sudoku_x(size: int = 9, **boxes: int) -> Problem:
    """Return the problem: a Sudoku's rules, and two diagonals for every value. Boxes are as in ``sudoku``."""
    plain = sudoku(size, **boxes)
    diagonals = [
        Rule("diagonal", tuple((row * size + column) * size + value for row, column in enumerate(columns)))
        for value in range(size)
        for columns in (range(size), range(size - 1, -1, -1))
    ]
    return Problem("sudoku-x", size, plain.variables, plain.values, (*plain.rules, *diagonals), plain.options)


TASK = grid_task("sudoku-x", sudoku_x)

if __name__ == "__main__":
    import numpy as np

    from oneofmany.exact import count
    from oneofmany.testing import check_task

    check_task(TASK, sizes=[4, 6, 9])
    print("diagonal Sudokus of 4 x 4 cells:", count(sudoku_x(4), np.zeros((1, 16), np.uint8))[0])
