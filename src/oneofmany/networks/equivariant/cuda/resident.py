"""A pass in which blocks take whole queries through all steps: one kernel forward, one back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from oneofmany.networks.equivariant.cuda.compiled import Resident, parts_of
from oneofmany.networks.equivariant.cuda.passes import TYPE, Pass, tiles_of


class ResidentPass(Pass):
    """As ``Pass``. Inside, queries come first ([B, C, ..]), so that what a block reads and writes is in one place.

    Args:
        sizes: of a block.
        rest: as in ``Pass``.
    """

    def __init__(self, sizes: Resident, *rest: Any) -> None:
        super().__init__(*rest)
        assert self.tables.whole is not None
        self.sizes, self.whole = sizes, self.tables.whole

    def _launch(self, name: str, B: int, C: int, memory: int, width: int, *arguments: Tensor | int) -> None:
        """Launch a kernel; the second of its arguments is what blocks write and read again, ``width`` numbers a row."""
        first, *rest = arguments
        queries = self.sizes.queries
        blocks = self.kernels.blocks(name, -(-B // queries) * self.kernels.warps(name))
        between = self.new(blocks * tiles_of(C + 1, queries) * 16, width, dtype=torch.float32)
        self.kernels.launch(name, blocks, first, between, *rest, memory=memory)

    def forward(self, state: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [T, C, B] and the last state."""
        t, w, (_, P, H) = self.whole, self.weights, self.widths
        (C, B, D), G, slots = state.shape, len(t.near), self.steps if self.keep else 0
        parts = parts_of(self.tables.counts, 1, self.device)
        self.query = self.new(B, C, D)
        self.states = self.new(slots + self.keep, B, C, D)
        self.pooled, self.winners = self.new(slots * G, B, 2 * P), self.new(slots, B, G, P, dtype=torch.uint8)
        self.gate, self.scale = self.new(slots, B, C, 2 * H), self.new(slots, B, C, dtype=torch.float32)
        logits = self.new(self.steps if self.every_step else 1, B, C, dtype=torch.float32)
        last = self.new(B, C, D, dtype=torch.float32)
        self._launch(
            "resident_forward", B, C, self.sizes.forward, D,
            state.float().contiguous(), query.to(TYPE).contiguous(), self.query, last,
            t.near, t.longest, t.links, t.shares, t.homes, parts, len(parts), w.forward, w.numbers, w.answering,
            self.states, self.pooled, self.winners, self.gate, self.scale, logits,
            B, C, G, self.sizes.queries, self.sizes.half, self.steps, int(self.keep), int(self.every_step),
        )  # fmt: skip
        return logits.mT, last.transpose(0, 1)

    def backward(self, grad_logits: Tensor | None, grad_last: Tensor | None) -> tuple[Tensor, ...]:
        """Return the gradients of the state, the query and the weights; None are zeros."""
        t, w, steps, (_, P, H) = self.whole, self.weights, self.steps, self.widths
        (_, B, C, D), G = self.states.shape, len(t.near)
        parts = parts_of(self.tables.counts, 1, self.device)
        grad_state = self.new(C, B, D, dtype=torch.float32)
        if grad_last is not None:
            grad_state.copy_(grad_last)
        if grad_logits is None:
            grad_logits = torch.zeros(steps, C, B, device=self.device)
        grad_logits = grad_logits.mT.float().contiguous()
        grad_sent, grad_moved = self.new(steps, B, C, P), self.new(steps, B, C, D)
        grad_answers = self.new(steps * G, B, 2 * H)
        self._launch(
            "resident_backward", B, C, self.sizes.backward, D + H // 2,
            grad_state, grad_logits, self.scale, self.states, self.gate, self.winners, t.givers, t.scales,
            t.most, t.slots, t.homes, parts, len(parts), w.backward, w.numbers, w.returning,
            grad_sent, grad_moved, grad_answers,
            B, C, G, self.sizes.queries, self.sizes.of_choices, self.sizes.of_rules, steps, int(grad_last is not None),
        )  # fmt: skip
        grad_query, *of_weights = self.weight_gradients(grad_sent, grad_moved, grad_answers, grad_logits, C)
        return grad_state, grad_query.view(C, B, D), *of_weights
