"""Random batches for the tests."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from oneofmany.objectives import CCLoss, IExplR, MinLoss, Naive, Random, Unique


@dataclass(frozen=True)
class Case:
    logits: Tensor
    solutions: Tensor
    mask: Tensor
    variable_mask: Tensor | None = None

    @property
    def steps(self) -> int | None:
        return len(self.logits) if self.logits.dim() == 4 else None

    def lists(self):
        """Logits [T][B][R][V] as exact Python numbers, solutions, mask, variable mask."""
        logits = (self.logits if self.logits.dim() == 4 else self.logits.unsqueeze(0)).double().tolist()
        variable_mask = None if self.variable_mask is None else self.variable_mask.tolist()
        return logits, self.solutions.tolist(), self.mask.tolist(), variable_mask

    def to(self, dtype) -> "Case":
        return replace(self, logits=self.logits.to(dtype))

    def with_gradient(self) -> "Case":
        return replace(self, logits=self.logits.detach().clone().requires_grad_())


def make_case(
    seed=0, *, T=None, B=3, K=4, R=3, V=4, scale=2.0, listed=0.6, with_variables=False, dtype=torch.float64
) -> Case:
    """A batch with random holes in the mask; padding is filled with numbers that are not values."""
    generator = torch.Generator().manual_seed(seed)
    shape = (B, R, V) if T is None else (T, B, R, V)
    logits = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    solutions = torch.randint(V, (B, K, R), generator=generator)
    mask = torch.rand(B, K, generator=generator) < listed
    garbage = torch.randint(-1000, 1000, solutions.shape, generator=generator)
    solutions = solutions.where(mask.unsqueeze(-1), garbage)
    variable_mask = torch.rand(B, R, generator=generator) < 0.7 if with_variables else None
    if variable_mask is not None:
        solutions = solutions.where(variable_mask.unsqueeze(1), garbage)
    return Case(logits.to(dtype), solutions, mask, variable_mask)


# Every deterministic objective but SelectR, with and without per_step if it has the option.
FORMS = {
    "Naive": Naive,
    "Naive mean": lambda **options: Naive(mean_over_listed=True, **options),
    "Random": Random,
    "Unique": Unique,
    "CCLoss": CCLoss,
    "CCLoss mean of steps": lambda **options: CCLoss(per_step=False, **options),
    "MinLoss": MinLoss,
    "MinLoss per step": lambda **options: MinLoss(per_step=True, **options),
    "IExplR": IExplR,
    "IExplR temperature": lambda **options: IExplR(temperature=2.5, **options),
    "IExplR per step": lambda **options: IExplR(per_step=True, **options),
}
