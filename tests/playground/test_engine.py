"""The page's kernel computes what PyTorch computes, and its enumerator what ours finds."""

import numpy as np
import pytest
import torch

import oneofmany
from oneofmany.exact import solve
from oneofmany.networks import predict
from oneofmany.problems import TASKS
from oneofmany.solving.solver import PATIENCE
from reproduction.playground import batch_of, torch_logits

from .engines import GOLDEN, PLAYED, decoded, encoded, golden_cases

SIZES = {"nqueens": 10, "sudoku": 9, "futoshiki": 6}


def random_boards(engine, task, number, size=None):
    """Boards that the page draws."""
    size = size or SIZES[task]
    return engine.ask("random", [{"task": task, "size": size, "seed": seed} for seed in range(number)])


def test_golden_vectors_are_what_pytorch_computes():
    torch.set_num_threads(1)
    cases = golden_cases()
    for case in cases:
        noise, kept = decoded(case["noise"]), decoded(case["logits"])
        np.testing.assert_allclose(torch_logits(case, noise).ravel(), kept, atol=1e-3)
    assert {(case["network"], case["size"]) for case in cases} >= {("nqueens", 20), ("sudoku", 9), ("futoshiki", 9)}
    assert GOLDEN.stat().st_size < 1_000_000


def test_logits_of_every_step(engine):
    cases = golden_cases()
    worst = engine.ask("logits", cases)
    assert max(worst) < 1e-3, {(case["network"], case["size"]): one for case, one in zip(cases, worst, strict=True)}


def test_runs_use_one_memory_after_the_other(node):
    cases = [case for case in golden_cases() if case["task"] == "futoshiki"]
    for found in node.ask("memories", [case | {"runs": 5} for case in cases]):
        assert found["same"]
        assert found["made"] <= 1


def compare_answers(engine, task, number):
    """Both answer the same boards from the same noise, with the settings of ``oneofmany solve``."""
    boards = random_boards(engine, task, number)
    settings = {"steps": 256, "patience": PATIENCE}
    network, ours, torchs = oneofmany.load(task).network, *(torch.Generator().manual_seed(1) for _ in range(2))
    expected, steps, cases = [], [], []
    for first in range(0, number, 100):
        part = boards[first : first + 100]
        batch = batch_of(part)
        found = predict(network, batch, generator=torchs, **settings)
        expected += torch.where(batch.query > 0, batch.query, found.answers + 1).tolist()
        steps += found.steps.tolist()
        noise = torch.randn(len(part), batch.problem.choices, generator=ours).numpy()
        cases += [
            one | settings | {"network": task, "noise": encoded(own)} for one, own in zip(part, noise, strict=True)
        ]
    answers = engine.ask("answer", cases)
    differ = [i for i, answer in enumerate(answers) if answer["board"] != expected[i]]
    assert not differ, f"{len(differ)} of {number} answers differ: {differ[:10]}"
    assert np.mean([answer["steps"] == own for answer, own in zip(answers, steps, strict=True)]) > 0.98


@pytest.mark.parametrize("task", PLAYED)
def test_answers(engine, task):
    compare_answers(engine, task, 6)


@pytest.mark.slow
@pytest.mark.parametrize("task", PLAYED)
def test_answers_to_a_thousand_boards(engine, task):
    compare_answers(engine, task, 1_000)


EMPTY = [("nqueens", 4, 2), ("nqueens", 6, 4), ("nqueens", 8, 92), ("sudoku", 4, 288), ("futoshiki", 4, 576)]


def test_counts_of_empty_boards(engine):
    cases = [
        {"task": task, "size": size, "values": [0] * TASKS[task].problem(size).variables, "relations": []}
        for task, size, _ in EMPTY
    ]
    assert [found["total"] for found in engine.ask("count", cases)] == [total for *_, total in EMPTY]


COUNTED = [
    ("nqueens", 8),
    ("nqueens", 20),
    ("sudoku", 4),
    ("sudoku", 6),
    ("sudoku", 9),
    ("futoshiki", 5),
    ("futoshiki", 9),
]


@pytest.mark.parametrize(("task", "size"), COUNTED)
def test_counts_and_lists_are_those_of_our_enumerator(node, task, size):
    compare_counts(node, task, size, 20)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "size"), COUNTED)
def test_counts_of_a_thousand_boards(node, task, size):
    compare_counts(node, task, size, 1_000)


def compare_counts(node, task, size, number):
    boards = random_boards(node, task, number, size)
    for board in boards:  # fewer givens have more solutions
        board["values"] = [0 if i % 5 == 0 and size < 9 else value for i, value in enumerate(board["values"])]
    batch = batch_of(boards)
    relations = None if batch.relations is None else batch.relations.numpy().astype(np.int16)
    ours = solve(batch.problem, batch.query.numpy().astype(np.uint8), relations)
    for i, found in enumerate(node.ask("count", boards)):
        assert found["total"] == ours.total[i]
        assert sorted(found["listed"]) == sorted(ours.of(i).tolist())[:1000] or found["total"] > 1000
    assert ours.total.max() > 1


def test_boards_without_a_solution(node):
    square = {"task": "futoshiki", "size": 4, "values": [0] * 16}
    circle = [[0, 1], [1, 5], [5, 4], [4, 0]]
    chain = [[0, 1], [1, 2], [2, 3], [3, 7]]
    cases = [square | {"relations": circle}, square | {"relations": chain}, square | {"relations": chain[:3]}]
    cases.append({"task": "nqueens", "size": 8, "values": [1, 2, *[0] * 6], "relations": []})
    nothing, too_long, some, attacking = (found["total"] for found in node.ask("count", cases))
    assert nothing == too_long == attacking == 0
    ours = solve(TASKS["futoshiki"].problem(4), np.zeros((1, 16), np.uint8), np.array([chain[:3]], np.int16))
    assert some == ours.total[0] > 0
