"""A structure per query compared with one structure for all queries, on the same Sudokus, in one run.

    python benchmarks/structures.py --device cuda

An update is a forward and a backward pass. In the one case all queries share the rules of Sudoku; in the other every
query brings its rows, columns and boxes as rules of its own. Both are plain PyTorch, compiled on a GPU. On a GPU the
kernels for a shared structure, in 16 bits, are one more row.
"""

import argparse
from dataclasses import replace

import numpy as np
import torch

from measuring import seconds
from oneofmany.data import Dataset, DeviceData
from oneofmany.data.sudoku import random_grids
from oneofmany.networks import EquivariantNetwork
from oneofmany.networks.equivariant.blocks import block_tables
from oneofmany.problems import OwnRules, Problem, sudoku


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
    return float(np.median([seconds(update, device) for _ in range(repeats)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=None, help="512 on a GPU, 16 on a CPU")
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    device, gpu = arguments.device, arguments.device != "cpu"
    size = arguments.batch or (512 if gpu else 16)
    shared, own = (DeviceData(data, device) for data in datasets(2 * size, np.random.default_rng(0)))
    networks = [EquivariantNetwork(data.problem, width=64, steps=16).to(device) for data in (shared, own)]
    networks[1].load_state_dict(networks[0].state_dict())
    rows = torch.arange(4, device=device)
    torch.testing.assert_close(*(n(d.batch(rows)) for n, d in zip(networks, (shared, own), strict=True)))
    if gpu:
        for network in networks:
            network.compile_step()
    title = f"{size} Sudokus, 16 steps, {'compiled' if gpu else 'one thread'}"
    print(f"{title:50}{'ms an update':>14}{'ratio':>8}")
    one = update_time(networks[0], shared, size, arguments.repeats, device)
    each = update_time(networks[1], own, size, arguments.repeats, device)
    every = torch.arange(size, device=device)
    tables = float(np.median([seconds(lambda: block_tables(own.batch(every)), device) for _ in range(9)]))
    print(f"{'one structure for all queries':50}{one * 1000:14.1f}{1:8.2f}")
    print(f"{'a structure per query':50}{each * 1000:14.1f}{each / one:8.2f}")
    print(f"{'  of which its tables':50}{tables * 1000:14.1f}{tables / one:8.2f}")
    if gpu:
        with torch.autocast(device, torch.bfloat16):
            kernels = update_time(networks[0], shared, size, arguments.repeats, device)
        print(f"{'the kernels, one structure, 16 bits':50}{kernels * 1000:14.1f}{kernels / one:8.2f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
