"""Answering Sudokus on the CPU: a network in batches, the exact enumerator and OR-Tools CP-SAT, in one run.

    python benchmarks/solve.py --weights runs/sudoku
    python benchmarks/solve.py                          # untrained network: only its time is meaningful

The puzzles are made from our own minimal ones, half with one solution and half with 2 to 50. Every solver gives one
answer to each, and the checker checks it. Loading and compiling are not timed. All times are CPU time (user and
system) of the process.
"""

import argparse
import os
import time
from functools import partial

import numpy as np
import torch
from ortools.sat.python import cp_model

import measuring
import oneofmany
from oneofmany.data.sudoku import build_sudoku
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.saved import SavedNetwork
from oneofmany.problems import Query, sudoku
from oneofmany.problems.tasks.task import NO_RELATIONS
from oneofmany.solving import Solver, fall_back, solve_exactly

PROBLEM = sudoku()
timed = partial(measuring.timed, clock=time.process_time)


def cp_sat(query: np.ndarray) -> np.ndarray:
    """Find one solution with OR-Tools on one thread, from the same choices and rules: uint8 [R]."""
    model = cp_model.CpModel()
    taken = [model.new_bool_var("") for _ in range(PROBLEM.choices)]
    for rule in PROBLEM.rules:
        model.add_exactly_one(taken[choice] for choice in rule.choices)
    for variable, value in enumerate(query.tolist()):
        if value:
            model.add(taken[variable * 9 + value - 1] == 1)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.solve(model)
    values = np.array([solver.boolean_value(one) for one in taken]).reshape(81, 9)
    return (values.argmax(1) + 1).astype(np.uint8)


def fresh() -> SavedNetwork:
    torch.manual_seed(0)
    settings = NetworkSettings(kind="equivariant", steps=32)
    return SavedNetwork(build_network(settings, PROBLEM).eval(), settings, "sudoku", 9, {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", help="a bundled network's name, a weights file or a run folder")
    parser.add_argument("--queries", type=int, default=1000, help="number of Sudokus (default: 1000)")
    parser.add_argument("--steps", type=int, help="steps of the network; its own number by default")
    parser.add_argument("--batch", type=int, default=64, help="batch size (default: 64)")
    parser.add_argument("--threads", type=int, default=1, help="threads of the network (default: 1)")
    arguments = parser.parse_args()

    dataset = build_sudoku(arguments.queries, "test", seed=0)
    queries = [Query(PROBLEM, values, NO_RELATIONS) for values in dataset.query]
    saved = oneofmany.load(arguments.weights) if arguments.weights else fresh()
    if not arguments.weights:
        print("no --weights: the network has random weights, so only its time is meaningful, not its answers")
    solver = Solver(saved, steps=arguments.steps, batch_size=arguments.batch, threads=arguments.threads)
    solver.answer(queries[: arguments.batch])  # warm up
    solve_exactly(queries[:1])
    steps = f"{solver.steps or saved.settings.steps} steps, " if saved.settings.has_steps else ""
    print(
        f"{len(queries):,} Sudokus, {int(dataset.multiple.sum()):,} with several solutions; "
        f"{saved.settings.kind} network of width {saved.settings.width}, {steps}batches of {arguments.batch}, "
        f"threads: {arguments.threads}"
    )
    print(f"{'':28}{'valid':>10}{'CPU ms a query':>16}{'times the enumerator':>24}")

    given = torch.from_numpy(dataset.query).long()
    base, exact = timed(lambda: solve_exactly(queries), repeats=5)

    def row(name: str, seconds: float, answers: list[np.ndarray]) -> None:
        valid = PROBLEM.check(torch.from_numpy(np.stack(answers)).long() - 1, given)
        share = f"{100 * float(valid.float().mean()):.1f} %"
        print(f"{name:28}{share:>10}{1000 * seconds / len(queries):16.3f}{seconds / base:24.1f}", flush=True)

    row("exact enumerator", base, [answers[0].values for answers in exact])
    row("CP-SAT, one thread", *timed(lambda: [cp_sat(query) for query in dataset.query]))
    seconds, found = timed(lambda: solver.answer(queries))
    row("network", seconds, [answer.values for answer in found])
    more, filled = timed(lambda: fall_back(queries, [[answer] for answer in found]))
    row("network, --fallback exact", seconds + more, [answers[0].values for answers in filled])
    print(f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
