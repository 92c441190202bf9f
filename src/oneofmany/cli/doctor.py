"""``oneofmany doctor``: what is installed, what there is to compute with, and how fast it is.

Nothing that may be missing is imported before it is looked for.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib import metadata
from typing import Annotated, Any

import tyro

import oneofmany

NEEDED = ("torch", "numpy", "safetensors", "numba", "tyro", "rich")
OPTIONAL = {
    "triton": "fused kernels on CUDA",
    "scipy": "statistics",
    "matplotlib": "figures",
    "Jinja2": "the HTML report",
    "pyarrow": "Parquet files",
    "ortools": "the cross-check in tests",
}
PUZZLE = "....5....2......71...6....4.4...1..7....8....7.93.......6........59.3....84...5.3"
"""A minimal Sudoku with 21 givens."""

Facts = dict[str, Any]


def doctor(as_json: Annotated[bool, tyro.conf.arg(name="json")] = False) -> int:
    """Show versions, devices and speeds, and whether the bundled weights load.

    Example: oneofmany doctor

    The exit code is 1 where something that is needed does not work; what is missing and optional is only named.

    Args:
        as_json: print JSON.
    """
    print("measuring; the first time, the enumerator is compiled (about 15 seconds)", file=sys.stderr)
    devices = _safely(_devices)
    places = ["cpu", *(f"cuda:{i}" for i in range(len(devices.get("cuda", ()))))]
    facts: Facts = {
        "versions": {
            "oneofmany": oneofmany.__version__,
            "python": platform.python_version(),
            **{name: _version(name) for name in (*NEEDED, *OPTIONAL)},
        },
        "devices": devices,
        "enumerator": _safely(_enumerator),
        "training_step": {place: _safely(_training_step, place) for place in places},
        "weights": _safely(_weights),
    }
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        _print(facts)
    missing = [name for name in NEEDED if facts["versions"][name] is None]
    return 1 if missing or _broken(facts) else 0


def _broken(facts: Facts) -> bool:
    return "error" in facts or any(_broken(one) for one in facts.values() if isinstance(one, dict))


def _safely(look: Callable[..., Facts], *arguments: str) -> Facts:
    """What ``look`` finds, or what kept it from looking: one broken part must not hide the others."""
    try:
        return look(*arguments)
    except Exception as error:  # whatever a broken installation raises
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> Facts:
    import torch

    cuda = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    return {
        "cpu": {"machine": platform.machine(), "cores": os.cpu_count(), "threads": torch.get_num_threads()},
        "cuda": [{"name": one.name, "memory_gib": round(one.total_memory / 2**30, 1)} for one in cuda],
    }


def _enumerator() -> Facts:
    import numpy as np

    from oneofmany.exact import count
    from oneofmany.problems.tasks.sudoku import parse

    query = parse(PUZZLE)
    queries = np.repeat(query.values[None], 2000, 0)
    preparing, _ = _timed(lambda: count(query.problem, queries[:1], limit=2))
    seconds, totals = _timed(lambda: count(query.problem, queries, limit=2, threads=1))
    if not (totals == 1).all():
        raise ValueError(f"a Sudoku with one solution was counted to have {totals.max()}")
    return {"microseconds_per_sudoku": round(1e6 * seconds / len(queries), 1), "preparing_seconds": round(preparing, 2)}


def _training_step(device: str) -> Facts:
    """Forward, MinLoss, backward and AdamW: the equivariant network on 32 queries of 8-queens, 16 steps."""
    import torch

    from oneofmany.networks.building import NetworkSettings, build_network
    from oneofmany.objectives import MinLoss
    from oneofmany.problems import Batch, nqueens

    problem = nqueens(8)
    network = build_network(NetworkSettings(kind="equivariant", width=64, steps=16), problem, device=device)
    optimiser = torch.optim.AdamW(network.parameters())
    draw = torch.Generator().manual_seed(0)
    solutions = torch.randint(8, (32, 2, 8), generator=draw).to(device)
    mask = torch.ones(32, 2, dtype=torch.bool, device=device)
    batch = Batch(solutions[:, 0] + 1, solutions, mask, mask.sum(1), problem)

    def step() -> None:
        optimiser.zero_grad()
        MinLoss()(network(batch), solutions, mask).backward()
        optimiser.step()
        if device != "cpu":
            torch.cuda.synchronize()

    step()
    return {"milliseconds": round(1000 * min(_timed(step)[0] for _ in range(5)), 2)}


def _weights() -> Facts:
    from oneofmany.problems import TASKS

    return {task: _safely(_weights_of, task) for task in TASKS}


def _weights_of(task: str) -> Facts:
    from oneofmany.solving import bundled

    if not bundled(task).is_file():
        return {"bundled": False}
    saved = oneofmany.load(bundled(task))
    on_test = saved.card.get("accuracy", {}).get(f"{task}-test")
    return {
        "bundled": True,
        "network": saved.settings.kind,
        "size": saved.size,
        "parameters": sum(one.numel() for one in saved.network.parameters()),
        "recipe": saved.card.get("recipe"),
        "test": on_test and on_test["overall"],
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _print(facts: Facts) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))

    def row(what: str, found: Facts, text: Callable[[Facts], str]) -> None:
        broken = found.get("error")
        table.add_row(what, f"[red]does not work[/]: {escape(broken)}" if broken else text(found))

    for name, version in facts["versions"].items():
        use = f" (optional, for {OPTIONAL[name]})" if name in OPTIONAL else ""
        table.add_row(name, version or (f"not installed{use}" if use else "[red]not installed, but needed[/]"))
    row("CPU", facts["devices"], lambda d: "{machine}, {cores} cores, {threads} threads".format(**d["cpu"]))
    row("CUDA", facts["devices"], _cuda_text)
    row("enumerator", facts["enumerator"], lambda e: f"{e['microseconds_per_sudoku']} µs a hard Sudoku on one core")
    for place, found in facts["training_step"].items():
        row(f"training step, {place}", found, lambda f: f"{f['milliseconds']} ms (8-queens, batch 32, 16 steps)")
    if "error" in facts["weights"]:
        row("weights", facts["weights"], str)
    else:
        for task, found in facts["weights"].items():
            row(f"weights of {task}", found, _weights_text)
    Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(table)


def _cuda_text(devices: Facts) -> str:
    return ", ".join(f"{one['name']} with {one['memory_gib']} GiB" for one in devices["cuda"]) or "none"


def _weights_text(found: Facts) -> str:
    if not found["bundled"]:
        return "not bundled"
    text = f"load: {found['recipe'] or found['network']}, size {found['size']}, {found['parameters']:,} parameters"
    on_test = found["test"]
    return text + (f", {on_test['correct']:,} of {on_test['total']:,} test queries" if on_test else "")
