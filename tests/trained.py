"""A network that has learnt 5-queens in seconds, for tests that need valid answers."""

from functools import cache

import torch

from oneofmany.data.batches import DeviceData
from oneofmany.data.nqueens import build_nqueens
from oneofmany.networks import draw_noise
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.saved import SavedNetwork
from oneofmany.objectives import MinLoss

SETTINGS = NetworkSettings(kind="equivariant", width=16, steps=6)


@cache
def five_queens() -> SavedNetwork:
    """Trained on 5-queens with one queen given, which have two solutions each."""
    data = DeviceData(build_nqueens(5, 4, seed=0))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = build_network(SETTINGS, data.problem)
    optimiser = torch.optim.AdamW(network.parameters(), lr=0.01)
    draw = torch.Generator().manual_seed(0)
    for _ in range(150):
        batch = data.draw(25, draw)
        loss = MinLoss()(network(batch, noise=draw_noise(network, batch, draw)), batch.solutions, batch.mask)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return SavedNetwork(network.eval(), SETTINGS, "nqueens", 5, {})
