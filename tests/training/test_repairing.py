"""Repairing against a search that counts all clashes again at every move, and what it does to an update."""

import math

import numpy as np
import pytest
import torch
from by_hand import updater_of
from hypothesis import given, settings
from hypothesis import strategies as st

from oneofmany.data.colouring import Effort, build_colouring
from oneofmany.data.nqueens import build_nqueens
from oneofmany.files import FileError
from oneofmany.problems import Batch, colouring
from oneofmany.training.checks import check_data
from oneofmany.training.repairing import PER_CLASH, TENURE, repair
from oneofmany.training.updating import Updater
from small_runs import small


def drawn(rng, B=6, N=7, V=3, M=12):
    """Graphs with some given colours, which do not clash, and answers."""
    problem = colouring(N, V)
    edges = rng.integers(N, size=(B, M, 2))
    edges[(edges[..., 0] == edges[..., 1]) | (rng.random((B, M)) < 0.2)] = -1
    query = np.zeros((B, N), np.int64)
    query[:, 0] = rng.integers(V + 1, size=B)
    parts = (torch.from_numpy(part) for part in (query, np.zeros((B, 1, N), np.int64)))
    batch = Batch(*parts, torch.zeros(B, 1) > 0, torch.full((B,), -1), problem, torch.from_numpy(edges))
    return batch, torch.from_numpy(rng.integers(V, size=(B, N)))


def literal_repair(edges, query, answer, moves, uniform):
    """One query: every move tries all nodes and colours and counts the clashes of each."""
    N, V = uniform.shape
    edges = {frozenset(edge) for edge in edges.tolist() if edge[0] >= 0}
    colours = [int(q) - 1 if q else int(a) for q, a in zip(query, answer, strict=True)]

    def clashes(of):
        return [edge for edge in edges if len({of[node] for node in edge}) == 1]

    barred = {}
    for move in range(moves):
        now = clashes(colours)
        noise = np.roll(uniform.numpy().ravel(), move * 977).reshape(N, V)
        best, where = math.inf, None
        for node in range(N):
            if query[node] or not any(node in edge for edge in now):
                continue
            for colour in range(V):
                if colour == colours[node] or barred.get((node, colour), 0) > move:
                    continue
                tried = len(clashes([*colours[:node], colour, *colours[node + 1 :]])) - len(now)
                if tried + noise[node, colour] / 2 < best:
                    best, where = tried + noise[node, colour] / 2, (node, colour)
        if where is not None:
            node, colour = where
            barred[node, colours[node]] = move + 1 + TENURE * noise[0, 0] + PER_CLASH * len(now)
            colours[node] = colour
    return colours


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 25))
def test_the_same_moves_as_a_literal_search(seed, moves):
    rng = np.random.default_rng(seed)
    batch, answers = drawn(rng)
    # All different, and exact in float32, so that both sides break ties alike.
    uniform = torch.stack([torch.from_numpy(rng.permutation(21)).view(7, 3) / 32 for _ in range(6)])
    before = answers.clone()
    found = repair(batch, answers, moves, uniform)
    each = zip(batch.relations, batch.query, answers, uniform, strict=True)
    expected = [literal_repair(edges, query, answer, moves, own) for edges, query, answer, own in each]
    assert found.tolist() == expected
    assert torch.equal(answers, before)


@pytest.mark.parametrize("share", [0.0, 0.15])
def test_colourings_with_few_clashes_are_mended_nearby(share):
    data = build_colouring(40, (20,), 3, seed=1)
    g = torch.Generator().manual_seed(0)
    first = torch.from_numpy(data.solutions[data.offsets[:-1]].astype(np.int64)) - 1
    parts = (torch.from_numpy(part.astype(np.int64)) for part in (data.query, data.relations))
    query, relations = parts
    batch = Batch(query, first[:, None], torch.ones(40, 1) > 0, torch.full((40,), -1), data.problem, relations)
    changed = (torch.rand(first.shape, generator=g) < share) & (query == 0)
    answers = torch.where(changed, torch.randint(3, first.shape, generator=g), first)
    found = repair(batch, answers, 200, torch.rand(40, 20, 3, generator=g))
    assert batch.check(found).float().mean() >= (1.0 if share == 0 else 0.9)
    distance = (found != answers).float().mean(1)
    assert distance.mean() <= 2 * share
    valid = batch.check(answers)
    assert torch.equal(found[valid], answers[valid])


def test_updates_train_towards_the_mended_answer(monkeypatch):
    data = build_colouring(24, (12,), 3, seed=1, effort=Effort(listed=1))
    asked = []

    def noted(batch, answers, moves, uniform):
        asked.append((moves, uniform.shape))
        return repair(batch, answers, moves, uniform)

    monkeypatch.setattr("oneofmany.training.updating.repair", noted)
    changes = {"task": data.problem.task, "discover": True}
    plain, mended = (updater_of(small("minloss", **changes, **more), None, data=data) for more in ({}, {"repair": 30}))
    losses = []
    for updater in (plain, mended):
        assert isinstance(updater, Updater)
        updater.step(updater.draw(0))
        losses.append(updater.measured()["loss"])
    size = mended.phase.settings.batch
    assert asked == [(30, (size, data.problem.variables, data.problem.values))]
    # One more solution to choose from cannot make the smallest loss larger.
    assert losses[1] < losses[0]


def test_what_cannot_be_mended_is_left_out(monkeypatch):
    data = build_colouring(24, (12,), 3, seed=1, effort=Effort(listed=1))

    def half(batch, answers, moves, uniform):
        odd = torch.arange(len(answers)) % 2 == 1
        return torch.where(odd[:, None], batch.solutions[:, 0], 0)  # one colour for all nodes is not valid

    monkeypatch.setattr("oneofmany.training.updating.repair", half)
    changes = {"task": data.problem.task, "discover": True, "repair": 30}
    mended = updater_of(small("minloss", **changes), None, data=data)
    assert isinstance(mended, Updater)
    mended.step(mended.draw(0))
    assert mended.measured()["queries"] == mended.phase.settings.batch // 2


def test_other_rules_are_refused():
    data = build_nqueens(6, 4)
    with pytest.raises(FileError, match=r"train: repair knows relations a != b only, but nqueens has other rules"):
        check_data(small("minloss", task="nqueens", discover=True, repair=5), data, data)
    with pytest.raises(ValueError, match="repair: expected 0 without discover, got 5"):
        small("minloss", repair=5)
