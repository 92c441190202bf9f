"""Settings: they survive JSON and the command line, refuse impossible values, and name differences."""

import dataclasses
import json
import math
import re
from typing import get_args

import pytest

from oneofmany.networks.building import NetworkSettings
from oneofmany.recipes import recipes
from oneofmany.recipes.fields import resolve
from oneofmany.training.ranges import RANGES, fields_of
from oneofmany.training.settings import PhaseSettings, SelectorTraining, Settings, differences, from_json, to_json
from small_runs import fields, small


def test_through_json_and_back():
    for settings in recipes().values():
        assert from_json(json.loads(json.dumps(to_json(settings), allow_nan=False))) == settings


@pytest.mark.parametrize(
    "settings",
    [
        small("selectr", pretrained=("a", "b c"), burn_in=(0, 3), reveal=0.5, clip=1.5, dev_queries=3),
        small("minloss", "rrn", first=PhaseSettings(updates=3, sampling=0.25, stop_after=4, minutes=0.5)),
        small("minloss", windows=3, curriculum=(0.25, 0.75)),
    ],
)
def test_through_the_command_line_and_back(settings):
    assert resolve("nqueens/minloss/tiny", fields(settings)) == settings


def test_they_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        small().seed = 3  # pyright: ignore


def test_a_setting_of_another_version_is_named():
    values = to_json(small())
    with pytest.raises(ValueError, match=r"^colour: this version has no such setting$"):
        from_json(values | {"colour": 1})
    values["first"] = values["first"] | {"colour": 1}
    with pytest.raises(ValueError, match=r"^first\.colour: "):
        from_json(values)


def test_settings_of_earlier_versions_that_changed_nothing_are_dropped():
    values = json.loads(json.dumps(to_json(small())))
    assert from_json(values | {"starts": 1, "start_temperature": 0.0}) == small()
    for name, value in (("starts", 2), ("start_temperature", 0.5)):
        with pytest.raises(ValueError, match=rf"^{name}: this version has no such setting$"):
            from_json(values | {"starts": 1, "start_temperature": 0.0} | {name: value})


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"first": PhaseSettings(updates=0)}, "first.updates"),
        ({"windows": 0}, "windows"),
        ({"curriculum": (0.0, 0.5)}, "curriculum"),
        ({"curriculum": (0.5,)}, "curriculum"),
        ({"curriculum": (0.5, 0.6), "first": PhaseSettings(updates=1, sampling="pairs-padded")}, "curriculum"),
        ({"objective": "selectr", "second": PhaseSettings(updates=0)}, "second.updates"),
        ({"loss_scale": float("nan")}, "loss_scale"),
        ({"largest_loss": float("inf")}, "largest_loss"),
        ({"first": PhaseSettings(updates=1, sampling=float("nan"))}, "first.sampling"),
        ({"evaluate_every": 0}, "evaluate_every"),
        ({"log_every": 0}, "log_every"),
        ({"first": PhaseSettings(updates=1, batch=0)}, "first.batch"),
        ({"first": PhaseSettings(updates=1, lr=0.0)}, "first.lr"),
        ({"first": PhaseSettings(updates=1, lr=float("nan"))}, "first.lr"),
        ({"first": PhaseSettings(updates=1, minutes=-1.0)}, "first.minutes"),
        ({"first": PhaseSettings(updates=1, sampling=1.5)}, "first.sampling"),
        ({"second": PhaseSettings(updates=1, sampling=-0.5)}, "second.sampling"),
        ({"selector_training": SelectorTraining(copy_interval=0)}, "selector_training.copy_interval"),
        ({"selector_training": SelectorTraining(lr=-1.0)}, "selector_training.lr"),
        ({"temperature": 0.0}, "temperature"),
        ({"clip": 0.0}, "clip"),
        ({"reveal": 1.1}, "reveal"),
        ({"ema": 1.0}, "ema"),
        ({"epsilon": -0.1}, "epsilon"),
        ({"burn_in": ()}, "burn_in"),
        ({"burn_in": (0, -1)}, "burn_in"),
        ({"dev_queries": 0}, "dev_queries"),
        ({"listed": 0}, "listed"),
        ({"network": NetworkSettings("rrn"), "discover": True}, "burn_in, windows, discover and spare_settled"),
        ({"network": NetworkSettings("nlm"), "burn_in": (0, 4)}, "burn_in, windows, discover and spare_settled"),
        ({"network": NetworkSettings("rrn"), "spare_settled": True}, "burn_in, windows, discover and spare_settled"),
        ({"objective": "unique", "spare_settled": True}, "spare_settled"),
        ({"discover": True, "spare_settled": True}, "discover and spare_settled"),
        ({"loss_scale": 0.0}, "loss_scale"),
        ({"loss_scale": -1.0}, "loss_scale"),
        ({"network": NetworkSettings(dropout=2.0)}, "network.dropout"),
        ({"network": NetworkSettings(dropout=1.0)}, "network.dropout"),
        ({"network": NetworkSettings(width=0)}, "network.width"),
        ({"network": NetworkSettings(test_steps=0)}, "network.test_steps"),
        ({"first": PhaseSettings(updates=1, warmup=-5)}, "first.warmup"),
        ({"first": PhaseSettings(updates=1, batch=1_000_000_000)}, "first.batch"),
        ({"first": PhaseSettings(updates=1, decay=-1.0)}, "first.decay"),
        ({"threads": 0}, "threads"),
        ({"threads": 100_000}, "threads"),
        ({"betas": (2.0, 3.0)}, "betas"),
        ({"decay": -1.0}, "decay"),
        ({"largest_loss": 10**400}, "largest_loss"),
    ],
)
def test_what_cannot_be_is_refused_by_name(changes, name):
    with pytest.raises(ValueError, match=rf"^{name.replace('.', '[.]')}: "):
        small(**changes)


def test_every_difference_is_named_once():
    ours = small()
    assert differences(to_json(ours), to_json(ours)) == []
    # JSON turns tuples into lists, which is not a difference.
    assert differences(to_json(ours), json.loads(json.dumps(to_json(ours)))) == []
    theirs = dataclasses.replace(ours, seed=1, first=dataclasses.replace(ours.first, lr=0.5), burn_in=(0, 2))
    found = differences(to_json(ours), to_json(theirs))
    assert found == ["seed: 1 there, 7 here", "first.lr: 0.5 there, 0.01 here", "burn_in: (0, 2) there, (0,) here"]


def test_every_field_has_a_help_text():
    import ast
    import inspect

    for kind in (Settings, PhaseSettings, SelectorTraining, NetworkSettings):
        body = ast.parse(inspect.getsource(kind)).body[0].body  # pyright: ignore
        for statement, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                explained = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                # Nested settings have a docstring of their class.
                assert explained or statement.target.id in ("network", "selector", "selector_training")


NUMBER = (int, float)


def numbers():
    """The full name of every setting that is a number or several."""
    for name, _, hint in fields_of(small()):
        kinds = [inner for outer in (hint, *get_args(hint)) for inner in (outer, *get_args(outer))]
        if any(kind in NUMBER for kind in kinds):
            yield name


def test_every_number_has_a_range_and_a_sentence():
    assert sorted(numbers()) == sorted(RANGES)
    outside = ((lambda r: r.least - 1), (lambda r: r.most + 1))
    for name, values in RANGES.items():
        for number in (outer(values) for outer in outside):
            if math.isfinite(number):
                nested, _, field = name.rpartition(".")
                one = (number,) if name == "burn_in" else (number, 0.5) if name == "betas" else number
                start = small() if not nested else getattr(small(), nested)
                changes = {field: one} if not nested else {nested: dataclasses.replace(start, **{field: one})}
                with pytest.raises(ValueError, match=rf"^{name}: expected [^\n]+, got {re.escape(str(number))}$"):
                    small(**changes)


WRONG = (None, True, 3, 0.5, "x", [], [1, "x"], {}, {"a": 1}, 10**400, float("nan"))


def complaint(values):
    """The sentence with which a configuration is refused; empty if it is not."""
    try:
        from_json(values)
    except (ValueError, TypeError) as error:
        return str(error)
    return ""


def test_json_of_other_types_is_one_sentence():
    """Every field of a configuration, nested ones included, with a value of every JSON type."""
    good = json.loads(json.dumps(to_json(small("selectr"))))
    inner = [(values, name) for values in good.values() if isinstance(values, dict) for name in values]
    sentences = []
    for place, name in [(good, name) for name in good] + inner:
        kept = place[name]
        for wrong in WRONG:
            place[name] = wrong
            if sentence := complaint(good):
                sentences.append(sentence)
                assert name in sentence or isinstance(kept, dict), sentence
        place[name] = kept
    assert len(sentences) > 300
    assert not any("\n" in sentence for sentence in sentences)
    for wrong in (None, True, 3, "x", []):
        assert complaint(wrong).startswith("settings: expected an object")
