"""Every published number was made by the recipe that its record names: settings, data and start."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from oneofmany.data.benchmark import CMUDICT, NAMED
from oneofmany.recipes import data_of, recipe
from oneofmany.recipes.comparing import departures
from oneofmany.recipes.ours import own_task
from oneofmany.training.jobs import Job, share
from oneofmany.training.settings import from_json

RECORDS = Path(__file__).parents[2] / "reproduction" / "records"


@pytest.fixture(scope="module")
def every():
    return {path.relative_to(RECORDS): json.loads(path.read_text()) for path in sorted(RECORDS.rglob("*.json"))}


@pytest.fixture(scope="module")
def records(every):
    """Those of the package's recipes."""
    return {path: record for path, record in every.items() if not path.parent.name.startswith("gallery")}


@pytest.fixture(scope="module")
def gallery(every, records):
    """Those of tasks of examples/tasks, whose recipes are known with ``--task-file`` only."""
    return [record for path, record in every.items() if path not in records]


def test_every_record_has_the_settings_of_its_recipe(records):
    assert len(records) >= 301
    for path, record in records.items():
        assert record["recipe"] == record["settings"]["recipe"]
        assert not departures(record["settings"]), path


def test_every_record_has_the_data_of_its_recipe(records):
    for path, record in records.items():
        assert tuple(record["data"][part]["name"] for part in ("train", "dev")) == data_of(record["recipe"]), path
        for evaluation in record["evaluations"].values():
            assert evaluation["data"]["name"] in NAMED | CMUDICT


def test_every_start_is_the_run_that_a_sweep_shares(records, tmp_path):
    """The recipe is complete in itself: its pre-training is the run that the record started from."""
    seen = {(r["recipe"], *r["settings"]["pretrained"]) for r in records.values() if r["settings"]["pretrained"]}
    assert len(seen) > 20
    for name, path in seen:
        start = path.removeprefix("runs/").rsplit("/", 1)[0]
        jobs = [Job(one, recipe(one), tmp_path / one, (), data_of(one)) for one in (start, name)]
        assert share(jobs, tmp_path)[1].settings.pretrained == (str(tmp_path / start),)


def test_commands_are_recipe_and_seed(records):
    for record in records.values():
        name, seed = record["recipe"], record["seed"]
        assert record["command"] == f"oneofmany train {name} --seed {seed}"
        for evaluation in record["evaluations"].values():
            about = f"oneofmany evaluate runs/{name}/{seed} data/{evaluation['data']['name']}.safetensors"
            assert evaluation["command"].startswith(about)


def test_networks_of_the_gallery_have_the_recipe_of_any_task(gallery):
    assert len(gallery) >= 10
    for record in gallery:
        task, name = record["task"], record["recipe"]
        settings = replace(from_json(record["settings"]), device="auto", threads=None)
        assert settings == own_task(task, "minloss").settings
        assert name == settings.recipe
        file = f"examples/tasks/{task.replace('-', '_')}.py"
        assert record["command"].startswith(f"oneofmany train {name} --task-file {file} ")
        assert f"--seed {record['seed']}" in record["command"]
        data = [record["data"][part]["name"] for part in ("train", "dev")]
        data += [evaluation["data"]["name"] for evaluation in record["evaluations"].values()]
        parts = [re.fullmatch(rf"{task}(-\d+)?-(train|dev|test)", one).groups() for one in data]
        assert [part for _, part in parts] == ["train", "dev", "test"]
        assert len({size for size, _ in parts}) == 1


def test_table_2_is_one_recipe_a_cell(records):
    of_paper = [record for path, record in records.items() if path.parent == Path("paper")]
    assert len(of_paper) == 63
    assert all(r["recipe"] == f"{r['task']}/{r['objective']}/table-2" for r in of_paper)
