"""Accuracy against starts and steps: counted as by hand, saved and drawn."""

import shlex

import pytest
import torch

import oneofmany
from oneofmany.cli import run
from oneofmany.data import Dataset, DeviceData
from oneofmany.data.sudoku import build_sudoku
from oneofmany.evaluation import Searched, search_data, search_run
from oneofmany.files import FileError
from oneofmany.networks.searching import search
from oneofmany.pictures.searches import search_chart


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "few.safetensors"
    build_sudoku(7, "test", seed=7, givens=(22, 26), ms_queries=2).save(path)
    return path


@pytest.fixture(scope="module")
def searched(file):
    return search_run("sudoku", file, starts=(2, 1), steps=(12, 24), batch_size=4, device="cpu", seed=5)


def test_the_points_are_counts_of_the_search(file, searched):
    data, network = DeviceData(Dataset.load(file)), oneofmany.load("sudoku").network
    assert [(one.steps, one.starts) for one in searched.points] == [(12, 1), (12, 2), (24, 1), (24, 2)]
    for limit in (12, 24):
        generator = torch.Generator().manual_seed(5)
        parts = []
        for batch in data.in_order(4):
            both = list(search(network, batch, starts=2, steps=limit, generator=generator, together=4))
            parts.append([(batch.check(one.answers), one.settled, one.steps) for one in both])
        for starts in (1, 2):
            (point,) = [one for one in searched.points if (one.steps, one.starts) == (limit, starts)]
            right, settled, steps = (torch.cat([part[starts - 1][i] for part in parts]) for i in range(3))
            multiple = torch.as_tensor(Dataset.load(file).multiple)
            assert (point.overall.correct, point.overall.total) == (int(right.sum()), 7)
            assert (point.ms.correct, point.ms.total) == (int(right[multiple].sum()), 2)
            assert (point.os.correct, point.os.total) == (int(right[~multiple].sum()), 5)
            assert (point.settled.correct, point.settled.total) == (int(right[settled].sum()), int(settled.sum()))
            assert point.mean_steps == pytest.approx(float(steps.double().mean()), abs=0.01)
    assert searched.points[-1].overall.correct > searched.points[0].overall.correct


def test_a_file_and_a_figure(searched, tmp_path, monkeypatch):
    searched.save(tmp_path / "search.json")
    assert Searched.load(tmp_path / "search.json") == searched
    with pytest.raises(FileError, match="exists"):
        searched.save(tmp_path / "search.json")
    (tmp_path / "other.json").write_text('{"format": 1, "points": [{}], "about": {}}')
    with pytest.raises(FileError, match="does not hold a search"):
        Searched.load(tmp_path / "other.json")
    chart = search_chart(searched.curves(), searched.caption)
    assert "7 queries of few" in chart.caption
    chart.save(tmp_path / "search.svg")
    drawn = []
    monkeypatch.setattr(
        "oneofmany.pictures.searches.draw_lines", lambda figure, theme, panels, **how: drawn.append(panels)
    )
    search_chart(searched.curves(), searched.caption).save(tmp_path / "again.svg")
    ((_, lines),) = drawn[0]
    assert [line.label for line in lines] == ["12 steps", "24 steps"]
    assert [point[0] for point in lines[1].points] == [1, 2]
    assert lines[1].points[1][1] == 100 * searched.points[-1].overall.accuracy


def test_options_with_other_values_are_in_the_command(searched, file):
    assert searched.about["command"].endswith("--starts 1 2 --steps 12 24 --restarts noise --seed 5 --batch 4")


def test_the_command(file, tmp_path, capsys):
    out, figure = tmp_path / "search.json", tmp_path / "search.svg"
    how = ["--starts", "1", "2", "--steps", "12", "--restarts", "noise", "perturbed", "--device", "cpu"]
    assert run(["search", "sudoku", str(file), *how, "--out", str(out), "--figure", str(figure)]) == 0
    captured = capsys.readouterr()
    rows = [line.split()[:3] for line in captured.out.splitlines()[2:]]
    assert rows == [[way, "12", starts] for way in ("noise", "perturbed") for starts in ("1", "2")]
    saved = Searched.load(out)
    assert len(saved.points) == 4
    # The file names its command, which gives the same numbers again.
    assert (
        saved.about["command"] == f"oneofmany search sudoku {file} --starts 1 2 --steps 12 --restarts noise perturbed"
    )
    again = shlex.split(saved.about["command"])[1:]
    assert run([*again, "--device", "cpu", "--out", str(tmp_path / "again.json")]) == 0
    assert [one.overall for one in Searched.load(tmp_path / "again.json").points] == [p.overall for p in saved.points]
    assert figure.exists()
    assert run(["search", "sudoku", str(file), *how, "--out", str(out)]) == 2
    assert run(["search", "nqueens", str(file), "--steps", "12", "--device", "cpu"]) == 2
    assert "few" in capsys.readouterr().err
    assert run(["search", "sudoku", str(file), *how, "--figure", "search.pdf"]) == 2
    assert capsys.readouterr().out == ""  # refused before the search


def test_what_cannot_be_searched(file):
    data, network = Dataset.load(file), oneofmany.load("sudoku").network
    with pytest.raises(ValueError, match="starts: expected different values"):
        search_data(network, data, starts=(1, 1))
    with pytest.raises(ValueError, match="steps: expected different values, at least one"):
        search_data(network, data, steps=())
