"""Updates on queries that bring a structure of their own can be captured: no waiting, no shapes that change."""

from dataclasses import replace

import pytest
import torch
from by_hand import updater_of
from on_device import assert_same_training, on_device

from capturing import Capturing
from oneofmany.networks.equivariant import blocks, inputs, steps
from oneofmany.training.settings import SelectorTraining
from small_runs import NETWORKS, small
from structures import cages, coloured, graphs, ordered_cages, sums

CHANGES = {"burn_in": (0, 2), "reveal": 0.5, "ema": 0.5, "clip": 1.0}
LAGGED = SelectorTraining(updates=4, lr=1e-3, copy_interval=3)
CASES = [
    (coloured, "minloss", CHANGES | {"spare_settled": True}),
    (coloured, "minloss", CHANGES | {"discover": True, "windows": 2}),
    (coloured, "minloss", CHANGES | {"discover": True, "repair": 3}),
    (coloured, "selectr", CHANGES | {"discover": True, "selector_training": LAGGED}),
    (coloured, "rules", {}),
    (graphs, "minloss", CHANGES | {"discover": True}),
    (graphs, "rules", CHANGES | {"reveal": 0.0}),
    (cages, "selectr", CHANGES | {"discover": True, "selector_training": LAGGED}),
    (cages, "rules", {}),
    (ordered_cages, "minloss", CHANGES | {"discover": True}),
    (ordered_cages, "rules", {}),
    (sums, "rules", {"windows": 2}),
]
"""Relations a != b; rules of the queries' own, also beside relations a < b; sums, of the queries' own and of all."""
NAMES = [f"{make.__name__}-{objective}-{i}" for i, (make, objective, _) in enumerate(CASES)]


def settings_of(make, objective, **changes):
    return small(objective, task=make(1, seed=1).problem.task, **changes)


@pytest.fixture
def _plain(monkeypatch):
    """The formulas that a GPU runs where it has no kernels."""
    for module in (inputs, steps):
        monkeypatch.setattr(module, "takes_cpu", lambda _: False)


@pytest.mark.usefixtures("_plain")
@pytest.mark.parametrize(("make", "objective", "changes"), CASES, ids=NAMES)
def test_every_update_could_be_the_same_graph(make, objective, changes):
    updater = updater_of(settings_of(make, objective, **changes), None, data=make(24, seed=1))
    burn_in = updater.settings.burn_in[-1]
    updater.step(updater.draw(0), burn_in)  # tables of the whole data are made and copied to the device
    noted = []
    for number in range(1, 4):
        inputs = updater.draw(number)
        with Capturing() as graph:
            updater.step(inputs, burn_in)
        noted.append(graph.noted)
    assert noted[0] == noted[1] == noted[2]
    assert updater.measured()["skipped"] == 0


@pytest.mark.parametrize(("make", "objective", "changes"), CASES[:-1], ids=NAMES[:-1])  # the last has shared rules only
def test_an_update_makes_its_tables_once(make, objective, changes, monkeypatch):
    """For burn-in, all windows, the lagged copy and the selector."""
    made = []
    build = blocks._build
    monkeypatch.setattr(blocks, "_build", lambda batch, *form: made.append(batch) or build(batch, *form))
    updater = updater_of(settings_of(make, objective, **changes), None, data=make(24, seed=1))
    updater.step(updater.draw(0), updater.settings.burn_in[-1])
    assert len(made) == 1


def test_the_stand_in_for_a_graph_refuses_what_waits():
    updater = updater_of(settings_of(coloured, "minloss"), None, data=coloured(24, seed=1))
    updater.step(updater.draw(0))
    updater.data.most_related = None  # so it is looked up in every batch
    with pytest.raises(AssertionError, match="_local_scalar_dense"), Capturing():
        updater.step(updater.draw(1))
    with pytest.raises(AssertionError, match="host to device"), Capturing():
        torch.tensor(1)
    with pytest.raises(AssertionError, match=r"aten\.index"), Capturing():
        torch.ones(2)[torch.ones(2) > 0]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: updates are captured there alone")
@pytest.mark.parametrize(("make", "objective", "changes"), CASES, ids=NAMES)
def test_captured_updates_equal_plain_ones(make, objective, changes):
    settings = settings_of(make, objective, device="cuda", compile=False, **changes)
    dataset = make(40, seed=1)
    assert_same_training(on_device(replace(settings, capture=False), dataset), on_device(settings, dataset))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: steps are compiled there alone")
@pytest.mark.filterwarnings("ignore")  # warnings of PyTorch's own compiler
@pytest.mark.parametrize("make", [coloured, cages])
def test_captured_and_compiled_updates_equal_plain_ones(make):
    settings = settings_of(make, "minloss", device="cuda", network=NETWORKS["equivariant"], burn_in=(0, 2))
    plainly = replace(settings, capture=False, compile=False)
    dataset = make(40, seed=1)
    assert_same_training(on_device(plainly, dataset), on_device(settings, dataset))
