"""evaluate, compare and record as a user runs them."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from evaluated_runs import QUERIES, made
from oneofmany.data.dataset import Dataset
from oneofmany.evaluation import compare_runs, load_predictions, save_predictions
from oneofmany.evaluation.record_file import read_record
from oneofmany.evaluation.record_json import to_json
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.kernels import precision_for
from oneofmany.networks.saved import save_network
from oneofmany.problems import nqueens, sudoku


@pytest.fixture
def runs(tmp_path):
    """A fresh copy of the runs for every test, next to the data."""
    return shutil.copytree(made(), tmp_path / "here")


@pytest.fixture
def evaluated(runs, call):
    for name in ("minloss", "selectr"):
        assert call("evaluate", runs / name, runs / "test.safetensors")[0] == 0
    return runs


def is_solution(query, answer):
    """The rules of N-Queens, literally."""
    rows = range(len(query))
    return (
        all(given in (0, value) for given, value in zip(query, answer, strict=True))
        and all(1 <= value <= len(query) for value in answer)
        and all(
            answer[a] != answer[b] and abs(int(answer[a]) - int(answer[b])) != b - a
            for a in rows
            for b in rows
            if a < b
        )
    )


def test_scores_are_those_of_the_kept_answers(runs, call):
    code, out, err = call("evaluate", runs / "minloss", runs / "test.safetensors", "--json")
    assert code == 0
    told = json.loads(out)
    file = runs / "minloss" / "predictions" / "test.safetensors"
    assert told["file"] == str(file)
    assert str(file) in err
    data, (outcomes, about) = Dataset.load(runs / "test.safetensors"), load_predictions(file)
    right = np.array([is_solution(q, a) for q, a in zip(data.query, outcomes.answers, strict=True)])
    assert 0 < right.sum() < QUERIES
    for subset, rows in (("os", data.total == 1), ("ms", data.total > 1), ("overall", data.total > 0)):
        assert (told[subset]["correct"], told[subset]["total"]) == (right[rows].sum(), rows.sum())
        assert told[subset]["accuracy"] == pytest.approx(right[rows].mean())
        assert told[subset]["low"] <= told[subset]["accuracy"] < told[subset]["high"]
    assert (told["steps"], told["starts"], told["readout"]) == (4, 1, "argmax")
    assert about["summary"] == outcomes.summary()
    assert told["data"]["checksum"] == data.header()["checksum"]


@pytest.mark.parametrize("summary", [None, {}, {"os": 3, "chosen": 1}, 7])
def test_a_summary_that_is_not_one(runs, call, summary):
    """The scores of kept answers are computed again, so nobody can write others into the file."""
    run, data = runs / "minloss", runs / "test.safetensors"
    first = json.loads(call("evaluate", run, data, "--json")[1])
    file = run / "predictions" / "test.safetensors"
    before, (outcomes, about) = file.read_bytes(), load_predictions(file)
    save_predictions(file, outcomes, about | {"summary": summary, "network": 5}, force=True)
    assert call("evaluate", run, data)[0] == 0
    assert json.loads(call("evaluate", run, data, "--json")[1]) == first | {"reused": True}
    file.write_bytes(before)


def test_table(runs, call):
    code, out, _ = call("evaluate", runs / "minloss", runs / "test.safetensors")
    assert code == 0
    lines = out.splitlines()
    assert (
        lines[0] == f"test: {QUERIES} queries of nqueens 7, equivariant network, 4 steps; correct: valid by the rules"
    )
    scores = json.loads(call("evaluate", runs / "minloss", runs / "test.safetensors", "--json")[1])
    for subset, word in (("os", "OS"), ("ms", "MS"), ("overall", "overall")):
        line = next(line for line in lines if line.startswith(word))
        numbers = [float(number) for number in re.findall(r"[\d.]+", line)]
        score = scores[subset]
        assert numbers[0] == score["total"]
        assert numbers[1:] == [round(100 * score[key], 2) for key in ("accuracy", "low", "high")]
    assert "1 solution " in out
    assert "2 solutions " in out
    assert "a listed solution" in out


def test_queries_with_an_unknown_number_of_solutions_are_told_apart_from_os(runs, call):
    data = Dataset.load(runs / "test.safetensors")
    assert "unknown" not in call("evaluate", runs / "minloss", runs / "test.safetensors")[1]
    unlisted = replace(data, total=np.full_like(data.total, -1))
    unlisted.save(runs / "unknown.safetensors")
    out = call("evaluate", runs / "minloss", runs / "unknown.safetensors")[1]
    told = int((data.listed <= 1).sum())
    assert 0 < told < len(data)
    assert f"\nOS includes {told} queries whose number of solutions is unknown" in out


def test_nothing_is_evaluated_twice_by_accident(runs, call):
    run, data = runs / "minloss", runs / "test.safetensors"
    first = json.loads(call("evaluate", run, data, "--json")[1])
    file = run / "predictions" / "test.safetensors"
    before = file.read_bytes()
    code, out, err = call("evaluate", run, data, "--json")
    assert code == 0
    assert "reused the predictions" in err
    assert json.loads(out) == first | {"reused": True}
    code, out, err = call("evaluate", run, data, "--batch", 7)
    assert (code, out) == (2, "")
    assert "batch 1024 there and 7 here" in err
    assert err.count("\n") == 1
    assert file.read_bytes() == before
    assert call("evaluate", run, data, "--batch", 7, "--name", "sevens")[0] == 0
    assert call("evaluate", run, data, "--batch", 7, "--force")[0] == 0
    assert load_predictions(file)[1]["batch"] == 7


def test_other_data_and_other_weights_are_told_apart(runs, call):
    run, data = runs / "minloss", runs / "test.safetensors"
    call("evaluate", run, data)
    there = Dataset.load(data).header()["checksum"]
    shutil.copy(runs / "other.safetensors", data)
    code, _, err = call("evaluate", run, data)
    assert code == 2
    assert there in err
    assert Dataset.load(data).header()["checksum"] in err
    shutil.copy(made() / "test.safetensors", data)
    shutil.copy(runs / "selectr" / "weights.safetensors", run / "weights.safetensors")
    code, _, err = call("evaluate", run, data)
    assert code == 2
    assert "other weights" in err
    code, _, err = call("record", run, "--out", runs / "records", "--allow-dirty")
    assert code == 2
    assert "other weights" in err
    again = re.search("`oneofmany (.*?)`", err)
    assert again
    assert call(*again[1].split())[0] == 0
    assert call("record", run, "--out", runs / "records", "--allow-dirty")[0] == 0


def test_damaged_predictions(runs, call):
    run, data = runs / "minloss", runs / "test.safetensors"
    call("evaluate", run, data)
    file = run / "predictions" / "test.safetensors"
    file.write_bytes(file.read_bytes()[:500])
    for command in (("evaluate", run, data), ("record", run, "--out", runs / "records")):
        code, _, err = call(*command)
        assert code == 2
        assert f"{file} is damaged" in err
        assert "--force" in err
    assert call("evaluate", run, data, "--force")[0] == 0


def test_several_starts_have_a_name_of_their_own(runs, call):
    run, data = runs / "minloss", runs / "test.safetensors"
    one = json.loads(call("evaluate", run, data, "--json")[1])
    code, out, _ = call("evaluate", run, data, "--starts", 3, "--json")
    several = json.loads(out)
    assert code == 0
    assert several["file"] == str(run / "predictions" / "test-starts3.safetensors")
    assert several["overall"] == one["overall"]
    for subset in ("os", "ms", "overall"):
        assert several[subset]["correct"] <= several["checked"][subset]["correct"]
        assert several["chosen"][subset]["correct"] <= several["checked"][subset]["correct"]
    code, out, _ = call("evaluate", run, data, "--starts", 3)
    assert code == 0
    assert re.search("one trajectory +chosen without rules +chosen with the checker", out)
    call("evaluate", run, data, "--starts", 3, "--choose", "confidence", "--steps", 5, "--seed", 1)
    call("evaluate", run, data, "--patience", 2)
    call("evaluate", run, data, "--choose", "confidence", "--steps", 4)  # no effect: one start, and the default steps
    names = ["test", "test-patience2", "test-starts3", "test-steps5-starts3-confidence-seed1"]
    assert sorted(file.stem for file in (run / "predictions").iterdir()) == names


def test_a_weights_file_keeps_nothing(runs, call):
    weights, data = runs / "minloss" / "weights.safetensors", runs / "test.safetensors"
    code, out, _ = call("evaluate", weights, data, "--json")
    assert code == 0
    assert json.loads(out)["file"] is None
    kept = json.loads(call("evaluate", runs / "minloss", data, "--json")[1])
    assert json.loads(out)["overall"] == kept["overall"]
    code, _, err = call("evaluate", weights, data, "--name", "x")
    assert code == 2
    assert "--name" in err


def test_a_dirty_tree_is_recorded_only_if_allowed(runs, call):
    config = runs / "minloss" / "config.json"
    call("evaluate", runs / "minloss", runs / "test.safetensors")
    (runs / "minloss" / "predictions" / "test.safetensors").unlink()
    command = ("record", runs / "minloss", "--out", runs / "records")
    for revision, code in (("0123456789ab", 0), (None, 0), ("0123456789ab+", 2)):
        about = json.loads(config.read_text())
        about["environment"]["revision"] = revision
        config.write_text(json.dumps(about))
        found, _, err = call(*command, "--force")
        assert found == code
        assert ("uncommitted changes" in err) == (code == 2)
    found, out, _ = call(*command, "--force", "--allow-dirty")
    assert found == 0
    assert read_record(out.strip()).dirty


def test_an_unfinished_run_is_called_so(runs, call):
    (runs / "minloss" / "result.json").unlink()
    code, _, err = call("evaluate", runs / "minloss", runs / "test.safetensors")
    assert code == 0
    assert "is not finished" in err
    code, out, err = call("record", runs / "minloss", "--out", runs / "records", "--allow-dirty")
    assert code == 0
    assert "is not finished" in err
    assert read_record(out.strip()).finished is False
    (runs / "minloss" / "weights.safetensors").unlink()
    code, _, err = call("evaluate", runs / "minloss", runs / "test.safetensors", "--force")
    assert code == 2
    assert "no weights yet" in err


def bad_input(folder):
    saved = {
        "rrn": (NetworkSettings("rrn", width=4, steps=2), sudoku(2, 2)),
        "nlm": (NetworkSettings("nlm", width=4, depth=2), nqueens(6)),
    }
    for name, (settings, problem) in saved.items():
        save_network(folder / f"{name}.safetensors", build_network(settings, problem), settings, problem)
    from oneofmany.data.sudoku import build_sudoku

    build_sudoku(4, "test", seed=1, size=6, givens=(12, 20)).save(folder / "sudoku6.safetensors")
    run, data = folder / "minloss", folder / "test.safetensors"
    yield (run, folder / "sudoku6.safetensors"), "sudoku 6"
    yield (folder / "rrn.safetensors", folder / "sudoku6.safetensors"), "bound to sudoku 4"
    yield (folder / "nlm.safetensors", data, "--steps", 3), "no steps"
    yield (folder / "nlm.safetensors", data, "--starts", 2), "without noise"
    yield (run, data, "--starts", 2, "--steps", 1), "confidence"
    yield (run, data, "--starts", 0), "at least 1"
    yield (run, data, "--batch", 0), "at least 1"
    yield (run, data, "--name", "../x"), "--name"
    yield (run, data, "--precision", "float16"), "float32 or bfloat16, got float16"
    yield (run, folder / "nothing.safetensors"), "is not a file"
    yield (run, folder / "minloss" / "weights.safetensors"), "not a dataset"
    yield (folder / "nothing", data), "nothing"
    yield (folder, data), "config.json"
    if not torch.cuda.is_available():
        yield (run, data, "--device", "cuda"), "no GPU"


def test_bad_input_is_one_sentence_and_keeps_nothing(runs, call):
    for arguments, words in bad_input(runs):
        code, out, err = call("evaluate", *arguments)
        assert (code, out) == (2, ""), arguments
        assert words in err
        assert err.count("\n") == 1
    assert not list((runs / "minloss" / "predictions").iterdir())


def test_precision(runs, call):
    code, out, _ = call(
        "evaluate", runs / "minloss", runs / "test.safetensors", "--precision", "bfloat16", "--device", "cpu", "--json"
    )
    assert code == 0
    assert json.loads(out)["precision"] == "bfloat16"


def test_precision_of_the_nlm(tmp_path, runs, call):
    settings = NetworkSettings("nlm", width=4, depth=2)
    save_network(tmp_path / "nlm.safetensors", build_network(settings, nqueens(6)), settings, nqueens(6))
    for asked, said in (((), "float32"), (("--precision", "float16"), "float16")):
        command = ("evaluate", tmp_path / "nlm.safetensors", runs / "test.safetensors", "--device", "cpu", "--json")
        code, out, _ = call(*command, *asked)
        assert code == 0
        assert json.loads(out)["precision"] == said
    assert precision_for("nlm", "cuda") == "float16"
    assert precision_for("rrn", "cuda") == precision_for("equivariant", "cuda:1") == "bfloat16"


def test_compare_shows_what_the_library_compares(evaluated, call):
    pair, data = [evaluated / "minloss", evaluated / "selectr"], evaluated / "test.safetensors"
    compared = compare_runs(*pair, data)
    code, out, _ = call("compare", *pair, data, "--json")
    assert code == 0
    told = json.loads(out)
    assert told == {"first": str(pair[0]), "second": str(pair[1]), **compared.as_dict()}
    assert told["ms"]["first"]["correct"] == compared.ms.first.correct
    code, out, _ = call("compare", *pair, data)
    assert code == 0
    lines = [line.split() for line in out.splitlines()[-3:]]
    for cells, one in zip(lines, (compared.os, compared.ms, compared.overall), strict=True):
        counts = [one.mcnemar.only_first, one.mcnemar.only_second, one.both, one.neither]
        assert cells[-5:] == [*map(str, counts), f"{one.mcnemar.p:.3g}"]


def test_compare_reads_records(evaluated, call):
    pair, data = [evaluated / "minloss", evaluated / "selectr"], evaluated / "test.safetensors"
    records = call("record", *pair, "--out", evaluated / "records", "--allow-dirty")[1].split()
    of_runs, of_records = (json.loads(call("compare", *both, data, "--json")[1]) for both in (pair, records))
    assert [of_runs[key] for key in ("os", "ms", "overall")] == [of_records[key] for key in ("os", "ms", "overall")]


def test_compare_needs_predictions_on_the_same_data(runs, call):
    pair, data = [runs / "minloss", runs / "selectr"], runs / "test.safetensors"
    for _ in pair:
        code, out, err = call("compare", *pair, data)
        assert (code, out) == (2, "")
        again = re.search("`oneofmany (.*?)`", err)
        assert again
        assert call(*again[1].split())[0] == 0
    assert call("compare", *pair, data)[0] == 0
    there = Dataset.load(data).header()["checksum"]
    shutil.copy(runs / "other.safetensors", data)
    code, _, err = call("compare", *pair, data)
    assert code == 2
    assert there in err
    assert Dataset.load(data).header()["checksum"] in err
    code, _, err = call("compare", *pair, runs / "dev.safetensors")
    assert code == 2
    assert "but on test" in err


def test_record_writes_one_file_a_run(evaluated, call):
    pair, out = [evaluated / "minloss", evaluated / "selectr"], evaluated / "new" / "records"
    log = evaluated / "minloss.log"  # a sweep writes it, and a shell pattern matches it
    log.write_text("training ...")
    code, told, _ = call("record", *pair, log, "--out", out, "--allow-dirty")
    assert code == 0
    files = [out / "small-minloss-7.json", out / "small-selectr-7.json"]
    assert told.split() == list(map(str, files))
    for file, run in zip(files, pair, strict=True):
        assert to_json(read_record(file)) == to_json(read_record(run))
        assert str(evaluated) not in file.read_text()
        assert str(made()) not in file.read_text()
    before = files[1].read_bytes()
    files[0].unlink()
    code, told, err = call("record", *pair, "--out", out, "--allow-dirty")
    assert (code, told) == (2, "")
    assert "--force" in err
    assert not files[0].exists()
    assert call("record", *pair, "--out", out, "--force", "--allow-dirty")[0] == 0
    assert files[1].read_bytes() == before


def test_record_refuses(evaluated, call):
    again = shutil.copytree(evaluated / "minloss", evaluated / "again")
    for runs, words in (
        ((evaluated / "minloss", again), "same recipe and seed"),
        ((), "run folder"),
        ((evaluated / "test.safetensors",), "neither a run folder nor a record"),
    ):
        code, out, err = call("record", *runs, "--out", evaluated / "records", "--allow-dirty")
        assert (code, out) == (2, "")
        assert words in err
    assert not (evaluated / "records").exists()
