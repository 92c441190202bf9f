"""Save and load networks: weights and settings in one safetensors file, never pickle."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

import oneofmany
from oneofmany.files import FileError
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.kernels import Precision, precision_for
from oneofmany.networks.protocol import TaskNetwork
from oneofmany.problems import TASKS, Problem
from oneofmany.tensor_files import explained, read_tensors, write_tensors

FORMAT = 1
OTHERWISE = "not a network"


@dataclass(frozen=True, eq=False)
class SavedNetwork:
    """A network read from a file.

    Args:
        network: ready to predict, in evaluation mode.
        settings: of the network.
        task: the task it was trained on.
        size: the problem size it was trained on; networks that are not bound to a size accept others too.
        card: data, recipe, accuracy and limits, as stated when it was saved.
    """

    network: TaskNetwork
    settings: NetworkSettings
    task: str
    size: int
    card: dict[str, Any]


def save_network(
    path: str | Path,
    network: nn.Module | dict[str, torch.Tensor],
    settings: NetworkSettings,
    problem: Problem,
    card: dict[str, Any] | None = None,
    *,
    force: bool = False,
) -> None:
    """Write a network (or its ``state_dict``) as one whole file; an existing file is replaced only with ``force``."""
    header = {
        "format": FORMAT,
        "version": oneofmany.__version__,
        "task": problem.task,
        "size": problem.size,
        "options": problem.options,
        "network": asdict(settings),
        "card": card or {},
    }
    weights = network.state_dict() if isinstance(network, nn.Module) else network
    write_tensors(path, weights, header, force=force)


def load_network(
    path: str | Path,
    problem: Problem | None = None,
    *,
    device: torch.device | str = "cpu",
    precision: Precision | None = "float32",
) -> SavedNetwork:
    """Read a network; a bad file raises FileError.

    Args:
        path: a file that ``save_network`` wrote.
        problem: needed for a task of your own, whose rules are not in the file.
        device: of the network.
        precision: of the activations, as in ``build_network``; None uses ``kernels.precision_for``.
    """
    header, tensors = read_tensors(path, otherwise=OTHERWISE, newest=FORMAT, framework="pt")
    if "network" not in header:
        raise FileError(f"{path} is not a network of oneofmany")
    with explained(path, OTHERWISE):
        known = {field.name for field in fields(NetworkSettings)}
        if unknown := set(header["network"]) - known:
            raise FileError(f"{path} has settings that this version does not know ({', '.join(sorted(unknown))})")
        settings = NetworkSettings(**header["network"])
        own = problem or _problem(header, path)
        if precision is None:
            precision = precision_for(settings.kind, device)
        network = build_network(settings, own, precision=precision, device=device)
        network.load_state_dict(tensors)
        task, size, card = str(header["task"]), int(header["size"]), dict(header["card"])
    return SavedNetwork(network.eval(), settings, task, size, card)


def _problem(header: dict[str, Any], path: str | Path) -> Problem:
    task = TASKS.get(header["task"])
    if task is None:
        raise FileError(f"{path} belongs to the task {header['task']!r}, whose rules are needed: pass problem=")
    return task.problem(header["size"], **header["options"])
