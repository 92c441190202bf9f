"""The equivariant network on a CPU, without PyTorch: the same formulas as ``plain``, for answers only.

Matrix products are NumPy's; what lies between them is compiled (``cpu_kernels``). A few queries are in work at a time,
so that their states stay in the cache, and the next query takes the place of one that has settled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oneofmany.networks.equivariant.cpu_steps import Features, Layers, Logits, Work, check_shapes, shapes
from oneofmany.networks.equivariant.cpu_tables import Tables, tables_of
from oneofmany.networks.equivariant.rules import refusal, sum_kinds, used_kinds
from oneofmany.networks.headers import OTHERWISE, Weights, read_weights
from oneofmany.networks.settings import Inequalities, NetworkSettings, Readout
from oneofmany.problems import Problem, SequenceProblem
from oneofmany.tensor_files import explained


@dataclass(frozen=True, eq=False)
class SavedCpuNetwork:
    """What ``networks.saved.SavedNetwork`` is for a network of PyTorch: a ``CpuNetwork`` and the header of its file."""

    network: CpuNetwork
    settings: NetworkSettings
    task: str
    size: int
    card: dict[str, Any]


class CpuNetwork:
    """An equivariant network as arrays.

    Args:
        tensors: the arrays of ``EquivariantNetwork.state_dict()``.
        kinds: the kinds of rules that it has weights for.
        relation_kind: the kind of a query's relations among them, or None.
        inequalities: its input form of relations.
        steps: its number of steps.
        trained: the task and size that it was trained on.
        sums: the kinds of rules with weights and bounds that it has weights for.
    """

    readout: Readout = "argmax"
    value_offset = 0

    def __init__(
        self,
        tensors: Mapping[str, np.ndarray],
        *,
        kinds: Sequence[str],
        relation_kind: str | None,
        inequalities: Inequalities,
        steps: int,
        trained: str,
        sums: Sequence[str] = (),
    ) -> None:
        self.kinds, self.sums, self.steps, self._trained = tuple(kinds), tuple(sums), steps, trained
        self.inequalities: Inequalities = inequalities
        of_step = {name.removeprefix("step."): array for name, array in tensors.items() if name.startswith("step.")}
        self.layers = Layers(of_step, self.kinds, relation_kind, self.sums)
        self.embed = np.ascontiguousarray(tensors["embed.weight"].T, np.float32)
        self.embed_bias = np.ascontiguousarray(tensors["embed.bias"], np.float32)

    @classmethod
    def of(cls, weights: Weights) -> CpuNetwork:
        """Return the network of a weights file that was read with NumPy."""
        settings, problem = weights.settings, weights.problem
        if settings.kind != "equivariant" or isinstance(problem, SequenceProblem):
            raise ValueError(f"kind: expected an equivariant network, got {settings.kind!r}")
        kinds, relation_kind = used_kinds(problem, settings.inequalities)
        sums, width = sum_kinds(problem), settings.width
        own = shapes(width, width, settings.hidden or width, len(kinds), len(sums))
        embedding = {"embed.weight": (width, 4 if settings.inequalities == "flags" else 2), "embed.bias": (width,)}
        check_shapes(weights.tensors, {f"step.{name}": shape for name, shape in own.items()} | embedding)
        return cls(
            weights.tensors,
            kinds=kinds,
            relation_kind=relation_kind,
            inequalities=settings.inequalities,
            steps=settings.steps,
            trained=f"{problem.task} {problem.size}",
            sums=sums,
        )

    def accepts(self, problem: Problem, relations: np.ndarray | None = None) -> str | None:
        """Return None for problems whose kinds of rules the network has weights for, else the reason."""
        return refusal(problem, relations, self.kinds, self.inequalities, self._trained, self.sums)

    def run(
        self,
        problem: Problem | Sequence[Problem],
        queries: np.ndarray,
        relations: np.ndarray | None = None,
        *,
        noise: np.ndarray | None = None,
        steps: int | None = None,
        patience: int | None = None,
        threads: int = 1,
        stop: Callable[[], bool] | None = None,
        tables: tuple[Tables, np.ndarray | None] | None = None,
    ) -> Logits:
        """Run the steps on every query; a query stops as in ``networks.inference.predict``.

        Args:
            problem: the problem of all queries, or that of each; they have the same numbers of variables and values.
            queries: integers [B, R], 0 = blank, 1..V = given.
            relations: integers [B, M, 2], pairs a < b or a != b, -1 for padding. Queries with a problem each have no
                relations a < b.
            noise: float [B, C]; zeros by default.
            steps: number of steps; the network's own by default.
            patience: stop a query after this many steps without a change of its answer; None or 0 runs all steps.
            threads: number of threads; each takes its own queries.
            stop: called after every step; True ends all queries with the answers that they have. Each has run
                at least one step.
            tables: from ``tables_of`` for the same queries; they are made if None.
        """
        B = len(queries)
        problems = [problem] * max(B, 1) if isinstance(problem, Problem) else problem
        for one in dict.fromkeys(problems):
            if why := self.accepts(one, relations):
                raise ValueError(why)
        steps = self.steps if steps is None else steps
        for name, value in {"steps": steps, "threads": threads}.items():
            if value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        if patience is not None and patience < 0:
            raise ValueError(f"patience: expected at least 0, got {patience}")
        made_of, structure = tables or tables_of(problems, relations)
        C = made_of.choices
        made = Logits(np.empty((B, C), np.float32), np.empty((B, C), np.float32), np.zeros(B, np.int64))
        ordered = relations if problems[0].relation == "<" else None
        features = Features(made_of.values, np.asarray(queries), ordered, noise, self.embed, self.embed_bias, structure)

        def part(rows: range) -> None:
            Work(self.layers, made_of, features, len(rows)).answer(rows, steps, patience, made, stop)

        shares = [range(first, B, threads) for first in range(min(threads, B))]
        if len(shares) > 1:
            with ThreadPoolExecutor(len(shares)) as pool:
                list(pool.map(part, shares))
        else:
            for rows in shares:
                part(rows)
        shape = (B, made_of.variables, made_of.values)
        before = made.before.reshape(shape) if made.before is not None and steps > 1 else None
        return Logits(made.last.reshape(shape), before, made.steps)


def load_for_cpu(path: str | Path, problem: Problem | None = None) -> SavedCpuNetwork:
    """Read an equivariant network from a weights file; a task of your own needs its ``problem``."""
    weights = read_weights(path, problem, "numpy")
    with explained(path, OTHERWISE):
        network = CpuNetwork.of(weights)
    return SavedCpuNetwork(network, weights.settings, weights.task, weights.size, weights.card)
