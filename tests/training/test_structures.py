"""A run on data whose queries bring their own rules: train, resume, evaluate, solve."""

import numpy as np
import pytest

from oneofmany.data import Dataset
from oneofmany.evaluation import evaluate_run
from oneofmany.networks.building import NetworkSettings
from oneofmany.networks.saved import load_network
from oneofmany.problems import TASKS, Query, Task, rules_kept
from oneofmany.problems.tasks.task import NO_RELATIONS
from oneofmany.solving import Solver
from oneofmany.training import PhaseSettings, Settings, train
from structures import cages, graphs


def write(problem, values, relations=NO_RELATIONS, *_):
    return " ".join(map(str, values))


@pytest.mark.parametrize("make", [graphs, cages])
def test_train_evaluate_and_solve(make, tmp_path, monkeypatch):
    data, dev = make(60, seed=1), make(20, seed=2)
    task = data.problem.task
    read = Task(task, lambda size: data.problem, lambda text: None, write, write)  # pyright: ignore
    monkeypatch.setitem(TASKS, task, read)
    data.save(tmp_path / "train.safetensors")
    dev.save(tmp_path / "dev.safetensors")
    settings = Settings(
        task=task,
        objective="minloss",
        network=NetworkSettings("equivariant", width=8, steps=3),
        first=PhaseSettings(updates=12, batch=16, lr=1e-2),
        evaluate_every=6,
        discover=True,
        select_on="overall",
        device="cpu",
    )
    run = tmp_path / "run"
    train(settings, tmp_path / "train.safetensors", tmp_path / "dev.safetensors", run)
    evaluated = evaluate_run(run, tmp_path / "dev.safetensors", device="cpu")
    again = Dataset.load(tmp_path / "dev.safetensors")
    valid = [
        bool(rules_kept(again.problem_of(row), answer[None])[0])
        and ((again.query[row] == 0) | (again.query[row] == answer)).all()
        for row, answer in enumerate(evaluated.outcomes.answers)
    ]
    assert evaluated.outcomes.valid.tolist() == valid
    queries = [Query(again.problem_of(row), again.query[row], NO_RELATIONS) for row in range(6)]
    saved = load_network(run / "weights.safetensors", device="cpu")
    answers = Solver(saved).answer(queries)
    for query, answer in zip(queries, answers, strict=True):
        assert answer.valid == bool(rules_kept(query.problem, answer.values[None])[0])
        assert np.where(query.values > 0, answer.values == query.values, True).all()
