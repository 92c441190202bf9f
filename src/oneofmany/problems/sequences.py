"""Sequences without rules: the vocabularies of a data set, and a batch of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from torch import Tensor

Token = str | int
"""A token of a vocabulary: a character, a word, or an id."""


@dataclass(frozen=True, eq=False)
class SequenceProblem:
    """Sequences in, sequences out, of any lengths. There are no rules: an answer is right if it is listed.

    Args:
        inputs: the tokens of inputs; token i is ``inputs[i - 1]``, and 0 is padding.
        outputs: the tokens of outputs; token i is ``outputs[i - 1]``, and 0 is a network's blank or end.
        longest: the largest number of tokens of an output.
    """

    inputs: tuple[Token, ...]
    outputs: tuple[Token, ...]
    longest: int

    task: ClassVar[str] = "sequences"
    has_rules: ClassVar[bool] = False
    relation_kind: ClassVar[None] = None

    def __post_init__(self) -> None:
        for name, tokens in (("inputs", self.inputs), ("outputs", self.outputs)):
            if not all(isinstance(token, str | int) and not isinstance(token, bool) for token in tokens):
                raise ValueError(f"{name}: expected texts and whole numbers as tokens")
            if len(set(tokens)) != len(tokens):
                raise ValueError(f"{name}: a token is listed twice")
        if not self.inputs or self.longest < 0:
            raise ValueError("expected at least one token of inputs, and a length of 0 or more")

    @property
    def size(self) -> int:
        """The number of output tokens."""
        return len(self.outputs)

    @property
    def options(self) -> dict[str, Any]:
        """What a file keeps of it."""
        return {"inputs": list(self.inputs), "outputs": list(self.outputs), "longest": self.longest}

    @classmethod
    def of(cls, options: dict[str, Any]) -> SequenceProblem:
        """Rebuild it from ``options``."""
        return cls(tuple(options["inputs"]), tuple(options["outputs"]), int(options["longest"]))

    def same_as(self, other: Any) -> bool:
        """Return whether both have the same vocabularies."""
        return isinstance(other, SequenceProblem) and (self.inputs, self.outputs) == (other.inputs, other.outputs)

    def __repr__(self) -> str:
        return f"SequenceProblem({len(self.inputs)} input and {len(self.outputs)} output tokens)"


@dataclass(frozen=True, eq=False)
class SequenceBatch:
    """Inputs with their listed answers on one device.

    Args:
        query: int64 [B, S], tokens from 1, padded with 0.
        lengths: int64 [B], the number of tokens of each input.
        solutions: int64 [B, K, L], tokens from 1, padded with -100.
        mask: bool [B, K], True for a listed answer, False for padding.
        problem: the vocabularies.
    """

    query: Tensor
    lengths: Tensor
    solutions: Tensor
    mask: Tensor
    problem: SequenceProblem

    def __len__(self) -> int:
        return len(self.query)
