"""Real training on Sudoku 4x4: on MS queries, MinLoss and SelectR are far better than Naive.

The same of 8 queens is part of the demo's test.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import oneofmany
from oneofmany.data import Dataset
from oneofmany.data.benchmark import find_benchmark
from oneofmany.evaluation import evaluate

TASKS, OBJECTIVES = ("sudoku",), ("naive", "minloss", "selectr")


def train(arguments):
    command = [sys.executable, "-m", "oneofmany", "train", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def accuracies(tmp_path_factory):
    """Accuracy on the MS queries of dev and of test, by task and objective."""
    folder = tmp_path_factory.mktemp("tiny")
    for task in TASKS:  # once, before two runs at a time want them
        for split in ("train", "dev", "test"):
            find_benchmark(f"{task}-tiny-{split}", folder)
    where = {(task, objective): folder / task / objective for task in TASKS for objective in OBJECTIVES}
    commands = [
        [f"{task}/{objective}/tiny", "--out", str(out), "--data", str(folder), "--threads", "1", "--device", "cpu"]
        for (task, objective), out in where.items()
    ]
    with ThreadPoolExecutor(2) as two_at_a_time:
        for done in two_at_a_time.map(train, commands):
            assert done.returncode == 0, done.stderr
    found = {}
    for (task, objective), out in where.items():
        saved = oneofmany.load(out)
        for split in ("dev", "test"):
            data = Dataset.load(folder / f"{task}-tiny-{split}.safetensors")
            outcomes = evaluate(saved.network, data, steps=saved.settings.test_steps).summary()
            found[task, objective, split] = outcomes["ms"]["accuracy"]
    return found


@pytest.mark.parametrize("split", ["dev", "test"])
@pytest.mark.parametrize("objective", ["minloss", "selectr"])
@pytest.mark.parametrize("task", TASKS)
def test_the_minimum_beats_the_sum_by_20_points(accuracies, task, objective, split):
    assert accuracies[task, objective, split] >= accuracies[task, "naive", split] + 0.2, accuracies
