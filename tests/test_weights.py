"""The networks that ship: every file of the folder, and the command that makes them from runs."""

import json
import re
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import oneofmany
from evaluated_runs import QUERIES, made
from oneofmany.cli import run
from oneofmany.data.nqueens import build_nqueens
from oneofmany.evaluation import evaluate_run
from oneofmany.evaluation.predictions import load_predictions
from oneofmany.problems import TASKS
from oneofmany.tensor_files import read_tensors
from reproduction import bundle

BUNDLED = sorted(bundle.WEIGHTS.glob("*.safetensors"))
EASY = {
    "nqueens": lambda size: "1 " + ". " * (size - 1),
    "futoshiki": lambda size: "1" + "." * (size * size - 1) + " r1c1<r1c2",
    "sudoku": lambda size: "1" + "." * (size * size - 1),
}


def check_card(saved):
    """A card has every required field, with possible numbers."""
    card = saved.card
    assert set(card) == set(bundle.CARD)
    assert set(card["data"]) == {"train", "dev"}
    for about in (*card["data"].values(), *(one["data"] for one in card["accuracy"].values())):
        assert about["name"]
        assert about["checksum"].startswith("sha256:")
        assert about["queries"] > 0
    assert f"{saved.task}-fresh-test" in card["accuracy"]
    for one in card["accuracy"].values():
        for part in ("correct", "total"):
            assert one["os"][part] + one["ms"][part] == one["overall"][part]
        assert 0 <= one["overall"]["correct"] <= one["overall"]["total"] == one["data"]["queries"]
    assert 0 <= card["dev"]["overall"] <= 1
    assert card["command"].startswith("oneofmany train ")
    assert card["licence"] == "Apache-2.0"
    assert any("does not check its answers" in sentence for sentence in card["limits"])
    assert any(f"size {saved.size} alone" in sentence for sentence in card["limits"])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of 7-queens with predictions on the test data of its size, of a larger one, and on dev."""
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(made() / "minloss", folder / "run")
    build_nqueens(8, 4, 50, seed=5).save(folder / "nqueens8-test.safetensors")
    evaluate_run(folder / "run", made() / "test.safetensors", name="nqueens-fresh-test")
    evaluate_run(folder / "run", folder / "nqueens8-test.safetensors")
    evaluate_run(folder / "run", made() / "dev.safetensors", steps=2)
    return folder / "run"


@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.stem)
def test_a_bundled_network_is_small_and_loads_by_its_name(path):
    """Its name is its task or, of a further network, begins with it: sudoku-hard."""
    assert path.stat().st_size < bundle.LARGEST
    saved = oneofmany.load(path.stem)
    assert saved.task in TASKS
    assert path.stem == saved.task or path.stem.startswith(f"{saved.task}-")
    check_card(saved)
    header, _ = read_tensors(path, otherwise="not a network", newest=1, framework="numpy")
    assert header["checksum"].startswith("sha256:")


def test_a_network_for_hard_queries_is_bundled_beside_the_usual_one(finished, tmp_path):
    """The part of its recipe before the objective is its name."""
    hard = shutil.copytree(finished, tmp_path / "hard")
    config = json.loads((hard / "config.json").read_text())
    config["settings"]["recipe"] = "nqueens-hard/minloss/equivariant"
    (hard / "config.json").write_text(json.dumps(config))
    (tmp_path / "weights").mkdir()
    paths = bundle.bundle([finished, hard], tmp_path / "weights")
    assert [path.stem for path in paths] == ["nqueens", "nqueens-hard"]
    assert oneofmany.load(paths[1]).card["recipe"] == "nqueens-hard/minloss/equivariant"
    assert "### nqueens-hard\n" in bundle.markdown(tmp_path / "weights")


@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.stem)
def test_solve_uses_the_bundled_network(path, capsys):
    saved, answers = oneofmany.load(path), []
    query = EASY[saved.task](saved.size)
    for arguments in ([] if path.stem == saved.task else ["--weights", path.stem], ["--weights", str(path)]):
        code = run(["solve", saved.task, query, "--json", "--steps", "8", "--answer", "network", *arguments])
        answers.append(json.loads(capsys.readouterr().out))
        assert code == int(not answers[-1]["valid"])
    default, named = answers
    assert default["source"] == "network"
    assert [default[key] for key in ("solution", "log_probability")] == [
        named[key] for key in ("solution", "log_probability")
    ]


def test_a_bundle_is_the_runs_network_with_its_card(finished, tmp_path):
    [path] = bundle.bundle([finished], tmp_path)
    assert path == tmp_path / "nqueens.safetensors"
    saved = oneofmany.load(path)
    check_card(saved)
    mine, theirs = load_file(path), load_file(finished / "weights.safetensors")
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert saved.settings == oneofmany.load(finished).settings
    assert list(saved.card["accuracy"]) == ["nqueens-fresh-test", "nqueens8-test"]
    for name, one in saved.card["accuracy"].items():
        outcomes, about = load_predictions(finished / "predictions" / f"{name}.safetensors")
        ms = outcomes.total > 1
        for key, of_kind in {"os": ~ms, "ms": ms, "overall": np.full(len(ms), True)}.items():
            assert one[key] == {"correct": int(outcomes.valid[of_kind].sum()), "total": int(of_kind.sum())}
        assert one["data"] == {key: about["data"][key] for key in ("name", "checksum", "size", "queries")}
    assert "what falls off at size 8 is in the accuracies" in saved.card["limits"][1]
    assert str(made()) not in json.dumps(saved.card)  # no paths of this machine


def test_the_same_run_gives_the_same_bytes(finished, tmp_path):
    paths = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        shutil.copytree(finished, tmp_path / f"{name}-run")
        paths += bundle.bundle([tmp_path / f"{name}-run"], tmp_path / name)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_what_is_refused(finished, tmp_path, monkeypatch, capsys):
    unfinished, unevaluated, out = (tmp_path / name for name in ("unfinished", "unevaluated", "out"))
    out.mkdir()
    shutil.copytree(finished, unfinished)
    (unfinished / "result.json").unlink()
    shutil.copytree(finished, unevaluated)
    (unevaluated / "predictions" / "nqueens-fresh-test.safetensors").unlink()

    def refuse(message, *arguments):
        assert bundle.main(["--out", str(out), *map(str, arguments)]) == 2
        assert message in capsys.readouterr().err

    refuse("is not finished", unfinished)
    refuse("no predictions nqueens-fresh-test", unevaluated)
    refuse("a second run of nqueens", finished, finished)
    refuse("no predictions nqueens-fresh-test", finished, unevaluated)
    refuse("is not a directory", finished, "--out", tmp_path / "nowhere")
    refuse("neither a run folder nor a record", tmp_path / "nothing")
    with monkeypatch.context() as patch:
        patch.setattr(bundle, "LARGEST", 1000)
        refuse("at most 1,000 may ship", finished)
    assert list(out.iterdir()) == []
    (out / "nqueens.safetensors").write_bytes(b"kept")
    refuse("overwrite it with --force", finished)
    assert (out / "nqueens.safetensors").read_bytes() == b"kept"
    with pytest.raises(SystemExit, match="2"):
        bundle.main([])


def test_cards_for_people(finished, tmp_path, monkeypatch, capsys):
    (tmp_path / "nqueens.safetensors").write_bytes(b"")
    assert bundle.main([str(finished), "--out", str(tmp_path), "--force", "--markdown"]) == 0
    text = capsys.readouterr().out
    card = oneofmany.load(tmp_path / "nqueens.safetensors").card
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == list(card["accuracy"])
    right = card["accuracy"]["nqueens-fresh-test"]["overall"]["correct"]
    assert f"| {100 * right / QUERIES:.2f} ({right} of {QUERIES}) |" in rows[0]
    assert all(sentence in text for sentence in (*card["limits"], card["command"], card["recipe"]))
    shutil.copy(tmp_path / "nqueens.safetensors", tmp_path / "nqueens-hard.safetensors")
    monkeypatch.setattr("oneofmany.solving.bundled", lambda task: tmp_path / f"{task}.safetensors")
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert re.search(f"^weights of nqueens-hard +load: {card['recipe']}, ", out, re.MULTILINE)
    assert f"load: {card['recipe']}, size 7, " in out
    assert f" parameters, {right} of {QUERIES} test queries" in out


def test_an_incomplete_card_is_not_shown(finished, tmp_path, capsys):
    shutil.copy(finished / "weights.safetensors", tmp_path / "nqueens.safetensors")
    assert bundle.main(["--out", str(tmp_path), "--markdown"]) == 2
    assert "incomplete card (no command, " in capsys.readouterr().err
