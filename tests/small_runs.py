"""Runs of a second: tiny data, tiny networks; and what it means that two runs are the same."""

import dataclasses
import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.sudoku import build_sudoku
from oneofmany.networks.building import NetworkSettings, SelectorSettings
from oneofmany.training.settings import PhaseSettings, SelectorTraining, Settings

NETWORKS = {
    "equivariant": NetworkSettings("equivariant", width=8, steps=3),
    "transformer": NetworkSettings("transformer", width=8, depth=1, steps=3, heads=2),
    "rrn": NetworkSettings("rrn", width=8, steps=3, dropout=0.2),
    "nlm": NetworkSettings("nlm", width=4, depth=3),
}
SELECTORS = {
    "equivariant": SelectorSettings("equivariant", width=4, depth=1),
    "transformer": SelectorSettings("transformer", width=8, depth=1),
    "rrn": SelectorSettings("cnn"),
    "nlm": SelectorSettings("nlm", width=4, depth=2),
}
TIMES = ("seconds", "queries_per_second", "time")


def write_data(folder):
    """Sudoku 4x4 and 7 queens, OS and MS; on dev even a network of a few updates is right now and then."""
    build_sudoku(60, "train", seed=1, size=4, givens=(6, 10), listed=50).save(folder / "sudoku.safetensors")
    build_sudoku(40, "dev", seed=2, size=4, givens=(8, 12), ms_queries=8, listed=50).save(
        folder / "sudoku-dev.safetensors"
    )
    build_nqueens(7, 5, 300, seed=1).save(folder / "nqueens.safetensors")
    build_nqueens(7, 3, 40, seed=2).save(folder / "nqueens-dev.safetensors")
    return folder


def small(objective="minloss", kind="equivariant", **changes):
    """Settings of a run with all phases that its objective has; ``second=`` adds one to a one-phase objective."""
    phase = PhaseSettings(updates=6, batch=4, lr=1e-2)
    two = objective in ("iexplr", "selectr")
    values = {
        "recipe": f"small/{objective}",
        "task": "nqueens" if kind == "nlm" else "sudoku",
        "objective": objective,
        "seed": 7,
        "network": NETWORKS[kind],
        "selector": SELECTORS[kind],
        "first": phase,
        "second": phase if two else dataclasses.replace(phase, updates=0),
        "selector_training": SelectorTraining(updates=4, lr=1e-2),
        "evaluate_every": 2,
        "log_every": 2,
        "device": "cpu",
        "threads": 1,
        "checkpoint_minutes": 0.0,
    }
    return Settings(**values | changes)


def files(folder, settings):
    """The training and dev data of small settings."""
    return folder / f"{settings.task}.safetensors", folder / f"{settings.task}-dev.safetensors"


def fields(settings):
    """Settings as fields of the command line."""
    arguments = []

    def add(value, path):
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                add(getattr(value, field.name), (*path, field.name))
        else:
            values = value if isinstance(value, tuple) else (value,)
            arguments.extend(["--" + ".".join(path).replace("_", "-"), *map(str, values)])

    for field in dataclasses.fields(settings):
        add(getattr(settings, field.name), (field.name,))
    return arguments


def untimed(run):
    """The lines of metrics and the result of a finished run, without times and speeds."""
    lines = [json.loads(line) for line in (Path(run) / "metrics.jsonl").read_text().splitlines()]
    result = json.loads((Path(run) / "result.json").read_text())
    return [{k: v for k, v in line.items() if k not in TIMES} for line in (*lines, result)]


def assert_same_run(one, other):
    """The same bits in the weights, the same metrics and result but for times."""
    mine, theirs = (load_file(Path(run) / "weights.safetensors") for run in (one, other))
    assert mine.keys() == theirs.keys()
    for name, tensor in mine.items():
        assert torch.equal(tensor, theirs[name]), name
    for a, b in zip(untimed(one), untimed(other), strict=True):
        assert a == b


def assert_same_tensors(one, other):
    """The same names with the same bits."""
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name
