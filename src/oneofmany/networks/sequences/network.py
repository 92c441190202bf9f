"""Networks for sequences of any lengths: an encoder with a decoder that reads its own answer, or with CTC."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from oneofmany.networks.protocol import TaskNetwork
from oneofmany.networks.sequences.plain import Encoder, aligned, positions
from oneofmany.problems import SequenceBatch, SequenceProblem

IGNORED = -100
"""Padding in listed answers."""


class SequenceNetwork(TaskNetwork):
    """The base of the networks for sequences.

    Args:
        problem: the vocabularies.
        width: channels of a token.
        layers: layers of the encoder, and of the decoder if there is one.
        heads: of the attention.
        hidden: hidden units of a layer; four times the width by default.
        dropout: rate, in training.
    """

    def __init__(
        self,
        problem: SequenceProblem,
        width: int = 256,
        layers: int = 4,
        heads: int = 4,
        hidden: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"heads: expected a divisor of the width {width}, got {heads}")
        self.problem = problem
        self.sizes = (width, layers, heads, hidden or 4 * width, dropout)
        self.encoder = Encoder(len(problem.inputs), *self.sizes)

    def accepts(self, problem: Any, relations: np.ndarray | None = None) -> str | None:
        """Return None for sequences; evaluation translates them into the network's vocabularies."""
        return None if isinstance(problem, SequenceProblem) else "this network answers sequences only"

    @abstractmethod
    def forward(self, batch: SequenceBatch) -> Tensor:
        """Return what the pair loss takes; see the networks."""

    @abstractmethod
    def targets(self, batch: SequenceBatch) -> Tensor:
        """Return the listed answers [B, K, L] as the pair loss takes them."""

    @abstractmethod
    def token_log_likelihoods(self, output: Tensor, batch: SequenceBatch) -> Tensor:
        """Return the log-likelihood of every token of ``targets``, [B, K, L], from the output; 0 at padding."""

    @abstractmethod
    def answers(self, batch: SequenceBatch) -> tuple[Tensor, Tensor]:
        """Return greedy answers int64 [B, L], tokens from 1 and then 0, and their log-probabilities [B]."""


class Seq2SeqNetwork(SequenceNetwork):
    """An autoregressive encoder-decoder: a Transformer that reads the input and the answer so far.

    A call returns the log-likelihood of every token of every listed answer, [B, K, L + 1]; the last one is the end.
    """

    def __init__(self, problem: SequenceProblem, *sizes: Any, **named: Any) -> None:
        super().__init__(problem, *sizes, **named)
        width, layers, heads, hidden, dropout = self.sizes
        # 0 is the end in answers; the last one is the start.
        self.embed = nn.Embedding(len(problem.outputs) + 2, width)
        layer = nn.TransformerDecoderLayer(width, heads, hidden, dropout, "gelu", batch_first=True, norm_first=True)
        self.decoder = nn.TransformerDecoder(layer, layers, nn.LayerNorm(width))
        self.classes = nn.Linear(width, len(problem.outputs) + 1)

    def forward(self, batch: SequenceBatch) -> Tensor:
        """Return token log-likelihoods [B, K, L + 1] of the listed answers; 0 at padding."""
        memory, padding = self.encoder(batch.query, batch.lengths)
        targets = self.targets(batch)
        # Every input once, then those with more answers again: few rows are copied, and few gradients added up.
        again, more = batch.mask[:, 1:].nonzero(as_tuple=True)
        rows = torch.cat([torch.arange(len(batch), device=again.device), again])
        places = torch.cat([again.new_zeros(len(batch)), more + 1])
        own = targets[rows, places]
        read, hidden = torch.cat([memory, memory[again]]), torch.cat([padding, padding[again]])
        log_probabilities = self._log_probabilities(read, hidden, own[:, :-1].clamp(min=0))
        found = log_probabilities.gather(-1, own.clamp(min=0)[..., None])[..., 0].masked_fill(own == IGNORED, 0.0)
        return found.new_zeros(targets.shape).index_put((rows, places), found)

    def targets(self, batch: SequenceBatch) -> Tensor:
        """Return the listed answers, each followed by its end: [B, K, L + 1]."""
        padded = nn.functional.pad(batch.solutions, (0, 1), value=IGNORED)
        ends = (batch.solutions != IGNORED).sum(-1, keepdim=True)
        ended = padded.scatter(-1, ends, 0)
        return torch.where(batch.mask[..., None], ended, IGNORED)

    def token_log_likelihoods(self, output: Tensor, batch: SequenceBatch) -> Tensor:
        """Return the output, which is that already."""
        return output

    @torch.no_grad()
    def answers(self, batch: SequenceBatch) -> tuple[Tensor, Tensor]:
        """Return greedy answers, at most twice as long as the longest of the training data."""
        memory, padding = self.encoder(batch.query, batch.lengths)
        tokens = batch.query.new_zeros(len(batch), 0)
        confidence, running = torch.zeros(len(batch), device=tokens.device), torch.ones_like(batch.lengths).bool()
        for _ in range(2 * self.problem.longest + 1):
            best, token = self._log_probabilities(memory, padding, tokens)[:, -1].max(-1)
            confidence = confidence + best.masked_fill(~running, 0.0)
            running = running & (token > 0)
            tokens = torch.cat([tokens, token.masked_fill(~running, 0)[:, None]], 1)
            if not running.any():
                break
        return tokens, confidence

    def _log_probabilities(self, memory: Tensor, padding: Tensor, before: Tensor) -> Tensor:
        """[N, L + 1, V + 1]: of every next token, after the start and the tokens [N, L] before it."""
        start = before.new_full((len(before), 1), len(self.problem.outputs) + 1)
        x = self.embed(torch.cat([start, before], 1))
        x = x + positions(x.shape[1], x.shape[-1], x)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        decoded = self.decoder(x, memory, tgt_mask=later, memory_key_padding_mask=padding)
        return self.classes(decoded).float().log_softmax(-1)


class CTCNetwork(SequenceNetwork):
    """A Transformer encoder with CTC: all tokens of an answer are predicted at once, independently of each other.

    A call returns logits [B, S, V + 1] of the frames, where 0 is the blank; ``frame_lengths`` are real.

    Args:
        problem: the vocabularies.
        frames: frames for every token of the input.
        sizes: those of ``SequenceNetwork``, in its order.
        named: those of ``SequenceNetwork``.
    """

    def __init__(self, problem: SequenceProblem, *sizes: Any, frames: int = 3, **named: Any) -> None:
        super().__init__(problem, *sizes, **named)
        if frames < 1:
            raise ValueError(f"frames: expected at least 1, got {frames}")
        width = self.sizes[0]
        self.frames = frames
        self.spread = nn.Linear(width, frames * width)
        self.classes = nn.Sequential(nn.GELU(), nn.LayerNorm(width), nn.Linear(width, len(problem.outputs) + 1))

    def forward(self, batch: SequenceBatch) -> Tensor:
        """Return logits [B, S * frames, V + 1]."""
        encoded, _ = self.encoder(batch.query, batch.lengths)
        return self.classes(self.spread(encoded).unflatten(-1, (self.frames, -1)).flatten(1, 2)).float()

    def frame_lengths(self, batch: SequenceBatch) -> Tensor:
        """Return the number of frames of each input, int64 [B]."""
        return batch.lengths * self.frames

    def targets(self, batch: SequenceBatch) -> Tensor:
        """Return the listed answers as they are."""
        return batch.solutions

    def token_log_likelihoods(self, output: Tensor, batch: SequenceBatch) -> Tensor:
        """Return expected log-likelihoods over the alignments."""
        answers = torch.where(batch.mask[..., None], batch.solutions, IGNORED)
        return aligned(output.float().log_softmax(-1), self.frame_lengths(batch), answers)

    @torch.no_grad()
    def answers(self, batch: SequenceBatch) -> tuple[Tensor, Tensor]:
        """Return the answers of the most likely token of every frame, without repetitions and blanks."""
        best, path = self(batch).log_softmax(-1).max(-1)
        within = torch.arange(path.shape[1], device=path.device) < self.frame_lengths(batch)[:, None]
        before = nn.functional.pad(path, (1, 0), value=0)[:, :-1]
        kept = within & (path > 0) & (path != before)
        tokens = path.masked_fill(~kept, 0).gather(1, (~kept).byte().argsort(dim=1, stable=True))
        return tokens[:, : max(int(kept.sum(1).max()), 1)], best.masked_fill(~within, 0.0).sum(1)
