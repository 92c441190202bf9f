"""Recipes: the paper's are pinned to what is known about its experiments, and every one of them runs."""

from dataclasses import asdict, replace

import pytest

from oneofmany.cli import run
from oneofmany.data.benchmark import CMUDICT, NAMED
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.sudoku import build_sudoku
from oneofmany.networks.building import NETWORKS
from oneofmany.networks.saved import load_network
from oneofmany.recipes import SEEDS, data_of, matching, recipe, recipes, tuning
from oneofmany.recipes.comparing import departures
from oneofmany.runs.folder import RunFolder
from oneofmany.training.phases import phases_of
from oneofmany.training.settings import to_json

TASKS = ("nqueens", "futoshiki", "sudoku")
OBJECTIVES = ("naive", "random", "unique", "ccloss", "minloss", "iexplr", "selectr")
GRID = [f"{task}/{objective}" for task in TASKS for objective in OBJECTIVES]

# ---- the paper's ---------------------------------------------------------------------------------------------------

# Section 4.2, the appendix, and the authors' commands where the text is silent.
NLM = {
    "network.kind": "nlm",
    "network.depth": 30,
    "network.width": 8,
    "selector.kind": "nlm",
    "selector.depth": 4,
    "selector.width": 10,
    "listed": None,
    "clip": None,  # the authors' 1000 skips updates, it does not clip
    "first.batch": 4,
    "first.lr": 5e-3,
    "first.updates": 200 * 250,
    "second.batch": 4,
    "second.lr": 5e-4,
    "selector_training.updates": 250,
    "evaluate_every": 250,
}
RRN = {
    "network.kind": "rrn",
    "network.steps": 32,
    "network.width": 96,
    "network.dropout": 0.1,
    "selector.kind": "cnn",
    "listed": 5,
    "clip": 5.0,
    "first.batch": 32,
    "first.lr": 1e-3,
    "first.updates": 200 * 625,
    "second.batch": 16,
    "second.lr": 1e-4,
    "second.sampling": "uniform",
    "selector_training.updates": 2 * 625,
    "selector_training.copy_interval": 1,
    "selector_training.decay": 1e-4,
    "decay": 1e-4,
    "loss_scale": 1 / 81,
    "evaluate_every": 625,
}
# Besides the task: the values that the authors tuned (decay, copyitr, MS share) and the mean over the choices.
TUNED = {
    "nqueens": {
        "decay": 1e-5,
        "selector_training.decay": 1e-5,
        "selector_training.copy_interval": 10 * 250,
        "second.sampling": "ms",
        "loss_scale": 1 / 100,
    },
    "futoshiki": {
        "decay": 1e-5,
        "selector_training.decay": 1e-5,
        "selector_training.copy_interval": 1,
        "second.sampling": 0.5,
        "loss_scale": 1 / 125,
    },
    "sudoku": {},
}
EVERYWHERE = {
    "seed": 42,
    "optimiser": "adamw",
    "betas": (0.9, 0.999),
    "first.schedule": "plateau",
    "first.stop_after": 20,
    "second.schedule": "plateau",
    "second.stop_after": 25,
    "selector_training.lr": 5e-4,
    "selector_training.reward": "hamming",
    "selector_training.sample": False,
    "pretraining": "both",
    "pretrained": (),
    "discover": False,
    "spare_settled": False,
    "follow_noise": 0.0,
    "shards": 1,
    "temperature": 1.0,
    "largest_gradient": 1000.0,
    "largest_loss": 1e6,
    "select_on": "overall",
    "dev_queries": None,
    "device": "auto",
    "threads": None,
    # Everything beyond the paper is off.
    "ema": 0.0,
    "reveal": 0.0,
    "augment": False,
    "burn_in": (0,),
    "windows": 1,
    "curriculum": None,
    "keep_pretrained": False,
    "epsilon": 0.0,
    "network.test_steps": None,
    "network.hidden": None,
    "network.latent": 0,
    "first.warmup": 0,
    "second.warmup": 0,
    "first.minutes": None,
    "first.decay": None,
    "initial": None,
    "second.decay": None,
    "second.minutes": None,
}
SAMPLING = {"naive": "pairs", "unique": "os"}
TWO_PHASES = ("iexplr", "selectr")
FREE = {
    # Fields about the machine, and fields that its network, data or schedule does not use.
    "repair",
    "precision",
    "capture",
    "compile",
    "log_every",
    "checkpoint_minutes",
    "network.inequalities",
    "network.heads",
    "network.mixing",
    "network.frames",
    "first.final_lr",
    "second.final_lr",
}
NOT_OF = {
    "nlm": {"network.steps", "network.dropout"},
    "rrn": {"network.depth", "selector.width", "selector.depth"},
}


def flat(values, prefix=""):
    """Nested dictionaries as one, with dotted names."""
    found = {}
    for name, value in values.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


@pytest.mark.parametrize("name", GRID)
def test_the_papers_table(name):
    task, objective = name.split("/")
    kind = "rrn" if task == "sudoku" else "nlm"
    pinned = EVERYWHERE | (RRN if kind == "rrn" else NLM) | TUNED[task]
    pinned |= {"recipe": name, "task": task, "objective": objective}
    pinned["first.sampling"] = SAMPLING.get(objective, "uniform")
    pinned["second.updates"] = pinned["first.updates"] if objective in TWO_PHASES else 0
    settings = flat(asdict(recipe(name)))
    for field, value in pinned.items():
        assert settings.pop(field) == value, field
    # No other field can differ from the paper.
    assert settings.keys() == FREE | NOT_OF[kind]
    assert NETWORKS[recipe(name).network.kind].readout == ("argmax" if kind == "rrn" else "threshold")
    assert data_of(name) == (f"{task}-train", f"{task}-dev")


def test_the_papers_seeds():
    assert SEEDS == (42, 1729, 3120)


def test_the_authors_padding_is_beside_eq_1():
    authors, naive = (flat(asdict(recipe(name))) for name in ("nqueens/naive-authors", "nqueens/naive"))
    different = {field for field, value in authors.items() if value != naive[field]}
    assert different == {"recipe", "first.sampling"}
    assert authors["first.sampling"] == "pairs-padded"


@pytest.mark.parametrize("name", GRID)
def test_larger_batches_see_equally_many_queries(name):
    large, paper = recipe(f"{name}/large-batch"), recipe(name)
    for phase in ("first", "second"):
        mine, theirs = getattr(large, phase), getattr(paper, phase)
        assert mine.batch == 8 * theirs.batch
        assert 0 <= mine.batch * mine.updates - theirs.batch * theirs.updates < mine.batch
        assert (mine.lr, mine.sampling, mine.schedule) == (theirs.lr, theirs.sampling, theirs.schedule)


# ---- all of them ---------------------------------------------------------------------------------------------------


def test_the_grids_are_whole():
    known = recipes()
    assert all(name == settings.recipe for name, settings in known.items())
    for kind in ("", "/large-batch", "/table-2", "/equivariant", "/transformer", "/tiny"):
        assert all(f"{name}{kind}" in known for name in GRID)
    for name in known:
        task = name.split("/")[0].removesuffix("-hard")
        assert set(data_of(name)) <= (NAMED.keys() if task in (*TASKS, "colouring") else {"", *CMUDICT})
        assert known[name].task == task
        assert known[name].objective == name.split("/")[1].split("-")[0]


def test_a_network_that_knows_one_size_gets_one_size():
    """And boards of the size of dev are of another split: ``nqueens-train`` has all of its size."""
    shown = [name for name, own in recipes().items() if own.network.kind == "transformer" and any(data_of(name))]
    assert len(shown) == 42
    for name in shown:
        train, dev = data_of(name)
        sizes = {NAMED[data].args[0] for data in (train, dev)}
        assert name.startswith("sudoku") or len(sizes) == 1
        for data, split in ((train, "train"), (dev, "dev")):
            assert split in (*NAMED[data].args, *NAMED[data].keywords.values())


@pytest.mark.parametrize("task", [*TASKS, "colouring"])
@pytest.mark.parametrize("kind", ["equivariant", "tiny"])
def test_our_objectives_differ_in_the_objective_alone(task, kind):
    budgets = set()
    by_objective = {objective: recipe(f"{task}/{objective}/{kind}") for objective in OBJECTIVES}
    for objective, settings in by_objective.items():
        budgets.add(sum(phase.settings.updates for phase in phases_of(settings) if phase.trains != "selector"))
        mine, theirs = flat(asdict(settings)), flat(asdict(by_objective["minloss"]))
        different = {field for field, value in mine.items() if value != theirs[field]}
        allowed = {"recipe", "objective", "first.updates", "first.sampling", "second.updates"}
        if objective in TWO_PHASES:  # the others have no second phase
            allowed |= {field for field in mine if field.startswith("second.") or field == "pretraining"}
        # Sparing is for objectives that weight the listed solutions, if not all are listed.
        assert different - {"spare_settled"} <= allowed
        choosing = objective in ("ccloss", "minloss", "iexplr", "selectr")
        assert settings.spare_settled == (kind == "equivariant" and task in ("sudoku", "colouring") and choosing)
    assert len(budgets) == 1  # every objective has the same number of updates


def test_the_checker_trains_only_recipes_that_are_named_after_it():
    for name in recipes():
        assert recipe(name).discover == ("equivariant-checker" in name.split("/"))


def test_an_unknown_recipe_is_told_the_closest_name():
    with pytest.raises(ValueError, match=r"^there is no recipe 'nqueens/minlos': did you mean 'nqueens/minloss'\?$"):
        recipe("nqueens/minlos")
    with pytest.raises(ValueError, match="the recipes are TASK/OBJECTIVE"):
        recipe("chess")


@pytest.mark.parametrize("name", GRID)
def test_the_tuning_grid_and_its_recipes_are_one_table(name):
    points = [",".join(f"{field}={value}" for field, value in point.items()) for point in tuning(recipe(name))]
    assert matching(f"{name}/tuning/*") == [f"{name}/tuning/{point}" for point in points]
    assert len(points) == (2 if name.startswith("sudoku") else 3)
    for point in points:
        settings = flat(asdict(recipe(f"{name}/tuning/{point}")))
        for field, value in (part.split("=") for part in point.split(",")):
            assert settings[field] == (float(value) if value[0].isdigit() else value)
            assert field.endswith("sampling") or type(settings[field]) is type(flat(asdict(recipe(name)))[field])


@pytest.mark.parametrize("name", GRID)
def test_table_2_is_one_of_the_tuned_settings_with_the_schedule_of_its_task(name):
    chosen, task = flat(asdict(recipe(f"{name}/table-2"))), name.split("/")[0]
    schedule = {"recipe"} | ({"first.updates", "evaluate_every"} if task == "sudoku" else set())
    tried = [flat(asdict(recipe(point))) for point in matching(f"{name}/tuning/*")]
    assert sum({field for field in chosen if chosen[field] != one[field]} <= schedule for one in tried) == 1


@pytest.mark.parametrize("task", TASKS)
def test_equal_budgets_start_and_go_on_as_selectr_does_from_minloss(task):
    for objective in ("minloss", "ccloss"):
        settings = recipe(f"{task}/{objective}/table-2/second-phase")
        first, second = phases_of(settings)
        assert (replace(first, name="train"),) == phases_of(recipe(f"{task}/minloss/table-2"))
        assert (second.objective, second.stream) == (objective, "second")
        assert settings.second == recipe(f"{task}/selectr/table-2").second


def test_departures_from_a_recipe_are_named():
    name = "nqueens/selectr/table-2"
    settings = to_json(recipe(name))
    assert not departures(settings)
    assert not departures(settings | {"seed": 1, "device": "cpu", "threads": 2, "log_every": 7, "compile": False})
    assert departures(settings | {"decay": 0.5}) == ["decay: 1e-05 there, 0.5 here"]
    assert departures(settings | {"first": settings["first"] | {"batch": 8}}) == ["first.batch: 4 there, 8 here"]
    # A first phase from another run is not compared, but that run is.
    began = settings | {"first": settings["first"] | {"batch": 8}, "pretraining": "both"}
    assert not departures(began | {"pretrained": ["somewhere/nqueens/unique/table-2/42"]})
    for other in ("runs/nqueens/unique/42", "runs/nqueens/minloss/table-2/42", "runs/mine/42"):
        assert departures(began | {"pretrained": [other]}) == [f"pretrained: {other} is not its pre-training"]
    # Only SelectR uses a selector.
    minloss = to_json(recipe("nqueens/minloss/table-2"))
    assert not departures(minloss | {"selector": minloss["selector"] | {"width": 99}})
    assert departures(settings | {"selector": settings["selector"] | {"width": 99}})


# ---- they run ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    """The benchmark's files with a handful of queries each."""
    folder = tmp_path_factory.mktemp("benchmark")
    sudoku = build_sudoku(24, "train", seed=1, split_by="puzzle")
    made = {
        "nqueens-train": build_nqueens(10, 5, 60, seed=1),
        "nqueens-dev": build_nqueens(11, 3, 3, seed=2),
        "futoshiki-train": build_futoshiki(5, 14, 5, 40, "train", seed=1),
        "futoshiki-dev": build_futoshiki(6, 18, 5, 3, "dev", seed=2),
        "sudoku-train": sudoku,
        "sudoku-dev": sudoku.take(range(3)),
        "sudoku-hard-train": sudoku,
        "sudoku-extreme-dev": sudoku.take(range(3)),
    }
    for name, data in made.items():
        data.save(folder / f"{name}.safetensors")
    return folder


SHORT = """
    --first.updates 2 --second.updates 2 --first.batch 2 --second.batch 2 --selector-training.updates 1
    --evaluate-every 2 --dev-queries 3 --log-every 2 --network.depth 2 --network.steps 2 --network.test-steps {steps}
    --threads 1 --device cpu
"""


def test_hard_sudokus_differ_in_data_steps_and_curriculum():
    for objective in OBJECTIVES:
        hard, usual = (recipe(f"{task}/{objective}/equivariant") for task in ("sudoku-hard", "sudoku"))
        mine, theirs = flat(asdict(hard)), flat(asdict(usual))
        different = {field for field, value in mine.items() if value != theirs[field]}
        assert different - {"first.sampling", "second.sampling", "second.updates"} == {
            *("recipe", "network.steps", "network.test_steps", "burn_in", "curriculum", "reveal"),
            *("first.updates", "evaluate_every"),
        }
        assert data_of(hard.recipe) == ("sudoku-hard-train", "sudoku-extreme-dev")
    minloss = recipe("sudoku-hard/minloss/equivariant")
    carry = recipe("sudoku-hard/minloss/equivariant/carry")
    assert carry.windows * carry.network.steps == 2 * minloss.network.steps


CHANGED = (
    "sudoku-hard/naive/equivariant",
    "sudoku-hard/selectr/equivariant",
    "sudoku-hard/minloss/equivariant/carry",
    "sudoku-hard/minloss/equivariant-checker",
    "nqueens/iexplr/table-2",
    "sudoku/ccloss/table-2/second-phase",
    "sudoku/minloss/equivariant-checker/listed-1",
    "sudoku/minloss/equivariant/alike-two-phases",
    "sudoku/selectr/table-2/our-recipe",
    "nqueens/minloss/table-2/our-recipe",
    "nqueens/selectr/equivariant/paper-schedule",
)


@pytest.mark.parametrize("name", [*GRID, *(f"{name}/equivariant" for name in GRID), *CHANGED])
def test_every_recipe_runs(benchmark, tmp_path, capsys, name):
    settings, out = recipe(name), tmp_path / "run"
    short = SHORT.format(steps="None" if settings.network.kind == "nlm" else 2).split()
    if not settings.second.updates:
        del short[2:4]
    code = run(["train", name, "--data", str(benchmark), "--out", str(out), *short])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    assert captured.out.startswith(f"{out}: dev ")
    folder = RunFolder.open(out)
    assert [line["phase"] for line in folder.read_metrics() if line["kind"] == "train"] == [
        phase.name for phase in phases_of(settings)
    ]
    assert load_network(folder.weights).settings.kind == settings.network.kind
    assert folder.config["command"].startswith(f"oneofmany train {name} --data ")
