"""The noise takes part in the choice of the listed solution."""

import numpy as np
import torch

from oneofmany.problems import Batch, nqueens
from oneofmany.training.following import follow_noise


def test_the_choice_is_the_smallest_loss_minus_weighted_noise():
    torch.manual_seed(0)
    problem = nqueens(6)
    solutions = torch.randint(6, (50, 4, 6))
    mask = torch.rand(50, 4) < 0.7
    mask[0] = False
    query, total = torch.zeros(50, 6, dtype=torch.long), torch.full((50,), -1)
    batch = Batch(query, solutions, mask, total, problem)
    losses, noise = torch.rand(3, 50, 4), torch.randn(50, 36)
    for weight in (0.1, 1.0, 10.0):
        chosen = follow_noise(batch, losses, noise, weight)
        for b in range(50):
            cost = [
                float(losses[:, b, k].mean())
                - weight * sum(float(noise[b, r * 6 + solutions[b, k, r]]) for r in range(6))
                if mask[b, k]
                else np.inf
                for k in range(4)
            ]
            expected = np.zeros(4, bool)
            if mask[b].any():
                expected[int(np.argmin(cost))] = True
            assert chosen[b].numpy().tolist() == expected.tolist()
