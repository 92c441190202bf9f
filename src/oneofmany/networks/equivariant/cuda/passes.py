"""What both ways to run all steps have in common: what a pass holds, and the gradients of the weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from oneofmany.networks.equivariant.cuda.compiled import Kernels, KernelTables, KernelWeights, stage_memory

TYPE = torch.bfloat16
ROWS = 4096
"""The least number of rows in a partial sum of weight gradients."""


class Pass:
    """One forward pass and, if its tensors are kept, its backward pass.

    Args:
        kernels: for these widths.
        weights: the network's, of which ``arranged`` is made.
        arranged: for the kernels.
        tables: for the kernels.
        steps: number of steps.
        keep: whether there is a backward pass.
        every_step: whether to return the logits of all steps.
    """

    states: Tensor
    pooled: Tensor
    query: Tensor
    gate: Tensor

    def __init__(
        self,
        kernels: Kernels,
        weights: Sequence[Tensor],
        arranged: KernelWeights,
        tables: KernelTables,
        steps: int,
        keep: bool,
        every_step: bool,
    ) -> None:
        self.choice, self.bias, self.rule, *_ = weights
        self.device = self.choice.device
        self.widths = self.choice.shape[1], self.rule.shape[1] // 2, self.rule.shape[2] // 2
        self.kernels, self.weights, self.tables = kernels, arranged, tables
        self.steps, self.keep, self.every_step = steps, keep, every_step

    def new(self, *shape: int, dtype: torch.dtype = TYPE) -> Tensor:
        """Return a tensor that is not filled."""
        return torch.empty(shape, device=self.device, dtype=dtype)

    def weight_gradients(
        self, grad_sent: Tensor, grad_moved: Tensor, grad_answers: Tensor, grad_logits: Tensor, together: int
    ) -> tuple[Tensor, ...]:
        """Return the gradients of the query and the weights, as products over all rows of all steps.

        The query's gradient is [C * B, D].

        Args:
            grad_sent: [T, .., P], of what a choice sends to its rules.
            grad_moved: [T, .., D], of what is added to its state.
            grad_answers: [T * G, B, 2H], of the rules' answers, sorted by kinds as ``pooled``.
            grad_logits: [T, ..].
            together: the number of rows that follow on each other: C if rows are [B, C], all if they are [C, B].
        """
        D, P, H = self.widths
        OUT = P + 2 * H
        steps, rows = len(grad_sent), self.query.numel() // D
        grad_query = self.new(rows, D)
        span = self.kernels.span
        blocks = self.kernels.blocks("weight_sums", 8 * -(-rows // span))
        sizes = OUT * D, D * H, OUT, D, 128 // D * D
        sums = self.new(blocks, sum(sizes), dtype=torch.float32)
        given = grad_sent, grad_moved, self.gate, self.states, self.query, grad_logits, self.weights.sums
        memory = stage_memory(self.widths, span)
        self.kernels.launch("weight_sums", blocks, *given, grad_query, sums, rows, together, steps, memory=memory)
        grad_choice, grad_update, grad_bias, grad_update_bias, grad_readout = sums.sum(0).split(sizes)
        grad_rule = torch.zeros(self.rule.shape, device=self.device)
        # Not index_add_, which adds in no fixed order on a GPU.
        counts = [steps * count for _, count in self.tables.counts]
        of_kinds = (part.split(counts) for part in (self.pooled, grad_answers))
        for (kind, _), pooled, answers in zip(self.tables.counts, *of_kinds, strict=True):
            grad_rule[kind] += outer(pooled.unflatten(0, (steps, -1)), answers.unflatten(0, (steps, -1)))
        return (
            grad_query,
            grad_choice.view(OUT, D),
            grad_bias,
            grad_rule,
            grad_update.view(D, H),
            grad_update_bias,
            grad_readout.view(-1, D).sum(0),
        )


def tiles_of(items: int, B: int) -> int:
    """Return the number of tiles, as in the kernels: 16 queries of one item, or of several if there are fewer."""
    return -(-items * B // 16) if B < 16 else items * -(-B // 16)


def outer(a: Tensor, b: Tensor) -> Tensor:
    """Return float32 [m, n], the sum over all rows of a[.., m] * b[.., n]; in parts, and in a fixed order."""
    a, b = a.flatten(1, -2), b.flatten(1, -2)  # [T, rows, m] and [T, rows, n]
    parts = next(n for n in range(max(1, a.shape[1] // ROWS), 0, -1) if a.shape[1] % n == 0)
    a, b = (x.view(len(x) * parts, -1, x.shape[-1]) for x in (a, b))  # no copy
    return torch.bmm(a.mT, b).sum(0, dtype=torch.float32)
