"""The selector without rules: a few Transformer layers over the variables of a listed solution."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oneofmany.networks.transformer.inputs import Embedding, check_batch, one_hot
from oneofmany.networks.transformer.plain import Layer
from oneofmany.problems import Batch, Problem


class TransformerSelector(nn.Module):
    """The latent model of the selection module (section 3.4), for one size of problem.

    The inputs of a variable are the value that the solution gives it, the lagged copy's probabilities of all values and
    of that value, and what the network sees of the query. The score is the mean of a linear readout over the variables.

    Args:
        problem: fixes the number of variables and values; its rules are not used.
        width: channels of a variable.
        layers: the number of layers.
        heads: of the attention.
        value_offset: of the prediction network.
    """

    def __init__(
        self, problem: Problem, width: int = 32, layers: int = 2, heads: int = 4, value_offset: int = 0
    ) -> None:
        super().__init__()
        self.variables, self.values, self.value_offset = problem.variables, problem.values, value_offset
        self.embed = Embedding(problem, width)
        self.solution = nn.Linear(2 * problem.values + 1, width)
        self.layers = nn.ModuleList(
            Layer(width, 2 * width, heads, "attention", problem.variables) for _ in range(layers)
        )
        self.score = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return scores [B, K] of the listed solutions from logits [B, R, classes] or [T, B, R, classes] (last step).

        Padding in ``batch.solutions`` does not change the scores of listed solutions.
        """
        check_batch(batch, self.variables, self.values, self.solution.weight.device)
        last = logits if logits.ndim == 3 else logits[-1]
        shape = [len(batch), self.variables, self.values + self.value_offset]
        if list(last.shape) != shape:
            raise ValueError(f"logits: expected {shape} with or without steps before it, got {list(logits.shape)}")
        belief = last.float().softmax(-1)[..., self.value_offset :].unsqueeze(1)  # [B, 1, R, V]
        taken = one_hot(batch.solutions, self.values).float()  # [B, K, R, V]
        features = torch.cat([taken, belief.expand_as(taken), (taken * belief).sum(-1, keepdim=True)], -1)
        x = (self.solution(features) + self.embed(batch).unsqueeze(1)).flatten(0, 1)
        for layer in self.layers:
            x = layer(x)
        return self.score(x).mean((1, 2)).view(batch.mask.shape)
