"""What trainer, evaluator and a user's own network agree on."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from torch import Tensor, nn

from oneofmany.problems import Batch, Problem

Readout = Literal["argmax", "threshold"]
"""How an answer is read off the logits: the likeliest value of every variable, or every choice above 0.5 on its own."""


@runtime_checkable
class PredictionNetwork(Protocol):
    """Batch in, logits out.

    ``value_offset`` is how many classes stand before the values: 0, or 1 for a network with a class of its own for
    "blank" (RRN), whose softmax runs over all its classes and whose target of value v is class v + 1.

    A network may also say its ``readout``; without one its answers are read by argmax.
    """

    value_offset: int

    def __call__(self, batch: Batch) -> Tensor:
        """Logits [B, R, V + value_offset], or [T, B, R, V + value_offset] from a network that predicts at every step.

        A network with steps takes ``steps=``; one that starts from noise takes ``noise=`` and says its shape with
        ``noise_shape(batch)``.
        """
        ...


class TaskNetwork(nn.Module, ABC):
    """A prediction network of this library: it also says how its answers are read and which problems it can answer."""

    value_offset: int = 0
    readout: Readout = "argmax"

    @abstractmethod
    def accepts(self, problem: Problem, relations: np.ndarray | None = None) -> str | None:
        """None where the network can answer queries of a problem; otherwise the reason, in one sentence.

        Args:
            problem: the problem of the queries.
            relations: int [.., 2], the relations of the queries, -1 for padding; None where the queries have none.
        """


class TakesNoise(Protocol):
    """A network that starts from noise."""

    def noise_shape(self, batch: Batch) -> tuple[int, ...]:
        """The shape of the noise for a batch."""
        ...


@runtime_checkable
class SelectorNetwork(Protocol):
    """The latent model of the selection module (section 3.4): scores the listed solutions; higher = preferred."""

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        """Scores [B, K] of ``batch.solutions`` from the lagged copy's logits [B, R, V] or [T, B, R, V]."""
        ...


def arguments_of(network: Any) -> frozenset[str]:
    """The names of the arguments that a network's call takes."""
    network = _unwrapped(network)
    return frozenset(
        inspect.signature(network.forward if isinstance(network, nn.Module) else network.__call__).parameters
    )


def readout_of(network: Any) -> Readout:
    """The network's ``readout``; argmax for a network that does not say one."""
    # Many networks have a layer of this name, which says nothing about how answers are read.
    readout: Any = getattr(_unwrapped(network), "readout", "argmax")
    return "argmax" if isinstance(readout, nn.Module | Tensor) else readout


def _unwrapped(network: Any) -> Any:
    """The network inside a compiled or distributed wrapper, which hides its call and its attributes."""
    while isinstance(network, nn.Module) and (inner := getattr(network, "_orig_mod", getattr(network, "module", None))):
        network = inner
    return network
