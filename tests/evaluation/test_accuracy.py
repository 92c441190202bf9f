"""Accuracy by validity, against a loop over queries, rules and relations."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from capturing import NoSynchronisation
from oneofmany.data import Dataset, DeviceData
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.sudoku import build_sudoku
from oneofmany.evaluation import Outcomes, accuracy, evaluate
from oneofmany.evaluation.outcomes import DTYPES, OPTIONAL, coverage
from oneofmany.exact import solve
from oneofmany.networks import RRN, EquivariantNetwork, nlm_for, predict
from oneofmany.problems import nqueens


class Table(nn.Module):
    """Answers every query with given logits [Q, R, V + offset]."""

    def __init__(self, data, logits, value_offset=0):
        super().__init__()
        self.queries, self.logits, self.value_offset = torch.as_tensor(data.query).long(), logits, value_offset
        assert len(np.unique(data.query, axis=0)) == len(data)

    def rows(self, batch):
        return (batch.query[:, None] == self.queries).all(-1).int().argmax(1)

    def forward(self, batch):
        return self.logits[self.rows(batch)]


class NoisyTable(Table):
    """Two steps; the noise sets whether the table or its reverse answers, how surely, and how far the belief moves."""

    def noise_shape(self, batch):
        return len(batch), 3

    def forward(self, batch, noise=None):
        logits = super().forward(batch)
        assert noise is not None
        last = torch.where(noise[:, 0, None, None] > 0, logits, logits.flip(-1))
        last = last * (1 + noise[:, 1, None, None].abs())
        return torch.stack([last * noise[:, 2, None, None].sigmoid(), last])


def logits_of(answers, values, offset=0):
    """Logits positive at ``answers`` alone: int [Q, R], 0..V-1, or -1 for the class before the values."""
    rng = np.random.default_rng(0)
    noise = rng.uniform(-1, 0, (*answers.shape, values + offset))
    return torch.as_tensor(noise + 2 * (answers[..., None] + offset == np.arange(values + offset))).float()


def mixed_answers(data, rng):
    """int64 [Q, R], 0..V-1: solutions, changed ones, those of other queries, of no relations, and random values."""
    V, answers = data.problem.values, []
    free = solve(data.problem, data.query)
    for q in range(len(data)):
        own = data.solutions_of(q).astype(np.int64) - 1
        answer = own[rng.integers(len(own))].copy()
        kind = rng.integers(6)
        if kind == 2:
            answer[rng.integers(len(answer))] = rng.integers(V)
        elif kind == 3:
            answer = data.solutions[rng.integers(len(data.solutions))].astype(np.int64) - 1
        elif kind == 4:
            answer = rng.integers(V, size=len(answer))
        elif kind == 5:
            answer = free.solutions[rng.integers(free.offsets[q], free.offsets[q + 1])].astype(np.int64) - 1
        answers.append(answer)
    return np.stack(answers)


def literally_valid(data, q, taken):
    """Whether choices ``taken``, a set of (variable, value), solve query q, by rules, givens and relations."""
    V = data.problem.values
    choices = {variable * V + value for variable, value in taken}
    for rule in data.problem.rules:
        number = len(choices & set(rule.choices))
        if number > 1 or (rule.exact and number < 1):
            return False
    if any(given and (variable, given - 1) not in taken for variable, given in enumerate(data.query[q].tolist())):
        return False
    value = dict(taken)
    return all(value[a] < value[b] for a, b in data.relations[q].tolist() if a >= 0)


def listing(data, keep):
    """The same queries with only the first keep[q] of their solutions listed."""
    rows = np.concatenate([np.arange(start, start + k) for start, k in zip(data.offsets, keep, strict=False)])
    offsets = np.concatenate([[0], np.cumsum(keep)])
    return dataclasses.replace(data, solutions=data.solutions[rows.astype(int)], offsets=offsets)


FUTOSHIKI = build_futoshiki(4, 10, 3, 60, seed=1)
QUEENS = build_nqueens(7, 5, 60, seed=2)
SUDOKU = build_sudoku(60, "train", size=4, seed=3)
DATA = {"futoshiki": FUTOSHIKI, "nqueens": QUEENS, "sudoku": SUDOKU}


@pytest.mark.parametrize(("readout", "offset"), [("argmax", 0), ("argmax", 1), ("threshold", 0)])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_against_a_loop(data, readout, offset):
    rng = np.random.default_rng(5)
    answers = mixed_answers(data, rng)
    if offset:
        answers[rng.random(answers.shape) < 0.02] = -1
    data = listing(data, rng.integers(1, data.listed + 1))
    network = Table(data, logits_of(answers, data.problem.values, offset), offset)
    found = evaluate(network, data, readout=readout, batch_size=7)
    assert (found.answers == answers + 1).all()
    for q, answer in enumerate(answers):
        taken = {(variable, int(value)) for variable, value in enumerate(answer) if value >= 0}
        assert found.valid[q] == literally_valid(data, q, taken)
        agree = [int((solution == answer + 1).sum()) for solution in data.solutions_of(q)]
        assert found.cells[q] == max(agree)
        assert found.listed[q] == (max(agree) == len(answer))
        assert found.givens[q] == sum(value > 0 for value in data.query[q])
    assert (found.total == data.total).all()
    assert (found.multiple == data.multiple).all()
    assert (found.steps == 1).all()
    assert 0 < found.valid.sum() < len(data)
    assert (found.valid | ~found.listed).all()
    assert not found.valid[(answers < 0).any(1)].any()
    assert found.chosen is None
    assert found.checked is None


def four_queens(query, solutions, total):
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in solutions])])
    listed = np.array([row for own in solutions for row in own]).reshape(-1, 4)
    none = np.zeros((len(query), 0, 2))
    return Dataset(nqueens(4), np.array(query), listed, offsets, np.array(total), none, np.arange(len(query)))


def test_by_hand():
    one, two = [2, 4, 1, 3], [3, 1, 4, 2]
    data = four_queens([[0, 0, 0, 0], [2, 0, 0, 0], [0, 1, 0, 0]], [[one, two], [one], [two]], [2, 1, 1])
    # A solution; one queen wrong; a solution that moves the given queen.
    answers = np.array([one, [2, 4, 1, 2], one]) - 1
    logits = torch.zeros(3, 4, 4).scatter(2, torch.as_tensor(answers)[..., None], 1.0)
    found = evaluate(Table(data, logits), data)
    assert found.valid.tolist() == found.listed.tolist() == [True, False, False]
    assert found.cells.tolist() == [4, 3, 0]
    assert found.variables == 4
    np.testing.assert_allclose(found.confidence, 4 * np.log(np.e / (np.e + 3)), rtol=1e-6)
    summary = found.summary()
    counts = {name: (summary[name]["correct"], summary[name]["total"]) for name in ("os", "ms", "overall", "listed")}
    assert counts == {"os": (0, 2), "ms": (1, 1), "overall": (1, 3), "listed": (1, 3)}
    assert summary["cell_accuracy"] == pytest.approx(7 / 12)
    assert summary["overall"]["accuracy"] == pytest.approx(1 / 3)
    assert [(row["solutions"], row["correct"], row["total"]) for row in summary["per_solutions"]] == [
        (1, 0, 2),
        (2, 1, 1),
    ]
    assert [(row["givens"], row["correct"], row["total"]) for row in summary["per_givens"]] == [(0, 1, 1), (1, 0, 2)]
    assert summary["chosen"] is None
    assert summary["checked"] is None


def test_a_valid_answer_need_not_be_listed():
    one, two = [2, 4, 1, 3], [3, 1, 4, 2]
    data = four_queens([[0, 0, 0, 0]], [[one]], [2])
    found = evaluate(Table(data, logits_of(np.array([two]) - 1, 4)), data)
    assert (found.valid.item(), found.listed.item(), found.cells.item()) == (True, False, 0)


@pytest.mark.parametrize("solutions", [[[[2, 4, 1, 3]], [], []], [[], [], []]])
def test_queries_without_listed_solutions(solutions):
    one, two = [2, 4, 1, 3], [3, 1, 4, 2]
    data = four_queens([[2, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]], solutions, [1, 2, -1])
    found = evaluate(Table(data, logits_of(np.array([one, two, one]) - 1, 4)), data, batch_size=2)
    some = bool(solutions[0])
    assert found.valid.tolist() == [True, True, False]
    assert found.listed.tolist() == [some, False, False]
    assert found.cells.tolist() == [4 if some else -1, -1, -1]
    assert found.multiple.tolist() == [False, True, False]
    summary = found.summary()
    assert (summary["listed"]["correct"], summary["listed"]["total"]) == ((1, 1) if some else (0, 0))
    assert summary["cell_accuracy"] == (1 if some else None)
    assert [row["solutions"] for row in summary["per_solutions"]] == [-1, 1, 2]


def test_os_and_ms_by_total_or_else_by_the_listed():
    one, two = [2, 4, 1, 3], [3, 1, 4, 2]
    query = [[0, 0, 0, 0], [2, 0, 0, 0], [0, 4, 0, 0], [0, 0, 4, 0]]
    data = four_queens(query, [[one, two], [one], [one], [two]], [-1, -1, 5, 1])
    answers = np.array([one, one, one, one]) - 1
    for source in (data, DeviceData(data), DeviceData(data, listed=1)):
        found = evaluate(Table(data, logits_of(answers, 4)), source)
        assert found.multiple.tolist() == [True, False, True, False]
        summary = found.summary()
        assert (summary["ms"]["correct"], summary["ms"]["total"]) == (2, 2)
        assert (summary["os"]["correct"], summary["os"]["total"]) == (1, 2)


def test_threshold_takes_every_choice_on_its_own():
    one = np.array([2, 4, 1, 3]) - 1
    data = four_queens([[0, 0, 0, 0], [2, 0, 0, 0], [0, 4, 0, 0], [0, 0, 1, 0]], [[one + 1]] * 4, [2, 1, 1, 1])
    logits = torch.where(torch.nn.functional.one_hot(torch.as_tensor(one), 4) > 0, 1.0, -2.0).repeat(4, 1, 1)
    logits[1, 3, 0] = 0.5  # a second value for the last variable
    logits[2, 3] -= 3  # none
    logits[3, 3, 2] = 0.0  # a probability of one half is not above it
    found = evaluate(Table(data, logits), data, readout="threshold", batch_size=3)
    assert found.valid.tolist() == found.listed.tolist() == [True, False, False, False]
    assert found.answers.tolist() == [[2, 4, 1, 3]] + [[2, 4, 1, 0]] * 3
    assert found.cells.tolist() == [4, 3, 3, 3]
    p = 1 / (1 + np.exp(-logits.numpy().astype(float)))
    np.testing.assert_allclose(found.confidence, np.log(np.maximum(p, 1 - p)).sum((1, 2)), rtol=1e-5)
    assert evaluate(Table(data, logits), data).valid.all()


def test_threshold_readout_of_an_nlm():
    torch.manual_seed(0)
    network = nlm_for(QUEENS.problem, depth=3, width=4)
    batch = next(DeviceData(QUEENS).in_order(len(QUEENS)))
    with torch.no_grad():
        logits = network(batch)
        # An untrained network takes all choices or none: shift its logits so that about one in seven is taken.
        network.machine.readout.bias -= logits.quantile(6 / 7)
        taken = network(batch) > 0
    found = evaluate(network, QUEENS, readout="threshold", batch_size=16)
    for q, choices in enumerate(taken.tolist()):
        values = [[value for value, take in enumerate(row) if take] for row in choices]
        pairs = {(variable, value) for variable, own in enumerate(values) for value in own}
        assert found.valid[q] == literally_valid(QUEENS, q, pairs)
        assert found.answers[q].tolist() == [own[0] + 1 if len(own) == 1 else 0 for own in values]
    assert (found.answers == 0).any()
    assert (found.answers > 0).any()


def test_rrn_runs_the_steps_asked_for():
    torch.manual_seed(0)
    network = RRN(SUDOKU.problem, steps=2, width=16)
    found = evaluate(network, SUDOKU, steps=5, batch_size=5)
    batch = next(DeviceData(SUDOKU).in_order(len(SUDOKU)))
    network.eval()
    with torch.no_grad():
        expected = network(batch, steps=5)[-1].argmax(-1)  # class 0 is blank
    assert (found.answers == expected.numpy()).all()
    assert (found.steps == 5).all()
    assert (evaluate(network, SUDOKU).steps == 2).all()


@pytest.mark.parametrize("readout", ["argmax", "threshold"])
@pytest.mark.parametrize("batch_size", [1, 7, 59, 60, 1000])
def test_any_batch_size(readout, batch_size):
    torch.manual_seed(1)
    network = nlm_for(QUEENS.problem, depth=3, width=4)
    whole = evaluate(network, QUEENS, readout=readout)
    found = evaluate(network, QUEENS, readout=readout, batch_size=batch_size)
    for name in DTYPES:
        if name == "confidence":
            np.testing.assert_allclose(found.confidence, whole.confidence, rtol=1e-5)
        elif name not in OPTIONAL:
            assert (getattr(found, name) == getattr(whole, name)).all()
            assert getattr(found, name).dtype == DTYPES[name]


def noisy():
    answers = np.stack([own[0] for own in map(QUEENS.solutions_of, range(len(QUEENS)))]).astype(np.int64) - 1
    return NoisyTable(QUEENS, logits_of(answers, QUEENS.problem.values))


@pytest.mark.parametrize("choose", ["residual", "confidence"])
def test_starts_in_one_batch_are_those_of_predict(choose):
    network, batch = noisy(), next(DeviceData(QUEENS).in_order(len(QUEENS)))
    found = evaluate(network, QUEENS, starts=4, choose=choose, seed=3)
    expected = predict(network, batch, starts=4, choose=choose, generator=torch.Generator().manual_seed(3))
    valid = torch.stack([batch.problem.check(answers, batch.query) for answers in expected.every_start]).numpy()
    assert (found.answers == expected.every_start[0].numpy() + 1).all()
    assert (found.valid == valid[0]).all()
    assert (found.checked == valid.any(0)).all()
    assert (found.chosen == batch.problem.check(expected.answers, batch.query).numpy()).all()
    assert len({tuple(column) for column in (found.valid, found.chosen, found.checked)}) == 3
    summary = found.summary()
    for name in ("chosen", "checked"):
        assert summary[name]["overall"]["correct"] == getattr(found, name).sum()
        assert summary[name]["ms"]["correct"] == (getattr(found, name) & found.multiple).sum()
        assert summary[name]["os"]["total"] + summary[name]["ms"]["total"] == len(QUEENS)
    assert summary["overall"]["correct"] == valid[0].sum()
    every = expected.every_start.numpy()
    different = [len({tuple(every[s, q]) for s in range(4) if valid[s, q]}) for q in range(len(QUEENS))]
    assert found.distinct is not None
    assert found.distinct.tolist() == different
    shares = [count / total for count, total in zip(different, QUEENS.total, strict=True)]
    assert summary["coverage"] == pytest.approx(np.mean(shares))


def test_coverage_counts_different_valid_answers_of_queries_with_a_known_total():
    rng = np.random.default_rng(0)
    answers, valid = rng.integers(1, 3, (6, 40, 3)).astype(np.uint8), rng.random((6, 40)) < 0.6
    counts = accuracy._distinct(answers, valid)
    for q in range(40):
        assert counts[q] == len({answers[s, q].tobytes() for s in range(6) if valid[s, q]})
    total = np.where(np.arange(40) < 30, 8, -1)
    assert coverage(counts, total) == pytest.approx((counts[:30] / 8).mean())
    assert coverage(None, total) is None
    assert coverage(counts, np.full(40, -1)) is None


def test_the_first_start_is_the_same_whatever_follows_it():
    one, many = (evaluate(noisy(), QUEENS, starts=starts, batch_size=13, seed=8) for starts in (1, 5))
    for name in DTYPES:
        if name not in OPTIONAL:
            assert (getattr(one, name) == getattr(many, name)).all()
    assert (many.checked | ~many.valid).all()
    assert (many.checked | ~many.chosen).all()


def test_the_seed_decides_the_noise():
    torch.manual_seed(0)
    network = EquivariantNetwork(QUEENS.problem, width=8, steps=3)
    state = torch.random.get_rng_state()
    one, same, other = (evaluate(network, QUEENS, seed=seed) for seed in (1, 1, 2))
    assert (one.confidence == same.confidence).all()
    assert (one.confidence != other.confidence).any()
    assert torch.equal(state, torch.random.get_rng_state())
    assert network.training


def test_patience_stops_where_the_answer_stays():
    torch.manual_seed(0)
    network = EquivariantNetwork(QUEENS.problem, width=8, steps=3)
    whole = {steps: evaluate(network, QUEENS, steps=steps) for steps in range(1, 41)}
    patient = evaluate(network, QUEENS, steps=40, patience=4)
    assert (patient.steps < 40).any()
    for query, steps in enumerate(patient.steps):
        assert (patient.answers[query] == whole[int(steps)].answers[query]).all()
        if steps < 40:
            assert all((patient.answers[query] == whole[s].answers[query]).all() for s in range(steps - 4, steps + 1))


def test_bfloat16():
    class Multiplies(nn.Module):
        value_offset = 0

        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(7, 49)
            self.dtypes = []

        def forward(self, batch):
            logits = self.linear(batch.query.float()).view(-1, 7, 7)
            self.dtypes.append(logits.dtype)
            return logits

    network = Multiplies()
    for readout in ("argmax", "threshold"):
        evaluate(network, QUEENS, precision="bfloat16", readout=readout)
    evaluate(network, QUEENS)
    assert network.dtypes == [torch.bfloat16, torch.bfloat16, torch.float32]


def test_progress():
    told = []
    evaluate(noisy(), QUEENS, starts=2, batch_size=25, tell=lambda *what: told.append(what))
    assert told == [("evaluating", done, 120) for done in (25, 50, 60, 85, 110, 120)]


@pytest.mark.parametrize("readout", ["argmax", "threshold"])
def test_the_host_never_waits(readout):
    data, network = DeviceData(QUEENS), noisy()
    with NoSynchronisation():
        evaluate(network, data, readout=readout, starts=2, batch_size=25)
    with pytest.raises(AssertionError), NoSynchronisation():
        torch.ones(2)[torch.ones(2) > 0]


@st.composite
def outcomes(draw):
    Q, R = draw(st.integers(1, 40)), 5
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    valid, total = rng.random(Q) < 0.5, rng.integers(-1, 5, Q)
    numbers = {name: rng.integers(-1, R + 1, Q) for name in ("cells", "givens", "steps")}
    return Outcomes(
        rng.integers(0, 6, (Q, R)),
        valid,
        rng.random(Q) < 0.5,
        confidence=rng.random(Q),
        total=total,
        multiple=total > 1,
        chosen=rng.random(Q) < 0.5,
        checked=valid,
        **numbers,
    )


@given(found=outcomes())
def test_all_splits_add_up(found):
    summary = found.summary()
    overall = (summary["overall"]["correct"], summary["overall"]["total"])
    assert overall == (found.valid.sum(), len(found))
    for parts in (summary["per_solutions"], summary["per_givens"], [summary["os"], summary["ms"]]):
        assert (sum(part["correct"] for part in parts), sum(part["total"] for part in parts)) == overall
    for name, numbers in (("solutions", found.total), ("givens", found.givens)):
        rows = summary[f"per_{name}"]
        assert [row[name] for row in rows] == sorted(set(numbers.tolist()))
        assert all(row["correct"] == found.valid[numbers == row[name]].sum() for row in rows)


def test_outcomes_must_fit_together():
    found = evaluate(noisy(), QUEENS)
    with pytest.raises(ValueError, match=r"valid: expected \[60\], got \[3\]"):
        dataclasses.replace(found, valid=np.ones(3, bool))
    with pytest.raises(ValueError, match=r"answers: expected \[Q, R\], got \[60\]"):
        dataclasses.replace(found, answers=np.ones(60))
    with pytest.raises(ValueError, match="chosen and checked: expected both"):
        dataclasses.replace(found, chosen=found.valid)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"readout": "sample"}, "readout: expected 'argmax' or 'threshold', got 'sample'"),
        ({"precision": "float16"}, "precision: expected 'float32' or 'bfloat16', got 'float16'"),
        ({"starts": 0}, "starts: expected at least 1, got 0"),
        ({"starts": 2}, "starts: expected 1 for a network without noise, got 2"),
        ({"batch_size": 0}, "batch_size: expected at least 1, got 0"),
        ({"steps": 3}, "steps: expected None for a network without steps"),
        ({"choose": "checker"}, "choose: expected 'residual' or 'confidence', got 'checker'"),
    ],
)
def test_bad_input(arguments, message):
    table = noisy()
    with pytest.raises(ValueError, match=message):
        evaluate(Table(QUEENS, table.logits), QUEENS, **arguments)


def test_more_bad_input():
    table = noisy()
    with pytest.raises(ValueError, match="readout: expected 'argmax' for a network with a blank class"):
        evaluate(Table(QUEENS, table.logits, 1), QUEENS, readout="threshold")
    single = EquivariantNetwork(QUEENS.problem, width=8, steps=1)
    with pytest.raises(ValueError, match="choose: expected 'confidence' if there are no two steps to compare"):
        evaluate(single, QUEENS, starts=2)
    with pytest.raises(ValueError, match="it has no queries"):
        evaluate(single, QUEENS.take(np.array([], int)))
