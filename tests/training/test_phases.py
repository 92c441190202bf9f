"""The phases of Algorithm 1, written out for every objective."""

from dataclasses import replace

import pytest

from oneofmany.objectives import (
    BinaryNLL,
    CategoricalNLL,
    CCLoss,
    IExplR,
    MinLoss,
    Naive,
    Random,
    SelectR,
    Unique,
    binary_exact_match_reward,
    binary_hamming_reward,
    exact_match_reward,
    hamming_reward,
)
from oneofmany.training.phases import build_objective, phases_of
from oneofmany.training.settings import OBJECTIVES, PhaseSettings, SelectorTraining
from small_runs import small

FIRST = PhaseSettings(updates=6, batch=4, lr=0.1, decay=0.3)
SECOND = PhaseSettings(updates=5, batch=2, lr=0.01, decay=0.2)


def shape(settings):
    return [(p.name, p.objective, p.trains, p.fresh, p.stream) for p in phases_of(settings)]


@pytest.mark.parametrize("objective", ["naive", "random", "unique", "ccloss", "minloss"])
def test_one_phase(objective):
    assert shape(small(objective)) == [("train", objective, "network", True, "first")]
    second = small(objective, second=SECOND)
    assert shape(second) == [
        ("train", objective, "network", True, "first"),
        ("second", objective, "network", False, "second"),
    ]
    wanted = replace(SECOND, sampling="os") if objective == "unique" else SECOND
    assert phases_of(second)[1].settings == wanted


def test_selectr():
    settings = small("selectr", first=FIRST, second=SECOND)
    minloss, unique, selector, joint = phases_of(settings)
    assert shape(settings) == [
        ("pretrain-minloss", "minloss", "network", True, "first"),
        ("pretrain-unique", "unique", "network", True, "first"),
        ("selector", "selectr", "selector", False, "selector"),
        ("joint", "selectr", "both", False, "second"),
    ]
    assert (minloss.settings, joint.settings) == (FIRST, SECOND)
    assert unique.settings == replace(FIRST, sampling="os")
    assert (selector.settings.updates, selector.settings.batch, selector.settings.sampling) == (4, 2, "uniform")
    assert (selector.settings.stop_after, selector.settings.minutes) == (None, None)


def test_iexplr_has_no_selector_phase():
    assert shape(small("iexplr")) == [
        ("pretrain-minloss", "minloss", "network", True, "first"),
        ("pretrain-unique", "unique", "network", True, "first"),
        ("exploration", "iexplr", "network", False, "second"),
    ]


@pytest.mark.parametrize("objective", ["iexplr", "selectr"])
@pytest.mark.parametrize("way", ["minloss", "unique"])
def test_one_way_of_pretraining(objective, way):
    names = [phase.name for phase in phases_of(small(objective, pretraining=way))]
    assert names[0] == f"pretrain-{way}"
    assert not names[1].startswith("pretrain")


@pytest.mark.parametrize("way", ["minloss", "unique"])
def test_a_second_phase_can_start_from_another_objective(way):
    settings = small("ccloss", pretraining=way, first=FIRST, second=SECOND)
    assert shape(settings) == [
        (f"pretrain-{way}", way, "network", True, "first"),
        ("second", "ccloss", "network", False, "second"),
    ]
    # Without a second phase there is nothing to start.
    assert shape(small("ccloss", pretraining=way)) == [("train", "ccloss", "network", True, "first")]


def test_a_phase_has_the_weight_decay_of_the_run_unless_it_has_its_own():
    settings = small("iexplr", decay=0.5, first=replace(FIRST, decay=None), second=SECOND)
    assert [phase.settings.decay for phase in phases_of(settings)] == [0.5, 0.5, 0.2]
    none = small("minloss", decay=0.5, first=replace(FIRST, decay=0.0))
    assert [phase.settings.decay for phase in phases_of(none)] == [0.0]


def test_a_start_from_other_runs_leaves_the_first_phase_out():
    assert [phase.name for phase in phases_of(small("selectr", pretrained=("a", "b")))] == ["selector", "joint"]
    assert [phase.name for phase in phases_of(small("minloss", pretrained=("a",), second=SECOND))] == ["second"]
    unwarmed = small("selectr", pretrained=("a",), selector_training=SelectorTraining(updates=0))
    assert [phase.name for phase in phases_of(unwarmed)] == ["joint"]


@pytest.mark.parametrize("kind", ["equivariant", "nlm", "rrn"])
def test_objectives_fit_the_network(kind):
    kinds = dict(zip(OBJECTIVES, (Naive, Random, Unique, CCLoss, MinLoss, IExplR, SelectR), strict=True))
    for objective, wanted in kinds.items():
        settings = small(objective, kind)
        built = build_objective(settings, phases_of(settings)[-1])
        assert type(built) is wanted
        assert type(built.pair_loss) is (BinaryNLL if kind == "nlm" else CategoricalNLL)
        assert not built.draws
    assert isinstance(built, SelectR)
    assert built.reward is (binary_hamming_reward if kind == "nlm" else hamming_reward)
    exact = small("selectr", kind, selector_training=SelectorTraining(reward="exact", sample=True))
    built = build_objective(exact, phases_of(exact)[-1])
    assert isinstance(built, SelectR)
    assert built.reward is (binary_exact_match_reward if kind == "nlm" else exact_match_reward)
    assert built.sample
    assert built.reinforce


def test_epsilon_is_for_the_second_phase():
    settings = small("minloss", epsilon=0.3, second=SECOND)
    first, second = (build_objective(settings, phase) for phase in phases_of(settings))
    assert isinstance(first, MinLoss)
    assert isinstance(second, MinLoss)
    assert (first.epsilon, second.epsilon) == (0.0, 0.3)


def test_temperature_is_for_iexplr():
    settings = small("iexplr", temperature=2.0)
    built = build_objective(settings, phases_of(settings)[-1])
    assert isinstance(built, IExplR)
    assert built.temperature == 2.0
