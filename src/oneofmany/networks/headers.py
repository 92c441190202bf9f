"""The header of a weights file: settings, task and card of a network. Loads no torch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import prod
from pathlib import Path
from typing import Any, Literal

from oneofmany.files import FileError
from oneofmany.networks.settings import MOST_STEPS, NetworkSettings
from oneofmany.problems import Problem, SequenceProblem, check_source, find_task
from oneofmany.tensor_files import explained, read_tensors

FORMAT = 1
OTHERWISE = "not a network"


@dataclass(frozen=True, eq=False)
class Weights:
    """What a weights file holds.

    Args:
        tensors: the network's ``state_dict()``, as tensors of PyTorch or arrays of NumPy.
        settings: of the network.
        problem: the problem it was trained on.
        task: the task it was trained on.
        size: the problem size it was trained on.
        card: data, recipe, accuracy and limits, as stated when it was saved.
    """

    tensors: dict[str, Any]
    settings: NetworkSettings
    problem: Problem | SequenceProblem
    task: str
    size: int
    card: dict[str, Any]


def read_weights(
    path: str | Path, problem: Problem | SequenceProblem | None, framework: Literal["numpy", "pt"]
) -> Weights:
    """Read a weights file; a bad file raises FileError.

    A task of your own needs its ``problem``, or is known after ``use_task_file``.
    """
    header, tensors = read_tensors(path, otherwise=OTHERWISE, newest=FORMAT, framework=framework)
    if "network" not in header:
        raise FileError(f"{path} is not a network of oneofmany")
    with explained(path, OTHERWISE):
        known = {field.name for field in fields(NetworkSettings)}
        if unknown := set(header["network"]) - known:
            raise FileError(f"{path} has settings that this version does not know ({', '.join(sorted(unknown))})")
        settings = NetworkSettings(**header["network"])
        _check_sizes(settings, tensors)
        own = problem or _problem(header, path)
        return Weights(tensors, settings, own, str(header["task"]), int(header["size"]), dict(header["card"]))


def _check_sizes(settings: NetworkSettings, tensors: dict[str, Any]) -> None:
    """Raise ValueError for sizes that the tensors cannot have, before a network of these sizes is built."""
    most = sum(prod(tensor.shape) for tensor in tensors.values())
    limits = {"depth": len(tensors), "steps": MOST_STEPS, "test_steps": MOST_STEPS}
    if settings.kind in ("rrn", "equivariant"):
        del limits["depth"]  # they have no layers
    limits = dict.fromkeys(("width", "hidden", "latent", "heads", "frames"), most) | limits
    for name, limit in limits.items():
        value = getattr(settings, name)
        if value is not None and (not isinstance(value, int) or not -1 < value <= limit):
            raise ValueError(f"network.{name}: expected at most {limit}, got {value!r}")


def _problem(header: dict[str, Any], path: str | Path) -> Problem | SequenceProblem:
    if header["task"] == SequenceProblem.task:
        return SequenceProblem.of(header["options"])
    task = find_task(header["task"])
    if task is None and "variables" in header:  # a task without rules
        return Problem(header["task"], header["size"], header["variables"], header["values"], ())
    if task is None:
        try:
            check_source(path, header["task"], header["card"].get("task_file"))
        except ValueError as error:
            raise FileError(str(error)) from None
        raise FileError(f"{path} belongs to the task {header['task']!r}, whose rules are needed: pass problem=")
    return task.problem(header["size"], **header["options"])
