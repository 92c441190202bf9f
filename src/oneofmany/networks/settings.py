"""Settings of the networks, as in a run's configuration or the header of a weights file. Loads no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NetworkKind = Literal["nlm", "rrn", "equivariant", "transformer", "seq2seq", "ctc"]

SEQUENCES: tuple[NetworkKind, ...] = ("seq2seq", "ctc")
"""The networks for sequences."""

Mixing = Literal["attention", "mlp"]
"""How a Transformer mixes its variables: by attention, or by an MLP over them."""

Inequalities = Literal["rules", "flags"]
"""Input form of a query's relations a < b: rules like any other, or the two flags of the paper's NLM."""

Readout = Literal["argmax", "threshold"]
"""How an answer is read from logits: the most likely value of each variable, or each choice with probability > 0.5."""

StartCriterion = Literal["residual", "confidence"]
"""Which of several starts answers: the one whose belief moved least in the last step, or the most confident one."""

MOST_STEPS = 10_000
"""The largest number of steps in the settings of a network, so that a small file cannot cause endless work."""


@dataclass(frozen=True)
class NetworkSettings:
    """Settings of a prediction network."""

    kind: NetworkKind = "equivariant"
    """Which network."""
    width: int = 64
    """Predicates per layer (NLM), size of the hidden state (RRN), channels per choice (equivariant), variable
    (transformer) or token (seq2seq, ctc)."""
    depth: int = 30
    """Layers (NLM), of every step (transformer), of the encoder and of the decoder (seq2seq, ctc)."""
    steps: int = 16
    """Steps in training (RRN, equivariant, transformer)."""
    test_steps: int | None = None
    """Steps at test time; by default as in training."""
    dropout: float = 0.0
    """Dropout rate in training, of message components (RRN) or of layers (seq2seq, ctc)."""
    hidden: int | None = None
    """Gated hidden units; by default the width (equivariant), twice the width (transformer). Hidden units of a layer;
    by default four times the width (seq2seq, ctc)."""
    heads: int = 4
    """Heads of the attention (transformer, seq2seq, ctc)."""
    mixing: Mixing = "attention"
    """How variables are mixed: attention, or an MLP over them (transformer)."""
    frames: int = 3
    """Frames for every token of the input (ctc). An answer needs as many frames as it has tokens."""
    inequalities: Inequalities = "rules"
    """Input form of Futoshiki's inequalities (equivariant): rules, or the two flags of the paper's NLM."""
    latent: int = 0
    """Learned inputs, as nullary predicates (NLM) or appended to the embeddings (RRN); 16 in the authors' code."""

    @property
    def has_steps(self) -> bool:
        """Whether the network predicts at every step."""
        return self.kind not in ("nlm", *SEQUENCES)


@dataclass(frozen=True)
class SelectorSettings:
    """Settings of the selector network (section 3.4)."""

    kind: Literal["nlm", "cnn", "cnn-authors", "mlp", "equivariant", "transformer", "tokens"] = "equivariant"
    """Which network: the paper's small NLM, its CNN, the CNN or MLP of the authors' code, ours over rules, ours without
    rules (transformer), or ours for sequences (tokens)."""
    width: int = 32
    """Predicates per layer (NLM), channels per choice (equivariant), variable (transformer) or token (tokens)."""
    depth: int = 3
    """Layers (NLM, transformer), rounds (equivariant)."""
