"""The report from files: what it reads, writes and refuses."""

import shutil
import sys

import pytest
import torch

from oneofmany.cli import run
from oneofmany.cli.report import report
from oneofmany.data.nqueens import build_nqueens
from oneofmany.evaluation.record_file import save_record
from oneofmany.files import FileError
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.saved import save_network
from oneofmany.problems import Problem, Rule, nqueens
from oneofmany.report import find_runs, read_records, trace_runs, write_report

from .records import fake_grid, fake_record

INSTALL = "pip install 'oneofmany[report]'"


@pytest.fixture(scope="module")
def records():
    return [r for r in fake_grid(queries=100, seeds=(42,)) if r.task == "nqueens" and r.objective == "minloss"]


@pytest.fixture
def results(tmp_path, records):
    """A folder of records and other files."""
    folder = tmp_path / "results"
    (folder / "deep").mkdir(parents=True)
    for i, record in enumerate(records):
        save_record(record, folder / "deep" / f"{i}.json")
    (folder / "notes.json").write_text('{"about": "something else"}')
    (folder / "notes.txt").write_text("hello")
    return folder


def test_command(results, tmp_path, capsys):
    out, export = tmp_path / "report.html", tmp_path / "export"
    report((results,), out, export)
    said = capsys.readouterr()
    assert said.out == f"{out}\n"
    assert "notes.json is not the record" in said.err
    assert "<h1>" in out.read_text()
    names = {path.name for path in export.iterdir()}
    assert {"accuracy.csv", "accuracy.md", "runs.csv", "training-nqueens.svg", "training-nqueens-dark.png"} <= names
    assert "claims.md" not in names
    assert {path.suffix for path in export.iterdir()} == {".csv", ".md", ".svg", ".png"}
    with pytest.raises(FileError, match="exists"):
        report((results,), out)
    with pytest.raises(FileError, match="not empty"):
        report((results,), tmp_path / "other.html", export)
    assert not (tmp_path / "other.html").exists()
    before = out.read_bytes()
    report((results,), out, force=True)
    assert out.read_bytes() == before


def test_a_record_named_twice_counts_once(results, tmp_path, capsys):
    report((results, results / "deep" / "0.json"), tmp_path / "report.html")
    assert "it appears twice" in capsys.readouterr().err


def test_what_is_refused(results, tmp_path):
    with pytest.raises(ValueError, match="no runs"):
        read_records([])
    with pytest.raises(FileError, match="does not exist"):
        read_records([tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="no runs found"):
        read_records([tmp_path / "empty"])
    damaged = results / "deep" / "0.json"
    damaged.write_text(damaged.read_text()[:-40])
    with pytest.raises(FileError, match=r"0\.json"):
        read_records([results])
    damaged.write_text('{"recipe": "nqueens/minloss"}')
    with pytest.raises(FileError, match=r"0\.json"):
        read_records([results])


def test_runs_without_evaluations(results, tmp_path):
    bare = fake_record("nqueens/naive", 42, {})
    path = tmp_path / "bare.json"
    save_record(bare, path)
    with pytest.raises(FileError, match=r"bare\.json has no evaluations"):
        read_records([path])
    shutil.copy(path, results / "bare.json")
    said = []
    assert len(read_records([results], said.append)) == 3
    assert [sentence for sentence in said if "bare.json" in sentence and sentence.startswith("no evaluations in")]
    assert len(read_records([path], said.append, evaluated=False)) == 1
    shutil.rmtree(results / "deep")
    with pytest.raises(FileError, match="none of the 1 runs"):
        read_records([results])


def test_without_matplotlib(records, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = []
    write_report(records, tmp_path / "report.html", tell=said.append)
    assert "need matplotlib" in (tmp_path / "report.html").read_text()
    assert said == ["matplotlib is needed for figures and PNG files and is not installed: " + INSTALL]


def test_without_jinja2(results, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    out = tmp_path / "report.html"
    assert run(["report", str(results), "--out", str(out)]) == 2
    assert capsys.readouterr() == (
        "",
        f"oneofmany: jinja2 is needed for the HTML report and is not installed: {INSTALL}\n",
    )
    with pytest.raises(ValueError, match="jinja2 is needed for the HTML report"):
        write_report([], out)
    assert not out.exists()


def test_a_run_at_its_beginning(tmp_path):
    record = fake_record("nqueens/minloss", 42, {}, dev=None, seconds=None, updates=None)
    write_report([record], tmp_path / "report.html")
    assert "nqueens/minloss/42" in (tmp_path / "report.html").read_text()


@pytest.fixture
def runs(tmp_path):
    """Two untrained runs of one recipe and one of another task, with the files that the viewer reads."""
    folders = []
    for name, recipe, dev, size in (("a", "nqueens/minloss/tiny", 0.3, 7), ("b", "nqueens/minloss/tiny", 0.4, 7)):
        folder = tmp_path / name
        folder.mkdir()
        settings, problem = NetworkSettings("equivariant", width=8, steps=3, test_steps=5), nqueens(size)
        torch.manual_seed(0)
        card = {"recipe": recipe, "seed": ord(name), "dev": {"overall": dev}}
        save_network(folder / "weights.safetensors", build_network(settings, problem), settings, problem, card)
        (folder / "config.json").write_text("{}")
        folders.append(folder)
    return folders


def test_boards_of_runs(runs):
    data = build_nqueens(7, 5, seed=1)
    ((title, traced),) = trace_runs(runs, data, queries=2)
    assert title == f"nqueens/minloss/tiny, seed {ord('b')}"
    assert len(traced["boards"]) == 2
    assert all(len(board["solutions"]) > 1 and len(board["steps"]) == 5 for board in traced["boards"])
    assert [path for path, _ in find_runs([runs[0].parent])] == runs


def test_boards_beside_runs_of_a_task_that_is_not_known(runs):
    """The rules of another task of the user's are not needed."""
    other, settings = (
        Problem("mine", 2, 2, 2, (Rule("pair", (0, 2)),)),
        NetworkSettings("equivariant", width=8, steps=3),
    )
    save_network(runs[0] / "weights.safetensors", build_network(settings, other), settings, other, force=True)
    ((title, _),) = trace_runs(runs, build_nqueens(7, 5, seed=1), queries=2)
    assert title == f"nqueens/minloss/tiny, seed {ord('b')}"
