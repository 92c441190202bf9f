"""Every published number was made by the recipe that its record names: settings, data and start."""

import json
import runpy
import shutil
from pathlib import Path

import pytest

from oneofmany.data.benchmark import BENCHMARK, EXPERIMENTS, SIZES
from oneofmany.recipes import data_of, recipe
from oneofmany.recipes.comparing import departures
from oneofmany.training.jobs import Job, share

ROOT = Path(__file__).parents[2]
FOLDERS = ("paper", "ours", "learned")
RECORDS = next(folder for folder in (ROOT / "reproduction" / "records", ROOT / "results") if folder.is_dir())
RENAME = runpy.run_path(str(ROOT / "reproduction" / "rename_recipes.py"))


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The records, converted."""
    folder = tmp_path_factory.mktemp("records")
    for name in FOLDERS:
        shutil.copytree(RECORDS / name, folder / name)
    assert RENAME["main"]([str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def records(copy):
    return {path.relative_to(copy): json.loads(path.read_text()) for path in sorted(copy.rglob("*.json"))}


def test_every_record_has_the_settings_of_its_recipe(records):
    assert len(records) >= 307
    for path, record in records.items():
        assert record["recipe"] == record["settings"]["recipe"]
        assert not departures(record["settings"]), path


def test_every_record_has_the_data_of_its_recipe(records):
    for path, record in records.items():
        assert tuple(record["data"][part]["name"] for part in ("train", "dev")) == data_of(record["recipe"]), path
        for evaluation in record["evaluations"].values():
            assert evaluation["data"]["name"] in BENCHMARK | EXPERIMENTS | SIZES


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
        assert record["name"] == f"{name}/{seed}"
        assert record["command"] == f"oneofmany train {name} --seed {seed}"
        for evaluation in record["evaluations"].values():
            about = f"oneofmany evaluate runs/{name}/{seed} data/{evaluation['data']['name']}.safetensors"
            assert evaluation["command"].startswith(about)


def test_table_2_is_one_recipe_a_cell(records):
    of_paper = [record for path, record in records.items() if path.parent == Path("paper")]
    assert len(of_paper) == 63
    assert all(r["recipe"] == f"{r['task']}/{r['objective']}/table-2" for r in of_paper)


# ---- the conversion ------------------------------------------------------------------------------------------------


def test_a_second_conversion_changes_nothing(copy, capsys):
    assert RENAME["main"]([str(copy)]) == 0
    assert capsys.readouterr().err == "0 files changed\n"


@pytest.fixture
def before():
    """A record as it was: of a run from another run's weights, evaluated on data with a former name."""
    settings = json.loads(json.dumps(vars(recipe("futoshiki/iexplr/table-2")), default=vars))
    settings |= {"recipe": "futoshiki/iexplr", "seed": 7, "starts": 1, "start_temperature": 0.0}
    settings["pretrained"] = ["runs/paper/futoshiki/minloss/7"]
    evaluation = {"data": {"name": "futoshiki20-test", "size": 6}, "overall": {"accuracy": 0.5}}
    evaluation["command"] = "oneofmany evaluate x/7 data/futoshiki20-test.safetensors --steps=4"
    return {
        "name": "futoshiki/iexplr/7",
        "recipe": "futoshiki/iexplr",
        "seed": 7,
        "settings": settings,
        "command": "oneofmany train futoshiki/iexplr --seed 7 --pretraining minloss --out x/7",
        "data": {"train": {"name": "futoshiki-train", "queries": 5}, "dev": {"name": "futoshiki-dev"}},
        "seconds": 3.0,
        "evaluations": {"futoshiki20-test": evaluation},
    }


def test_names_and_commands_change_and_nothing_is_lost(before):
    after = RENAME["converted"](before, Path("paper"))
    name = "futoshiki/iexplr/table-2"
    assert (after["recipe"], after["name"], after["settings"]["recipe"]) == (name, f"{name}/7", name)
    assert after["command"] == f"oneofmany train {name} --seed 7"
    assert after["made_by"] == before["command"]
    assert list(after)[4:6] == ["command", "made_by"]
    assert "starts" not in after["settings"]
    assert after["settings"]["pretrained"] == ["runs/futoshiki/minloss/table-2/7"]
    assert (after["data"], after["seconds"]) == (before["data"], 3.0)
    ((key, evaluation),) = after["evaluations"].items()
    assert key == evaluation["data"]["name"] == "futoshiki-20-blanks-test"
    file = "data/futoshiki-20-blanks-test.safetensors"
    assert evaluation["command"] == f"oneofmany evaluate runs/{name}/7 {file} --steps=4"
    assert evaluation["made_by"] == before["evaluations"]["futoshiki20-test"]["command"]
    assert evaluation["overall"] == {"accuracy": 0.5}
    assert RENAME["converted"](after, Path("paper")) == after


@pytest.mark.parametrize(
    ("change", "folder", "message"),
    [
        ({"decay": 0.3}, "paper", "no recipe of futoshiki/iexplr/table-2 has its settings"),
        ({"starts": 2}, "paper", "settings.starts: expected 1, got 2"),
        ({"pretrained": ["runs/paper/futoshiki/unique/7"]}, "paper", "no recipe of"),
        ({}, "other", "other: expected paper, ours or learned"),
    ],
)
def test_what_does_not_fit_is_refused(before, change, folder, message):
    with pytest.raises(ValueError, match=message):
        RENAME["converted"](before | {"settings": before["settings"] | change}, Path(folder))


def test_a_refused_record_leaves_all_files_alone(before, tmp_path, capsys):
    (tmp_path / "paper").mkdir()
    for name, record in (("a", before), ("b", before | {"data": {}})):
        (tmp_path / "paper" / f"{name}.json").write_text(json.dumps(record))
    texts = [path.read_text() for path in sorted(tmp_path.rglob("*.json"))]
    assert RENAME["main"]([str(tmp_path)]) == 2
    assert "b.json: " in capsys.readouterr().err
    assert [path.read_text() for path in sorted(tmp_path.rglob("*.json"))] == texts
