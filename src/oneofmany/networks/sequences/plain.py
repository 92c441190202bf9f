"""Parts of the networks for sequences in PyTorch: the encoder, positions, and the alignments of CTC."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

IMPOSSIBLE = -1e30
"""The log-probability of what cannot be."""


def positions(length: int, width: int, like: Tensor) -> Tensor:
    """Return sinusoidal positions [length, width], for sequences of any length."""
    place = torch.arange(length, device=like.device, dtype=torch.float32)[:, None]
    rates = torch.exp(torch.arange(0, width, 2, device=like.device) * (-math.log(10_000.0) / width))
    waves = torch.stack([(place * rates).sin(), (place * rates).cos()], -1).flatten(1)
    return waves[:, :width].to(like.dtype)


class Encoder(nn.Module):
    """A Transformer encoder over the tokens of an input.

    Args:
        tokens: the number of tokens.
        width: channels of a token.
        layers: the number of layers.
        heads: of the attention.
        hidden: hidden units of a layer.
        dropout: rate, in training.
    """

    def __init__(self, tokens: int, width: int, layers: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens + 1, width)
        layer = nn.TransformerEncoderLayer(width, heads, hidden, dropout, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)

    def forward(self, query: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return [B, S, width] and where there is padding, bool [B, S], from tokens [B, S] and their numbers [B]."""
        padding = torch.arange(query.shape[1], device=query.device) >= lengths[:, None]
        x = self.embed(query)
        x = x + positions(query.shape[1], x.shape[-1], x)
        return self.layers(x, src_key_padding_mask=padding), padding


@torch.no_grad()
def aligned(log_probabilities: Tensor, lengths: Tensor, answers: Tensor) -> Tensor:
    """Return the log-likelihood of every token of listed answers under CTC, [B, K, L]; 0 at padding.

    It is the expected log-probability of the frames of a token, with the blanks behind it, over all alignments of its
    answer. The first token also has the blanks before it.

    Args:
        log_probabilities: [B, S, V + 1] of S frames; 0 is the blank.
        lengths: int64 [B], the number of frames of each input.
        answers: int64 [B, K, L], tokens from 1; below 1 is padding.
    """
    B, K, L = answers.shape
    real = answers > 0
    states = torch.zeros(B, K, 2 * L + 1, dtype=torch.int64, device=answers.device)  # blank, token, blank, ...
    states[..., 1::2] = answers.clamp(min=0)
    sizes = real.sum(-1)
    index = states[:, :, None].expand(-1, -1, log_probabilities.shape[1], -1)
    emissions = log_probabilities[:, None].expand(-1, K, -1, -1).gather(-1, index).float()  # [B, K, S, 2 L + 1]
    # A token can follow a different token without a blank between them.
    skips = torch.zeros_like(states, dtype=torch.bool)
    skips[..., 3::2] = (answers[..., 1:] != answers[..., :-1]) & real[..., 1:]
    with torch.enable_grad():
        emissions.requires_grad_(True)
        reached = torch.full_like(emissions[:, :, 0], IMPOSSIBLE)
        reached = torch.cat([emissions[:, :, 0, :2], reached[..., 2:]], -1)
        for frame in range(1, emissions.shape[2]):
            one = nn.functional.pad(reached, (1, 0), value=IMPOSSIBLE)[..., :-1]
            two = nn.functional.pad(reached, (2, 0), value=IMPOSSIBLE)[..., :-2].masked_fill(~skips, IMPOSSIBLE)
            moved = torch.stack([reached, one, two]).logsumexp(0) + emissions[:, :, frame]
            reached = torch.where((frame < lengths)[:, None, None], moved, reached)
        ends = torch.stack([2 * sizes, (2 * sizes - 1).clamp(min=0)], -1)
        total = reached.gather(-1, ends).logsumexp(-1)
        # The gradient of the log-likelihood is the probability that a frame belongs to a state.
        (occupied,) = torch.autograd.grad(total.sum(), emissions)
    found = (occupied * emissions.clamp(min=-1e4)).sum(2).detach()
    tokens = found[..., 1::2] + found[..., 2::2]
    tokens[..., 0] += found[..., 0]
    return tokens.masked_fill(~real, 0.0)
