"""All steps of the equivariant network as CUDA kernels, for bfloat16 on a GPU.

It computes the same function as ``steps.Step``, which is the reference. If a query's choices and rules fit into the
shared memory of a block, one kernel takes whole queries through all steps and another one back (``resident``).
Otherwise a step is two kernels: one over rules (pool, answer) and one over choices (gather the answers, update,
normalise, read out, send again). The backward pass has two more. Relations of a query add one kernel each way
(``stepwise``). The state accumulates in float32, products take bfloat16, and their inputs are kept in bfloat16 for
the backward pass. Weight gradients are products over all steps at the end (``weights.cu``).

The kernels are compiled when they are needed, by the compiler that comes with PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import repeat
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from oneofmany.networks.equivariant.cuda.compiled import Resident, kernels, resident_queries
from oneofmany.networks.equivariant.cuda.resident import ResidentPass
from oneofmany.networks.equivariant.cuda.stepwise import StepPass
from oneofmany.networks.equivariant.cuda.tables import kernel_relations, kernel_tables, kernel_weights
from oneofmany.networks.equivariant.tables import RelationTables, RuleTables

QUERIES = 512
"""Queries that run together if every step has its own kernels: more of them need more memory and are not faster."""


def run_steps(
    step: Any,
    state: Tensor,
    query: Tensor,
    tables: RuleTables,
    relations: RelationTables | None,
    steps: int,
    every_step: bool,
) -> tuple[Tensor, Tensor]:
    """Return logits [T, C, B] (T = 1, the last step's only, if not every_step) and the last state [C, B, width].

    Args:
        step: the network's ``Step``.
        state: float32 [C, B, width].
        query: the embedded query [C, B, width].
        tables: of the problem, or of all queries of the batch, one after the other.
        relations: of the batch, or None.
        steps: number of steps.
        every_step: whether to return the logits of all steps.
    """
    block = step.block
    weights = (block.choice.weight, block.choice.bias, block.rule, block.update.weight, block.update.bias, step.readout)
    keep = torch.is_grad_enabled()
    sizes = resident(step, state, tables, relations, keep)
    arranged = kernel_weights(*weights, resident=sizes is not None), kernel_tables(tables, block.kinds)
    made, together = [], QUERIES if sizes is None else state.shape[1]
    for begin, asked, some in zip(state.split(together, 1), query.split(together, 1), _split(relations), strict=False):
        related = None if some is None else kernel_relations(some, block, len(state))
        given = kernels(_widths(step), state.device), weights, *arranged, steps, keep, every_step or keep
        run = StepPass(related, *given) if sizes is None else ResidentPass(sizes, *given)
        logits, last = _Steps.apply(run, begin, asked, *weights) if keep else run.forward(begin, asked)
        made.append((logits if every_step else logits[-1:], last))
    if len(made) == 1:
        return made[0]
    return torch.cat([logits for logits, _ in made], 2), torch.cat([last for _, last in made], 1)


def resident(
    step: Any, state: Tensor, tables: RuleTables, relations: RelationTables | None, keep: bool
) -> Resident | None:
    """Return how blocks take whole queries through all steps; None if every step has its own kernels."""
    if relations is not None or kernel_tables(tables, step.block.kinds).whole is None:
        return None
    (C, B, _), (G, longest), widths = state.shape, tables.members.shape, _widths(step)
    here = kernels(widths, state.device)
    return resident_queries(widths, C, G, longest, B, here.multiprocessors, here.limit, keep)


def _widths(step: Any) -> tuple[int, int, int]:
    return step.block.width, step.block.pooled, step.block.hidden


def _split(relations: RelationTables | None) -> Iterable[RelationTables | None]:
    """The relations of the queries that run together."""
    if relations is None:
        return repeat(None)
    return (replace(relations, ends=ends) for ends in relations.ends.split(QUERIES))


class _Steps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, run: StepPass | ResidentPass, state: Tensor, query: Tensor, *_: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        ctx.run = run
        return run.forward(state, query)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor | None) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        gradients = ctx.run.backward(*grad_outputs)
        ctx.run = None
        return None, *gradients
