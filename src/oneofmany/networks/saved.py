"""Save and load networks: weights and settings in one safetensors file, never pickle."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

import oneofmany
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.headers import FORMAT, OTHERWISE, read_weights
from oneofmany.networks.kernels import Precision, precision_for
from oneofmany.networks.protocol import TaskNetwork
from oneofmany.problems import Problem, SequenceProblem
from oneofmany.tensor_files import explained, sealed, write_tensors


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
    problem: Problem | SequenceProblem,
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
    if isinstance(problem, Problem) and not problem.has_rules:  # such a problem is rebuilt from the file alone
        header |= {"variables": problem.variables, "values": problem.values}
    weights = network.state_dict() if isinstance(network, nn.Module) else network
    write_tensors(path, weights, sealed(header, weights), force=force)


def load_network(
    path: str | Path,
    problem: Problem | SequenceProblem | None = None,
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
    weights = read_weights(path, problem, "pt")
    with explained(path, OTHERWISE):
        if precision is None:
            precision = precision_for(weights.settings.kind, device)
        if wrong := misfit(weights.settings, weights.problem, weights.tensors):
            raise ValueError(f"{wrong.name}: its settings need {wrong.needed}, but it holds {wrong.found}")
        network = build_network(weights.settings, weights.problem, precision=precision, device=device)
        network.load_state_dict(weights.tensors)
    return SavedNetwork(network.eval(), weights.settings, weights.task, weights.size, weights.card)


class Misfit(NamedTuple):
    """A tensor that a network needs in another shape than it is found in; None: not at all."""

    name: str
    needed: list[int] | None
    found: list[int] | None


def misfit(
    settings: NetworkSettings, problem: Problem | SequenceProblem, tensors: dict[str, torch.Tensor]
) -> Misfit | None:
    """Return the first tensor that does not fit into a network with these settings; None if all of them fit."""
    with torch.device("meta"):  # takes no memory
        own = build_network(settings, problem, device="meta").state_dict()
    needed, found = ({name: list(one.shape) for name, one in of.items()} for of in (own, tensors))
    of_names = (Misfit(name, needed.get(name), found.get(name)) for name in dict.fromkeys((*needed, *found)))
    return next((one for one in of_names if one.needed != one.found), None)
