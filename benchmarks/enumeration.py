"""Exact enumeration compared with a plain-Python search and OR-Tools CP-SAT, in one run.

    python benchmarks/enumeration.py --clues sudoku17.txt

Without --clues, our own minimal puzzles replace the 17-clue list. --full also counts the solutions of every puzzle with
each of its givens removed (835,567 queries for the 17-clue list). Each must have at least two.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import sums
from measuring import timed
from oneofmany.data.sudoku import make_minimal, random_grids
from oneofmany.exact import count, solve
from oneofmany.problems import read_queries, sudoku

MULTIPLE = 51


def plain_python(query: np.ndarray, limit: int) -> int:
    """Count by backtracking on the cell with the fewest candidates; sets of digits are bit masks."""
    full = (1 << 9) - 1
    rows, columns, boxes = [full] * 9, [full] * 9, [full] * 9
    blanks = []
    for cell, value in enumerate(query.tolist()):
        r, c = divmod(cell, 9)
        if value:
            bit = 1 << (value - 1)
            rows[r] &= ~bit
            columns[c] &= ~bit
            boxes[r // 3 * 3 + c // 3] &= ~bit
        else:
            blanks.append((r, c, r // 3 * 3 + c // 3))

    def search(blanks: list[tuple[int, int, int]], room: int) -> int:
        if not blanks:
            return 1
        r, c, b = min(blanks, key=lambda cell: (rows[cell[0]] & columns[cell[1]] & boxes[cell[2]]).bit_count())
        candidates = rows[r] & columns[c] & boxes[b]
        rest = [cell for cell in blanks if cell != (r, c, b)]
        found = 0
        while candidates and found < room:
            bit = candidates & -candidates
            candidates ^= bit
            rows[r] ^= bit
            columns[c] ^= bit
            boxes[b] ^= bit
            found += search(rest, room - found)
            rows[r] ^= bit
            columns[c] ^= bit
            boxes[b] ^= bit
        return found

    return search(blanks, limit)


def cp_sat(query: np.ndarray, limit: int) -> int:
    """Count with OR-Tools on one thread, from the same choices and rules."""
    return sums.cp_sat((sudoku(), query), limit)


def without_a_given(puzzles: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Puzzles with one random given removed: nearly all have 51 solutions or more."""
    bare = puzzles.copy()
    for puzzle in bare:
        puzzle[rng.choice(np.flatnonzero(puzzle))] = 0
    return bare


def multiple_candidates(puzzles: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The candidates of the builder of MS queries: a given removed, 1 to 18 other cells of the solution added."""
    solutions = solve(sudoku(), puzzles, limit=2).solutions
    candidates = without_a_given(puzzles, rng)
    for query, puzzle, solution in zip(candidates, puzzles, solutions, strict=True):
        added = rng.choice(np.flatnonzero(puzzle == 0), rng.integers(1, 19), replace=False)
        query[added] = solution[added]
    return candidates


def one_by_one(search: Callable[[np.ndarray, int], int], queries: np.ndarray, limit: int) -> tuple[float, np.ndarray]:
    return timed(lambda: np.array([search(query, limit) for query in queries]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clues", type=Path, help="list of puzzles with one solution, one per line")
    parser.add_argument("--queries", type=int, default=10_000, help="number of queries of each kind")
    parser.add_argument("--full", action="store_true", help="also count every puzzle with each of its givens removed")
    arguments = parser.parse_args()

    problem = sudoku()
    rng = np.random.default_rng(0)
    if arguments.clues:
        puzzles = np.stack([query.values for query in read_queries("sudoku", arguments.clues.read_text(), 9)])
    else:
        puzzles = make_minimal(problem, random_grids(problem, 4096, rng), rng)
    count(problem, puzzles[:2], limit=2)  # compile
    single = puzzles[rng.permutation(len(puzzles))[: arguments.queries]]
    bare, candidates = without_a_given(single, rng), multiple_candidates(single, rng)
    kinds = {
        "one solution": (single, 2),
        f"candidates for several, stop at {MULTIPLE}": (candidates, MULTIPLE),
        f"a given removed, stop at {MULTIPLE}": (bare, MULTIPLE),
    }
    print(f"{'':40}{'microseconds a query':>22}{'times ours':>12}")
    for name, (queries, limit) in kinds.items():
        ours, totals = timed(lambda q=queries, m=limit: count(problem, q, limit=m, threads=1), repeats=3)
        each = ours / len(queries) * 1e6
        print(f"{name} ({len(queries):,} queries, {totals.mean():.1f} found on average)")
        print(f"{'  ours, one core':40}{each:22.1f}{1:12.1f}")
        both, again = timed(lambda q=queries, m=limit: count(problem, q, limit=m, threads=2), repeats=3)
        assert (totals == again).all()
        print(
            f"{'  ours, two cores':40}{both / len(queries) * 1e6:22.1f}{both / ours:12.2f} ({ours / both:.2f}x faster)"
        )
        for other, search, number in (("plain Python", plain_python, 20), ("CP-SAT", cp_sat, 10)):
            spent, found = one_by_one(search, queries[:number], limit)
            assert (found == totals[:number]).all(), f"{other} disagrees"
            print(f"{'  ' + other:40}{spent / number * 1e6:22.1f}{spent / number * 1e6 / each:12.0f}")
    if arguments.full:
        rows, cells = np.nonzero(puzzles)
        fewer = puzzles[rows]
        fewer[np.arange(len(rows)), cells] = 0
        spent, totals = timed(lambda: count(problem, fewer, limit=2))
        several = int((totals >= 2).sum())
        print(f"each given removed: {len(fewer):,} queries, {several:,} with at least 2 solutions, {spent:.0f} s")


if __name__ == "__main__":
    main()
