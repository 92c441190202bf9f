"""All steps of an equivariant network on a CPU, with their gradient: the formulas of ``plain`` in compiled kernels.

A few queries run all steps at a time, so that what they need stays in the cache. For the gradient only the states
before every step are kept; everything else is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from threading import Barrier
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from oneofmany.networks.equivariant.cpu_steps import ROWS, Layers, Round, product
from oneofmany.networks.equivariant.cpu_tables import RuleRows
from oneofmany.networks.equivariant.tables import RuleTables

LANES = 8
"""At most this many parts of a batch run at once. Their number does not depend on the number of threads and each adds
up its own gradients, so a batch gives the same bits with any number of threads."""


def run_steps(
    step: nn.Module,
    state: Tensor,
    query: Tensor,
    tables: RuleTables,
    steps: int,
    every_step: bool,
    told: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return logits [T, C, B] (T = 1 if not every_step) and the last state [C, B, width], as ``steps.run_steps``.

    ``told`` [C, B, 2 * hidden] is what rules with weights and bounds tell the choices, at every step the same.
    """
    block: Any = step.block
    used = {name: one for name, one in step.named_parameters() if name != "block.sum"}
    plan = _Plan(tuple(used), block.kinds, tables, steps, every_step)
    parameters = tuple(used.values())
    asks = (state, query, *parameters) if told is None else (state, query, told, *parameters)
    if torch.is_grad_enabled() and any(one.requires_grad for one in asks):
        return _Steps.apply(plan, state, query, told, *parameters)  # pyright: ignore[reportReturnType]
    logits, last, _ = _forward(plan, state, query, told, parameters, keep=False)
    return logits, last


@dataclass(frozen=True, eq=False)
class _Rules:
    """The rules of a batch as the kernels take them, and ``back``, float32 [S, G, W]: ``spread`` for their choices."""

    rows: RuleRows
    back: np.ndarray


_RULES: WeakKeyDictionary[RuleTables, _Rules] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class _Plan:
    """What the passes of a call share.

    Outside, tensors are [N, K, ..]: the choices of all blocks, and K columns. Inside, arrays are [Q, C, ..], with a
    query for every block and column, so Q = blocks * K.

    Args:
        names: the names of the parameters of the step.
        kinds: the kinds of rules that it has weights for.
        tables: the rules of the batch.
        steps: T, the number of steps.
        every_step: whether the logits of all steps are wanted.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    tables: RuleTables
    steps: int
    every_step: bool

    def layers(self, parameters: Sequence[Tensor]) -> Layers:
        arrays = (one.detach().numpy() for one in parameters)
        return Layers(dict(zip(self.names, arrays, strict=True)), self.kinds, None)

    def rules(self) -> _Rules:
        if self.tables not in _RULES:
            _RULES[self.tables] = _rules_of(self.tables)
        return _RULES[self.tables]

    def inside(self, x: Tensor) -> np.ndarray:
        """[.., N, K, D] as a new array [.., Q, C, D]."""
        blocks = x.detach().unflatten(-3, (self.tables.blocks, -1)).transpose(-2, -3)
        return np.array(blocks.flatten(-4, -3).numpy(), order="C")

    def outside(self, array: np.ndarray) -> Tensor:
        """[.., Q, C, D] as a tensor [.., N, K, D]."""
        blocks = torch.from_numpy(array).unflatten(-3, (self.tables.blocks, -1)).transpose(-2, -3)
        return blocks.flatten(-4, -3)

    def structures(self, queries: int) -> np.ndarray:
        """The structure int32 [Q] of every query."""
        blocks = self.tables.blocks
        return np.repeat(np.arange(blocks, dtype=np.int32), queries // blocks)


class _Steps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, plan: _Plan, state: Tensor, query: Tensor, told: Tensor | None, *parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        logits, last, ctx.states = _forward(plan, state, query, told, parameters, keep=True)
        ctx.plan = plan
        ctx.save_for_backward(query, told, *parameters)
        return logits, last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        query, told, *parameters = ctx.saved_tensors
        inputs, of_parameters = _backward(ctx.plan, ctx.states, query, told, parameters, *grad_outputs)
        return None, *inputs, *of_parameters


def _forward(
    plan: _Plan, state: Tensor, query: Tensor, told: Tensor | None, parameters: Sequence[Tensor], keep: bool
) -> tuple[Tensor, Tensor, np.ndarray]:
    """Logits, the last state and, if they are to be kept, the states before every step: [T, Q, C, D]."""
    from oneofmany.networks.equivariant import cpu_kernels as kernels

    states, asked = plan.inside(state), plan.inside(query)
    added = None if told is None else plan.inside(told)
    Q, C, D = states.shape
    T, layers, rules, structures = plan.steps, plan.layers(parameters), plan.rules(), plan.structures(Q)
    made = np.empty((T if plan.every_step else 1, Q, C), np.float32)
    kept = np.empty((T if keep else 0, Q, C, D), np.float32)

    def lane(groups: Sequence[slice]) -> None:
        own = Round(layers, rules.rows, C, _slots(Q, C))
        logits = np.empty((_slots(Q, C), C), np.float32)
        for group in groups:
            now, about = states[group].reshape(-1, D), asked[group].reshape(-1, D)
            slots = group.stop - group.start
            own.at[:slots] = structures[group]
            np.add(now, about, out=own.x[: len(now)])
            for t in range(T):
                if keep:
                    kept[t, group] = states[group]
                own.speak(slots)
                _tell(own, layers, added, group)
                own.listen(slots)
                kernels.normalise(
                    now, own.change, layers.update_bias, about, own.x, layers.readout, logits, slots, C, D
                )
                if plan.every_step or t == T - 1:
                    made[t if plan.every_step else 0, group] = logits[:slots]

    _in_lanes(lane, Q, C)
    return plan.outside(made[..., None])[..., 0], plan.outside(states), kept


def _backward(
    plan: _Plan,
    states: np.ndarray,
    query: Tensor,
    told: Tensor | None,
    parameters: Sequence[Tensor],
    of_logits: Tensor,
    of_last: Tensor,
) -> tuple[list[Tensor | None], list[Tensor]]:
    """The gradients of the first state [N, K, D], of the query, of what is told, and of the parameters."""
    from oneofmany.networks.equivariant import cpu_backward as kernels

    T, Q, C, D = states.shape
    layers, rules, structures = plan.layers(parameters), plan.rules(), plan.structures(Q)
    members, sizes = rules.rows.members, rules.rows.sizes
    P, H = layers.pooled, layers.hidden
    rule_back = {kind: np.ascontiguousarray(weight.T) for kind, weight in layers.rule.items()}
    choice_back, update_back = np.ascontiguousarray(layers.choice.T), np.ascontiguousarray(layers.update.T)
    asked, given = plan.inside(query), plan.inside(of_logits[..., None])[..., 0]
    of_states, of_query = plan.inside(of_last), np.zeros((Q, C, D), np.float32)
    added = None if told is None else plan.inside(told)
    of_told = None if added is None else np.zeros_like(added)
    silent = np.zeros((_slots(Q, C), C), np.float32)  # of a step whose logits were not asked for

    def lane(groups: Sequence[slice]) -> dict[str, Tensor]:
        own = Round(layers, rules.rows, C, _slots(Q, C))
        of_x, of_out, of_hidden = np.zeros_like(own.x), np.zeros_like(own.out), np.zeros_like(own.hidden)
        of_pooled, of_said = np.zeros_like(own.pooled), np.zeros_like(own.said)
        sums = {name: torch.zeros_like(one) for name, one in zip(plan.names, parameters, strict=True)}
        of_bias, of_update_bias, of_readout = (
            sums[name].numpy() for name in ("block.choice.bias", "block.update.bias", "readout")
        )
        grad = np.zeros_like(own.x)
        for group in groups:
            slots = group.stop - group.start
            rows = slots * C
            own.at[:slots] = structures[group]
            about, total = asked[group].reshape(rows, D), of_query[group].reshape(rows, D)
            grad[:rows] = of_states[group].reshape(rows, D)
            for t in reversed(range(T)):
                before = states[t, group].reshape(rows, D)
                np.add(before, about, out=own.x[:rows])
                own.speak(slots)
                _tell(own, layers, added, group)
                own.listen(slots)
                of_step = given[t, group] if plan.every_step else given[0, group] if t == T - 1 else silent
                kernels.normalise_back(
                    before, own.change, layers.update_bias, layers.readout, of_step, grad, of_update_bias, of_readout,
                    slots, C, D,
                )  # fmt: skip
                _add_product(sums["block.update.weight"], grad, own.hidden, rows)
                product(grad, update_back, of_hidden, rows)
                kernels.gate_back(own.out, of_hidden, of_out, of_bias, rows, P, H)
                if of_told is not None:
                    of_told[group] += of_out[:rows, P:].reshape(slots, C, -1)
                kernels.collect(of_out, own.at, members, sizes, rules.back, own.first, own.stride, of_said, slots, C, P)
                for row, count, kind in own.parts:
                    weight = sums["block.rule"][plan.kinds.index(kind)]
                    _add_product(weight, own.pooled[row:], of_said[row:], slots * count)
                    product(of_said[row:], rule_back[kind], of_pooled[row:], slots * count)
                kernels.pool_back(
                    own.out, own.at, members, sizes, own.first, own.stride, layers.spoken_bias, own.pooled, of_pooled,
                    of_out, of_bias, slots, C, P,
                )  # fmt: skip
                _add_product(sums["block.choice.weight"], of_out, own.x, rows)
                product(of_out, choice_back, of_x, rows)
                grad[:rows] += of_x[:rows]
                total += of_x[:rows]
            of_states[group] = grad[:rows].reshape(slots, C, D)
        return sums

    lanes = _in_lanes(lane, Q, C)
    of_parameters = [torch.stack([sums[name] for sums in lanes]).sum(0) for name in plan.names]
    inputs = (of_states, of_query, of_told)
    return [None if one is None else plan.outside(one) for one in inputs], of_parameters


def _tell(own: Round, layers: Layers, added: np.ndarray | None, group: slice) -> None:
    """Add what is told from outside [Q, C, 2H] to the choices' own parts."""
    if added is not None:
        told = added[group].reshape(-1, added.shape[-1])
        own.out[: len(told), layers.pooled :] += told


def _add_product(total: Tensor, left: np.ndarray, right: np.ndarray, rows: int) -> None:
    """Add left.T @ right, of the first rows, to ``total``."""
    total.addmm_(torch.from_numpy(left[:rows]).t(), torch.from_numpy(right[:rows]))


def _slots(Q: int, C: int) -> int:
    """How many queries run together."""
    return max(1, min(Q, ROWS // C))


def _in_lanes(lane: Callable[[Sequence[slice]], Any], Q: int, C: int) -> list[Any]:
    """Call ``lane`` with the groups of every lane, on as many threads as PyTorch has, and return what it returned."""
    slots = _slots(Q, C)
    groups = [slice(first, min(first + slots, Q)) for first in range(0, Q, slots)]
    shares = [groups[place::LANES] for place in range(min(LANES, len(groups)))]
    threads = min(torch.get_num_threads(), len(shares))
    if threads == 1:
        return [lane(share) for share in shares]
    return list(_pool(threads).map(lane, shares))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads in which a product of PyTorch takes one thread."""
    before = torch.get_num_threads()
    ready = Barrier(threads)
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    list(pool.map(lambda _: ready.wait(), range(threads)))
    torch.set_num_threads(before)  # for threads of others, which take over what was set last
    return pool


def _rules_of(tables: RuleTables) -> _Rules:
    """Choices and rules of every block are counted from its own first ones."""
    from oneofmany.networks.equivariant.cpu_kernels import AT_ONCE

    S, spread = tables.blocks, tables.spread
    C, counts = len(tables.rules) // S, [count // S for _, count in tables.kinds]
    # The rules of a kind are together, in the order of the blocks: their places inside a block, [S, G].
    ends = np.cumsum([0, *(count for _, count in tables.kinds)])
    of_block = np.concatenate(
        [first + np.arange(S * count).reshape(S, count) for first, count in zip(ends, counts, strict=False)], 1
    )
    place = np.zeros(ends[-1], np.int32)
    place[of_block] = np.arange(of_block.shape[1])
    members = (tables.members.numpy()[of_block] - C * np.arange(S)[:, None, None]).clip(0)
    back = spread.back_weight.numpy()[of_block]
    sizes = np.where((back > 0).any(-1), tables.real.sum(1).numpy()[of_block], 0)  # 0: padding
    padding = (0, -spread.index.shape[1] % AT_ONCE)
    index, weight = (
        nn.functional.pad(one, padding).unflatten(0, (S, C)).numpy() for one in (spread.index, spread.weight)
    )
    rows = RuleRows(
        tuple((name, count) for (name, _), count in zip(tables.kinds, counts, strict=True)),
        members.astype(np.int32),
        sizes.astype(np.int32),
        place[index],
        weight,
    )
    return _Rules(rows, back)
