"""The selectors over agreement maps."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from oneofmany.networks.building import NetworkSettings, SelectorSettings, build_selector
from oneofmany.networks.protocol import SelectorNetwork
from oneofmany.networks.rrn.selector import CNNSelector, MLPSelector
from oneofmany.problems import Batch, nqueens, sudoku


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(0)


def batch_of(problem, B=3, K=4):
    R, V = problem.variables, problem.values
    return Batch(
        query=torch.randint(0, V + 1, (B, R)),
        solutions=torch.randint(0, V, (B, K, R)),
        mask=torch.rand(B, K) < 0.7,
        total=torch.ones(B, dtype=torch.int64),
        problem=problem,
    )


def literal_score(selector, logits, solution, value_offset):
    """One (query, solution) pair, map by map. logits [T, R, classes], solution [R]."""
    n = selector.problem.size
    maps = torch.zeros(1, len(logits), n, n)
    for t in range(len(logits)):
        for cell in range(n * n):
            best = int(logits[t, cell].argmax())
            maps[0, t, cell // n, cell % n] = float(best == int(solution[cell]) + value_offset)
    layers = []
    for convolution in selector.convolutions:
        layers += [copy.deepcopy(convolution), nn.ReLU()]
    layers = layers if selector.rectify_last else layers[:-1]
    return nn.Sequential(*layers, nn.Flatten(), copy.deepcopy(selector.output))(maps)[0, 0]


@pytest.mark.parametrize("rectify_last", [False, True])
@pytest.mark.parametrize("channels", [(7, 5, 1), (6, 4)])
@pytest.mark.parametrize("value_offset", [0, 1])
@pytest.mark.parametrize("box", [(2, 2), (2, 3)])
def test_same_as_one_pair_at_a_time(box, value_offset, channels, rectify_last):
    problem = sudoku(*box)
    selector = CNNSelector(problem, steps=3, channels=channels, value_offset=value_offset, rectify_last=rectify_last)
    batch = batch_of(problem)
    logits = torch.randn(3, 3, problem.variables, problem.values + value_offset)
    scores = selector(logits, batch)
    assert scores.shape == (3, 4)
    for b in range(3):
        for k in range(4):
            expected = literal_score(selector, logits[:, b], batch.solutions[b, k], value_offset)
            torch.testing.assert_close(scores[b, k], expected)


def test_parameters():
    def count(network):
        return sum(p.numel() for p in network.parameters())

    assert count(CNNSelector(sudoku())) == 114_647
    assert count(CNNSelector(sudoku(), channels=(100, 64, 32, 32))) == 116_869
    assert count(MLPSelector(sudoku())) == 32 + (81 * 32 + 32) + (32 + 1)


@pytest.mark.parametrize("kind", ["cnn", "cnn-authors"])
def test_by_settings(kind):
    selector = build_selector(SelectorSettings(kind), NetworkSettings("rrn", steps=3), sudoku(2, 2))
    assert isinstance(selector, CNNSelector)
    assert (selector.rectify_last, selector.steps, selector.value_offset) == (kind == "cnn-authors", 3, 1)


def test_it_tells_solutions_apart_from_any_initialisation():
    """With the authors' last ReLU on a single channel, some selectors give every input the same score."""
    problem = sudoku()
    solutions = torch.randint(9, (1, 4, 81))
    batch = Batch(torch.zeros(1, 81, dtype=torch.int64), solutions, torch.ones(1, 4) > 0, torch.tensor([4]), problem)
    logits = torch.zeros(32, 1, 81, 10).scatter_(-1, (solutions[:, 0] + 1)[None, :, :, None].expand(32, 1, 81, 1), 1.0)

    def dead(rectify_last):
        found = []
        for seed in range(20):
            torch.manual_seed(seed)
            found.append(bool(CNNSelector(problem, rectify_last=rectify_last)(logits, batch).std() == 0))
        return sum(found)

    assert dead(rectify_last=False) == 0
    assert dead(rectify_last=True) > 0


@pytest.mark.parametrize("make", [CNNSelector, MLPSelector])
def test_every_parameter_gets_a_gradient(make):
    problem = sudoku(2, 2)
    selector = make(problem, steps=4)
    assert isinstance(selector, SelectorNetwork)
    logits = torch.randn(4, 3, 16, 5, requires_grad=True)
    selector(logits, batch_of(problem)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in selector.parameters())
    assert logits.grad is None


@pytest.mark.parametrize("make", [CNNSelector, MLPSelector])
def test_padding_may_hold_anything(make):
    problem = sudoku(2, 2)
    selector = make(problem, steps=2)
    batch = batch_of(problem)
    logits = torch.randn(2, 3, 16, 5)
    logits[..., 0] += 1.0  # "blank" often wins, which must not look like agreement with a padding of -1
    scores = selector(logits, batch)
    garbage = torch.where(batch.mask[..., None], batch.solutions, -1)
    garbage = Batch(batch.query, garbage, batch.mask, batch.total, problem)
    again = selector(logits, garbage)
    torch.testing.assert_close(again[batch.mask], scores[batch.mask])
    assert torch.isfinite(again).all()
    nothing = Batch(batch.query, torch.full_like(batch.solutions, -1), batch.mask, batch.total, problem)
    assert selector.agreement(logits, nothing).sum() == 0


def test_mlp_weights_the_steps():
    problem = sudoku(2, 2)
    selector = MLPSelector(problem, steps=3, width=5)
    batch = batch_of(problem)
    logits = torch.randn(3, 3, 16, 5)
    maps = (logits.argmax(-1)[:, :, None] - 1 == batch.solutions).float()  # [T, B, K, R]
    weighted = sum(w * m for w, m in zip(selector.step_weights.weight[0], maps, strict=True))
    torch.testing.assert_close(selector(logits, batch), selector.output(selector.hidden(weighted).relu())[..., 0])


def test_a_single_step_needs_no_step_axis():
    problem = sudoku(2, 2)
    selector = CNNSelector(problem, steps=1)
    batch = batch_of(problem)
    logits = torch.randn(1, 3, 16, 5)
    torch.testing.assert_close(selector(logits[0], batch), selector(logits, batch))


def test_compiles_to_one_graph():
    problem = sudoku(2, 2)
    selector = CNNSelector(problem, steps=2, channels=(3, 1))
    batch = batch_of(problem)
    logits = torch.randn(2, 3, 16, 5)
    compiled = torch.compile(selector, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(logits, batch), selector(logits, batch))


def test_bad_input():
    problem = sudoku(2, 2)
    selector = CNNSelector(problem, steps=2, channels=(3, 1))
    batch = batch_of(problem)
    good = torch.randn(2, 3, 16, 5)
    for wrong in (good[:1], good[:, :2], good[..., :4], good[0], good.long()):
        with pytest.raises(ValueError, match="logits"):
            selector(wrong, batch)
    with pytest.raises(ValueError, match="batch"):
        selector(good, batch_of(sudoku(2, 3)))
    with pytest.raises(ValueError, match="device"):
        selector(good.to("meta"), batch)
    with pytest.raises(ValueError, match="problem"):
        CNNSelector(nqueens(4))
    with pytest.raises(ValueError, match="steps"):
        CNNSelector(problem, steps=0)
    with pytest.raises(ValueError, match="value_offset"):
        MLPSelector(problem, value_offset=2)
