"""The same updates in two ways on a device, a GPU as a rule: captured and one by one, compiled and not."""

import pytest
import torch

from oneofmany.data import DeviceData
from oneofmany.training.distributed import Group
from oneofmany.training.learners import Learners
from oneofmany.training.phases import phases_of
from oneofmany.training.updating import MEASURED, Updater


def on_device(settings, dataset, updates=16):
    """Run the updates of the last phase; return their measurements and the log-probabilities afterwards."""
    device = torch.device(settings.device)
    phase, learners = phases_of(settings)[-1], Learners(settings, dataset.problem, device)
    learners.begin(None, with_selector=phase.trains != "network")
    updater = Updater(settings, phase, learners, DeviceData(dataset, device), Group())
    for number in range(updates):
        updater.run(number, lr=1e-3)
    assert bool(updater._graphs) == updater.capturing == (settings.capture and device.type == "cuda")
    batch = next(updater.data.in_order(30))
    with torch.no_grad():
        logits = learners.evaluated.eval()(batch)
    return updater.measured(), logits.log_softmax(-1).cpu()


def assert_same_training(one, other):
    # Weights are not compared: Adam turns gradients of pure rounding into steps, which differ from run to run.
    for name in MEASURED:
        assert other[0][name] == pytest.approx(one[0][name], rel=2e-3, abs=1e-3 if "exploratory" not in name else 1)
    torch.testing.assert_close(one[1], other[1], rtol=1e-2, atol=1e-2)
