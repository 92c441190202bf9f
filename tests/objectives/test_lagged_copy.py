"""The lagged copy: Algorithm 1's schedule, independence of the live network, and resuming."""

import pytest
import torch
from torch import nn

from oneofmany.objectives import LaggedCopy


def step(network):
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(1.0)


@pytest.mark.parametrize("interval", [1, 2, 5])
def test_the_schedule_of_algorithm_1(interval):
    """After update t, counted from 0, the copy has the weights of the last s <= t with s % interval = 0."""
    network = nn.Linear(1, 1)
    nn.init.zeros_(network.weight)
    copy = LaggedCopy(network, copy_interval=interval)
    assert copy.network.weight.item() == 0
    for t in range(12):
        step(network)
        copy.update()
        last = t - t % interval
        assert copy.network.weight.item() == last + 1
        assert copy.updates == t + 1


def test_the_copy_is_apart_from_the_live_network():
    network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    copy = LaggedCopy(network, copy_interval=10)
    live = {tensor.data_ptr() for tensor in [*network.parameters(), *network.buffers()]}
    assert not live & {tensor.data_ptr() for tensor in [*copy.parameters(), *copy.buffers()]}
    assert all(not parameter.requires_grad for parameter in copy.parameters())
    assert all(parameter.requires_grad for parameter in network.parameters())
    assert len(list(copy.parameters())) == len(list(network.parameters()))
    assert not copy(torch.randn(4, 2)).requires_grad


def test_refreshing_copies_buffers_and_keeps_the_memory():
    network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    copy = LaggedCopy(network)
    places = [tensor.data_ptr() for tensor in copy.network.state_dict().values()]
    network(torch.randn(8, 2))
    step(network)
    copy.update()
    for live, copied in zip(network.state_dict().values(), copy.network.state_dict().values(), strict=True):
        assert torch.equal(live, copied)
    assert places == [tensor.data_ptr() for tensor in copy.network.state_dict().values()]


def test_it_runs_in_the_mode_of_the_live_network():
    network = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    copy = LaggedCopy(network)
    x = torch.ones(64, 4)
    network.eval()
    assert torch.equal(copy(x), copy(x))
    network.train()
    copy.eval()
    assert not torch.equal(copy(x), copy(x))
    network[1].eval()
    assert torch.equal(copy(x), copy(x))


def test_resuming_goes_on_as_if_nothing_had_happened():
    def trained(updates, network=None, copy=None):
        network = network or nn.Linear(1, 1)
        copy = copy or LaggedCopy(network, copy_interval=4)
        for _ in range(updates):
            step(network)
            copy.update()
        return network, copy

    torch.manual_seed(0)
    network, copy = trained(11)
    torch.manual_seed(0)
    half_network, half_copy = trained(6)
    saved = {key: value.clone() for key, value in half_copy.state_dict().items()}
    weights = {key: value.clone() for key, value in half_network.state_dict().items()}
    assert all(isinstance(value, torch.Tensor) for value in saved.values())

    other = nn.Linear(1, 1)
    resumed = LaggedCopy(other, copy_interval=4)
    other.load_state_dict(weights)
    resumed.load_state_dict(saved)
    assert resumed.updates == 6
    assert not torch.equal(resumed.network.weight, other.weight)
    trained(5, other, resumed)
    assert torch.equal(resumed.network.weight, copy.network.weight)
    assert torch.equal(other.weight, network.weight)
    assert resumed.updates == copy.updates == 11


def test_bad_interval():
    with pytest.raises(ValueError, match="copy_interval: expected 1 or more, got 0"):
        LaggedCopy(nn.Linear(1, 1), copy_interval=0)
