"""A run on data whose queries bring their own rules: train, resume, evaluate, solve."""

from dataclasses import replace

import numpy as np
import pytest

from oneofmany.data import Dataset
from oneofmany.evaluation import evaluate_run
from oneofmany.networks.building import NetworkSettings, SelectorSettings
from oneofmany.networks.saved import load_network
from oneofmany.problems import TASKS, Query, Task, rules_kept
from oneofmany.problems.tasks.task import NO_RELATIONS
from oneofmany.solving import Solver
from oneofmany.training import OBJECTIVES, PhaseSettings, SelectorTraining, Settings, train
from structures import cages, coloured, graphs, sums


def write(problem, values, relations=NO_RELATIONS, *_):
    return " ".join(map(str, values))


def saved(data, path, monkeypatch):
    """The task of the data is known, and the data is in a file."""
    task = data.problem.task
    if task != "colouring":  # the package has it
        monkeypatch.setitem(TASKS, task, Task(task, lambda size: data.problem, lambda text: None, write, write))  # pyright: ignore
    data.save(path)
    return path


@pytest.mark.parametrize(
    ("make", "objective"),
    [
        *((cages, objective) for objective in (*OBJECTIVES, "rules")),
        *((coloured, objective) for objective in (*OBJECTIVES, "rules")),
        *((graphs, objective) for objective in ("selectr", "rules")),
        *((sums, objective) for objective in ("minloss", "selectr", "rules")),
    ],
)
def test_every_objective_trains(make, objective, tmp_path, monkeypatch):
    data = make(24, seed=1)
    file = saved(data, tmp_path / "data.safetensors", monkeypatch)
    phase = PhaseSettings(updates=2, batch=8, lr=1e-2)
    settings = Settings(
        task=data.problem.task,
        objective=objective,
        network=NetworkSettings("equivariant", width=4, steps=2),
        selector=SelectorSettings("equivariant", width=4, depth=2),
        selector_training=SelectorTraining(updates=2, copy_interval=2),
        pretraining="minloss",
        first=phase,
        second=replace(phase, sampling="ms"),
        evaluate_every=2,
        device="cpu",
    )
    lines = []
    train(settings, file, file, tmp_path / "run", watch=lines.append)
    trained = [line for line in lines if line.get("kind") == "train"]
    assert all(line["loss"] > 0 and line["skipped"] == 0 for line in trained)
    if objective == "selectr":
        phases = {line["phase"]: line for line in trained}
        assert phases["selector"]["selector_gradient_norm"] > 0
        assert min(phases["joint"][name] for name in ("selector_gradient_norm", "gradient_norm")) > 0


@pytest.mark.parametrize("make", [graphs, cages])
def test_train_evaluate_and_solve(make, tmp_path, monkeypatch):
    data, dev = make(60, seed=1), make(20, seed=2)
    task = data.problem.task
    saved(data, tmp_path / "train.safetensors", monkeypatch)
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
    answers = Solver(load_network(run / "weights.safetensors", device="cpu")).answer(queries)
    for query, answer in zip(queries, answers, strict=True):
        assert answer.valid == bool(rules_kept(query.problem, answer.values[None])[0])
        assert np.where(query.values > 0, answer.values == query.values, True).all()
