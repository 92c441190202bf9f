"""Answers at test time: steps, early stopping, noisy starts."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from oneofmany.networks.equivariant import EquivariantNetwork
from oneofmany.networks.inference import draw_noise, predict
from oneofmany.problems import Batch, nqueens

BOARD = nqueens(4)


def batch_of(query: Tensor) -> Batch:
    B = len(query)
    solutions = torch.zeros(B, 1, query.shape[1], dtype=torch.int64)
    return Batch(query, solutions, torch.ones(B, 1, dtype=torch.bool), torch.ones(B).long(), BOARD)


QUERIES = batch_of(torch.tensor([[0, 0, 0, 0], [2, 0, 0, 0], [0, 4, 0, 0], [0, 0, 1, 0], [2, 4, 0, 0]]))


class Settling(nn.Module):
    """Answers value (step mod 4) everywhere until the query's own step, and keeps it from then on.

    The step of a query is ten times its first given plus a tenth of its noise, so that starts differ.
    """

    value_offset = 0
    steps = 40

    def __init__(self):
        super().__init__()
        self.calls = []

    def noise_shape(self, batch):
        return len(batch), 16

    def forward(self, batch, *, steps=None, noise=None, state=None, every_step=True, return_state=False):
        assert not self.training
        assert not torch.is_grad_enabled()
        count = self.steps if steps is None else steps
        self.calls.append((count, len(batch)))
        settles = batch.query[:, 0] * 5 + 2
        if noise is not None:
            settles = settles + noise[:, 0].abs().mul(10).long()
        at = torch.zeros(len(batch), 1).long() if state is None else state
        logits = []
        for t in range(1, count + 1):
            value = torch.minimum(at[:, 0] + t, settles) % 4
            sharp = 1 + (at[:, 0] + t).clamp_max(20).float() / 10
            logits.append(nn.functional.one_hot(value, 4).float().mul(sharp[:, None])[:, None].expand(-1, 4, -1))
        out = torch.stack(logits) if every_step else logits[-1]
        return (out, at + count) if return_state else out


def test_all_steps():
    network = Settling()
    answer = predict(network, QUERIES, steps=30)
    assert answer.answers.tolist() == [[(first * 5 + 2) % 4] * 4 for first in QUERIES.query[:, 0].tolist()]
    assert answer.steps.tolist() == [30] * 5
    assert answer.start.tolist() == [0] * 5
    assert answer.every_start.shape == (1, 5, 4)
    assert sum(count for count, _ in network.calls) == 30
    assert network.training
    expected = torch.tensor([3.0, 0, 0, 0]).log_softmax(0)[0] * 4
    torch.testing.assert_close(answer.confidence, expected.expand(5))
    torch.testing.assert_close(answer.residual, torch.zeros(5))


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("patience", [1, 3, 4])
def test_early_stop(patience, compact):
    network = Settling()
    whole = predict(network, QUERIES, steps=30)
    network.calls.clear()
    answer = predict(network, QUERIES, steps=30, patience=patience, compact=compact)
    assert torch.equal(answer.answers, whole.answers)
    for first, steps in zip(QUERIES.query[:, 0].tolist(), answer.steps.tolist(), strict=True):
        assert steps == first * 5 + 2 + patience
    rows = [rows for _, rows in network.calls]
    assert (rows[0], rows[-1]) == (5, 2 if compact else 5)
    run = sum(count for count, _ in network.calls)
    assert answer.steps.max() <= run < answer.steps.max() + patience


def test_early_stop_keeps_what_the_answer_was_made_of():
    answer = predict(Settling(), QUERIES, steps=30, patience=2)
    at = answer.steps.clamp_max(20) / 10 + 1
    torch.testing.assert_close(answer.logits.amax(-1), at[:, None].expand(-1, 4))


def test_never_settling_runs_all_steps():
    answer = predict(Settling(), batch_of(torch.tensor([[4, 0, 0, 0]])), steps=20, patience=4)
    assert answer.steps.tolist() == [20]


def test_starts_are_reproducible_and_chosen_by_residual_or_confidence():
    torch.manual_seed(0)
    network = EquivariantNetwork(BOARD, width=8, steps=5)

    def run(seed, choose="residual"):
        return predict(network, QUERIES, starts=6, choose=choose, generator=torch.Generator().manual_seed(seed))

    one, same, other = run(1), run(1), run(2)
    assert torch.equal(one.logits, same.logits)
    assert torch.equal(one.every_start, same.every_start)
    assert not torch.equal(one.logits, other.logits)

    generator = torch.Generator().manual_seed(1)
    network.eval()
    with torch.no_grad():
        starts = torch.stack([network(QUERIES, noise=draw_noise(network, QUERIES, generator)) for _ in range(6)])
    p = starts.softmax(-1)
    residual = (p[:, -1] - p[:, -2]).abs().sum(-1).mean(-1) / 2
    confidence = p[:, -1].amax(-1).log().sum(-1)
    query = torch.arange(5)
    for answer, best in ((one, residual.argmin(0)), (run(1, "confidence"), confidence.argmax(0))):
        assert torch.equal(answer.start, best)
        torch.testing.assert_close(answer.logits, starts[best, -1, query])
        torch.testing.assert_close(answer.residual, residual[best, query])
        torch.testing.assert_close(answer.confidence, confidence[best, query])
        assert torch.equal(answer.answers, answer.every_start[best, query])
        assert torch.equal(answer.every_start, starts[:, -1].argmax(-1))
    assert len(set(one.start.tolist())) > 1


def test_starts_with_early_stop():
    def run(**arguments):
        generator = torch.Generator().manual_seed(0)
        return predict(Settling(), QUERIES, steps=60, starts=3, generator=generator, **arguments)

    assert torch.equal(run(patience=2).every_start, run().every_start)


@pytest.mark.parametrize("compact", [True, False])
def test_early_stop_is_a_shorter_run_of_every_query(compact):
    torch.manual_seed(0)
    network = EquivariantNetwork(BOARD, width=8)
    noise = torch.Generator().manual_seed(5)
    answer = predict(network, QUERIES, steps=60, patience=5, compact=compact, generator=noise)
    assert len(set(answer.steps.tolist())) > 1
    for b, steps in enumerate(answer.steps.tolist()):
        shorter = predict(network, QUERIES, steps=steps, generator=torch.Generator().manual_seed(5))
        torch.testing.assert_close(answer.logits[b], shorter.logits[b], rtol=1e-3, atol=1e-3)
        assert torch.equal(answer.answers[b], shorter.answers[b])


def test_only_a_few_steps_are_held_at_a_time():
    network = Settling()
    predict(network, QUERIES, steps=30)
    assert network.calls == [(29, 5), (1, 5)]
    network.calls.clear()
    predict(network, batch_of(torch.tensor([[4, 0, 0, 0]])), steps=20, patience=6)
    assert [count for count, _ in network.calls] == [1, 6, 6, 6, 1]


class Plain:
    """A network without steps or noise, with a blank class."""

    value_offset = 1

    def __call__(self, batch):
        return nn.functional.one_hot(batch.query, 5).float()


def test_any_network_and_a_class_for_blank():
    answer = predict(Plain(), QUERIES)
    assert torch.equal(answer.answers, QUERIES.query - 1)
    assert answer.residual is None
    assert answer.steps.tolist() == [1] * 5
    assert not BOARD.check(answer.answers).any()


class Stepwise(nn.Module):
    """A network with steps that cannot continue from a state."""

    value_offset = 0

    def forward(self, batch, steps=3):
        ramp = torch.arange(1.0, steps + 1)[:, None, None, None]
        return ramp * nn.functional.one_hot(batch.query.clamp_max(3), 4)


def test_a_network_with_steps_but_no_state():
    network = Stepwise()
    answer = predict(network, QUERIES, steps=7)
    assert answer.steps.tolist() == [7] * 5
    assert answer.residual is not None
    assert (answer.residual > 0).all()
    assert predict(network, QUERIES).steps.tolist() == [3] * 5


def test_a_compiled_network():
    network = EquivariantNetwork(BOARD, width=8, steps=2)
    compiled = torch.compile(network, backend="eager", disable=True)
    generators = [torch.Generator().manual_seed(0) for _ in range(2)]
    one, other = (
        predict(run, QUERIES, steps=4, starts=2, patience=2, generator=generator)
        for run, generator in zip((network, compiled), generators, strict=True)
    )
    torch.testing.assert_close(one.logits, other.logits)


@pytest.mark.parametrize(
    ("network", "arguments", "message"),
    [
        (Plain(), {"starts": 2, "generator": torch.Generator()}, "starts: expected 1 .* got 2"),
        (Plain(), {"steps": 4}, "steps: expected None"),
        (Stepwise(), {"patience": 2}, "patience: expected None"),
        (Settling(), {"steps": 0}, "steps: expected at least 1, got 0"),
        (Settling(), {"starts": 0}, "starts: expected at least 1, got 0"),
        (Settling(), {"patience": -1}, "patience: expected at least 0, got -1"),
        (Settling(), {"starts": 2}, "generator: expected one"),
        (Settling(), {"choose": "checker"}, "choose: expected 'residual' or 'confidence', got 'checker'"),
        (Settling(), {"steps": 1, "starts": 2, "generator": torch.Generator()}, "choose: expected 'confidence'"),
    ],
)
def test_bad_input(network, arguments, message):
    with pytest.raises(ValueError, match=message):
        predict(network, QUERIES, **arguments)
