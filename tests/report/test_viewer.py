"""Traces for the board viewer agree with the network."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from oneofmany.data import Dataset, DeviceData
from oneofmany.exact import solve
from oneofmany.networks import NLM, RRN, EquivariantNetwork, nlm_for, predict
from oneofmany.problems import TASKS, Batch, OwnRules, use_task_file
from oneofmany.report.viewer import _kept, check_viewer, trace

QUERIES = {
    "nqueens": "3 . . . . . . .",
    "sudoku": "1.........2.4...",
    "futoshiki": ".2.............. r1c2<r1c3 r3c1<r2c1",
}


def make_batch(task, text=None):
    """One query with all of its solutions."""
    query = TASKS[task].parse(text or QUERIES[task])
    found = torch.as_tensor(solve(query.problem, query.values[None], query.relations[None]).of(0).astype(np.int64))
    relations = torch.as_tensor(query.relations[None].astype(np.int64))
    return Batch(
        torch.as_tensor(query.values[None].astype(np.int64)),
        found[None] - 1,
        torch.ones(1, len(found), dtype=torch.bool),
        torch.tensor([len(found)]),
        query.problem,
        relations if relations.shape[1] else None,
    )


def make_network(kind, batch):
    torch.manual_seed(0)
    if kind == "equivariant":
        return EquivariantNetwork(batch.problem, width=8, steps=5)
    return RRN(batch.problem, steps=5) if kind == "rrn" else nlm_for(batch.problem, depth=2, relations="any")


@pytest.mark.parametrize(
    ("kind", "task"),
    [("equivariant", "nqueens"), ("equivariant", "futoshiki"), ("equivariant", "sudoku"), ("rrn", "sudoku"),
     ("nlm", "nqueens"), ("nlm", "futoshiki")],
)  # fmt: skip
def test_trace(kind, task):
    batch = make_batch(task)
    network = make_network(kind, batch).train()
    readout = "threshold" if isinstance(network, NLM) else "argmax"
    data = json.loads(json.dumps(check_viewer(trace(network, batch, readout=readout), "here")))
    assert network.training
    assert (data["task"], data["size"], data["values"]) == (task, batch.problem.size, batch.problem.values)
    (board,) = data["boards"]
    assert board["query"] == batch.query[0].tolist()
    assert board["solutions"] == (batch.solutions[0] + 1).tolist()
    assert len(board["relations"]) == (2 if task == "futoshiki" else 0)
    frames = 1 if kind == "nlm" else 5
    belief = np.array(board["belief"])
    assert belief.shape == (frames, batch.problem.variables, batch.problem.values)
    assert (belief == belief.round(2)).all()
    assert board["steps"] == list(range(1, frames + 1))
    if kind == "equivariant":
        assert np.allclose(belief.sum(-1), 1, atol=0.005 * batch.problem.values)
    generator = torch.Generator().manual_seed(0)
    answer = predict(network, batch, generator=generator)
    if readout == "argmax":
        assert board["answers"][-1] == (answer.answers[0] + 1).tolist()
        assert board["valid"][-1] == bool(batch.problem.check(answer.answers, batch.query, batch.relations))
    else:
        assert np.allclose(belief[-1], answer.logits[0].sigmoid(), atol=0.0051)
        taken = answer.logits[0] > 0
        assert board["answers"][-1] == [int(row.nonzero()[0]) + 1 if row.sum() == 1 else 0 for row in taken]


def test_solutions_are_recognised():
    batch = make_batch("nqueens")

    def perfect(batch):
        return torch.nn.functional.one_hot(batch.solutions[:, 0], 8).float() * 20

    perfect.value_offset = 0
    (board,) = trace(perfect, batch)["boards"]
    assert board["valid"] == [True]
    assert board["answers"] == [board["solutions"][0]]
    assert set(np.ravel(board["belief"])) == {0, 1}


def test_long_predictions_stay_small():
    batch = make_batch("nqueens")
    network = make_network("equivariant", batch)
    (board,) = trace(network, batch, steps=100, frames=10)["boards"]
    assert board["steps"][:5] == [1, 2, 3, 4, 5]
    assert board["steps"][-1] == 100
    assert len(board["steps"]) == len(board["belief"]) == 10
    for steps in range(1, 60):
        kept = _kept(steps, 10)
        assert (kept[0], kept[-1]) == (0, steps - 1)
        assert kept == sorted(set(kept))
        assert len(kept) == min(steps, 10)


def test_bad_arguments():
    batch = make_batch("nqueens")
    with pytest.raises(ValueError, match="without steps"):
        trace(make_network("nlm", batch), batch, steps=3)
    with pytest.raises(ValueError, match="frames"):
        trace(make_network("equivariant", batch), batch, frames=1)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("boards"),
        lambda data: data.update(boards=[]),
        lambda data: data.update(values=3),
        lambda data: data["boards"][0]["answers"].pop(),
        lambda data: data["boards"][0]["belief"][0].pop(),
        lambda data: data["boards"][0]["solutions"][0].pop(),
        lambda data: data["boards"][0].update(relations=[[0, 99]]),
    ],
)
def test_damaged_traces_are_named(damage):
    batch = make_batch("nqueens")
    data = trace(make_network("equivariant", batch), batch)
    damage(data)
    with pytest.raises(ValueError, match="some run"):
        check_viewer(data, "some run")


def test_names_of_a_named_task_are_in_the_trace():
    """The viewer labels rows and columns with them."""
    example = Path(__file__).parents[2] / "examples" / "tasks" / "timetable.py"
    task = use_task_file(example)
    try:
        batch = make_batch("timetable", "1a-maths=8:00 1b-maths=9:00 1b-sports=8:00")
        data = check_viewer(trace(make_network("equivariant", batch), batch), "here")
    finally:
        del TASKS[task.name]
    assert data["names"]["variables"][:2] == ["1a-maths", "1a-physics"]
    assert data["names"]["values"] == ["8:00", "9:00", "10:00", "11:00"]
    data["names"]["values"].pop()
    with pytest.raises(ValueError, match="does not fit together"):
        check_viewer(data, "here")
    assert trace(make_network("equivariant", make_batch("nqueens")), make_batch("nqueens"))["names"] is None


@pytest.mark.parametrize("task", ["killer", "kakuro", "magic-square"])
def test_sums_are_in_the_trace(task):
    """The viewer draws the cages and black cells of each query."""
    folder = Path(__file__).parents[2] / "examples" / "tasks"
    own = use_task_file(folder / f"{task.replace('-', '_')}.py")
    try:
        if task == "magic-square":
            batch, sums = make_batch(task, "8 . . . 5 . . . ."), {"15"}
        else:
            query = own.parse((folder / f"{task}.txt").read_text())
            solutions = solve(query.problem, query.values[None]).solutions
            rules = [
                rule for rule in query.problem.rules if rule.kind in (*own.problem().own_kinds, *own.problem().own_sums)
            ]
            data = Dataset(
                own.problem(), query.values[None], solutions, np.array([0, 1]), np.array([1]),
                np.zeros((1, 0, 2), np.int16), np.zeros(1, np.int64), {}, OwnRules.of([rules]),
            )  # fmt: skip
            batch, sums = DeviceData(data).batch(torch.tensor([0])), {str(r.low) for r in rules if r.linear}
        data = json.loads(json.dumps(trace(make_network("equivariant", batch), batch)))
    finally:
        del TASKS[own.name]
    (board,) = data["boards"]
    assert data["form"] == "grid"
    assert {mark["text"] for mark in board["marks"] if "text" in mark} == sums
    assert any("line" in mark for mark in board["marks"]) == (task == "killer")
    assert bool(board.get("absent")) == (task == "kakuro")


def test_nodes_of_a_graph_have_places():
    batch = make_batch("colouring", "k=3 n=5 1-2 2-3 3-1 3-4 5=1")
    data = json.loads(json.dumps(trace(make_network("equivariant", batch), batch)))
    assert data["form"] == "graph"
    assert np.shape(data["boards"][0]["places"]) == (4, 2)
    assert data["boards"][0]["absent"] == [4]
