"""Build networks from the settings in a run's configuration or a weights file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from oneofmany.networks.equivariant import EquivariantNetwork, EquivariantSelector
from oneofmany.networks.equivariant.inputs import Inequalities
from oneofmany.networks.kernels import NetworkKind, Precision, rrn_kernel
from oneofmany.networks.nlm import NLM, nlm_for, nlm_selector_for
from oneofmany.networks.protocol import TaskNetwork
from oneofmany.networks.rrn import RRN, CNNSelector, MLPSelector
from oneofmany.problems import Problem

NETWORKS: dict[NetworkKind, type[TaskNetwork]] = {"nlm": NLM, "rrn": RRN, "equivariant": EquivariantNetwork}


@dataclass(frozen=True)
class NetworkSettings:
    """Settings of a prediction network."""

    kind: NetworkKind = "equivariant"
    """Which network."""
    width: int = 64
    """Predicates per layer (NLM), size of the hidden state (RRN), channels per choice (equivariant)."""
    depth: int = 30
    """Layers (NLM)."""
    steps: int = 16
    """Steps in training (RRN, equivariant)."""
    test_steps: int | None = None
    """Steps at test time; by default as in training."""
    dropout: float = 0.0
    """Dropout rate of message components in training (RRN)."""
    hidden: int | None = None
    """Gated hidden units of the update; by default the width (equivariant)."""
    inequalities: Inequalities = "rules"
    """Input form of Futoshiki's inequalities (equivariant): rules, or the two flags of the paper's NLM."""
    latent: int = 0
    """Learned inputs, as nullary predicates (NLM) or appended to the embeddings (RRN); 16 in the authors' code."""

    @property
    def has_steps(self) -> bool:
        """Whether the network predicts at every step."""
        return self.kind != "nlm"


@dataclass(frozen=True)
class SelectorSettings:
    """Settings of the selector network (section 3.4)."""

    kind: Literal["nlm", "cnn", "cnn-authors", "mlp", "equivariant"] = "equivariant"
    """Which network: the paper's small NLM, its CNN, the CNN or MLP of the authors' code, or ours."""
    width: int = 32
    """Predicates per layer (NLM), channels per choice (equivariant)."""
    depth: int = 3
    """Layers (NLM), rounds (equivariant)."""


def build_network(
    settings: NetworkSettings,
    problem: Problem,
    *,
    precision: Precision = "float32",
    device: torch.device | str = "cpu",
) -> TaskNetwork:
    """Build a prediction network on a device. Parameters are drawn on the CPU: the same on every device.

    ``precision`` is that of the activations; ``kernels`` explains how each network uses it.
    """
    if settings.kind == "nlm":
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
    else:
        raise ValueError(f"kind: expected nlm, rrn or equivariant, got {settings.kind!r}")
    return network.to(device)


def build_selector(settings: SelectorSettings, network: NetworkSettings, problem: Problem) -> nn.Module:
    """Build a selector for a prediction network."""
    offset = NETWORKS[network.kind].value_offset
    if settings.kind == "nlm":
        return nlm_selector_for(problem, depth=settings.depth, width=settings.width)
    steps = network.steps if network.has_steps else 1
    if settings.kind == "mlp":
        return MLPSelector(problem, steps, value_offset=offset)
    if settings.kind in ("cnn", "cnn-authors"):
        return CNNSelector(problem, steps, value_offset=offset, rectify_last=settings.kind == "cnn-authors")
    return EquivariantSelector(
        problem,
        width=settings.width,
        rounds=settings.depth,
        inequalities=network.inequalities,
        value_offset=offset,
    )
