"""Datasets in shards: the same bytes wherever shards are built, without repetitions, with all quotas full."""

import hashlib
import json

import numpy as np
import pytest

from oneofmany.cli import run
from oneofmany.data import Dataset
from oneofmany.data.listing import Distinct
from oneofmany.data.shards import Build, build_in_shards, build_part, merge, together, write_shard
from oneofmany.data.splits import in_split, relation_rows
from oneofmany.exact import count
from oneofmany.exact.symmetry import canonical_sudoku
from oneofmany.launching.local import Local
from oneofmany.runs.lock import Lock

BUILDS = {
    "futoshiki": (
        {"size": 4, "blanks": 9, "inequalities": 3, "queries": 90, "split": "dev", "seed": 3, "neighbours": "all"},
        4,
    ),
    "nqueens": ({"size": 13, "blanks": 7, "queries": 41, "split": "test", "seed": 5}, 3),
    "sudoku": ({"size": 4, "queries": 60, "split": "train", "givens": (4, 8), "seed": 1}, 3),
    "hard_sudoku": ({"queries": 12, "split": "train", "rating": (0, 20), "seed": 2, "threads": 1}, 2),
}


def build_of(name):
    arguments, shards = BUILDS[name]
    return Build(name, arguments, shards)


def bytes_of(dataset, path):
    dataset.save(path, force=True)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "name", ["futoshiki", "nqueens", "sudoku", pytest.param("hard_sudoku", marks=pytest.mark.slow)]
)
def test_queries_are_distinct_of_the_split_and_fill_the_quotas(name, tmp_path):
    build = build_of(name)
    data = build_in_shards(build, tmp_path)
    assert data.built == build.source.built | {"shards": build.shards}
    rows = relation_rows(data.query, data.relations)
    assert len(np.unique(rows, axis=0)) == len(data) == sum(build.source.quotas)
    assert np.bincount(build.source.kind(data), minlength=len(build.source.quotas)).tolist() == build.source.quotas
    assert (count(data.problem, data.query, data.relations) == data.total).all()
    if name == "hard_sudoku":
        assert in_split(canonical_sudoku(data.solutions[data.offsets[:-1]])[~data.multiple], "train").all()
    else:
        assert in_split(rows, build.arguments["split"]).all()


def test_shards_have_even_shares_of_every_quota():
    build = build_of("sudoku")
    shares = np.array([build.quotas(index) for index in range(build.shards)])
    assert shares.sum(0).tolist() == build.source.quotas
    assert np.ptp(shares, axis=0).max() <= 1
    assert np.ptp(shares.sum(1)) <= 1


def test_repeated_queries_are_drawn_again():
    """Shards that are all equal: every query of the later ones is a repetition."""
    build = build_of("sudoku")
    part = build_part(build.source, build.quotas(0), build.seed(0), Distinct())
    merged = merge(build, [part] * 3)
    assert len(np.unique(merged.query, axis=0)) == 60
    assert np.bincount(build.source.kind(merged)).tolist() == build.source.quotas
    mine = {row.tobytes() for row in part.data.query}
    assert mine <= {row.tobytes() for row in merged.query}
    # Groups are numbered over all shards: equal for equal keys (here the query), and only for them.
    assert len(np.unique(merged.group)) == 60


def test_solutions_stay_with_their_queries():
    build = build_of("sudoku")
    parts = [build_part(build.source, build.quotas(i), build.seed(i), Distinct()) for i in range(3)]
    whole = together(parts).data
    expected = [part.data.solutions_of(q).tolist() for part in parts for q in range(len(part.data))]
    assert [whole.solutions_of(q).tolist() for q in range(len(whole))] == expected


def test_the_command_gives_the_bytes_of_one_process(tmp_path, capsys):
    """In processes of the local launcher and in this one; three shards exist already."""
    arguments, shards = BUILDS["futoshiki"]
    whole = bytes_of(build_in_shards(build_of("futoshiki"), tmp_path / "here"), tmp_path / "here.safetensors")
    folder = tmp_path / ".there.safetensors.shards"
    folder.mkdir()
    (folder / "build.json").write_text((tmp_path / "here" / "build.json").read_text())
    for index in (0, 1, 2):
        write_shard(folder, index)
    words = [part for name, value in arguments.items() for part in (f"--{name}", str(value))]
    out = tmp_path / "there.safetensors"
    assert run(["data", "futoshiki", *words, "--shards", str(shards), "--jobs", "2", "--out", str(out)]) == 0
    assert hashlib.sha256(out.read_bytes()).hexdigest() == whole
    assert Dataset.load(out).built["shards"] == shards
    assert not folder.exists()
    other = Build("futoshiki", arguments, 2)
    assert bytes_of(build_in_shards(other, tmp_path / "two"), tmp_path / "two.safetensors") != whole


def test_mistakes_are_named(tmp_path, capsys):
    out = ["--out", str(tmp_path / "x.safetensors")]
    assert run(["data", "nqueens", "--size", "8", "--blanks", "5", "--shards", "2", *out]) == 2
    assert "boards of up to 12 queens are enumerated in one go, got 8 queens" in capsys.readouterr().err
    futoshiki = ["data", "futoshiki", "--size", "4", "--blanks", "9", "--queries", "5", *out]
    assert run([*futoshiki, "--shards", "6"]) == 2
    assert "shards: expected 1 to 5, the number of queries, got 6" in capsys.readouterr().err
    assert run([*futoshiki, "--shards", "2", "--address", "auto"]) == 2
    assert "--address belongs to --launcher ray" in capsys.readouterr().err
    build = build_of("futoshiki")
    build_in_shards(build, tmp_path / "a")
    with pytest.raises(ValueError, match="holds shards of another build: delete it"):
        build_in_shards(Build("futoshiki", build.arguments | {"seed": 4}, 4), tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "build.json").write_text(json.dumps({"builder": "nqueens", "arguments": {}, "shards": 2}))
    with pytest.raises(ValueError, match="holds shards of another build"):
        build_in_shards(build, tmp_path / "b", Local())


FUTOSHIKI = ["data", "futoshiki", "--size", "4", "--blanks", "6", "--queries", "20"]


@pytest.mark.parametrize("option", [["--launcher", "ray"], ["--jobs", "2"]])
def test_an_option_of_shards_without_shards_is_named(option, tmp_path, capsys):
    assert run([*FUTOSHIKI, "--out", str(tmp_path / "x.safetensors"), *option]) == 2
    assert f"{option[0]} is for a build in shards: add --shards N, or leave it out" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_two_builds_of_one_file_do_not_disturb_each_other(tmp_path, capsys):
    out = tmp_path / "x.safetensors"
    with Lock(tmp_path / ".x.safetensors.lock"):
        assert run([*FUTOSHIKI, "--shards", "2", "--out", str(out)]) == 2
    assert f"{out} is in use by" in capsys.readouterr().err
    assert run([*FUTOSHIKI, "--shards", "2", "--out", str(out)]) == 0
    assert list(tmp_path.iterdir()) == [out]


def test_too_few_queries_for_all_shards_are_counted(tmp_path):
    few = {"size": 3, "blanks": 1, "inequalities": 0, "queries": 200, "split": None, "seed": 1}
    with pytest.raises(ValueError, match=r"asked for \d+, but only \d+ distinct .* beside the \d+ of all shards$"):
        build_in_shards(Build("futoshiki", few, 4), tmp_path)
