"""Examines an installation: what is installed, whether it works, and how fast it is.

    facts = examine()
    works(facts)                                       # False if a part that is needed does not work

Everything that may be missing is imported inside the function that examines it, and a broken part does not hide the
others: it is ``{"error": ...}`` in the facts.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

import oneofmany
from oneofmany.extras import OPTIONAL

NEEDED = ("torch", "numpy", "safetensors", "numba", "scipy", "tyro", "rich")
PUZZLE = "....5....2......71...6....4.4...1..7....8....7.93.......6........59.3....84...5.3"
"""A minimal Sudoku with 21 givens."""

Facts = dict[str, Any]


def examine() -> Facts:
    """Return versions, devices, speeds and the state of the bundled weights, ready for JSON. Takes a few seconds."""
    devices = _safely(_devices)
    places = ["cpu", *(f"cuda:{i}" for i in range(len(devices.get("cuda", ()))))]
    return {
        "versions": {
            "oneofmany": oneofmany.__version__,
            "python": platform.python_version(),
            **{name: _version(name) for name in (*NEEDED, *OPTIONAL, "triton")},
        },
        "devices": devices,
        "numba_cache": _safely(_numba_cache),
        "enumerator": _safely(_enumerator),
        "training_step": {place: _safely(_training_step, place) for place in places},
        "weights": _safely(_weights),
    }


def works(facts: Facts) -> bool:
    """Return whether everything that is needed is installed and works; optional packages may be missing."""
    return all(facts["versions"][name] is not None for name in NEEDED) and not _broken(facts)


def _broken(facts: Facts) -> bool:
    return "error" in facts or any(_broken(one) for one in facts.values() if isinstance(one, dict))


def _safely(look: Callable[..., Facts], *arguments: Any) -> Facts:
    """Return the facts of ``look``, or the error it raised."""
    try:
        return look(*arguments)
    except Exception as error:  # a broken installation may raise anything
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


def _numba_cache() -> Facts:
    """Return the folder where numba keeps compiled code, and a note if it is not the usual one or there is none."""
    from oneofmany.compiled import cache_folder, temporary_folder

    folder = cache_folder()
    cannot = "neither the package nor the home directory can be written"
    if folder is None:
        note = f"{cannot}, nor the temporary files, so every command compiles again: set NUMBA_CACHE_DIR to a folder"
        return {"folder": None, "note": note}
    temporary = temporary_folder()
    if temporary is not None and folder.is_relative_to(temporary):
        return {"folder": str(folder), "note": f"{cannot}, so it is among the temporary files"}
    return {"folder": str(folder), "note": None}


def _enumerator() -> Facts:
    import numpy as np

    from oneofmany.exact import count
    from oneofmany.problems.tasks.sudoku import parse

    query = parse(PUZZLE)
    queries = np.repeat(query.values[None], 2000, 0)
    preparing, _ = _timed(lambda: count(query.problem, queries[:1], limit=2))
    seconds, totals = _timed(lambda: count(query.problem, queries, limit=2, threads=1))
    if not (totals == 1).all():
        raise ValueError(f"a Sudoku with one solution was counted to have {totals.max()} solutions")
    return {"microseconds_per_sudoku": round(1e6 * seconds / len(queries), 1), "preparing_seconds": round(preparing, 2)}


def _training_step(device: str) -> Facts:
    """Time forward, MinLoss, backward and AdamW of the equivariant network: 32 queries of 8-queens, 16 steps."""
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
    from oneofmany.solving import bundled

    others = sorted(path.stem for path in bundled("any").parent.glob("*.safetensors"))
    return {name: _safely(_weights_of, name) for name in dict.fromkeys([*TASKS, *others])}


def _weights_of(name: str) -> Facts:
    from oneofmany.networks.headers import read_weights
    from oneofmany.solving import bundled, load_network

    if not bundled(name).is_file():
        return {"bundled": False}
    saved = load_network(bundled(name))
    accuracy = saved.card.get("accuracy", {})
    on_test = accuracy.get(f"{saved.task}-fresh-test") or accuracy.get(f"{saved.task}-test")
    return {
        "bundled": True,
        "network": saved.settings.kind,
        "size": saved.size,
        "parameters": sum(one.size for one in read_weights(bundled(name), None, "numpy").tensors.values()),
        "recipe": saved.card.get("recipe"),
        "test": on_test and on_test["overall"],
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result
