"""The layers of the recurrent Transformer: they mix variables by attention or an MLP, then the channels of each."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from oneofmany.networks.settings import Mixing


class Attention(nn.Module):
    """Self-attention between the variables of a query; fused on a GPU."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"heads: expected a divisor of the width {width}, got {heads}")
        self.heads = heads
        self.inputs = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, R, width] from the same."""
        query, key, value = self.inputs(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value)
        return self.output(mixed.transpose(1, 2).flatten(2))


class VariableMLP(nn.Module):
    """An MLP over the variables, the same for every channel: for a fixed number of variables, as cheap as it gets."""

    def __init__(self, variables: int, hidden: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(variables, hidden), nn.Linear(hidden, variables)

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, R, width] from the same."""
        return self.second(F.gelu(self.first(x.transpose(1, 2)))).transpose(1, 2)


class Layer(nn.Module):
    """One layer: mix the variables, then the channels of each (a gated MLP); both with a residual.

    Args:
        width: channels of a variable.
        hidden: gated hidden units.
        heads: of the attention.
        mixing: ``attention``, or ``mlp`` for an MLP over the variables.
        variables: R, for the MLP.
    """

    def __init__(self, width: int, hidden: int, heads: int, mixing: Mixing, variables: int) -> None:
        super().__init__()
        attends = mixing == "attention"
        self.mix = Attention(width, heads) if attends else VariableMLP(variables, 2 * variables)
        self.before_mix, self.before_update = nn.LayerNorm(width), nn.LayerNorm(width)
        self.gates, self.update = nn.Linear(width, 2 * hidden, bias=False), nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return [B, R, width] from the same."""
        x = x + self.mix(self.before_mix(x))
        gate, value = self.gates(self.before_update(x)).chunk(2, -1)
        return x + self.update(F.silu(gate) * value)


class Step(nn.Module):
    """One step of all layers, and the logits of the new state; the same weights in every step."""

    def __init__(self, layers: int, width: int, hidden: int, heads: int, mixing: Mixing, variables: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, hidden, heads, mixing, variables) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, state: Tensor, query: Tensor) -> Tensor:
        """Return the next state [B, R, width] from a state and the embedded query, both [B, R, width]."""
        x = state + query
        for layer in self.layers:
            x = layer(x)
        # The state that accumulates over the steps stays in full precision under autocast, and bounded.
        with torch.autocast(x.device.type, enabled=False):
            return self.norm(x.to(self.norm.weight.dtype))
