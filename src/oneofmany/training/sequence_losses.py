"""The losses of an update on sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from oneofmany.networks.sequences import CTCNetwork, SequenceNetwork
from oneofmany.objectives import Objective, SelectR
from oneofmany.problems import SequenceBatch


class Losses(NamedTuple):
    """The losses of an update.

    Args:
        network: of the prediction network, a scalar.
        selector: of the selector, a scalar; None if there is none.
        counts: [2], the queries that train the network and the selector, in all processes.
    """

    network: Tensor
    selector: Tensor | None
    counts: Tensor


@contextmanager
def seeded(inputs: dict[str, Tensor], device: torch.device) -> Iterator[None]:
    """Seed PyTorch's own generators with ``inputs["dropout"]``, if it is there, and restore them at the end."""
    if "dropout" not in inputs:
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(int(inputs["dropout"]))
        yield


def sequence_losses(
    objective: Objective | SelectR,
    learners: Any,
    batch: SequenceBatch,
    noise: Tensor | None,
    measured: dict[str, Tensor],
    *,
    trained: bool,
    running: Callable[[], AbstractContextManager[object]],
    counted: Callable[[Tensor, dict[str, Tensor]], Tensor],
) -> Losses:
    """The losses of a batch; answers that need more frames than CTC has are left out.

    Args:
        objective: with the pair loss of the network.
        learners: the network, the selector and the lagged copy.
        batch: inputs with their listed answers.
        noise: [B, K], of an objective that draws.
        measured: gets the exploratory counts, both by the loss.
        trained: whether the network gets a gradient.
        running: the context to call networks in.
        counted: from a mask [B, K], the counts of ``Losses``.
    """
    network = learners.network
    assert isinstance(network, SequenceNetwork)
    targets = network.targets(batch)
    lengths = network.frame_lengths(batch) if isinstance(network, CTCNetwork) else None
    with torch.set_grad_enabled(trained), running():
        output = network(batch)
    pair_losses = objective.pair_losses(output, targets, batch.mask, lengths=lengths)
    mask = batch.mask & pair_losses.detach().isfinite()
    pair_losses = pair_losses.masked_fill(~mask, 0.0)
    counts = counted(mask, measured)
    if not isinstance(objective, SelectR):
        return Losses(objective.reduce(pair_losses, mask, normaliser=counts[0], noise=noise), None, counts)
    with torch.no_grad(), running():
        copied = output.detach() if learners.lagged is None else learners.lagged(batch)
        tokens = network.token_log_likelihoods(copied, batch)
    with running():
        scores = learners.selector(tokens, batch, targets).float()
    loss = objective.reduce(pair_losses, mask, scores, normaliser=counts[0], noise=noise)
    # The reward of an answer is its log-likelihood under the live network.
    rewards = -pair_losses.detach()
    selector_loss = objective.reduce_rewards(rewards, mask, scores, normaliser=counts[1], noise=noise)
    with torch.no_grad():
        favourite = scores.masked_fill(~mask, -torch.inf).argmax(1)
        closest = pair_losses.masked_fill(~mask, torch.inf).argmin(1)
        exploratory = ((favourite != closest) & (mask.sum(1) > 1)).sum()
        measured |= {"exploratory_loss": exploratory, "exploratory_hamming": exploratory}
    return Losses(loss, selector_loss, counts)
