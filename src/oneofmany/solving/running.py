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
from oneofmany.networks.equivariant.cpu_tables import Tables, tables_of
from oneofmany.networks.headers import read_weights
from oneofmany.networks.noise import Noise, Noises
from oneofmany.networks.settings import StartCriterion
from oneofmany.problems import Problem, Query
from oneofmany.problems.own_rules import together
from oneofmany.solving.answers import stacked

if TYPE_CHECKING:
    from torch import Tensor

    from oneofmany.networks.saved import SavedNetwork
    from oneofmany.problems import Batch

Saved: TypeAlias = "SavedNetwork | SavedCpuNetwork"
"""A network of PyTorch, or one for the CPU alone."""


def load_network(name: str | Path, device: str = "cpu") -> Saved:
    """Load what ``oneofmany.load`` loads, for answers only: on a CPU an equivariant network does without PyTorch."""
    path = oneofmany.weights_file(name)
    if device == "cpu":
        weights = read_weights(path, None, "numpy")
        if weights.settings.kind == "equivariant":
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
    from oneofmany.networks.equivariant.steps import is_plain

    network = saved.network
    if type(network) is not EquivariantNetwork or not is_plain(network):
        return None
    tensors = network.state_dict()
    if any(one.device.type != "cpu" or one.dtype != torch.float32 for one in tensors.values()):
        return None
    block = network.step.block
    return CpuNetwork(
        {name: one.numpy() for name, one in tensors.items()},
        kinds=block.kinds,
        relation_kind=block.relation_kind,
        inequalities=network.inequalities,
        steps=network.steps,
        trained=f"{saved.task} {saved.size}",
        sums=block.sums,
    )


def mixes(saved: Saved) -> bool:
    """Return whether the network answers queries of several problems in one batch: an equivariant network does."""
    if isinstance(saved, SavedCpuNetwork):
        return True
    from oneofmany.networks.equivariant import EquivariantNetwork

    return type(saved.network) is EquivariantNetwork


class Running:
    """A network at work on queries. Each problem has its own noise: other problems do not change its answers.

    Args:
        saved: the network.
        steps: at most this many steps; None for a network without steps.
        patience: stop a query after this many steps without a change of its answer; None never stops early.
        choose: which of several starts answers.
        seed: of the noise.
        threads: number of CPU threads.
        stop: called after every step (every ``patience`` steps with PyTorch); True ends all queries with the answers
            that they have.
    """

    def __init__(
        self,
        saved: Saved,
        *,
        steps: int | None,
        patience: int | None,
        choose: StartCriterion,
        seed: int,
        threads: int,
        stop: Callable[[], bool],
    ) -> None:
        self.saved, self.steps, self.patience, self.stop = saved, steps, patience, stop
        self.choose: StartCriterion = choose
        self.seed, self.threads, self.engine = seed, threads, engine_of(saved)
        self.noisy = abilities(saved)[0]
        self.noises: dict[Problem, Any] = {}
        self._last: tuple[Sequence[Query], Any] | None = None

    def predict(self, queries: Sequence[Query], starts: int = 1) -> tuple[np.ndarray, np.ndarray | None]:
        """Return logits float32 [B, R, classes] and residuals float32 [B] of the chosen start's last step.

        The queries are a batch of ``answers.in_batches``.
        """
        if self.engine is None:
            return self._with_torch(queries, starts)
        problems, (values, relations) = [query.problem for query in queries], stacked(queries)
        tables: tuple[Tables, np.ndarray | None] = self._once(queries, lambda: tables_of(problems, relations))
        made = predict_on_cpu(
            self.engine,
            problems,
            values,
            relations,
            steps=self.steps,
            starts=starts,
            noise=Noises(self._noises(problems, Noise)),
            choose=self.choose,
            patience=self.patience,
            threads=self.threads,
            stop=self.stop,
            tables=tables,
        )
        return made.logits, made.residual

    def _noises(self, problems: Sequence[Problem], make: Callable[[int], Any]) -> list[tuple[Any, int]]:
        """The noise of every problem of a batch, made with the seed at first, and the number of its queries."""
        counts: dict[Problem, int] = {}
        for problem in problems:
            counts[problem] = counts.get(problem, 0) + 1
            if problem not in self.noises:
                self.noises[problem] = make(self.seed)
        return [(self.noises[problem], rows) for problem, rows in counts.items()]

    def _once(self, queries: Sequence[Query], make: Callable[[], Any]) -> Any:
        """What was made for these queries: several starts use it."""
        if self._last is None or self._last[0] is not queries:
            self._last = queries, make()
        return self._last[1]

    def _with_torch(self, queries: Sequence[Query], starts: int) -> tuple[np.ndarray, np.ndarray | None]:
        import torch

        from oneofmany.networks.inference import predict

        assert not isinstance(self.saved, SavedCpuNetwork)
        noises = self._noises([query.problem for query in queries], lambda seed: torch.Generator().manual_seed(seed))

        def draw(shape: tuple[int, ...]) -> Tensor:
            return torch.cat([torch.randn(rows, *shape[1:], generator=noise) for noise, rows in noises])

        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            made = predict(
                self.saved.network,
                self._once(queries, lambda: self._batch(queries)),
                steps=self.steps,
                starts=starts,
                generator=draw if self.noisy else None,
                choose=self.choose,
                patience=self.patience,
                stop=self.stop,
            )
        finally:
            torch.set_num_threads(before)
        residual = None if made.residual is None else made.residual.float().cpu().numpy()
        return made.logits.float().cpu().numpy(), residual

    def _batch(self, queries: Sequence[Query]) -> Batch:
        """A batch on the network's device. Queries with a problem each bring the rules in which these differ."""
        import torch

        from oneofmany.problems import Batch

        assert not isinstance(self.saved, SavedCpuNetwork)
        device = next(self.saved.network.parameters()).device
        values, relations = (torch.from_numpy(array.astype(np.int64)).to(device) for array in stacked(queries))
        places = {problem: place for place, problem in enumerate(dict.fromkeys(query.problem for query in queries))}
        problem, own, rows = queries[0].problem, None, None
        if len(places) > 1:
            problem, of_queries = together(list(places))
            own, rows = of_queries.to(device), torch.tensor([places[query.problem] for query in queries], device=device)
        none = torch.zeros(len(queries), 0, device=device)
        return Batch(
            query=values,
            solutions=none[..., None].expand(-1, -1, problem.variables).long(),
            mask=none.bool(),
            total=torch.full((len(queries),), -1, device=device),
            problem=problem,
            relations=relations if relations.shape[1] else None,
            own=own,
            rows=rows,
        )
