"""The selector for sequences: it scores listed answers from the lagged copy's log-likelihoods of their tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oneofmany.problems import SequenceBatch, SequenceProblem


class TokenSelector(nn.Module):
    """The latent model of the selection module (section 3.4) for sequences.

    It sees every token of a listed answer with its log-likelihood under the lagged copy. Their features are pooled
    over the answer (mean and maximum), next to the mean and the sum of the log-likelihoods.

    Args:
        problem: the vocabularies.
        width: channels of a token.
    """

    def __init__(self, problem: SequenceProblem, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(problem.outputs) + 1, width)
        self.token = nn.Sequential(nn.Linear(width + 2, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.score = nn.Sequential(nn.Linear(2 * width + 2, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, log_likelihoods: Tensor, batch: SequenceBatch, targets: Tensor) -> Tensor:
        """Return scores [B, K]; padding has any score.

        Args:
            log_likelihoods: [B, K, L], of the tokens of ``targets``.
            batch: the inputs and their listed answers.
            targets: int64 [B, K, L], tokens from 0; below 0 is padding.
        """
        real = (targets >= 0) & batch.mask[..., None]
        found = log_likelihoods.float().masked_fill(~real, 0.0).clamp(min=-50.0)
        x = torch.cat([self.embed(targets.clamp(min=0)), torch.stack([found, found.exp()], -1)], -1)
        x = self.token(x).masked_fill(~real[..., None], 0.0)
        number = real.sum(-1, keepdim=True).clamp(min=1)
        pooled = [x.sum(2) / number, x.amax(2), found.sum(-1, keepdim=True) / number, found.sum(-1, keepdim=True) / 10]
        return self.score(torch.cat(pooled, -1))[..., 0]
