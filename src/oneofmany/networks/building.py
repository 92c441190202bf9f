"""Build networks from the settings in a run's configuration or a weights file."""

from __future__ import annotations

import torch
from torch import nn

from oneofmany.networks.equivariant import EquivariantNetwork, EquivariantSelector
from oneofmany.networks.kernels import Precision, rrn_kernel
from oneofmany.networks.nlm import NLM, nlm_for, nlm_selector_for
from oneofmany.networks.protocol import TaskNetwork
from oneofmany.networks.rrn import RRN, CNNSelector, MLPSelector
from oneofmany.networks.sequences import CTCNetwork, Seq2SeqNetwork, SequenceNetwork, TokenSelector
from oneofmany.networks.settings import SEQUENCES, NetworkKind, NetworkSettings, SelectorSettings
from oneofmany.networks.transformer import TransformerNetwork, TransformerSelector
from oneofmany.problems import Problem, SequenceProblem

__all__ = ["NETWORKS", "NetworkSettings", "SelectorSettings", "build_network", "build_selector"]

NETWORKS: dict[NetworkKind, type[TaskNetwork]] = {
    "nlm": NLM,
    "rrn": RRN,
    "equivariant": EquivariantNetwork,
    "transformer": TransformerNetwork,
    "seq2seq": Seq2SeqNetwork,
    "ctc": CTCNetwork,
}


def build_network(
    settings: NetworkSettings,
    problem: Problem | SequenceProblem,
    *,
    precision: Precision = "float32",
    device: torch.device | str = "cpu",
) -> TaskNetwork:
    """Build a prediction network on a device. Parameters are drawn on the CPU: the same on every device.

    ``precision`` is that of the activations; ``kernels`` explains how each network uses it.
    """
    if isinstance(problem, SequenceProblem):
        network = _for_sequences(settings, problem)
    elif settings.kind in SEQUENCES:
        raise ValueError(f"kind: expected a network over variables for {problem}, got {settings.kind!r}")
    elif settings.kind == "nlm":
        network = nlm_for(
            problem, depth=settings.depth, width=settings.width, learned_nullary=settings.latent, precision=precision
        )
    elif settings.kind == "rrn":
        network = RRN(
            problem,
            steps=settings.steps,
            dropout=settings.dropout,
            latent=settings.latent,
            width=settings.width,
            kernel=rrn_kernel(device, precision),
        )
    elif settings.kind == "equivariant":
        network = EquivariantNetwork(
            problem,
            width=settings.width,
            steps=settings.steps,
            hidden=settings.hidden,
            inequalities=settings.inequalities,
        )
    elif settings.kind == "transformer":
        network = TransformerNetwork(
            problem,
            width=settings.width,
            layers=settings.depth,
            steps=settings.steps,
            hidden=settings.hidden,
            heads=settings.heads,
            mixing=settings.mixing,
        )
    else:
        raise ValueError(f"kind: expected {', '.join(NETWORKS)}, got {settings.kind!r}")
    return network.to(device)


def _for_sequences(settings: NetworkSettings, problem: SequenceProblem) -> SequenceNetwork:
    sizes = {
        "width": settings.width,
        "layers": settings.depth,
        "heads": settings.heads,
        "hidden": settings.hidden,
        "dropout": settings.dropout,
    }
    if settings.kind == "ctc":
        return CTCNetwork(problem, frames=settings.frames, **sizes)
    if settings.kind == "seq2seq":
        return Seq2SeqNetwork(problem, **sizes)
    raise ValueError(f"kind: expected {' or '.join(SEQUENCES)} for sequences, got {settings.kind!r}")


def build_selector(
    settings: SelectorSettings, network: NetworkSettings, problem: Problem | SequenceProblem
) -> nn.Module:
    """Build a selector for a prediction network."""
    if isinstance(problem, SequenceProblem) != (settings.kind == "tokens"):
        raise ValueError(f"selector.kind: tokens is for sequences, and the others are not, got {settings.kind!r}")
    if isinstance(problem, SequenceProblem):
        return TokenSelector(problem, width=settings.width)
    offset = NETWORKS[network.kind].value_offset
    if settings.kind == "nlm":
        return nlm_selector_for(problem, depth=settings.depth, width=settings.width)
    steps = network.steps if network.has_steps else 1
    if settings.kind == "mlp":
        return MLPSelector(problem, steps, value_offset=offset)
    if settings.kind in ("cnn", "cnn-authors"):
        return CNNSelector(problem, steps, value_offset=offset, rectify_last=settings.kind == "cnn-authors")
    if settings.kind == "transformer":
        return TransformerSelector(problem, width=settings.width, layers=settings.depth, value_offset=offset)
    return EquivariantSelector(
        problem,
        width=settings.width,
        rounds=settings.depth,
        inequalities=network.inequalities,
        value_offset=offset,
    )
