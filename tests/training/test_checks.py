"""Data that does not fit is refused before anything is written."""

from dataclasses import replace

import numpy as np
import pytest

import oneofmany.training.checks as checks
from oneofmany.data import Dataset
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.problems import Problem
from oneofmany.training import train
from oneofmany.training.checks import check_data
from small_runs import files, small


def test_data_that_cannot_be_trained_on_is_refused_before_anything_is_written(data, tmp_path):
    settings = small("minloss")
    sudoku, dev = (Dataset.load(path) for path in files(data, settings))
    single, several = (sudoku.take((sudoku.multiple == which).nonzero()[0]) for which in (False, True))
    for sampling in ("ms", 0.5, 1.0):
        with pytest.raises(ValueError, match="train: phase train samples MS queries, but the data has none"):
            check_data(replace(settings, first=replace(settings.first, sampling=sampling)), single, dev)
    for sampling in ("os", 0.5, 0.0):
        with pytest.raises(ValueError, match="train: phase train samples OS queries, but the data has none"):
            check_data(replace(settings, first=replace(settings.first, sampling=sampling)), several, dev)
    with pytest.raises(ValueError, match=r"phase pretrain-unique samples OS queries, .*: pretraining minloss"):
        check_data(small("selectr"), several, dev)
    check_data(replace(small("selectr"), pretraining="minloss"), several, dev)
    for good in ("uniform", "pairs", "pairs-padded"):
        check_data(replace(settings, first=replace(settings.first, sampling=good)), single, dev)
    with pytest.raises(ValueError, match="train: the data is of task sudoku, the recipe is for nqueens"):
        check_data(replace(settings, task="nqueens"), sudoku, dev)
    with pytest.raises(ValueError, match="train: curriculum sorts by rating, and only 9x9 Sudokus have one"):
        check_data(replace(settings, curriculum=(0.3, 0.6)), sudoku, dev)
    queens = Dataset.load(data / "nqueens.safetensors")
    with pytest.raises(ValueError, match="dev: the data is of task nqueens, the recipe is for sudoku"):
        train(settings, files(data, settings)[0], data / "nqueens.safetensors", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert len(queens) == 300


def listing(data, row, solutions):
    """The data with other listed solutions of one query."""
    lists = [solutions if one == row else data.solutions_of(one) for one in range(len(data))]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
    return replace(data, solutions=np.concatenate(lists), offsets=offsets, total=np.full(len(data), -1))


@pytest.mark.parametrize("at_once", [3, 512])
def test_listed_solutions_that_break_a_rule_or_repeat(data, tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(checks, "AT_ONCE", at_once)
    settings = small("minloss")
    sudoku, dev = (Dataset.load(path) for path in files(data, settings))
    check_data(settings, sudoku, dev)
    row = int(sudoku.listed.argmax())
    own = sudoku.solutions_of(row)
    again = listing(sudoku, row, np.concatenate([own, own[-1:]]))
    with pytest.raises(ValueError, match=rf"^train: query {row}, counted from 0, lists a solution twice: list every"):
        check_data(settings, again, dev)
    # Two values of blank cells in one row are swapped: the row keeps its values, the columns do not.
    wrong = own.copy()
    blank = np.flatnonzero(sudoku.query[row].reshape(4, 4)[0] == 0)
    blank = blank if len(blank) > 1 else np.flatnonzero(sudoku.query[row] == 0)
    wrong[-1, blank[:2]] = wrong[-1, blank[1::-1]]
    sentence = rf"^train: query {row}, counted from 0, lists a solution that breaks a rule of sudoku: leave it out"
    with pytest.raises(ValueError, match=sentence):
        check_data(settings, listing(sudoku, row, wrong), dev)
    listing(sudoku, row, wrong).save(tmp_path / "wrong.safetensors")
    with pytest.raises(ValueError, match=sentence):
        train(settings, tmp_path / "wrong.safetensors", files(data, settings)[1], tmp_path / "run")
    assert not (tmp_path / "run").exists()
    # Without rules, any list of different solutions is right.
    bare = Problem("pairs", 16, 16, 4, ())
    pairs = replace(listing(sudoku, row, wrong), problem=bare)
    check_data(replace(settings, task="pairs"), pairs, replace(dev, problem=bare))


def test_listed_solutions_that_break_a_relation(data):
    futoshiki = build_futoshiki(4, 9, 3, 20, seed=3)
    settings = replace(small("minloss"), task="futoshiki")
    check_data(settings, futoshiki, futoshiki)
    row = int((futoshiki.relations[:, :, 0] >= 0).any(1).argmax())
    turned = futoshiki.relations.copy()
    turned[row] = turned[row, :, ::-1]
    with pytest.raises(ValueError, match=rf"^train: query {row}, counted from 0, lists a solution that breaks a rule"):
        check_data(settings, replace(futoshiki, relations=turned), futoshiki)


def test_dev_without_the_queries_that_count(data, tmp_path):
    settings = small("minloss", select_on="ms")
    train_file, dev_file = files(data, settings)
    dev = Dataset.load(dev_file)
    dev.take((~dev.multiple).nonzero()[0]).save(tmp_path / "os.safetensors")
    with pytest.raises(ValueError, match="dev: select_on is ms, but the data has no MS query"):
        train(settings, train_file, tmp_path / "os.safetensors", tmp_path / "run")
    assert not (tmp_path / "run").exists()
