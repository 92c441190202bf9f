"""The recipes that take our results apart differ in what they compare, at equal budgets, and share their starts."""

from dataclasses import asdict

import pytest

from oneofmany.recipes import data_of, matching, recipe
from oneofmany.recipes.ingredients import ALIKE, SHORT, SHORT_CHECKER, SHORT_RECIPE, factorial
from oneofmany.training import OBJECTIVES
from oneofmany.training.jobs import Job, share
from oneofmany.training.phases import phases_of


def flat(values, prefix=""):
    found = {}
    for name, value in values.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def different(one, other):
    """The settings in which two recipes differ, apart from their names."""
    mine, theirs = (flat(asdict(recipe(name))) for name in (one, other))
    return {field for field in mine if mine[field] != theirs[field]} - {"recipe"}


def updates(name):
    return sum(phase.settings.updates for phase in phases_of(recipe(name)) if phase.trains != "selector")


def shared(names, folder):
    """Recipe -> the recipes of the runs that a sweep lets it start from."""
    jobs = [Job(name, recipe(name), folder / name, (), data_of(name)) for name in names]
    found = share(jobs, folder)
    return {job.name: [path.removeprefix(f"{folder}/") for path in job.settings.pretrained] for job in found}


def test_the_factorial_has_every_cell_once_and_differs_in_nothing_else():
    cells = {(one.settings.discover, one.settings.reveal, one.settings.burn_in) for one in factorial()}
    plain = [one for one in factorial() if not one.settings.spare_settled]
    assert len(cells) == len(plain) == 8
    for one in factorial():
        assert different(one.name, SHORT_RECIPE) <= {"discover", "reveal", "burn_in", "spare_settled"}
        assert updates(one.name) == SHORT["sudoku"]
    assert different(SHORT_RECIPE, SHORT_CHECKER) == {"discover", "spare_settled"}
    assert different(SHORT_RECIPE, "sudoku/minloss/equivariant") == {"first.updates", "evaluate_every"}


@pytest.mark.parametrize("base", [SHORT_RECIPE, SHORT_CHECKER])
def test_lists_differ_in_their_length_alone(base):
    variant = base.rsplit("/", 1)[0]
    assert different(base, f"{variant}/short-listed-1") == different(base, f"{variant}/short-listed-2") == {"listed"}
    assert not different(base, f"{variant}/short-listed-all")
    assert data_of(base)[1] == data_of(f"{variant}/short-listed-all")[1]
    assert data_of(f"{variant}/short-listed-all")[0] == "sudoku-all-train"


def test_objectives_alike_have_equal_totals_and_one_start(tmp_path):
    names = matching("sudoku/*/equivariant/alike")
    assert [recipe(name).objective for name in names] == list(OBJECTIVES)
    start, again = "sudoku/minloss/equivariant/alike-start", "sudoku/minloss/equivariant/alike-two-phases"
    assert {updates(name) for name in [*names, again]} == {ALIKE}
    from_start = {name for name, starts in shared([*names, start, again], tmp_path).items() if starts == [start]}
    assert from_start == {"sudoku/iexplr/equivariant/alike", "sudoku/selectr/equivariant/alike", again}
    for name in from_start:
        assert recipe(name).second == recipe(again).second
        assert recipe(name).second.updates > ALIKE / 2
    for name in names:
        assert not recipe(name).discover


@pytest.mark.parametrize(("change", "start"), [("second-phase", "minloss"), ("second-phase-from-unique", "unique")])
def test_every_second_phase_of_n_queens_starts_from_one_run(change, start, tmp_path):
    names = matching(f"nqueens/*/table-2/{change}")
    assert sorted(recipe(name).objective for name in names) == ["ccloss", "iexplr", "minloss", "selectr"]
    found = shared([f"nqueens/{start}/table-2", *names], tmp_path)
    assert all(found[name] == [f"nqueens/{start}/table-2"] for name in names)
    assert len({recipe(name).second for name in names}) == 1


@pytest.mark.parametrize("task", SHORT)
@pytest.mark.parametrize("objective", ["minloss", "selectr"])
def test_networks_swap_their_recipes(task, objective):
    ours = recipe(
        f"{task}/{objective}/equivariant/same-budget" if objective == "selectr" or task != "sudoku" else SHORT_RECIPE
    )
    theirs = recipe(f"{task}/{objective}/table-2")
    swapped, other = (
        recipe(f"{task}/{objective}/{one}") for one in ("table-2/our-recipe", "equivariant/paper-schedule")
    )
    assert (swapped.network, swapped.selector) == (theirs.network, theirs.selector)
    assert (other.network, other.selector) == (ours.network, ours.selector)
    for field in ("ema", "decay", "clip", "reveal", "betas", "evaluate_every", "pretraining"):
        assert getattr(swapped, field) == getattr(ours, field)
        assert getattr(other, field) == getattr(theirs, field)
    assert other.first == theirs.first
    assert other.second == theirs.second
    assert updates(swapped.recipe) == updates(ours.recipe) == SHORT[task]
