"""The networks of a run (prediction network, moving average, selector, lagged copy) and their optimisers."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from oneofmany import weights_file
from oneofmany.networks.building import build_network, build_selector
from oneofmany.networks.headers import read_weights
from oneofmany.networks.kernels import Precision, training_precision
from oneofmany.networks.protocol import TaskNetwork
from oneofmany.objectives import LaggedCopy
from oneofmany.problems import Problem, SequenceProblem
from oneofmany.training.settings import Settings
from oneofmany.training.streams import seed_of

Optimiser = torch.optim.Adam | torch.optim.AdamW


class Learners:
    """The networks and optimisers of a run on one device.

    For one task, network and seed, the initial parameters of the prediction network are the same for every objective;
    with ``initial`` they are those of that network.

    Args:
        settings: the settings of the run.
        problem: the problem of the training data.
        device: the device of the networks.
    """

    def __init__(self, settings: Settings, problem: Problem | SequenceProblem, device: torch.device) -> None:
        self.settings, self.problem, self.device = settings, problem, device
        self.precision: Precision = training_precision(settings.network.kind, device, settings.precision)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(settings.seed, "network"))
            self.network = build_network(settings.network, problem, precision=self.precision, device=device)
            if settings.initial is not None:
                load_weights(self.network, read_weights(weights_file(settings.initial), problem, "pt").tensors)
            self.selector: nn.Module | None = None
            if settings.objective == "selectr":
                torch.manual_seed(seed_of(settings.seed, "selector"))
                self.selector = build_selector(settings.selector, settings.network, problem).to(device)
        self.average = copy.deepcopy(self.network).requires_grad_(False) if settings.ema else None
        self.lagged: LaggedCopy | None = None
        self._first = weights_of(self.network)
        self.optimiser = self.new_optimiser()
        self.selector_optimiser = self.new_selector_optimiser()
        if settings.compile and device.type == "cuda":
            self.network.compile_step()

    @property
    def evaluated(self) -> TaskNetwork:
        """The network that is evaluated and kept: the moving average if there is one."""
        return self.network if self.average is None else self.average

    def begin(self, weights: dict[str, Tensor] | None, *, with_selector: bool, decay: float | None = None) -> None:
        """Begin a phase from these weights (None: the initial parameters of the seed) with new optimisers.

        ``decay`` is the weight decay of the prediction network in this phase; None means that of the run.
        """
        load_weights(self.network, self._first if weights is None else weights)
        if self.average is not None:
            load_weights(self.average, weights_of(self.network))
        self.optimiser = self.new_optimiser(decay)
        self.selector_optimiser = self.new_selector_optimiser()
        # With copyitr 1 the copy equals the network, so its forward pass is not repeated.
        interval = self.settings.selector_training.copy_interval
        lags = with_selector and interval > 1
        self.lagged = LaggedCopy(self.network, copy_interval=interval) if lags else None

    def new_optimiser(self, decay: float | None = None) -> Optimiser:
        """An optimiser for the prediction network; its learning rate is a tensor, so that graphs see changes."""
        s = self.settings
        return self._optimiser(self.network, s.first.lr, s.decay if decay is None else decay)

    def new_selector_optimiser(self) -> Optimiser | None:
        """An optimiser for the selector, if the run has one."""
        training = self.settings.selector_training
        return None if self.selector is None else self._optimiser(self.selector, training.lr, training.decay)

    def _optimiser(self, network: nn.Module, lr: float, decay: float) -> Optimiser:
        kind = torch.optim.AdamW if self.settings.optimiser == "adamw" else torch.optim.Adam
        return kind(
            network.parameters(),
            lr=torch.tensor(lr, device=self.device),
            betas=self.settings.betas,
            weight_decay=decay,
            fused=True,
            capturable=self.device.type == "cuda",
        )

    # ---- state -----------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """Every tensor that resuming needs, by name."""
        tensors = {}
        for name, module in self._modules():
            tensors |= {f"{name}/{key}": value for key, value in weights_of(module).items()}
        for name, optimiser in self._optimisers():
            for index, slots in optimiser.state_dict()["state"].items():
                tensors |= {f"{name}/{index}/{slot}": value.clone() for slot, value in slots.items()}
        if self.lagged is not None:
            tensors["lagged/updates"] = torch.tensor(self.lagged.updates)
        return tensors

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Load a saved state; call ``begin`` first."""
        for name, module in self._modules():
            load_weights(module, under(tensors, name))
        for name, optimiser in self._optimisers():
            slots: dict[int, dict[str, Tensor]] = {}
            for key, value in under(tensors, name).items():
                index, slot = key.split("/")
                slots.setdefault(int(index), {})[slot] = value
            optimiser.load_state_dict({"state": slots, "param_groups": optimiser.state_dict()["param_groups"]})
        if self.lagged is not None:
            self.lagged.updates = int(tensors["lagged/updates"])

    def _modules(self) -> list[tuple[str, nn.Module]]:
        lagged = None if self.lagged is None else self.lagged.network
        named = (("network", self.network), ("average", self.average), ("selector", self.selector), ("copy", lagged))
        return [(name, module) for name, module in named if module is not None]

    def _optimisers(self) -> list[tuple[str, Optimiser]]:
        named = (("optimiser", self.optimiser), ("selector-optimiser", self.selector_optimiser))
        return [(name, optimiser) for name, optimiser in named if optimiser is not None]


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """A copy of a module's parameters and buffers."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


@torch.no_grad()
def load_weights(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Copy weights into a module in place, so that captured graphs see them."""
    own = module.state_dict()
    if missing := set(own) ^ set(weights):
        raise ValueError(f"weights: they do not fit the network ({', '.join(sorted(missing)[:3])} ...)")
    for name, tensor in own.items():
        if tensor.shape != weights[name].shape:
            raise ValueError(
                f"weights: {name} has shape {list(weights[name].shape)}, the network's has {list(tensor.shape)}"
            )
        tensor.copy_(weights[name])


def under(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors named ``name/...``, without that prefix."""
    return {key[len(name) + 1 :]: value for key, value in tensors.items() if key.startswith(f"{name}/")}
