"""Exact search of puzzles with sums, Killer Sudoku and Kakuro, compared with OR-Tools CP-SAT in one run.

    python benchmarks/sums.py

Every puzzle has rules of its own and one solution: cages are split, and cells of Kakuros are given, until that is so.
A search looks for two solutions. The time to turn a puzzle's rules into arrays is shown apart.
"""

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np

from oneofmany.data.sudoku import random_grids
from oneofmany.exact import solve
from oneofmany.exact.enumerator import _structure
from oneofmany.problems import Problem, all_different, cage, sudoku

Puzzle = tuple[Problem, np.ndarray]
MOST_BRANCHES = 300_000


def another(problem: Problem, query: np.ndarray, solution: np.ndarray) -> np.ndarray | None:
    """Return where another solution differs, bool [R]; None if there is none.

    Where a search takes too long, cells that are not given count as different.
    """
    found = solve(problem, query[None], limit=2, branches=MOST_BRANCHES, threads=1)
    wrong = (found.solutions != solution).any(0)
    if not wrong.any() and found.finished[0]:
        return None
    return wrong if wrong.any() else query == 0


def random_cages(grid: np.ndarray, rng: np.random.Generator, largest: int) -> list[list[int]]:
    """Cut a 9x9 board into connected cages of different values, with at most ``largest`` cells each."""
    free, cages = set(range(81)), []
    while free:
        cells = [int(rng.choice(sorted(free)))]
        free.remove(cells[0])
        wanted = rng.integers(1, largest + 1)
        while len(cells) < wanted:
            beside = {
                r * 9 + c
                for cell in cells
                for r, c in ((cell // 9 + dr, cell % 9 + dc) for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)))
                if 0 <= r < 9 and 0 <= c < 9
            }
            fitting = sorted(c for c in beside & free if grid[c] not in grid[cells])
            if not fitting:
                break
            cells.append(int(rng.choice(fitting)))
            free.remove(cells[-1])
        cages.append(cells)
    return cages


def killers(number: int, rng: np.random.Generator, largest: int) -> Iterator[Puzzle]:
    """Killer Sudokus with cages of up to ``largest`` cells around random grids."""
    plain = sudoku()
    for grid in random_grids(plain, number, rng):
        cages = random_cages(grid, rng, largest)
        while True:
            sums = [rule for cells in cages for rule in cage("cage", cells, 9, int(grid[cells].sum()))]
            problem = plain.with_rules(sums)
            wrong = another(problem, np.zeros(81, np.uint8), grid)
            if wrong is None:
                break
            # Of the cages in which another solution differs, split the largest.
            cells = max((cells for cells in cages if wrong[cells].any()), key=len)
            cages.remove(cells)
            cages += [cells[: len(cells) // 2], cells[len(cells) // 2 :]]
        yield problem, np.zeros(81, np.uint8)


def kakuros(number: int, rng: np.random.Generator, size: int) -> Iterator[Puzzle]:
    """Kakuros of size x size cells around random fillings of random boards; runs have 2 to 9 cells."""
    while number:
        white = rng.random((size, size)) < 0.72
        cells = np.full((size, size), -1)
        cells[white] = np.arange(white.sum())
        pieces = [piece for line in [*cells, *cells.T] for piece in np.split(line, np.flatnonzero(line < 0))]
        runs = [run.tolist() for run in (piece[piece >= 0] for piece in pieces) if len(run) > 1]
        if max(map(len, runs)) > 9:
            continue
        R = int(white.sum())
        board = Problem("board", size, R, 9, tuple(rule for run in runs for rule in all_different("run", run, 9)))
        filling = solve(board, np.zeros((1, R), np.uint8), limit=1, seed=int(rng.integers(2**31)), branches=10**6)
        if len(filling.solutions):
            sums = [rule for run in runs for rule in cage("run", run, 9, int(filling.solutions[0][run].sum()))]
            problem, query = Problem("kakuro", size, R, 9, tuple(sums)), np.zeros(R, np.uint8)
            while (wrong := another(problem, query, filling.solutions[0])) is not None:
                cell = rng.choice(np.flatnonzero(wrong))
                query[cell] = filling.solutions[0][cell]
            yield problem, query
            number -= 1


def cp_sat(puzzle: Puzzle, limit: int) -> int:
    """Count with OR-Tools on one thread, from the same choices and rules."""
    from ortools.sat.python import cp_model

    problem, query = puzzle
    model = cp_model.CpModel()
    taken = [model.new_bool_var("") for _ in range(problem.choices)]
    for rule in problem.rules:
        if rule.exact:
            model.add_exactly_one(taken[choice] for choice in rule.choices)
        elif not rule.linear:
            model.add_at_most_one(taken[choice] for choice in rule.choices)
        else:
            model.add_linear_constraint(sum(weight * taken[choice] for choice, weight in rule.weighed()), *rule.bounds)

    for variable in np.flatnonzero(query).tolist():
        model.add(taken[variable * problem.values + int(query[variable]) - 1] == 1)

    class Counter(cp_model.CpSolverSolutionCallback):
        number = 0

        def on_solution_callback(self) -> None:
            self.number += 1
            if self.number >= limit:
                self.stop_search()

    solver, counter = cp_model.CpSolver(), Counter()
    solver.parameters.enumerate_all_solutions = True
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 60
    return counter.number if solver.solve(model, counter) != cp_model.UNKNOWN else -1


def times(puzzles: list[Puzzle], search: Callable[[Puzzle], int]) -> tuple[np.ndarray, np.ndarray]:
    spent, found = [], []
    for puzzle in puzzles:
        start = time.perf_counter()
        found.append(search(puzzle))
        spent.append((time.perf_counter() - start) * 1000)
    return np.array(spent), np.array(found)


def searched(puzzle: Puzzle) -> int:
    return int(solve(puzzle[0], puzzle[1][None], limit=2, keep=0, threads=1).total[0])


def show(name: str, ms: np.ndarray, note: str = "") -> None:
    print(f"  {name:34}{np.median(ms):9.2f}{np.quantile(ms, 0.9):9.2f}{ms.max():11.2f}{note}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--puzzles", type=int, default=50, help="number of puzzles of each kind")
    parser.add_argument("--other", type=int, default=3, help="number of puzzles of each kind for CP-SAT")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    n = arguments.puzzles
    kinds = {
        "Killer Sudoku, cages up to 5 cells": killers(n, rng, 5),
        "Killer Sudoku, cages up to 9 cells": killers(n, rng, 9),
        "Kakuro, 8 x 8": kakuros(n, rng, 8),
        "Kakuro, 12 x 12": kakuros(n, rng, 12),
    }
    print(f"{'milliseconds a puzzle':36}{'median':>9}{'90 %':>9}{'most':>11}")
    for name, made in kinds.items():
        puzzles = list(made)
        cells = max(len(rule.choices) for problem, _ in puzzles for rule in problem.rules if rule.linear) // 9
        print(f"{name}: {n} puzzles, up to {cells} cells, {sum(q.any() for _, q in puzzles)} with givens")
        _structure.cache_clear()
        show("rules into arrays", times(puzzles, lambda puzzle: len(_structure(puzzle[0])[-1]))[0])
        spent, found = times(puzzles, searched)
        assert (found == 1).all()
        show("search, one core", spent)
        if arguments.other:
            others, again = times(puzzles[: arguments.other], lambda puzzle: cp_sat(puzzle, 2))
            assert (again == 1)[again >= 0].all(), "CP-SAT disagrees"
            show("CP-SAT, one core", others, f" ({len(others)} puzzles; {(again < 0).sum()} not in 60 s)")


if __name__ == "__main__":
    main()
