"""Hard Sudokus a second of one core, with their ratings, and the time of 100,000 on 16 cores that follows from it.

python benchmarks/hard_sudoku.py --puzzles 5000
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from oneofmany.data.hard_sudoku import hard_puzzles
from oneofmany.exact import rate

Result = TypeVar("Result")
RANGES = ((80.0, 500.0), (10.0, 1000.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--puzzles", type=int, default=1000)
    parser.add_argument("--split", default="train", choices=("train", "dev", "test"))
    arguments = parser.parse_args()
    hard_puzzles(1, None, (0, 5), threads=1)  # compile
    number = arguments.puzzles
    print("one core, CPU time                    ratings of the puzzles                      puzzles    100,000 on")
    print("rating       puzzles  classes   lowest  quarter   median  quarter  highest  a second  16 cores, min")
    for low, high in RANGES:
        seconds, found = _cpu(partial(hard_puzzles, number, arguments.split, (low, high), 1, threads=1))
        quarters = "".join(f"{q:9.1f}" for q in np.percentile(found.rating, (0, 25, 50, 75, 100)))
        about = f"{low:g} to {high:g}"
        classes = len(np.unique(found.key, axis=0))
        minutes = 100_000 * seconds / number / 16 / 60
        print(f"{about:12}{number:8,}{classes:9,}{quarters}{number / seconds:10.1f}{minutes:15.1f}", flush=True)
        seconds, rated = _cpu(partial(rate, found.puzzle, threads=1))
        each, value = 8 * number / seconds, 1e6 * seconds / (8 * rated.rating.sum())
        print(f"  rating them: {each:,.0f} searches a second, {value:.2f} microseconds a value", flush=True)


def _cpu(work: Callable[[], Result]) -> tuple[float, Result]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()
