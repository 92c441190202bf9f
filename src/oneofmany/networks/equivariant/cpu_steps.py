"""Steps of the equivariant network on a CPU over a few queries at a time, and what they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oneofmany.networks.equivariant.cpu_tables import RuleRows, Tables
from oneofmany.networks.equivariant.rules import FEATURES

BLOCK = 12
"""Rows of one matrix product. BLAS runs a product this small in one thread, at its full speed."""
ROWS = 1024
"""About how many choices are in work at a time."""


@dataclass(frozen=True, eq=False)
class Logits:
    """What the steps made of B queries.

    Args:
        last: float32 [B, R, V], of the last step.
        before: float32 [B, R, V], of the step before; None after a single step.
        steps: int64 [B], steps run.
    """

    last: np.ndarray
    before: np.ndarray | None
    steps: np.ndarray


class Layers:
    """The weights of a step as the products take them, from the arrays of ``Step.state_dict()``."""

    def __init__(
        self,
        tensors: Mapping[str, np.ndarray],
        kinds: Sequence[str],
        relation_kind: str | None,
        sums: Sequence[str] = (),
    ) -> None:
        given = {name: np.ascontiguousarray(array, np.float32) for name, array in tensors.items()}
        D, H = given["block.update.weight"].shape
        P = given["block.rule"].shape[1] // 2
        check_shapes(given, shapes(D, P, H, len(kinds), len(sums)))
        self.width, self.pooled, self.hidden = D, P, H
        self.choice = np.ascontiguousarray(given["block.choice.weight"].T)
        self.spoken_bias, self.own_bias = (part.copy() for part in np.split(given["block.choice.bias"], [P]))
        self.rule = dict(zip(kinds, given["block.rule"], strict=True))
        self.sum = dict(zip(sums, given["block.sum"], strict=True)) if sums else {}
        self.related = None if relation_kind is None else self.rule[relation_kind]
        self.update = np.ascontiguousarray(given["block.update.weight"].T)
        self.update_bias, self.readout = given["block.update.bias"], given["readout"]


def shapes(D: int, P: int, H: int, kinds: int, sums: int = 0) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors of a step of these widths and numbers of kinds."""
    of_sums = {"block.sum": (sums, FEATURES, 2 * H)} if sums else {}
    return of_sums | {
        "block.choice.weight": (P + 2 * H, D),
        "block.choice.bias": (P + 2 * H,),
        "block.rule": (kinds, 2 * P, 2 * H),
        "block.update.weight": (D, H),
        "block.update.bias": (D,),
        "readout": (D,),
    }


def check_shapes(tensors: Mapping[str, np.ndarray], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ValueError unless the tensors have exactly these names and shapes."""
    for name in [*expected, *(name for name in tensors if name not in expected)]:
        found = tensors[name].shape if name in tensors else None
        if found != expected.get(name):
            raise ValueError(f"{name}: expected {expected.get(name)}, got {found}")


@dataclass(frozen=True, eq=False)
class Features:
    """The inputs of B queries.

    Args:
        values: V, the number of values.
        queries: integers [B, R], 0 = blank.
        relations: integers [B, M, 2], pairs a < b, -1 for padding; None if there are none.
        noise: float [B, C]; None for zeros.
        weight: float32 [features, D], which embeds the features of a choice: given, noise, and with flags "larger"
            and "smaller".
        bias: float32 [D].
        structure: int32 [B], the structure of every query; None if they share one.
    """

    values: int
    queries: np.ndarray
    relations: np.ndarray | None
    noise: np.ndarray | None
    weight: np.ndarray
    bias: np.ndarray
    structure: np.ndarray | None = None

    def embedded(self, row: int) -> np.ndarray:
        """Return float32 [C, D] of one query."""
        R, V = self.queries.shape[1], self.values
        made = np.zeros((R, V, len(self.weight)), np.float32)
        made[..., 0] = self.queries[row][:, None] == np.arange(1, V + 1)
        if self.noise is not None:
            made[..., 1] = self.noise[row].reshape(R, V)
        if len(self.weight) == 4 and self.relations is not None:
            a, b = self.relations[row].T
            made[b[b < a], :, 2] = 1
            made[a[a < b], :, 3] = 1
        return made.reshape(R * V, -1) @ self.weight + self.bias


class Round:
    """One round over the rules for the queries in some slots, without the update of their states; its buffers.

    Args:
        layers: the weights.
        rows: the rules.
        choices: C, the number of choices of a query.
        slots: the most queries at a time.
    """

    def __init__(self, layers: Layers, rows: RuleRows, choices: int, slots: int) -> None:
        D, P, H = layers.width, layers.pooled, layers.hidden
        self.layers, self.rules, self.choices = layers, rows, choices
        self.rows = -(-slots * choices // BLOCK) * BLOCK  # of the buffers: rows of choices are slot * C + choice
        self.x, self.change = (np.zeros((self.rows, D), np.float32) for _ in range(2))
        self.out, self.hidden = np.zeros((self.rows, P + 2 * H), np.float32), np.zeros((self.rows, H), np.float32)
        self.at = np.zeros(slots, np.int32)  # the structure in each slot
        G = rows.sizes.shape[1]
        self.first, self.stride = np.zeros(G, np.int32), np.zeros(G, np.int32)
        self.parts: list[tuple[int, int, str]] = []  # of each kind the first row, the rows of a query, and its name
        rule = row = 0
        for kind, count in rows.kinds:
            self.first[rule : rule + count] = row + np.arange(count)
            self.stride[rule : rule + count] = count
            self.parts.append((row, count, kind))
            rule, row = rule + count, row + -(-slots * count // BLOCK) * BLOCK
        self.pooled, self.said = np.zeros((row, 2 * P), np.float32), np.zeros((row, 2 * H), np.float32)

    def speak(self, slots: int) -> None:
        """The choices of the first slots speak (``x`` -> ``out``), and their rules answer (``said``)."""
        from oneofmany.networks.equivariant import cpu_kernels as kernels

        n, t = self.layers, self.rules
        product(self.x, n.choice, self.out, slots * self.choices)
        kernels.pool(
            self.out, self.at, t.members, t.sizes, self.first, self.stride, n.spoken_bias, self.pooled, slots,
            self.choices, n.pooled,
        )  # fmt: skip
        for row, count, kind in self.parts:
            product(self.pooled[row:], n.rule[kind], self.said[row:], slots * count)

    def listen(self, slots: int) -> None:
        """The choices of the first slots add up the answers and open their gates; what moves their states: ``change``.

        Their own parts of ``out`` become the inputs of the gates.
        """
        from oneofmany.networks.equivariant import cpu_kernels as kernels

        n, t = self.layers, self.rules
        kernels.gate(
            self.out, self.said, self.at, t.rules, t.spread, self.first, self.stride, n.own_bias, self.hidden, slots,
            self.choices, n.pooled, n.hidden,
        )  # fmt: skip
        product(self.hidden, n.update, self.change, slots * self.choices)


class Work:
    """The slots of one thread: the queries in work, and buffers for one step over them."""

    def __init__(self, layers: Layers, tables: Tables, features: Features, most: int) -> None:
        C, D, P, H = tables.choices, layers.width, layers.pooled, layers.hidden
        self.layers, self.tables, self.features = layers, tables, features
        self.slots = Q = max(1, min(most, ROWS // C))
        self.round = Round(layers, tables.rows, C, Q)
        self.state, self.query = (np.zeros((self.round.rows, D), np.float32) for _ in range(2))
        self.logits, self.before = (np.zeros((Q, C), np.float32) for _ in range(2))
        self.answers, self.changed = np.full((Q, tables.variables), -1, np.int32), np.zeros(Q, np.bool_)
        self.done, self.since = [0] * Q, [0] * Q  # steps run, and the step of the answer's last change

        relations = features.relations if layers.related is not None else None
        self.relations = None
        if relations is not None and relations.shape[1]:
            M = relations.shape[1]
            rows = -(-Q * M * tables.values // BLOCK) * BLOCK
            self.relations = np.full((Q, M, 2), -1, np.int32)
            self.related = np.zeros((rows, 2 * P), np.float32), np.zeros((rows, 2 * H), np.float32)
        if tables.sums is not None:
            self.said_by_sums = np.stack([layers.sum[kind] for kind in tables.sums.kinds])
            self.told = np.zeros((len(tables.sums.kinds), C, FEATURES), np.float32)

    def answer(
        self, rows: range, steps: int, patience: int | None, made: Logits, stop: Callable[[], bool] | None
    ) -> None:
        """Run the queries of these rows and write their logits into ``made``."""
        waiting, at, stopped = iter(rows), [], False  # ``at``: the row in each slot
        while True:
            while len(at) < self.slots and (row := next(waiting, None)) is not None:
                self._put(len(at), row)
                at.append(row)
            if not at:
                return
            self._step(len(at))
            stopped = stopped or (stop is not None and stop())
            for slot in range(len(at) - 1, -1, -1):
                self.done[slot] += 1
                done = self.done[slot]
                if self.changed[slot] or done == 1:
                    self.since[slot], self.changed[slot] = done, False
                settled = patience and done - self.since[slot] >= patience
                if settled or stopped or done == steps:
                    made.last[at[slot]], made.steps[at[slot]] = self.logits[slot], done
                    if made.before is not None:
                        made.before[at[slot]] = self.before[slot]
                    self._move(len(at) - 1, slot)
                    at[slot] = at[-1]
                    at.pop()

    def _rows(self, slot: int) -> slice:
        C = self.tables.choices
        return slice(slot * C, (slot + 1) * C)

    def _put(self, slot: int, row: int) -> None:
        """Start a query in a slot."""
        own = self._rows(slot)
        embedded = self.features.embedded(row)
        self.query[own] = self.state[own] = embedded
        self.round.x[own] = embedded + embedded
        self.done[slot] = 0
        if self.features.structure is not None:
            self.round.at[slot] = self.features.structure[row]
        if self.tables.sums is not None:
            self.logits[slot] = embedded @ self.layers.readout
        if self.relations is not None and self.features.relations is not None:
            self.relations[slot] = self.features.relations[row]

    def _move(self, source: int, target: int) -> None:
        """Move a query to another slot."""
        if source == target:
            return
        for array in (self.query, self.state, self.round.x):
            array[self._rows(target)] = array[self._rows(source)]
        for array in (self.logits, self.before, self.answers, self.changed, self.round.at, self.relations):
            if array is not None:
                array[target] = array[source]
        self.done[target], self.since[target] = self.done[source], self.since[source]

    def _step(self, slots: int) -> None:
        """Run one step of the first slots."""
        from oneofmany.networks.equivariant import cpu_kernels as kernels

        n, t, own = self.layers, self.tables, self.round
        C, V, D, P = t.choices, t.values, n.width, n.pooled
        own.speak(slots)
        if self.relations is not None and n.related is not None:
            pooled, said = self.related
            kernels.pool_relations(own.out, self.relations, n.spoken_bias, pooled, slots, C, V, P)
            product(pooled, n.related, said, slots * self.relations.shape[1] * V)
            kernels.spread_relations(said, self.relations, own.out, slots, C, V, P)
        if t.sums is not None:
            m = t.sums
            kernels.weigh(
                self.logits, own.at, m.rules, m.first, m.variable, m.weights, m.share, m.low, m.high, m.kind,
                self.told, self.said_by_sums, own.out, slots, C, V, P,
            )  # fmt: skip
        own.listen(slots)
        self.logits, self.before = self.before, self.logits
        kernels.normalise(self.state, own.change, n.update_bias, self.query, own.x, n.readout, self.logits, slots, C, D)
        kernels.watch(self.logits, self.answers, self.changed, slots, t.variables, V)


def product(left: np.ndarray, right: np.ndarray, out: np.ndarray, rows: int) -> None:
    """Write the first rows of left @ right, in blocks, into ``out``."""
    blocks = -(-rows // BLOCK)
    shape: Any = (blocks, BLOCK, -1)
    np.matmul(left[: blocks * BLOCK].reshape(shape), right, out=out[: blocks * BLOCK].reshape(shape))
