"""A batch that is split into parts: a tiny network, and the losses of a part with the normaliser of the whole."""

import torch
from torch import nn

from oneofmany.objectives import SelectR

from .cases import make_case
from .every import EVERY, extras, rows

R, V, INPUTS = 3, 4, 5


def build():
    """A network, a selector, inputs, and queries of which some have no, one or several listed solutions."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(INPUTS, R * V), nn.Unflatten(-1, (R, V))).double()
    selector = nn.Linear(INPUTS, 4).double()
    case = make_case(3, T=None, B=10, K=4, R=R, V=V, listed=0.3)
    # The parts train on different numbers of queries, and the last has nothing for Unique.
    case.mask[:4] = torch.tensor([True, False, False, False])
    case.solutions[:4, 0] = torch.randint(V, (4, R))
    case.mask[7:] = torch.tensor([[True, True, True, True], [False, False, False, False], [True, True, False, False]])
    case.solutions[7:] = torch.randint(V, (3, 4, R))
    return network, selector, torch.randn(10, INPUTS, dtype=torch.float64), case


PARTS = (slice(0, 7), slice(7, 10))


def losses(name, network, selector, inputs, case, part, count=None, selector_count=None):
    """The losses of a part of the batch, summed; without counts, the means over the part."""
    objective = EVERY[name]()
    scores, noise = rows(extras(objective, case.mask), part)
    logits, solutions, mask = network(inputs[part]), case.solutions[part], case.mask[part]
    if not isinstance(objective, SelectR):
        return objective(logits, solutions, mask, normaliser=count, **noise)
    scores = scores[0] + selector(inputs[part])
    loss = objective(logits, solutions, mask, scores, normaliser=count, **noise)
    rewards = objective.selector_loss(logits, solutions, mask, scores, normaliser=selector_count, **noise)
    return loss + rewards


def counts(name, case, part):
    """How many queries of a part train the network and the selector, `[2]`."""
    objective = EVERY[name]()
    mask = case.mask[part]
    multiple = objective.selector_count(mask) if isinstance(objective, SelectR) else torch.tensor(0)
    return torch.stack([objective.count(mask), multiple])


def gradients(network, selector):
    return [p.grad.clone() if p.grad is not None else None for m in (network, selector) for p in m.parameters()]
