"""What trainer, evaluator and a user's own network agree on."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from oneofmany.problems import Batch


@runtime_checkable
class PredictionNetwork(Protocol):
    """Batch in, logits out.

    ``value_offset`` is how many classes stand before the values: 0, or 1 for a network with a class of its own for
    "blank" (RRN), whose softmax runs over all its classes and whose target of value v is class v + 1.
    """

    value_offset: int

    def __call__(self, batch: Batch) -> Tensor:
        """Logits [B, R, V + value_offset], or [T, B, R, V + value_offset] from a network that predicts at every step.

        A network with steps takes ``steps=``; one that starts from noise takes ``noise=`` and says its shape with
        ``noise_shape(batch)``.
        """
        ...


@runtime_checkable
class SelectorNetwork(Protocol):
    """The latent model of the selection module (section 3.4): scores the listed solutions; higher = preferred."""

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        """Scores [B, K] of ``batch.solutions`` from the lagged copy's logits [B, R, V] or [T, B, R, V]."""
        ...


def arguments_of(network: Any) -> frozenset[str]:
    """The names of what a network's call takes; a compiled or distributed wrapper hides it, so look inside."""
    while isinstance(network, nn.Module) and (inner := getattr(network, "_orig_mod", getattr(network, "module", None))):
        network = inner
    return frozenset(
        inspect.signature(network.forward if isinstance(network, nn.Module) else network.__call__).parameters
    )
