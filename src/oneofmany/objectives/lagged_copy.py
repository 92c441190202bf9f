"""The selector's lagged copy of the prediction network (Section 3.4 and Algorithm 1, lines 2 and 13)."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from .validation import expect


class LaggedCopy(nn.Module):
    """A copy of the prediction network that follows it with a lag.

    Call `update()` after every step of the network's optimiser. As in Algorithm 1, updates are counted from t = 0 and
    the copy is refreshed when t % copy_interval = 0: after the first update, and then after every further
    `copy_interval` updates.

    The copy shares no memory with the network and has no gradients. It always runs in the train or eval mode of its
    network (module by module), as in the authors' code; calling `train()` or `eval()` on it has no effect.
    Its `state_dict` holds tensors only: the copied weights and the number of updates so far.

    Args:
        network: the live prediction network; if it is wrapped (DistributedDataParallel), the module inside.
        copy_interval: the paper's copyitr; 1 copies after every update. The paper tried 1 and 2500.
    """

    def __init__(self, network: nn.Module, *, copy_interval: int = 1) -> None:
        super().__init__()
        expect(copy_interval >= 1, "copy_interval", "1 or more", copy_interval)
        self.copy_interval = copy_interval
        self.updates = 0
        self.network = copy.deepcopy(network).requires_grad_(False)
        # In a tuple, so that the live network is not registered as a submodule of its copy.
        self._live = (network,)

    @torch.no_grad()
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the copied network, without a gradient."""
        for copied, live in zip(self.network.modules(), self._live[0].modules(), strict=True):
            if copied.training != live.training:
                copied.training = live.training
        return self.network(*args, **kwargs)

    def update(self) -> None:
        """Count one update of the live network and refresh the copy if it is due (Algorithm 1, lines 13 and 14)."""
        if self.updates % self.copy_interval == 0:
            self.refresh()
        self.updates += 1

    @torch.no_grad()
    def refresh(self) -> None:
        """Copy the live network's parameters and buffers now, in place."""
        live = self._live[0]
        for copied, current in zip(self.network.parameters(), live.parameters(), strict=True):
            copied.copy_(current)
        for copied, current in zip(self.network.buffers(), live.buffers(), strict=True):
            copied.copy_(current)

    def get_extra_state(self) -> Tensor:
        """Return the number of updates so far, as a tensor, for `state_dict`."""
        return torch.tensor(self.updates)

    def set_extra_state(self, state: Tensor) -> None:
        """Set the number of updates from a `state_dict`."""
        self.updates = int(state)
