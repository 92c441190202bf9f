"""The interface between networks (a user's own too) and trainer, evaluation and solver."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, Protocol, runtime_checkable

import numpy as np
from torch import Tensor, nn

from oneofmany.networks.settings import Readout
from oneofmany.problems import Batch, Problem


@runtime_checkable
class PredictionNetwork(Protocol):
    """Batch in, logits out.

    ``value_offset`` is the number of classes before the values: 0, or 1 for a network with a blank class (RRN). The
    softmax of such a network includes the blank class, and the target of value v is class v + 1.

    A network may also have a ``readout``; the default is argmax.
    """

    value_offset: int

    def __call__(self, batch: Batch) -> Tensor:
        """Logits [B, R, V + value_offset], or [T, B, R, V + value_offset] from a network that predicts at every step.

        A network with steps takes ``steps=``. A network that starts from noise takes ``noise=`` and has a method
        ``noise_shape(batch)``.
        """
        ...


class TaskNetwork(nn.Module, ABC):
    """A prediction network of this library, with its readout and the problems it accepts."""

    value_offset: int = 0
    readout: Readout = "argmax"

    @abstractmethod
    def accepts(self, problem: Problem, relations: np.ndarray | None = None) -> str | None:
        """Return None if the network can answer queries of a problem, else the reason in one sentence.

        Args:
            problem: the problem of the queries.
            relations: int [.., 2], the relations of the queries, -1 for padding; None if there are none.
        """

    def compile_step(self, backend: str = "inductor") -> None:
        """Compile the module ``step`` in place, if the network has one; it serves any number of steps."""
        step = getattr(self, "step", None)
        if isinstance(step, nn.Module):
            step.compile(dynamic=False, fullgraph=True, backend=backend)


class TakesNoise(Protocol):
    """A network that starts from noise."""

    def noise_shape(self, batch: Batch) -> tuple[int, ...]:
        """Return the shape of the noise for a batch."""
        ...


@runtime_checkable
class SelectorNetwork(Protocol):
    """The latent model of the selection module (section 3.4): scores the listed solutions; higher = preferred."""

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        """Scores [B, K] of ``batch.solutions`` from the lagged copy's logits [B, R, V] or [T, B, R, V]."""
        ...


def arguments_of(network: Any) -> frozenset[str]:
    """Return the argument names of a network's call."""
    network = _unwrapped(network)
    return frozenset(
        inspect.signature(network.forward if isinstance(network, nn.Module) else network.__call__).parameters
    )


def readout_of(network: Any) -> Readout:
    """Return the network's ``readout``; argmax if it has none."""
    # Many networks have a layer of this name; it is not the setting.
    readout: Any = getattr(_unwrapped(network), "readout", "argmax")
    return "argmax" if isinstance(readout, nn.Module | Tensor) else readout


def _unwrapped(network: Any) -> Any:
    """The network inside a compiled or distributed wrapper, which hides its signature and attributes."""
    while isinstance(network, nn.Module) and (inner := getattr(network, "_orig_mod", getattr(network, "module", None))):
        network = inner
    return network
