"""A recurrent Transformer over variables, which is given no rules.

Each variable is a token. The same few layers run T times, and the network answers after every step. Which variable is
which is learned, so the network knows one size only; what the rules are it has to learn from the listed solutions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from oneofmany.networks.protocol import TaskNetwork
from oneofmany.networks.settings import Mixing
from oneofmany.networks.transformer.inputs import Embedding, check_batch
from oneofmany.networks.transformer.plain import Step
from oneofmany.problems import Batch, Problem


class TransformerNetwork(TaskNetwork):
    """Recurrent Transformer over variables (see the module's docstring); logits [T, B, R, V] of all steps.

    Args:
        problem: fixes the number of variables and values; its rules are not used.
        width: channels of a variable.
        layers: layers in a step, all of them repeated in every step.
        steps: default number of steps.
        hidden: gated hidden units of a layer; twice the width by default.
        heads: of the attention.
        mixing: ``attention`` between the variables, or ``mlp``: an MLP over them.
    """

    def __init__(
        self,
        problem: Problem,
        width: int = 128,
        layers: int = 2,
        steps: int = 16,
        hidden: int | None = None,
        heads: int = 4,
        mixing: Mixing = "attention",
    ) -> None:
        super().__init__()
        if mixing not in ("attention", "mlp"):
            raise ValueError(f"mixing: expected 'attention' or 'mlp', got {mixing!r}")
        sizes = {"width": width, "layers": layers, "steps": steps, "hidden": hidden, "heads": heads}
        for name, value in sizes.items():
            if value is not None and value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        self.steps, self.width = steps, width
        self.variables, self.values = problem.variables, problem.values
        self._trained = f"{problem.task} {problem.size}"
        self.embed = Embedding(problem, width)
        self.start = nn.Parameter(torch.zeros(width))
        self.step = Step(layers, width, hidden or 2 * width, heads, mixing, problem.variables)
        self.classes = nn.Linear(width, problem.values)

    def accepts(self, problem: Problem, relations: np.ndarray | None = None) -> str | None:
        """Return None for problems with the variables and values of training: positions are learned."""
        if (problem.variables, problem.values) != (self.variables, self.values):
            return (
                f"this network (transformer, trained on {self._trained}) knows {self.variables} variables of "
                f"{self.values} values only"
            )
        if relations is not None and (relations >= 0).any() and self.embed.relations is None:
            return f"this network (transformer, trained on {self._trained}) knows no relations"
        return None

    def forward(
        self,
        batch: Batch,
        *,
        steps: int | None = None,
        state: Tensor | None = None,
        every_step: bool = True,
        return_state: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Return the logits of a batch.

        Args:
            batch: the queries; solutions, mask and rules are not used.
            steps: number of steps, at least 1; the network's own by default.
            state: [B, R, width] from an earlier call, to continue from; None to start.
            every_step: False returns the last step's logits only.
            return_state: also return the last state, to continue from (detach it to cut the gradient).

        Returns:
            Logits [T, B, R, V], or [B, R, V] if not every_step; with return_state, a pair with the state.
        """
        steps = self.steps if steps is None else steps
        if steps < 1:
            raise ValueError(f"steps: expected at least 1, got {steps}")
        check_batch(batch, self.variables, self.values, self.start.device)
        shape = (len(batch), self.variables, self.width)
        if state is not None and tuple(state.shape) != shape:
            raise ValueError(f"state: expected {list(shape)}, got {list(state.shape)}")
        embedded = self.embed(batch)
        inner = self.start.expand(shape) if state is None else state
        states = []
        for _ in range(steps):
            inner = self.step(inner, embedded)
            states = [*states, inner] if every_step else [inner]
        # Logits need full precision: in 16 bits, close values of a variable would tie.
        with torch.autocast(inner.device.type, enabled=False):
            logits = self.classes(torch.stack(states))
        shaped = logits if every_step else logits[0]
        return (shaped, inner) if return_state else shaped
