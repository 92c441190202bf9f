"""Run a network on queries: equivariant networks on a CPU without PyTorch, everything else with it.

No other module of this room needs PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import oneofmany
from oneofmany.exact.cores import idle_cores
from oneofmany.networks.equivariant.cpu import CpuNetwork, SavedCpuNetwork, load_for_cpu
from oneofmany.networks.equivariant.cpu_inference import predict_on_cpu
from oneofmany.networks.equivariant.rules import sum_kinds
from oneofmany.networks.headers import read_weights
from oneofmany.networks.noise import Noise
from oneofmany.networks.settings import StartCriterion
from oneofmany.problems import Problem, Query
from oneofmany.solving.answers import stacked

if TYPE_CHECKING:
    from oneofmany.networks.saved import SavedNetwork

Saved: TypeAlias = "SavedNetwork | SavedCpuNetwork"
"""A network of PyTorch, or one for the CPU alone."""


def load_network(name: str | Path, device: str = "cpu") -> Saved:
    """Load what ``oneofmany.load`` loads, for answers only: on a CPU an equivariant network does without PyTorch."""
    path = oneofmany.weights_file(name)
    if device == "cpu":
        weights = read_weights(path, None, "numpy")
        problem = weights.problem
        rules = isinstance(problem, Problem) and not sum_kinds(problem) and problem.relation == "<"
        if weights.settings.kind == "equivariant" and rules:
            return load_for_cpu(path)
    return oneofmany.load(path, device=device)


def bundled(task: str) -> Path:
    """Return the path of a task's bundled network; the file may not exist."""
    return Path(oneofmany.__file__).parent / "weights" / f"{task}.safetensors"


def abilities(saved: Saved) -> tuple[bool, bool]:
    """Return whether a network starts from noise, and whether it can stop early."""
    if isinstance(saved, SavedCpuNetwork):
        return True, True
    from oneofmany.networks.protocol import arguments_of

    takes = arguments_of(saved.network)
    return "noise" in takes, takes.issuperset(("steps", "state", "return_state", "every_step"))


def threads_for(saved: Saved) -> int:
    """Return the number of threads for many queries: the idle cores, or one where PyTorch would round differently."""
    return idle_cores() if engine_of(saved) is not None else 1


def engine_of(saved: Saved) -> CpuNetwork | None:
    """Return the network without PyTorch: of an equivariant network in float32 on a CPU, None of any other."""
    if isinstance(saved, SavedCpuNetwork):
        return saved.network
    import torch

    from oneofmany.networks.equivariant import EquivariantNetwork

    network = saved.network
    if type(network) is not EquivariantNetwork or "forward" in vars(network):  # a network whose formulas were changed
        return None
    if any(one._forward_hooks or one._forward_pre_hooks for one in network.modules()):
        return None
    tensors = network.state_dict()
    if any(one.device.type != "cpu" or one.dtype != torch.float32 for one in tensors.values()):
        return None
    block = network.step.block
    if block.sums:  # rules with weights and bounds need PyTorch
        return None
    return CpuNetwork(
        {name: one.numpy() for name, one in tensors.items()},
        kinds=block.kinds,
        relation_kind=block.relation_kind,
        inequalities=network.inequalities,
        steps=network.steps,
        trained=f"{saved.task} {saved.size}",
    )


class Running:
    """A network at work on queries of one problem; each batch draws the next noise.

    Args:
        saved: the network.
        problem: the problem of all queries.
        steps: at most this many steps; None for a network without steps.
        patience: stop a query after this many steps without a change of its answer; None never stops early.
        choose: which of several starts answers.
        seed: of the noise.
        threads: number of CPU threads.
        stop: called every ``patience`` steps; True ends all queries with the answers that they have.
    """

    def __init__(
        self,
        saved: Saved,
        problem: Problem,
        *,
        steps: int | None,
        patience: int | None,
        choose: StartCriterion,
        seed: int,
        threads: int,
        stop: Callable[[], bool],
    ) -> None:
        self.saved, self.problem, self.steps, self.patience, self.stop = saved, problem, steps, patience, stop
        self.choose: StartCriterion = choose
        self.threads, self.engine = threads, engine_of(saved) if problem.relation == "<" else None
        self.noise: Any = None
        if self.engine is not None:
            self.noise = Noise(seed)
        elif abilities(saved)[0]:
            import torch

            self.noise = torch.Generator().manual_seed(seed)

    def predict(self, queries: Sequence[Query], starts: int = 1) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the chosen start's logits float32 [B, R, classes] and residuals float32 [B], both of its last step."""
        if self.engine is None:
            return self._with_torch(queries, starts)
        made = predict_on_cpu(
            self.engine,
            self.problem,
            *stacked(queries),
            steps=self.steps,
            starts=starts,
            noise=self.noise,
            choose=self.choose,
            patience=self.patience,
            threads=self.threads,
            stop=self.stop,
        )
        return made.logits, made.residual

    def _with_torch(self, queries: Sequence[Query], starts: int) -> tuple[np.ndarray, np.ndarray | None]:
        import torch

        from oneofmany.networks.inference import predict
        from oneofmany.problems import Batch

        assert not isinstance(self.saved, SavedCpuNetwork)
        device = next(self.saved.network.parameters()).device
        values, relations = (torch.from_numpy(array.astype(np.int64)).to(device) for array in stacked(queries))
        none = torch.zeros(len(queries), 0, device=device)
        batch = Batch(
            query=values,
            solutions=none[..., None].expand(-1, -1, self.problem.variables).long(),
            mask=none.bool(),
            total=torch.full((len(queries),), -1, device=device),
            problem=self.problem,
            relations=relations if relations.shape[1] else None,
        )
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            made = predict(
                self.saved.network,
                batch,
                steps=self.steps,
                starts=starts,
                generator=self.noise,
                choose=self.choose,
                patience=self.patience,
                stop=self.stop,
            )
        finally:
            torch.set_num_threads(before)
        residual = None if made.residual is None else made.residual.float().cpu().numpy()
        return made.logits.float().cpu().numpy(), residual
