"""The bundled networks for Sudoku on one CPU thread: time, steps and valid answers by the kind of puzzle, in one run.

    python benchmarks/sudoku_networks.py --data data        # the named data sets, built there if missing

Both get the same queries and noise, with at most the same number of steps, and stop when an answer has not changed for
8 steps, as in ``oneofmany solve --answer network``. Loading and compiling are not timed. Times are CPU time.
"""

import argparse
import os
from collections.abc import Callable
from functools import partial

import numpy as np

from cpu_engine import answered, queries_of
from oneofmany.data.benchmark import find_benchmark
from oneofmany.data.dataset import Dataset
from oneofmany.data.sudoku import build_sudoku
from oneofmany.problems import Query, sudoku
from oneofmany.problems.tasks.task import NO_RELATIONS
from oneofmany.solving import Solver, load_network

NETWORKS = ("sudoku", "sudoku-hard")
RATED = {
    "rating 0 to 10": "sudoku-rating-0-10-test",
    "rating 10 to 30": "sudoku-rating-10-30-test",
    "rating 100 to 300": "sudoku-rating-100-300-test",
    "extreme": "sudoku-extreme-test",
}


def few_givens(givens: int, number: int) -> list[Query]:
    """Random cells of solution grids: so few givens leave very many solutions."""
    data, rng = build_sudoku(number, "test", seed=3, ms_queries=0), np.random.default_rng(3)
    shown = rng.random(data.solutions.shape).argsort(1).argsort(1) < givens
    return [Query(sudoku(), values, NO_RELATIONS) for values in np.where(shown, data.solutions, 0).astype(np.uint8)]


def sets(data: str) -> dict[str, Callable[[int], list[Query]]]:
    def built(size: int, givens: tuple[int, int] | None, number: int) -> list[Query]:
        return queries_of(build_sudoku(number, "test", seed=3, size=size, givens=givens), number)

    def named(name: str, number: int) -> list[Query]:
        return queries_of(Dataset.load(find_benchmark(name, data)), number)

    return {
        "4x4, 4 to 7 givens": partial(built, 4, (4, 7)),
        "6x6, 10 to 14 givens": partial(built, 6, (10, 14)),
        "9x9, 22 to 34 givens": partial(built, 9, None),
        **{f"9x9, {about}": partial(named, name) for about, name in RATED.items()},
        **{f"9x9, {givens} givens": partial(few_givens, givens) for givens in (5, 10, 17)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=300, help="number of queries of each set (default: 300)")
    parser.add_argument("--steps", type=int, default=256, help="the most steps (default: 256)")
    parser.add_argument("--data", default="data", help="folder of the named data sets; built if missing")
    arguments = parser.parse_args()
    solvers = {name: Solver(load_network(name), steps=arguments.steps) for name in NETWORKS}
    print(f"{arguments.queries:,} queries of each set, one thread, at most {arguments.steps} steps; CPU ms a query")
    print(f"{'':24}" + "".join(f"{name:>12}{'steps':>7}{'valid':>9}" for name in NETWORKS) + f"{'ratio':>8}")
    for about, build in sets(arguments.data).items():
        queries = build(arguments.queries)
        found = [answered(solver, queries) for solver in solvers.values()]
        cells = [
            f"{spent:12.2f}{steps:7.1f}{100 * sum(one.valid for one in answers) / len(answers):7.1f} %"
            for answers, spent, steps in found
        ]
        print(f"{about:24}{''.join(cells)}{found[1][1] / found[0][1]:8.2f}", flush=True)
    print(f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
