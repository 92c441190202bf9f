"""The plan of a sweep, in Python."""

from collections import Counter
from pathlib import Path

import pytest

from oneofmany.data import import_sequences, load_data
from oneofmany.data.nqueens import build_nqueens
from oneofmany.files import FileError
from oneofmany.recipes import SEEDS, recipe, recipes
from oneofmany.recipes.fields import resolve
from oneofmany.recipes.finding import DataFiles
from oneofmany.recipes.planning import Sweep, expand, grid_points, jobs_of, look_ahead, plan
from oneofmany.training import OBJECTIVES
from oneofmany.training.jobs import state_of
from oneofmany.training.queue import Queue

QUICK = [
    *["--network.width", "4", "--network.steps", "2", "--network.test_steps", "2", "--device", "cpu", "--threads", "1"],
    *["--pretraining", "minloss", "--first.updates", "2", "--first.batch", "4", "--second.batch", "4"],
    *["--selector_training.updates", "1", "--evaluate_every", "2"],
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A small data file of N-Queens."""
    path = tmp_path_factory.mktemp("data") / "queens.safetensors"
    build_nqueens(6, 4, 40, seed=1).save(path)
    return path


def test_patterns_stop_at_slashes():
    tiny = [name for name in recipes() if name.startswith("nqueens/") and name.endswith("/tiny")]
    assert expand(["nqueens/*/tiny"]) == tiny
    assert len(tiny) == 7
    assert expand(["nqueens/selectr/tiny", "nqueens/*/tiny"]) == ["nqueens/selectr/tiny", *tiny[:-1]]
    assert all(name.count("/") == 1 for name in expand(["*/*"]))


def test_grid_points():
    assert grid_points(None) == [("", [])]
    assert grid_points(["decay=1e-4,0", "burn_in=0,0 16"]) == [
        ("decay=1e-4,burn_in=0", ["--decay", "1e-4", "--burn_in", "0"]),
        ("decay=1e-4,burn_in=0_16", ["--decay", "1e-4", "--burn_in", "0", "16"]),
        ("decay=0,burn_in=0", ["--decay", "0", "--burn_in", "0"]),
        ("decay=0,burn_in=0_16", ["--decay", "0", "--burn_in", "0", "16"]),
    ]


@pytest.mark.parametrize(("task", "count"), [("nqueens", 3), ("futoshiki", 3), ("sudoku", 2)])
def test_tuning_gives_every_objective_equally_many_settings(task, count):
    jobs = jobs_of(Sweep([f"{task}/{name}" for name in OBJECTIVES], seeds=[42], tune=True))
    by_objective = Counter(job.settings.objective for job in jobs)
    assert by_objective == dict.fromkeys(OBJECTIVES, count)
    assert len({job.folder for job in jobs}) == len(jobs)
    assert len({job.settings for job in jobs}) == len(jobs)


def test_intervals_shrink_with_the_number_of_updates():
    def intervals(recipe):
        jobs = jobs_of(Sweep([recipe], seeds=[42], tune=True))
        return [job.settings.selector_training.copy_interval for job in jobs]

    assert intervals("nqueens/selectr") == [2500, 2500, 1]
    assert intervals("nqueens/selectr/large-batch") == [313, 313, 1]


def test_all_recipes_and_points_of_a_seed_come_before_the_next(data, tmp_path):
    names = ["nqueens/selectr/tiny", "nqueens/minloss/tiny"]
    sweep = Sweep(names, [3, 1], tmp_path, ["--ema=0.5"], ["decay=0.1,0.2"], data=DataFiles(train=data, dev=data))
    jobs = jobs_of(sweep)
    runs = [(name, decay, seed) for seed in (3, 1) for name in names for decay in ("0.1", "0.2")]
    assert [job.name for job in jobs] == [f"{name}/decay={decay}/{seed}" for name, decay, seed in runs]
    for job, (name, decay, seed) in zip(jobs, runs, strict=True):
        own = ["--ema=0.5", "--decay", decay]
        assert job.settings == resolve(name, ["--seed", str(seed), *own])
        assert job.arguments == (name, "--seed", str(seed), *own, "--train", str(data), "--dev", str(data))
        assert job.folder == tmp_path / job.name
    assert {job.settings.seed for job in jobs_of(Sweep(names))} == set(SEEDS)


def test_a_sweep_in_three_lines(data, tmp_path):
    """The same as ``oneofmany sweep``; a second time, nothing is left to do."""
    names = ["nqueens/selectr/tiny", "nqueens/minloss/tiny"]
    sweep = Sweep(names, [7], tmp_path, QUICK, data=DataFiles(train=data, dev=data), evaluate=[data])
    queue = Queue(plan(sweep), at_once=2)
    assert queue.run() is None
    assert [entry.state for entry in queue.entries] == ["finished", "finished"], [entry.why for entry in queue.entries]
    first, second = plan(sweep)
    assert first.settings.pretrained == (str(second.folder),)
    assert [state_of(job.folder) for job in (first, second)] == ["finished", "finished"]
    assert all((job.folder / "predictions" / "queens.safetensors").is_file() for job in (first, second))
    assert [job.after for job in (first, second)] == [(), ()]


def test_sequences_are_swept_too(tmp_path):
    file = tmp_path / "words.safetensors"
    import_sequences([{"input": "ab", "output": "ba"}, {"input": "bc", "output": "cb"}])[0].save(file)
    sweep = Sweep(["sequences/minloss"], [7], tmp_path, data=DataFiles(train=file, dev=file), evaluate=[file])
    (job,) = plan(sweep)
    assert job.data == (load_data(file).header()["checksum"],) * 2
    assert [step[0] for step in job.after] == ["evaluate"]


def test_data_is_named_or_built(tmp_path):
    own = tmp_path / "own.safetensors"
    said = []
    found = DataFiles(folder=tmp_path / "new", dev=own).find("nqueens/minloss/tiny", said.append)
    assert found == (tmp_path / "new" / "nqueens-tiny-train.safetensors", own)
    assert found[0].is_file()
    assert said == [f"building {found[0]}, once"]
    assert DataFiles(folder=tmp_path / "new", dev=own).find("nqueens/minloss/tiny", said.append) == found
    assert len(said) == 1
    assert DataFiles().options() == ()
    assert DataFiles("a", Path("b"), dev="d").options() == ("--data", "a", "--clues", "b", "--dev", "d")


def test_a_sweep_of_sequences(tmp_path):
    """The data of a sweep, and what its runs are evaluated on, may be sequences."""
    data, _ = import_sequences([{"input": "ab", "output": "c"}, {"input": "ab", "output": "d"}])
    data.save(tmp_path / "words.safetensors")
    files = DataFiles(train=tmp_path / "words.safetensors", dev=tmp_path / "words.safetensors")
    sweep = Sweep(["sequences/*/ctc"], [1], tmp_path, data=files, evaluate=[tmp_path / "words.safetensors"])
    jobs = plan(sweep)
    assert len(jobs) == len(OBJECTIVES)
    assert all(job.data == (data.header()["checksum"],) * 2 for job in jobs)
    assert all(job.after[0][:2] == ("evaluate", str(job.folder)) for job in jobs)


def test_data_that_the_user_has_to_build(tmp_path):
    """CMUdict is not ours to ship: a sweep, its dry run and a training name the command that builds its data."""
    sweep = Sweep(["sequences/minloss/ctc/cmudict"], [1], tmp_path / "runs", data=DataFiles(folder=tmp_path))
    file = tmp_path / "cmudict-train.safetensors"
    for act in (plan, look_ahead):
        with pytest.raises(FileError, match=f"make it with oneofmany data cmudict FILE .* --split train --out {file}"):
            act(sweep)
    assert not [*tmp_path.iterdir()]


def test_fields_are_those_of_the_command():
    assert resolve("nqueens/minloss", []) == recipe("nqueens/minloss")
    assert resolve("nqueens/minloss", ["--first.lr", "0.5"]).first.lr == 0.5
    with pytest.raises(ValueError, match=r"first\.lr: expected more than 0"):
        resolve("nqueens/minloss", ["--first.lr", "0"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": [1, 1]}, "--seeds: expected different whole numbers, got 1 1"),
        ({"seeds": []}, "--seeds: expected different whole numbers, got none"),
        ({"tune": True, "grid": ["decay=1"]}, "--tune is already a grid"),
        ({"grid": ["decay=1,1"]}, "two of its points have the same name"),
        ({"recipes": ["chess/*"]}, "no recipe matches 'chess/\\*'"),
    ],
)
def test_bad_sweeps(arguments, message):
    with pytest.raises(ValueError, match=message):
        jobs_of(Sweep(**{"recipes": ["nqueens/minloss"]} | arguments))
