"""Answers on one CPU thread, by the engine without PyTorch and by PyTorch, in one run; then what the commands cost.

    python benchmarks/cpu_engine.py
    python benchmarks/cpu_engine.py --queries 1000 --data data        # the benchmark's queries, built there if missing

Both get the same queries, the same noise and the default settings of ``oneofmany solve --answer network``: up to 256
steps, and a query stops when its answer has not changed for 8 steps. Loading and compiling are not timed. All times
are CPU time of the process (user and system), which other work on the machine changes little; the time of a command is
the least of three runs, with compiled code in the cache.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import oneofmany
from oneofmany.cli import COMMANDS
from oneofmany.data.benchmark import find_benchmark
from oneofmany.data.dataset import Dataset
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.sudoku import build_sudoku
from oneofmany.networks.equivariant.cpu import CpuNetwork, Logits
from oneofmany.problems import Query
from oneofmany.solving import Answer, Solver, running

SETS: dict[str, tuple[str, str, Callable[[int], Dataset]]] = {
    "Sudoku 9x9": ("sudoku", "sudoku-test", lambda n: build_sudoku(n, "test", seed=0)),
    "Futoshiki 6x6, 18 blanks": ("futoshiki", "futoshiki-test", lambda n: build_futoshiki(6, 18, 5, n, "test", seed=3)),
    "10 queens, 5 given": ("nqueens", "", lambda n: build_nqueens(10, 5, n, "dev", seed=2)),
    "11 queens, 5 given": ("nqueens", "nqueens-dev", lambda n: build_nqueens(11, 6, n, "dev", seed=2)),
}
LIMITS = (64, 256, 1024, 4096)
LINE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"


def queries_of(dataset: Dataset, number: int) -> list[Query]:
    rows = np.random.default_rng(0).permutation(len(dataset))[:number]
    return [Query(dataset.problem, dataset.query[row], dataset.relations[row]) for row in rows]


def answered(solver: Solver, queries: list[Query]) -> tuple[list[Answer], float, float]:
    """Answers, milliseconds of CPU time a query, and steps of the engine a query."""
    steps, run = [], CpuNetwork.run

    def counted(*arguments: Any, **options: Any) -> Logits:
        made = run(*arguments, **options)
        steps.append(made.steps.sum())
        return made

    with patch.object(CpuNetwork, "run", counted):
        solver.answer(queries[:2])  # load or compile
        steps.clear()
        began = time.process_time()
        answers = solver.answer(queries)
        spent = time.process_time() - began
    return answers, 1000 * spent / len(queries), sum(steps) / len(queries)


def cpu_seconds(*command: str) -> float:
    """The least CPU seconds of three runs of a command, after one that compiles."""
    environment = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(oneofmany.__file__))}
    spent = []
    for _ in range(4):
        before = os.times()
        whole = [sys.executable, "-m", "oneofmany", *command]
        subprocess.run(whole, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        after = os.times()
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(spent[1:])


def names() -> Iterator[list[str]]:
    yield []
    for name, place in COMMANDS.items():
        yield [name]
        if isinstance(place, dict):
            yield from ([name, one] for one in place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=200, help="number of queries of each set (default: 200)")
    parser.add_argument("--data", help="folder of the benchmark's data; by default other queries like them are built")
    parser.add_argument("--clues", help="a list of 17-clue Sudokus to build the benchmark's Sudokus from")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{arguments.queries:,} queries of each set, one thread; CPU ms a query")
    print(f"{'':26}{'engine':>8}{'steps':>7}{'PyTorch':>9}{'ratio':>7}{'valid':>9}{'same answers':>16}")
    limited = []
    for name, (task, file, build) in SETS.items():
        if arguments.data and file:
            dataset = Dataset.load(find_benchmark(file, arguments.data, arguments.clues))
        else:
            dataset = build(arguments.queries)
        queries = queries_of(dataset, arguments.queries)
        saved = oneofmany.load(task)
        fast, engine, steps = answered(Solver(saved), queries)
        with patch.object(running, "engine_of", lambda saved: None):
            slow, plain, _ = answered(Solver(saved), queries)
        same = sum(bool((a.values == b.values).all()) for a, b in zip(fast, slow, strict=True))
        valid = sum(one.valid for one in fast) / len(fast)
        print(
            f"{name:26}{engine:8.2f}{steps:7.1f}{plain:9.2f}{plain / engine:7.1f}{100 * valid:7.1f} %"
            f"{f'{same:,} of {len(queries):,}':>16}",
            flush=True,
        )
        limited = limited or [(most, answered(Solver(saved, steps=most), queries[:100])[2]) for most in LIMITS]
    said = ", ".join(f"{steps:.1f} of {most:,}" for most, steps in limited)
    print(f"steps run of the limit, {min(100, arguments.queries)} Sudokus: {said}")
    print(f"CPU seconds: solve sudoku LINE {cpu_seconds('solve', 'sudoku', LINE):.2f}", end="", flush=True)
    helps = {" ".join(name): cpu_seconds(*name, "--help") for name in names()}
    slowest = max(helps, key=lambda name: helps[name])
    print(f", --help {np.median(list(helps.values())):.2f} (median), {helps[slowest]:.2f} (most, {slowest})")
    print(
        f"torch {torch.__version__}, numpy {np.__version__}, load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores; "
        "answers are equal if every variable has the same value"
    )


if __name__ == "__main__":
    main()
