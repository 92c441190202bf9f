"""All seven objectives in one form, for tests of what they share."""

import torch

from oneofmany.objectives import CCLoss, IExplR, MinLoss, Naive, Random, SelectR, Unique

EVERY = {
    "Naive": Naive,
    "Random": Random,
    "Unique": Unique,
    "CCLoss": CCLoss,
    "MinLoss": MinLoss,
    "MinLoss epsilon": lambda **options: MinLoss(epsilon=0.5, **options),
    "MinLoss per step": lambda **options: MinLoss(per_step=True, **options),
    "IExplR": IExplR,
    "IExplR sample": lambda **options: IExplR(sample=True, **options),
    "SelectR": SelectR,
    "SelectR sample": lambda **options: SelectR(sample=True, reinforce=True, **options),
}


def extras(objective, mask, seed=0):
    """The scores and the noise that an objective needs: positional and keyword arguments."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(mask.shape, generator=generator, dtype=torch.float64)
    noise = torch.rand(mask.shape, generator=generator, dtype=torch.float64)
    return [scores] if isinstance(objective, SelectR) else [], {"noise": noise} if objective.draws else {}


def rows(given, part):
    """The scores and the noise of some queries."""
    scores, noise = given
    return [each[part] for each in scores], {name: each[part] for name, each in noise.items()}
