"""Queries/s of a recipe's training and of the bare training step of `benchmarks/networks.py`, at the same batch size.

The bare step has a fixed batch and one target per query. Training draws batches, weights the listed solutions and logs
metrics. Both are measured in one run.

    python benchmarks/training.py --data data                    # one CPU thread, small batches
    python benchmarks/training.py --data data --device cuda      # float16 NLM, bfloat16 RRN, captured

With --before, the training of recipes is compared with that of another revision instead, both in one run:

    git worktree add ../before REVISION
    python benchmarks/training.py --device cuda --recipes sudoku/minloss/equivariant --before ../before/src
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

import networks_nlm
import networks_rrn
from measuring import Step, numbers_from, seconds
from oneofmany.data.benchmark import find_benchmark
from oneofmany.recipes import data_of, recipe
from oneofmany.training import train

SIZES = {"cpu": (("nqueens/minloss", 4), ("sudoku/minloss", 4)), "cuda": ()}
SIZES["cuda"] = tuple((name, batch) for name in ("nqueens/minloss", "sudoku/minloss") for batch in (32, 256, 1024))


def bare_step(name: str, batch: int, device: str) -> Step:
    if name.startswith("sudoku"):
        return networks_rrn.our_step(argparse.Namespace(device=device, steps=32, kernel="auto"), batch, 0.1)
    return networks_nlm.our_step("nqueens", 10, 30, batch, device, "float16" if device == "cuda" else "float32")


def bare_rate(name: str, batch: int, device: str, repeats: int) -> float:
    step = bare_step(name, batch, device)
    for _ in range(3):
        step()
    return batch / statistics.median(seconds(step, device) for _ in range(repeats))


def training_rate(name: str, batch: int | None, device: str, data: Path, repeats: int) -> float:
    """Return the queries/s between lines of metrics, without the first one, which includes compiling and capturing."""
    settings = recipe(name)
    updates = 6 * repeats
    settings = replace(
        settings,
        device=device,
        first=replace(settings.first, updates=updates, batch=batch or settings.first.batch),
        evaluate_every=updates,
        log_every=repeats,
        dev_queries=10,
    )
    files = [find_benchmark(part, data) for part in data_of(name)]
    with tempfile.TemporaryDirectory() as folder:
        train(settings, files[0], files[1], Path(folder) / "run")
        lines = [json.loads(line) for line in (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()]
    return statistics.median([line["queries_per_second"] for line in lines if line["kind"] == "train"][1:])


def compare(names: list[str], before: str, given: list[str]) -> None:
    """Print the queries/s of recipes with these sources and with those in another folder; each in its own process."""
    print(f"{'recipe':<36}{'before, queries/s':>19}{'now, queries/s':>19}{'ratio':>8}")
    for name in names:
        sources = before, Path(__file__).parents[1] / "src"
        rates = [numbers_from(source, __file__, *given, "--rate", name)[0] for source in sources]
        print(f"{name:<36}{rates[0]:>19,.1f}{rates[1]:>19,.1f}{rates[1] / rates[0]:>8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data; built if missing")
    parser.add_argument("--repeats", type=int, help="steps in a row (20 on a GPU, 2 on a CPU)")
    parser.add_argument("--before", metavar="SRC", help="compare recipes with the sources in this folder")
    parser.add_argument("--recipes", nargs="+", default=["sudoku/minloss/equivariant"], help="what --before compares")
    parser.add_argument("--rate", metavar="RECIPE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    device = arguments.device
    if device == "cpu":
        torch.set_num_threads(1)
    repeats = arguments.repeats or (20 if device == "cuda" else 2)
    if arguments.rate:
        print(training_rate(arguments.rate, None, device, arguments.data, repeats))
        return
    if arguments.before:
        given = ["--device", device, "--data", str(arguments.data), "--repeats", str(repeats)]
        compare(arguments.recipes, arguments.before, given)
        return
    print(f"{'recipe':<18}{'batch':>6}{'bare step, queries/s':>22}{'training, queries/s':>21}{'ratio':>8}")
    for name, batch in SIZES[device]:
        bare = bare_rate(name, batch, device, repeats)
        trained = training_rate(name, batch, device, arguments.data, repeats)
        print(f"{name:<18}{batch:>6}{bare:>22,.1f}{trained:>21,.1f}{trained / bare:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
