"""Build times of the benchmark's datasets, and their statistics next to the paper's Table 1.

python benchmarks/data.py --clues sudoku17.txt
"""

import argparse
import time
from pathlib import Path

from oneofmany.data.benchmark import BENCHMARK, build_benchmark
from oneofmany.data.dataset import Dataset
from oneofmany.data.nqueens import build_nqueens

PAPER = {
    "nqueens-train": (165_744, 7.04, 2.1),
    "nqueens-test": (10_000, 16.67, 2.2),
    "futoshiki-train": (10_000, 17.05, 2.2),
    "futoshiki-test": (10_000, 24.95, 2.4),
    "sudoku-train": (20_000, 50.0, 13.8),
    "sudoku-test": (10_000, 50.0, 13.7),
}
"""Table 1: queries, percent MS, solutions per MS query. Its 7.04 % cannot be right: the complete set has 9.16 %."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clues", type=Path, help="the 17-clue list; without it Sudokus are made from our own puzzles")
    clues = parser.parse_args().clues
    build_nqueens(5, 2, seed=0)  # compile
    print(f"{'':25}{'seconds':>9}{'queries':>11}{'% MS':>8}{'each':>7}     paper: queries, % MS, each")
    start = time.perf_counter()
    everything = build_nqueens(11, 6)
    row("nqueens 11/6 all", time.perf_counter() - start, everything)
    for name in BENCHMARK:
        start = time.perf_counter()
        dataset = build_benchmark(name, clues)
        row(name, time.perf_counter() - start, dataset)


def row(name: str, seconds: float, dataset: Dataset) -> None:
    multiple = dataset.multiple
    each = float(dataset.total[multiple].mean()) if multiple.any() else 0
    paper = "  ".join(map(str, PAPER[name])) if name in PAPER else ""
    print(f"{name:25}{seconds:9.1f}{len(dataset):11,}{100 * multiple.mean():8.2f}{each:7.2f}     {paper}")


if __name__ == "__main__":
    main()
