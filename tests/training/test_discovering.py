"""Discovering against the exact enumerator, and what it does to updates and runs."""

import copy
import os
import signal
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
from by_hand import literal_pair_losses, loose_data, updater_of, with_discovered
from hypothesis import given, settings
from hypothesis import strategies as st

import oneofmany.training.updating as updating
from oneofmany.data.sudoku import build_sudoku
from oneofmany.exact import solve
from oneofmany.networks.building import NetworkSettings
from oneofmany.problems import Batch, futoshiki, nqueens, sudoku
from oneofmany.training import Interrupted, PhaseSettings, SelectorTraining, resume, train
from oneofmany.training.discovering import discover
from oneofmany.training.learners import weights_of
from oneofmany.training.updating import Updater
from small_runs import assert_same_run, small

PROBLEMS = {"sudoku": sudoku(2, 2), "nqueens": nqueens(6), "futoshiki": futoshiki(4), "own": loose_data().problem}


def drawn(problem, rng, B=12, K=4, M=3):
    """Queries with some solutions listed in any order of places, and valid and invalid answers."""
    everything = solve(problem, np.zeros((1, problem.variables), np.uint8)).solutions
    whole = everything[rng.integers(len(everything), size=B)]
    query = np.where(rng.random(whole.shape) < rng.random((B, 1)), whole, 0)
    relations = None
    if problem.relation_kind is not None:
        pairs = rng.integers(problem.variables, size=(B, M, 2))
        values = np.take_along_axis(whole, pairs.reshape(B, -1), 1).reshape(pairs.shape)
        # Most relations hold in the grid of the givens, so that most queries have solutions.
        turned = (values[..., :1] > values[..., 1:]) ^ (rng.random((B, M, 1)) < 0.1)
        pairs = np.where(turned, pairs[..., ::-1], pairs)
        relations = np.where((values[..., :1] == values[..., 1:]) | (rng.random((B, M, 1)) < 0.3), -1, pairs)
    every = solve(problem, query, relations, seed=int(rng.integers(2**31)))
    solutions, answers = np.zeros((B, K, problem.variables), np.int64), []
    mask = rng.random((B, K)) < 0.5
    for b in range(B):
        own = every.of(b) if every.total[b] else everything
        solutions[b] = own[rng.integers(min(len(own), K + 1), size=K)]
        answer = [own[rng.integers(min(len(own), K + 2))], everything[rng.integers(len(everything))], whole[b].copy()]
        answer[2][rng.integers(problem.variables)] = rng.integers(1, problem.values + 1)
        answers.append(answer[rng.choice(3, p=[0.6, 0.2, 0.2])])
    mask &= (every.total > 0)[:, None]
    if relations is not None:
        relations = torch.from_numpy(relations)
    parts = (torch.from_numpy(part).long() for part in (query, solutions - 1))
    batch = Batch(*parts, torch.from_numpy(mask), torch.from_numpy(every.total), problem, relations)
    answers = torch.from_numpy(np.array(answers)).long() - 1
    logits = torch.nn.functional.one_hot(answers, problem.values) + torch.from_numpy(rng.random((*answers.shape, 1)))
    return batch, logits


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_place_is_taken_where_the_answer_is_a_solution_that_is_not_listed(name):
    seen = set()

    @settings(max_examples=15)
    @given(st.integers(0, 2**32))
    def check(seed):
        batch, logits = drawn(PROBLEMS[name], np.random.default_rng(seed))
        before = copy.deepcopy(batch.solutions), batch.mask.clone()
        found, expected = discover(batch, logits.argmax(-1)), with_discovered(batch, logits)
        assert torch.equal(found.mask, expected.mask)
        assert torch.equal(found.solutions, expected.solutions)
        # Nothing else has changed, in the new batch or in the old one.
        assert torch.equal(found.solutions[:, :-1], before[0])
        assert torch.equal(found.mask[:, :-1], before[1])
        assert torch.equal(batch.solutions, before[0])
        assert torch.equal(batch.mask, before[1])
        for same in ("query", "total", "problem", "relations"):
            assert getattr(found, same) is getattr(batch, same)
        # Which kinds of answers occurred: valid or not; among the listed solutions, the padding, or neither.
        valid = batch.problem.check(logits.argmax(-1), batch.query, batch.relations)
        stands = (batch.solutions == logits.argmax(-1)[:, None]).all(-1)
        seen.update(zip(valid.tolist(), stands.any(1).tolist(), (stands & batch.mask).any(1).tolist(), strict=True))

    check()
    # Not valid; valid and absent, valid and only in the padding, valid and listed.
    assert seen >= {(False, False, False), (True, False, False), (True, True, False), (True, True, True)}


def test_an_answer_that_breaks_an_inequality_is_none():
    problem = futoshiki(2)
    answer = torch.tensor([[0, 1, 1, 0]] * 3)
    relations = torch.tensor([[[0, 1], [-1, -1]], [[1, 0], [-1, -1]], [[-1, -1], [-1, -1]]])
    listed = 1 - answer[:, None]
    batch = Batch(torch.zeros(3, 4).long(), listed, torch.ones(3, 1) > 0, torch.ones(3).long(), problem, relations)
    logits = torch.nn.functional.one_hot(answer, 2).float()
    assert discover(batch, logits.argmax(-1)).mask[:, 1].tolist() == [True, False, True]
    # Listed solutions are not checked.
    assert discover(batch, logits.argmax(-1)).mask[:, 0].all()


# ---- updates -------------------------------------------------------------------------------------------------------


def drawn_place(weights, noise):
    """Draw by exponential clocks with rates ``weights``: the first to ring."""
    return (-torch.log1p(-noise) / weights).argmin()


def literal_loss(s, pairs, noise, scores):
    """The loss of one query, from the pair losses [T, K] of its listed and discovered solutions."""
    mean = pairs.mean(0)
    if s.objective == "ccloss":
        return -(-pairs).logsumexp(1).mean()
    if s.objective == "iexplr":
        return ((-mean / s.temperature).softmax(0).detach() * mean).sum()
    if s.objective == "selectr":
        return mean[drawn_place(scores.softmax(0), noise)]
    if s.epsilon:
        weights = torch.full_like(mean, s.epsilon / len(mean)).detach()
        weights[mean.argmin()] += 1 - s.epsilon
        return mean[drawn_place(weights, noise)]
    return mean.min()


SAMPLED = SelectorTraining(updates=2, sample=True)
OBJECTIVES = {
    "ccloss": small("ccloss", discover=True),
    "minloss": small("minloss", discover=True),
    "minloss, any solution now and then": small(
        "minloss", discover=True, epsilon=0.7, second=PhaseSettings(updates=4, batch=4)
    ),
    "minloss, any solution of a drawn pair now and then": small(
        "minloss", discover=True, epsilon=0.7, second=PhaseSettings(updates=4, batch=4, sampling="pairs")
    ),
    "iexplr": small("iexplr", discover=True, temperature=2.0),
    "selectr, one solution drawn": small("selectr", discover=True, selector_training=SAMPLED),
}


PAIRS = "minloss, any solution of a drawn pair now and then"


@pytest.mark.parametrize("name", OBJECTIVES)
def test_loss_and_gradient_by_hand(name):
    s = OBJECTIVES[name]
    updater = updater_of(s, None, data=loose_data())
    discovered = 0
    for number in range(6):
        network, inputs = copy.deepcopy(updater.learners.network), updater.draw(number)
        batch = updater.data.batch(inputs["rows"], updater.phase.settings.sampling)
        places = batch.mask.shape[1] + 1
        logits = network(batch, noise=inputs["noise"])
        batch = with_discovered(batch, logits[-1])
        discovered += int(batch.mask[:, -1].sum())
        pairs = literal_pair_losses(logits, batch, 0, False)
        noise = inputs.get("weights", torch.zeros(batch.mask.shape))
        assert noise.shape == batch.mask.shape == (4, places)
        with torch.no_grad():
            selector = updater.learners.selector
            scores = torch.zeros(batch.mask.shape) if selector is None else selector(logits, batch)
        losses = [
            literal_loss(s, pairs[:, b, real], noise[b, real], scores[b, real]) for b, real in enumerate(batch.mask)
        ]
        loss = torch.stack(losses).mean()
        loss.backward()
        gradients = [p.grad for p in network.parameters() if p.grad is not None]
        norm = torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()
        updater.run(number, lr=0.01)
        measured = updater.measured()
        assert measured["loss"] == pytest.approx(loss.item(), rel=1e-5)
        assert measured["gradient_norm"] == pytest.approx(norm.item(), rel=1e-4)
        assert measured["ms_queries"] == int((batch.mask.sum(1) > 1).sum())
    assert discovered > 3


@pytest.mark.parametrize("which", [0, 1])
def test_where_all_solutions_are_listed_nothing_changes(data, which):
    """Pre-training with MinLoss on complete lists, and with Unique, whose queries have one solution."""
    s = small("iexplr", discover=True)
    weights = []
    for one in (s, replace(s, discover=False)):
        updater = updater_of(one, data, which)
        assert updater.phase.objective == ("minloss", "unique")[which]
        for number in range(5):
            updater.run(number, lr=0.01)
        weights.append(weights_of(updater.learners.network))
    for name, tensor in weights[0].items():
        torch.testing.assert_close(tensor, weights[1][name])


def test_a_query_without_listed_solutions_can_be_learned_from():
    whole = loose_data()
    offsets = np.where(np.arange(len(whole) + 1) < len(whole), 0, 1)  # but for the last query, which is not drawn
    data = replace(whole, solutions=whole.solutions_of(len(whole) - 1)[:1], offsets=offsets)
    for discovering in (False, True):
        updater = updater_of(small("minloss", discover=discovering), None, data=data)
        before = weights_of(updater.learners.network)
        updater.step(updater.draw(0) | {"rows": torch.arange(4)})
        learned = any(not torch.equal(t, before[name]) for name, t in weights_of(updater.learners.network).items())
        assert learned == (updater.measured()["queries"] > 0) == discovering


# ---- settings and runs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["naive", "random", "unique"])
def test_objectives_that_do_not_choose_are_refused(objective):
    message = rf"^discover: expected an objective of ccloss, minloss, iexplr, selectr, got {objective}$"
    with pytest.raises(ValueError, match=message):
        small(objective, discover=True)


@pytest.mark.parametrize("kind", ["nlm", "rrn"])
def test_other_networks_are_refused(kind):
    who = "only the equivariant network and the transformer have them"
    with pytest.raises(ValueError, match=rf"^[^.]*discover and spare_settled: {who}, got kind {kind}$"):
        small("minloss", kind, discover=True)


@pytest.fixture(scope="module")
def easy(tmp_path_factory):
    """Sudoku 4x4, 2 to 8 cells blank, most of them MS: training data of which one solution is used, and dev data."""
    folder = tmp_path_factory.mktemp("easy")
    for split, seed in (("train", 1), ("dev", 2)):
        data = build_sudoku(120, split, seed=seed, size=4, givens=(8, 11), ms_queries=80, listed=50)
        data.save(folder / f"{split}.safetensors")
    return folder / "train.safetensors", folder / "dev.safetensors"


EASY = small(
    "minloss",
    network=NetworkSettings("equivariant", width=16, steps=6),
    first=PhaseSettings(updates=50, batch=16, lr=1e-2),
    listed=1,
    discover=True,
    evaluate_every=25,
    log_every=25,
)


@contextmanager
def counted_discoveries():
    """A list that grows with every update by the number of places that were taken."""
    counts = []

    def counted(batch, answers, **others):
        found = discover(batch, answers, **others)
        counts.append(int(found.mask[:, -1].sum()))
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(updating, "discover", counted)
        yield counts


@pytest.fixture(scope="module")
def whole(easy, tmp_path_factory):
    """An uninterrupted run, its result and its discoveries."""
    out = tmp_path_factory.mktemp("whole") / "run"
    with counted_discoveries() as counts:
        return out, train(EASY, *easy, out), counts


def test_one_listed_solution_is_enough_to_train(whole):
    _, result, counts = whole
    assert result["dev"]["overall"] > 0.5
    assert len(counts) == EASY.first.updates
    # The network discovers solutions, and more of them the better it gets.
    assert sum(counts[-10:]) > 2 * sum(counts[:10])
    assert sum(counts[-10:]) > 20


def test_a_resumed_run_is_the_same_run(easy, whole, tmp_path, monkeypatch):
    real = Updater.run

    def interrupted(self, number, *arguments):
        real(self, number, *arguments)
        if number == 35:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Updater, "run", interrupted)
    with counted_discoveries() as counts:
        with pytest.raises(Interrupted):
            train(EASY, *easy, tmp_path / "run")
        assert len(counts) == 36
        resume(tmp_path / "run")
    assert_same_run(tmp_path / "run", whole[0])
    assert counts == whole[2]
