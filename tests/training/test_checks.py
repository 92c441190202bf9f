"""Data that does not fit is refused before anything is written."""

from dataclasses import replace

import pytest

from oneofmany.data import Dataset
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
    with pytest.raises(ValueError, match="phase pretrain-unique samples OS queries"):
        check_data(small("selectr"), several, dev)
    for good in ("uniform", "pairs", "pairs-padded"):
        check_data(replace(settings, first=replace(settings.first, sampling=good)), single, dev)
    with pytest.raises(ValueError, match="train: the data is of task sudoku, the recipe is for nqueens"):
        check_data(replace(settings, task="nqueens"), sudoku, dev)
    queens = Dataset.load(data / "nqueens.safetensors")
    with pytest.raises(ValueError, match="dev: the data is of task nqueens, the recipe is for sudoku"):
        train(settings, files(data, settings)[0], data / "nqueens.safetensors", tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert len(queens) == 300


def test_dev_without_the_queries_that_count(data, tmp_path):
    settings = small("minloss", select_on="ms")
    train_file, dev_file = files(data, settings)
    dev = Dataset.load(dev_file)
    dev.take((~dev.multiple).nonzero()[0]).save(tmp_path / "os.safetensors")
    with pytest.raises(ValueError, match="dev: select_on is ms, but the data has no MS query"):
        train(settings, train_file, tmp_path / "os.safetensors", tmp_path / "run")
    assert not (tmp_path / "run").exists()
