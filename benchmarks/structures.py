"""A structure per query compared with one structure for all queries, on the same Sudokus, in one run.

    python benchmarks/structures.py --device cuda
    python benchmarks/structures.py --device cpu --solve 64

An update is a forward and a backward pass. In the one case all queries share the rules of Sudoku; in the other every
query brings its rows, columns and boxes as rules of its own. Both are plain PyTorch, compiled on a GPU. On a GPU the
kernels for a shared structure, in 16 bits, are one more row, and both ratios are in the last line. A second table has
whole updates on graphs to colour (recipe colouring/minloss/equivariant, after 16 steps of burn-in): one operator after
the other, with a compiled step, and captured as one CUDA graph.

--solve N answers N graphs to colour and N Sudokus with different cages on one CPU core: one query after the other and
in one batch, with PyTorch and with the engine that does without it. All run 32 steps. Times on a CPU are CPU time of
the process.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
import torch

from measuring import seconds, timed
from oneofmany.data import Dataset, DeviceData
from oneofmany.data.colouring import build_colouring
from oneofmany.data.sudoku import random_grids
from oneofmany.networks import EquivariantNetwork
from oneofmany.networks.equivariant.blocks import block_tables
from oneofmany.networks.saved import SavedNetwork
from oneofmany.networks.settings import NetworkSettings
from oneofmany.problems import OwnRules, Problem, Query, Rule, cage, sudoku
from oneofmany.problems.tasks.task import NO_RELATIONS
from oneofmany.recipes.graphs import equivariant
from oneofmany.solving import Answer, Solver, running
from oneofmany.training.distributed import Group
from oneofmany.training.learners import Learners
from oneofmany.training.phases import phases_of
from oneofmany.training.updating import Updater


def datasets(number: int, rng: np.random.Generator) -> tuple[Dataset, Dataset]:
    """The same queries with the rules of the problem and with rules of their own."""
    problem = sudoku()
    grids = random_grids(problem, number, rng)
    query = np.where(rng.random(grids.shape) < 0.4, grids, 0)
    none = np.zeros((number, 0, 2))
    shared = Dataset(problem, query, grids, np.arange(number + 1), np.full(number, -1), none, np.arange(number))
    cells = tuple(rule for rule in problem.rules if rule.kind == "cell")
    rules = [rule for rule in problem.rules if rule.kind != "cell"]
    bare = Problem("own", 9, 81, 9, cells, own_kinds=("line", "box"))
    return shared, replace(shared, problem=bare, own=OwnRules.of([rules] * number))


def update_time(network: EquivariantNetwork, data: DeviceData, size: int, repeats: int, device: str) -> float:
    generator = torch.Generator(device).manual_seed(0)

    def update() -> None:
        batch = data.draw(size, generator)
        network.zero_grad()
        network(batch).square().mean().backward()

    for _ in range(3):
        update()
    return float(np.median([spent(update, device) for _ in range(repeats)]))


def spent(work: Callable[[], object], device: str) -> float:
    """Seconds on a GPU; on a CPU the time of the process, which other work on the machine changes little."""
    return seconds(work, device) if device != "cpu" else timed(work, clock=time.process_time)[0]


def train(device: str, size: int, repeats: int, compiled: bool) -> None:
    gpu = device != "cpu"
    shared, own = (DeviceData(data, device) for data in datasets(2 * size, np.random.default_rng(0)))
    networks = [EquivariantNetwork(data.problem, width=64, steps=16).to(device) for data in (shared, own)]
    networks[1].load_state_dict(networks[0].state_dict())
    rows = torch.arange(4, device=device)
    torch.testing.assert_close(*(n(d.batch(rows)) for n, d in zip(networks, (shared, own), strict=True)))
    if compiled:
        for network in networks:
            network.compile_step()
    title = f"{size} Sudokus, 16 steps{', compiled' * compiled}{'' if gpu else ', one thread'}"
    print(f"{title:50}{'ms an update':>14}{'ratio':>8}")
    one = update_time(networks[0], shared, size, repeats, device)
    each = update_time(networks[1], own, size, repeats, device)
    every = torch.arange(size, device=device)
    tables = float(np.median([spent(lambda: block_tables(own.batch(every)), device) for _ in range(9)]))
    print(f"{'one structure for all queries':50}{one * 1000:14.1f}{1:8.2f}")
    print(f"{'a structure per query':50}{each * 1000:14.1f}{each / one:8.2f}")
    print(f"{'  of which its tables':50}{tables * 1000:14.1f}{tables / one:8.2f}")
    if gpu:
        with torch.autocast(device, torch.bfloat16):
            kernels = update_time(networks[0], shared, size, repeats, device)
            halves = update_time(networks[1], own, size, repeats, device)
        print(f"{'the kernels, one structure, 16 bits':50}{kernels * 1000:14.1f}{kernels / one:8.2f}")
        print(f"{'a structure per query, 16 bits':50}{halves * 1000:14.1f}{halves / one:8.2f}")
        print(
            f"a structure per query costs {each / one:.2f} times the shared structure in compiled plain PyTorch, and "
            f"{halves / kernels:.2f} times the kernels in 16 bits ({each / kernels:.2f} in float32)"
        )


def updates(device: str, size: int, repeats: int) -> None:
    """Time updates of the trainer on graphs of 16 and 32 nodes."""
    data = DeviceData(build_colouring(2 * size, (16, 32), seed=0), device)
    first: float | None = None
    print(f"{f'{size} graphs, 16 + 16 steps, 16 bits':50}{'ms an update':>14}{'ratio':>8}")
    for title, compiled, captured in (
        ("one operator after the other", False, False),
        ("the step compiled", True, False),
        ("captured", False, True),
        ("the step compiled, captured", True, True),
    ):
        settings = replace(equivariant("minloss"), device=device, compile=compiled, capture=captured, burn_in=(16,))
        settings = replace(settings, first=replace(settings.first, batch=size))
        learners = Learners(settings, data.problem, data.device)
        updater = Updater(settings, phases_of(settings)[0], learners, data, Group())
        for number in range(5):  # compiling and capturing
            updater.run(number, 1e-3)
        cost = float(np.median([spent(partial(updater.run, n, 1e-3), device) for n in range(5, 5 + repeats)]))
        first = first or cost
        print(f"{title:50}{cost * 1000:14.1f}{cost / first:8.2f}", flush=True)


def with_cages(number: int, rng: np.random.Generator) -> list[Query]:
    """Sudokus, each with up to 20 cages of two cells."""
    queries = []
    for grid in random_grids(sudoku(), number, rng):
        pairs = rng.permutation(81)[:40].reshape(20, 2)
        different = [pair for pair in pairs if grid[pair[0]] != grid[pair[1]]]
        rules = [rule for pair in different for rule in cage("cage", pair.tolist(), 9, int(grid[pair].sum()))]
        shown = np.where(rng.random(81) < 0.3, grid, 0).astype(np.uint8)
        queries.append(Query(sudoku().with_rules(rules), shown, NO_RELATIONS))
    return queries


def graphs(number: int, rng: np.random.Generator) -> list[Query]:
    """Graphs of 16 nodes and 30 edges to colour with three colours."""
    queries = []
    for _ in range(number):
        pairs = [(a, b) for a in range(16) for b in range(a)]
        edges = [pairs[place] for place in rng.permutation(len(pairs))[:30]]
        rules = [Rule("edge", (3 * a + c, 3 * b + c), exact=False) for a, b in edges for c in range(3)]
        queries.append(Query(Problem("graph", 16, 16, 3, tuple(rules)), np.zeros(16, np.uint8), NO_RELATIONS))
    return queries


def solve(title: str, queries: list[Query], problem: Problem) -> None:
    number = len(queries)
    torch.manual_seed(0)
    settings = NetworkSettings(width=64, steps=32)
    saved = SavedNetwork(
        EquivariantNetwork(problem, width=64, steps=32).eval(), settings, problem.task, problem.size, {}
    )
    solver = Solver(saved, steps=32, patience=0, batch_size=number)
    ways: dict[str, Callable[[], list[Answer]]] = {
        "one query after the other": lambda: [solver.answer([query])[0] for query in queries],
        "one batch": lambda: solver.answer(queries),
    }
    print(f"{f'{number} {title}, 32 steps':50}{'CPU ms a query':>14}{'ratio':>8}{'same answers':>16}")
    first: tuple[float, list[Answer]] | None = None
    for engine, instead in {"PyTorch": lambda saved: None, "the CPU engine": running.engine_of}.items():
        with patch.object(running, "engine_of", instead):
            solver.answer(queries[:2])  # load or compile
            for way, work in ways.items():
                cost, answers = timed(work, clock=time.process_time)
                first = first or (cost, answers)
                same = sum(bool((a.values == b.values).all()) for a, b in zip(answers, first[1], strict=True))
                ratio = f"{1000 * cost / number:14.2f}{cost / first[0]:8.2f}"
                print(f"{f'{engine}, {way}':50}{ratio}{f'{same} of {number}':>16}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=None, help="512 on a GPU, 16 on a CPU")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--compiled", action="store_true", help="compile the step on a CPU too")
    parser.add_argument("--solve", type=int, default=0, metavar="N", help="also answer N queries on a CPU (default: 0)")
    arguments = parser.parse_args()
    cpu = arguments.device == "cpu"
    train(arguments.device, arguments.batch or (16 if cpu else 512), arguments.repeats, arguments.compiled or not cpu)
    if not cpu:
        updates(arguments.device, arguments.batch or 512, arguments.repeats)
    if arguments.solve:
        rng = np.random.default_rng(1)
        solve("graphs of 16 nodes", graphs(arguments.solve, rng), Problem("graph", 16, 16, 3, (), own_kinds=("edge",)))
        caged = replace(sudoku(), own_kinds=("cage-different",), own_sums=("cage",))
        solve("Sudokus with different cages", with_cages(arguments.solve, rng), caged)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
