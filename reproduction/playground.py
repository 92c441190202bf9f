"""Make what the playground needs besides its sources: small networks, measured accuracies, golden vectors, the page.

    python -m reproduction.playground                          # golden vectors and page, from the bundled weights
    python -m reproduction.playground --train runs/playground  # first the small networks: a minute or two each
    python -m reproduction.playground --measure                # first how often the networks are right

The small networks are the recipes TASK/OBJECTIVE/tiny with seed 42, trained on the CPU; runs that are already in the
folder are used as they are. Golden vectors are what PyTorch computes: the logits of every step on a few boards, which
the tests compare with those of the page's kernel.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import oneofmany
from oneofmany.data import Dataset
from oneofmany.data.benchmark import find_benchmark
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.sudoku import build_sudoku
from oneofmany.files import write_whole
from oneofmany.networks.equivariant.cpu import load_for_cpu
from oneofmany.networks.equivariant.cpu_inference import predict_on_cpu
from oneofmany.networks.noise import Noise
from oneofmany.playground.page import ACCURACY, NETWORKS, write_playground
from oneofmany.problems import TASKS as PROBLEMS
from oneofmany.problems import Batch, Query, rules_kept
from oneofmany.solving import Solver, load_network
from oneofmany.tensor_files import write_tensors

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "playground" / "golden.safetensors"
PAGE = ROOT / "build" / "playground.html"
OBJECTIVES = ("naive", "minloss", "selectr")
TASKS = ("nqueens", "sudoku", "futoshiki")
SEED, QUERIES, GOLDEN_STEPS = 42, 1_000, 24

Build = Callable[[int], Dataset]
"""Builds some queries."""


def _sets() -> dict[str, dict[int, tuple[str, Build]]]:
    """Task -> size -> (the queries in words, how to build some)."""
    queens = {n: ("half of the queens given", partial(_queens, n)) for n in range(4, 21)}
    futoshiki = {n: ("half of the cells given, some inequalities", partial(_futoshiki, n)) for n in range(4, 10)}
    givens = {4: (4, 7), 6: (10, 14), 9: None, 16: (154, 154)}
    about = {4: "4 to 7 givens", 6: "10 to 14 givens", 9: "22 to 34 givens", 16: "154 givens"}
    sudoku = {n: (about[n], partial(_sudoku, n, givens[n])) for n in givens}
    return {"nqueens": queens, "sudoku": sudoku, "futoshiki": futoshiki}


def _queens(size: int, queries: int) -> Dataset:
    if size <= 10:
        # Boards of the training size that were never trained on; other sizes were not trained on at all.
        everything = build_nqueens(size, size - size // 2, None, "test" if size == 10 else None, seed=3)
        return everything.take(np.random.default_rng(3).permutation(len(everything))[:queries])
    return build_nqueens(size, size - size // 2, queries, "test", seed=3)


def _futoshiki(size: int, queries: int) -> Dataset:
    return build_futoshiki(size, size * size // 2, 5, queries, "test", seed=3, neighbours="all")


def _sudoku(size: int, givens: tuple[int, int] | None, queries: int) -> Dataset:
    return build_sudoku(queries, "test", seed=3, size=size, givens=givens)


def _queries(data: Dataset) -> list[Query]:
    return [Query(data.problem, data.query[row], data.relations[row]) for row in range(len(data))]


# ---- the small networks --------------------------------------------------------------------------------------------


def train_small(folder: Path) -> None:
    """Train the nine small networks where they are missing, and bundle them."""
    from oneofmany.cli.sweep import sweep

    names = [f"{task}/{objective}/tiny" for task in TASKS for objective in OBJECTIVES]
    options = ["--seeds", str(SEED), "--jobs", "1", "--out", str(folder), "--data", str(folder / "data")]
    if sweep([*names, *options]):
        raise ValueError(f"{folder}: a training failed, its log says why")
    NETWORKS.mkdir(exist_ok=True)
    for name in names:
        data = (folder / name / str(SEED) / "weights.safetensors").read_bytes()
        task, objective, _ = name.split("/")
        path = NETWORKS / f"{task}-{objective}.safetensors"
        write_whole(path, lambda beside, data=data: beside.write_bytes(data), True)


# ---- how often they are right --------------------------------------------------------------------------------------


def measure(folder: Path) -> dict[str, Any]:
    """How often the networks are right: the bundled ones at every size, the small ones on their own test data."""
    return {
        "command": "python -m reproduction.playground --measure",
        "version": oneofmany.__version__,
        "bundled": {
            task: {str(n): _bundled(task, *about) for n, about in own.items()} for task, own in _sets().items()
        },
        "small": {task: {name: _small(task, name, folder) for name in OBJECTIVES} for task in TASKS},
    }


def _bundled(task: str, about: str, build: Build) -> dict[str, Any]:
    """The first answers of the bundled network, as the page asks for them: one start, at most 256 steps."""
    data = build(QUERIES)
    found = Solver(load_network(task)).answer(_queries(data))
    correct = sum(answer.valid for answer in found)
    print(f"{data.problem}: {correct:,} of {len(found):,}", flush=True)
    return {"correct": correct, "total": len(found), "about": about, "checksum": data.header()["checksum"]}


def _small(task: str, objective: str, folder: Path) -> dict[str, Any]:
    data = Dataset.load(find_benchmark(f"{task}-tiny-test", folder))
    saved = load_for_cpu(NETWORKS / f"{task}-{objective}.safetensors")
    steps = saved.settings.test_steps
    found = predict_on_cpu(saved.network, data.problem, data.query, data.relations, steps=steps, noise=Noise(0))
    answers = np.where(data.query > 0, data.query, found.answers + 1).astype(np.uint8)
    valid = rules_kept(data.problem, answers, data.relations)
    parts = {"os": ~data.multiple, "ms": data.multiple}
    scores = {name: {"correct": int(valid[rows].sum()), "total": int(rows.sum())} for name, rows in parts.items()}
    print(f"{task} {objective}: {scores}", flush=True)
    about = {"size": saved.size, "data": f"{task}-tiny-test", "checksum": data.header()["checksum"]}
    return about | {"recipe": saved.card["recipe"], "seed": saved.card["seed"]} | scores


# ---- golden vectors ------------------------------------------------------------------------------------------------


def golden_cases() -> Iterator[tuple[str, Dataset]]:
    """A network and the dataset whose first query is a golden case."""
    for task, sizes in {"nqueens": (4, 8, 10, 20), "sudoku": (4, 6, 9), "futoshiki": (4, 6, 9)}.items():
        for size in sizes:
            yield task, _sets()[task][size][1](2)
    for task, size in {"nqueens": 8, "sudoku": 4, "futoshiki": 4}.items():
        for objective in OBJECTIVES:
            yield f"{task}-{objective}", _sets()[task][size][1](2)


def golden() -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and header of the golden vectors: query, relations, noise and the logits of every step of each case."""
    arrays: dict[str, np.ndarray] = {}
    cases = []
    for i, (name, data) in enumerate(golden_cases()):
        relations = data.relations[0][data.relations[0][:, 0] >= 0]
        case = {"network": name, "task": data.problem.task, "size": data.problem.size}
        case |= {"values": data.query[0].tolist(), "relations": relations.tolist()}
        noise = np.random.default_rng(i).standard_normal(data.problem.choices, np.float32)
        arrays |= {f"{i}.logits": torch_logits(case, noise), f"{i}.noise": noise}
        cases.append(case)
    return arrays, {"format": 1, "command": "python -m reproduction.playground", "cases": cases}


def torch_logits(case: dict[str, Any], noise: np.ndarray) -> np.ndarray:
    """The logits float32 [T, C] of the steps of a case, from noise [C], as PyTorch computes them."""
    import torch

    name = case["network"]
    network: Any = oneofmany.load(NETWORKS / f"{name}.safetensors" if "-" in name else name).network
    with torch.no_grad():
        return (
            network(batch_of([case]), steps=GOLDEN_STEPS, noise=torch.from_numpy(noise)[None])[:, 0].flatten(1).numpy()
        )


def batch_of(boards: list[dict[str, Any]]) -> Batch:
    """Boards of one problem as the page has them (task, size, values, relations) as a batch without solutions."""
    import torch

    from oneofmany.solving.answers import stacked

    problem = PROBLEMS[boards[0]["task"]].problem(boards[0]["size"])
    queries = [
        Query(problem, np.array(one["values"], np.uint8), np.array(one["relations"], np.int16).reshape(-1, 2))
        for one in boards
    ]
    values, relations = (torch.from_numpy(array.astype(np.int64)) for array in stacked(queries))
    return Batch(
        query=values,
        solutions=values[:, None][:, :0],
        mask=torch.zeros(len(boards), 0, dtype=torch.bool),
        total=torch.full((len(boards),), -1),
        problem=problem,
        relations=relations if relations.shape[1] else None,
    )


def main() -> None:
    """Make what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, metavar="DIR", help="train the small networks in this folder of runs")
    parser.add_argument("--measure", action="store_true", help="measure how often the networks are right")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the test data (default: data)")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page (default: build/playground.html)")
    asked = parser.parse_args()
    if asked.train:
        train_small(asked.train)
    if asked.measure:
        text = json.dumps(measure(asked.data), indent=1) + "\n"
        write_whole(ACCURACY, lambda beside: beside.write_text(text, encoding="utf-8"), True)
    arrays, header = golden()
    GOLDEN.parent.mkdir(exist_ok=True)
    write_tensors(GOLDEN, arrays, header, force=True)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    write_playground(asked.out, force=True)
    print(f"{GOLDEN}\n{asked.out}")


if __name__ == "__main__":
    main()
