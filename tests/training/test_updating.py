"""One update, against the same update written out by hand with plain PyTorch."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from by_hand import SGD, ByHand, literal_pair_losses, loose_data, updater_of
from on_device import assert_same_training, on_device

from oneofmany.data import Dataset, batches
from oneofmany.data.sudoku import build_sudoku
from oneofmany.training.distributed import Group
from oneofmany.training.learners import Learners, weights_of
from oneofmany.training.phases import phases_of
from oneofmany.training.revealing import reveal
from oneofmany.training.settings import PhaseSettings, SelectorTraining
from oneofmany.training.sparing import spare_settled
from oneofmany.training.updating import MEASURED, Updater
from small_runs import NETWORKS, assert_same_tensors, files, small

LAGGED = SelectorTraining(updates=4, lr=1e-2, decay=0.1, copy_interval=3)


@pytest.fixture
def in_double():
    """Use double precision, in which a gradient of pure rounding is too small for Adam to take a step."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def assert_close(module, other):
    for name, tensor in module.state_dict().items():
        torch.testing.assert_close(tensor, other.state_dict()[name], rtol=1e-5, atol=1e-6, msg=name)


@pytest.mark.usefixtures("in_double")
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("equivariant", {"selector_training": LAGGED, "burn_in": (0, 2), "clip": 0.5}),
        ("equivariant", {"reveal": 0.5, "loss_scale": 0.1, "optimiser": "adam", "decay": 0.1}),
        ("equivariant", {"discover": True, "selector_training": LAGGED, "burn_in": (0, 2)}),
        ("equivariant", {"discover": True, "reveal": 0.5}),
        # A first update that is skipped would leave the momentum of PyTorch's fused SGD uninitialised.
        ("equivariant", {"spare_settled": True, "selector_training": LAGGED, "burn_in": (0, 9), "seed": 4}),
        ("equivariant", {"spare_settled": True, "reveal": 0.5, "seed": 4}),
        ("rrn", {"selector_training": LAGGED, "clip": 5.0}),
        ("rrn", {}),
        ("nlm", {"selector_training": LAGGED, "loss_scale": 1 / 49, "decay": 0.1}),
    ],
)
def test_joint_updates_against_algorithm_1(data, kind, changes):
    settings = small("selectr", kind, **changes)
    updater = updater_of(settings, data, data=loose_data() if settings.discover or settings.spare_settled else None)
    updater.learners.selector_optimiser = torch.optim.SGD(updater.learners.selector.parameters(), **SGD, fused=True)
    hand = ByHand(updater)
    wanted = dict.fromkeys(MEASURED, 0.0)
    for number in range(5):
        loss, selector_loss, trained, multiple, (by_loss, by_hamming) = hand.update(number, lr=0.01)
        updater.run(number, lr=0.01)
        for name, value in (
            ("loss", loss),
            ("selector_loss", selector_loss),
            ("queries", trained),
            ("ms_queries", multiple),
            ("exploratory_loss", by_loss),
            ("exploratory_hamming", by_hamming),
        ):
            wanted[name] += value
        assert_close(updater.learners.network, hand.network)
        assert_close(updater.learners.selector, hand.selector)
        if updater.learners.lagged is not None:
            assert_close(updater.learners.lagged.network, hand.copied)
    measured = updater.measured()
    for name in ("queries", "ms_queries", "exploratory_loss", "exploratory_hamming"):
        assert measured[name] == wanted[name]
    assert 0 < measured["ms_queries"] < measured["queries"] == 20 - hand.spared
    assert bool(hand.discovered) == settings.discover
    assert bool(hand.spared) == settings.spare_settled
    assert measured["loss"] == pytest.approx(wanted["loss"], rel=1e-6)
    assert measured["selector_loss"] == pytest.approx(wanted["selector_loss"], rel=1e-6)
    assert updater.measured() == dict.fromkeys(MEASURED, 0.0)  # sums begin anew


def test_the_optimisers_are_those_of_the_settings(data):
    for name, kind in (("adamw", torch.optim.AdamW), ("adam", torch.optim.Adam)):
        settings = small("selectr", optimiser=name, decay=0.25, betas=(0.5, 0.75), selector_training=LAGGED)
        learners = updater_of(settings, data).learners
        for optimiser, decay in ((learners.optimiser, 0.25), (learners.selector_optimiser, LAGGED.decay)):
            (group,) = optimiser.param_groups
            assert type(optimiser) is kind
            assert (group["weight_decay"], group["betas"]) == (decay, (0.5, 0.75))
        assert learners.selector_optimiser.param_groups[0]["lr"].item() == pytest.approx(LAGGED.lr)


def test_the_copy_is_the_network_of_some_updates_ago(data):
    updater = updater_of(small("selectr", selector_training=LAGGED), data)
    seen = [weights_of(updater.learners.network)]
    for number in range(8):
        updater.run(number, lr=0.01)
        seen.append(weights_of(updater.learners.network))
        # Updates are counted from 0, and the copy is refreshed after those divisible by copyitr: 1, 4, 7, ...
        assert_same_tensors(weights_of(updater.learners.lagged.network), seen[number // 3 * 3 + 1])


def test_the_selector_phase_leaves_the_network_alone(data):
    updater = updater_of(small("selectr", selector_training=LAGGED, ema=0.5), data, which=2)
    assert updater.phase.trains == "selector"
    learners = updater.learners
    before = [weights_of(module) for _, module in learners._modules()]
    for number in range(3):
        updater.run(number, lr=0.01)
    after = {name: weights_of(module) for name, module in learners._modules()}
    for name, weights in zip(after, before, strict=True):
        changed = any(not torch.equal(tensor, weights[key]) for key, tensor in after[name].items())
        assert changed == (name == "selector")
    assert not learners.optimiser.state_dict()["state"]


@pytest.mark.usefixtures("in_double")
@pytest.mark.parametrize("spare", [False, True])
def test_windows_carry_the_state_without_a_gradient(data, spare):
    """The gradient of an update of three windows is the mean of three gradients, each from a state that is cut off."""
    settings = small("minloss", windows=3, burn_in=(2,), spare_settled=spare, loss_scale=0.5, reveal=0.5)
    updater = updater_of(settings, data)
    network, inputs = copy.deepcopy(updater.learners.network), updater.draw(0)
    batch = reveal(updater.data.batch(inputs["rows"]), 0.5, inputs["reveal"])
    with torch.no_grad():
        _, state = network(batch, steps=2, noise=inputs["noise"], return_state=True)
    losses = []
    for _ in range(3):
        logits, state = network(batch, noise=inputs["noise"], state=state, return_state=True)
        state = state.detach()
        own = spare_settled(batch, logits) if spare else batch
        pairs = literal_pair_losses(logits, own, 0, False).mean(0).masked_fill(~own.mask, torch.inf)
        nearest = pairs.amin(1)[own.mask.any(1)]
        losses.append(nearest.sum() / len(nearest))
    loss = torch.stack(losses).mean() * 0.5
    loss.backward()
    updater.run(0, lr=0.0)
    for name, parameter in updater.learners.network.named_parameters():
        torch.testing.assert_close(parameter.grad, network.get_parameter(name).grad, msg=name)
    measured = updater.measured()
    assert measured["loss"] == pytest.approx(loss.item())
    assert measured["queries"] == pytest.approx(len(batch), abs=0 if not spare else 4)


def test_a_curriculum_draws_harder_queries_from_update_to_update(monkeypatch):
    dataset = build_sudoku(60, "train", seed=1)
    rating = np.random.default_rng(1).permutation(60)
    monkeypatch.setattr(batches, "ratings_of", lambda data: rating[: len(data)])
    phase = PhaseSettings(updates=11, batch=400)
    settings = small("minloss", curriculum=(0.2, 0.8), first=phase)
    learners = Learners(settings, dataset.problem, torch.device("cpu"))
    placed = batches.place(dataset, rated=True)
    updater = Updater(settings, phases_of(settings)[0], learners, placed, Group())
    for update, place in ((0, 0.2), (5, 0.5), (10, 0.8)):
        drawn = rating[updater.draw(update)["rows"].numpy()]
        assert drawn.mean() == pytest.approx(60 * place - 0.5, abs=3)
    again = Updater(settings, phases_of(settings)[0], learners, placed, Group())
    assert torch.equal(again.draw(5)["rows"], updater.draw(5)["rows"])


# ---- nothing to train on -------------------------------------------------------------------------------------------


def with_unlisted(dataset, row):
    """The same queries, one of them without a listed solution."""
    keep = np.ones(len(dataset.solutions), bool)
    keep[dataset.offsets[row] : dataset.offsets[row + 1]] = False
    listed = dataset.listed
    listed[row] = 0
    offsets = np.concatenate([[0], np.cumsum(listed)])
    parts = (dataset.total, dataset.relations, dataset.group)
    return Dataset(dataset.problem, dataset.query, dataset.solutions[keep], offsets, *parts)


@pytest.mark.parametrize("objective", ["naive", "random", "ccloss", "minloss", "unique", "iexplr", "selectr"])
def test_a_batch_with_nothing_to_train_on_changes_nothing(data, objective):
    settings = small(objective, ema=0.5, decay=0.5, selector_training=LAGGED)
    dataset = with_unlisted(Dataset.load(files(data, settings)[0]), 0)
    updater = updater_of(settings, data, data=dataset)
    for number in range(2):  # so that there is momentum
        updater.run(number, lr=0.01)
    state = updater.learners.state()
    assert sum("exp_avg" in name for name in state) > 10
    inputs = updater.draw(2)
    updater.step(inputs | {"rows": torch.zeros(4, dtype=torch.int64)})
    assert_same_tensors(updater.learners.state(), state)
    assert updater.measured()["skipped"] == 1


def test_unique_has_nothing_to_learn_from_ms_queries(data):
    updater = updater_of(small("unique", ema=0.5, decay=0.5), data)
    updater.run(0, lr=0.01)
    state = updater.learners.state()
    updater.step(updater.draw(1) | {"rows": updater.data.rows["ms"][:4]})
    assert_same_tensors(updater.learners.state(), state)


def test_os_queries_teach_the_network_but_not_the_selector(data):
    updater = updater_of(small("selectr", decay=0.5, selector_training=LAGGED), data)
    updater.run(0, lr=0.01)
    state = updater.learners.state()
    updater.step(updater.draw(1) | {"rows": updater.data.rows["os"][:4]})
    changed = {k.split("/")[0] for k, v in updater.learners.state().items() if not torch.equal(v, state[k])}
    assert changed == {"network", "optimiser"}


@pytest.mark.parametrize("changes", [{"largest_gradient": 1e-6}, {"loss_scale": 1e38}])
def test_a_bad_gradient_is_skipped(data, changes):
    settings = small("minloss", ema=0.5, decay=0.5)
    updater = updater_of(settings, data)
    updater.run(0, lr=0.01)
    state = updater.learners.state()
    updater.measured()
    updater.settings = replace(settings, **changes)
    updater.run(1, lr=0.01)
    assert_same_tensors(updater.learners.state(), state)
    assert updater.measured()["skipped"] == 1
    updater.settings = settings
    updater.run(2, lr=0.01)
    assert any(not torch.equal(v, state[k]) for k, v in updater.learners.state().items())
    assert updater.measured()["skipped"] == 0


# ---- moving average, draws -----------------------------------------------------------------------------------------


def test_the_moving_average(data):
    updater = updater_of(small("minloss", ema=0.75), data)
    average = weights_of(updater.learners.network)
    for number in range(3):
        updater.run(number, lr=0.01)
        live = weights_of(updater.learners.network)
        average = {name: 0.75 * tensor + 0.25 * live[name] for name, tensor in average.items()}
    for name, tensor in weights_of(updater.learners.evaluated).items():
        torch.testing.assert_close(tensor, average[name])


@pytest.mark.parametrize("objective", ["naive", "unique", "selectr"])
def test_what_an_update_draws_is_a_function_of_seed_stream_and_number(data, objective):
    sampling = "pairs" if objective == "naive" else "uniform"
    phase = PhaseSettings(updates=6, batch=8, sampling=sampling)
    settings = small(objective, first=phase, second=phase, reveal=0.5, burn_in=(0, 1, 2))
    one, other = updater_of(settings, data), updater_of(settings, data)
    for _ in range(3):
        other.draw(9)
    assert_same_tensors(one.draw(5), other.draw(5))
    assert [one._burn_in(n) for n in range(60)] == [other._burn_in(n) for n in range(60)]
    assert {one._burn_in(n) for n in range(60)} == {0, 1, 2}
    another = updater_of(replace(settings, seed=8), data)
    assert not torch.equal(one.draw(5)["rows"], another.draw(5)["rows"])
    assert not torch.equal(one.draw(5)["noise"], one.draw(6)["noise"])
    if objective == "unique":
        drawn = torch.cat([one.draw(n)["rows"] for n in range(20)])
        assert torch.isin(drawn, one.data.rows["os"]).all()
        assert len(drawn.unique()) > 10


def test_minloss_and_selectrs_pretraining_are_the_same_run(data):
    alone, before = updater_of(small("minloss"), data), updater_of(small("selectr"), data, which=0)
    assert before.phase.name == "pretrain-minloss"
    for number in range(3):
        assert_same_tensors(alone.draw(number), before.draw(number))
        alone.run(number, 0.01)
        before.run(number, 0.01)
    assert_same_tensors(weights_of(alone.learners.network), weights_of(before.learners.network))


@pytest.mark.parametrize("kind", NETWORKS)
def test_processes_draw_the_slices_of_one_batch(data, kind):
    settings = small("selectr", kind, reveal=0.5, selector_training=SelectorTraining(sample=True))
    whole = updater_of(settings, data).draw(3)
    halves = [updater_of(settings, data, group=Group(rank, 2)).draw(3) for rank in (0, 1)]
    for name, tensor in whole.items():
        if name == "seed":
            assert torch.equal(halves[0][name], tensor)
            assert torch.equal(halves[1][name], tensor)
            continue
        assert torch.equal(torch.cat([half[name] for half in halves]), tensor)
    with pytest.raises(ValueError, match="batch: expected a multiple of the 3 processes, got 4"):
        updater_of(settings, data, group=Group(0, 3))


# ---- on a GPU ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: updates are captured there alone")
@pytest.mark.parametrize(("kind", "objective"), [(k, o) for k in NETWORKS for o in ("minloss", "selectr")])
def test_captured_updates_equal_plain_ones(data, kind, objective):
    changes = {"burn_in": (0, 2), "ema": 0.5, "discover": True} if kind == "equivariant" else {}
    training = replace(LAGGED, lr=1e-3)
    settings = small(objective, kind, device="cuda", compile=False, selector_training=training, **changes)
    dataset = Dataset.load(files(data, settings)[0])
    assert_same_training(on_device(replace(settings, capture=False), dataset), on_device(settings, dataset))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: updates are captured there alone")
def test_captured_windows_equal_plain_ones(data):
    settings = small("minloss", device="cuda", compile=False, windows=3, burn_in=(0, 2), spare_settled=True)
    dataset = Dataset.load(files(data, settings)[0])
    assert_same_training(on_device(replace(settings, capture=False), dataset), on_device(settings, dataset))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: steps are compiled there alone")
@pytest.mark.filterwarnings("ignore")  # warnings of PyTorch's own compiler
def test_a_compiled_step_equals_the_plain_one(data):
    settings = small("minloss", device="cuda", capture=False, burn_in=(0, 2))
    dataset = Dataset.load(files(data, settings)[0])
    assert_same_training(on_device(replace(settings, compile=False), dataset), on_device(settings, dataset))
