"""The recurrent Transformer: shapes, steps, symmetries that it has, what it accepts, and that it learns."""

import pytest
import torch

from oneofmany.data import DeviceData
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.networks import TransformerNetwork, TransformerSelector, predict
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.saved import load_network, save_network
from oneofmany.objectives import MinLoss
from oneofmany.problems import Problem, futoshiki, nqueens

SMALL = {"width": 16, "layers": 1, "steps": 3, "heads": 2}


@pytest.fixture(scope="module")
def batch():
    return next(DeviceData(build_nqueens(6, 4)).in_order(8))


@pytest.mark.parametrize("mixing", ["attention", "mlp"])
def test_steps_and_states(batch, mixing):
    torch.manual_seed(0)
    network = TransformerNetwork(nqueens(6), mixing=mixing, **SMALL)
    logits = network(batch, steps=4)
    assert logits.shape == (4, 8, 6, 6)
    first, state = network(batch, steps=2, return_state=True)
    second = network(batch, steps=2, state=state)
    assert torch.allclose(torch.cat([first, second]), logits, atol=1e-5)
    assert torch.allclose(network(batch, steps=4, every_step=False), logits[-1], atol=1e-6)
    alone = network(batch[slice(2, 3)], steps=4)
    assert torch.allclose(alone[:, 0], logits[:, 2], atol=1e-5)
    logits.sum().backward()
    assert all(p.grad is not None for p in network.parameters())


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # PyTorch's own warning while tracing
def test_one_step_compiles_in_place(batch):
    torch._dynamo.reset()
    torch.manual_seed(0)
    network = TransformerNetwork(nqueens(6), **SMALL)
    expected = network(batch)
    network.compile_step(backend="eager")
    torch.testing.assert_close(network(batch), expected, rtol=1e-5, atol=1e-5)


def test_attention_is_the_literal_formula(batch):
    network = TransformerNetwork(nqueens(6), **SMALL)
    attention = network.step.layers[0].mix
    x = torch.randn(2, 6, 16)
    query, key, value = (part.unflatten(-1, (2, 8)) for part in attention.inputs(x).chunk(3, -1))
    weights = (torch.einsum("brhc,bshc->bhrs", query, key) / 8**0.5).softmax(-1)
    literal = attention.output(torch.einsum("bhrs,bshc->brhc", weights, value).flatten(2))
    assert torch.allclose(attention(x), literal, atol=1e-6)


def test_no_rules_are_used(batch):
    torch.manual_seed(0)
    network = TransformerNetwork(nqueens(6), **SMALL)
    torch.manual_seed(0)
    bare = TransformerNetwork(Problem("pairs", 6, 6, 6, ()), **SMALL)
    assert (network(batch) == bare(batch)).all()


def test_relations_are_seen():
    torch.manual_seed(0)
    batch = next(DeviceData(build_futoshiki(4, 9, 2, 8, seed=1)).in_order(8))
    network = TransformerNetwork(futoshiki(4), **SMALL)
    from dataclasses import replace

    assert batch.relations is not None
    other = replace(batch, relations=batch.relations.flip(1))
    assert torch.allclose(network(batch), network(other), atol=1e-6)  # their order does not matter
    swapped = replace(batch, relations=batch.relations.flip(2))
    assert not torch.allclose(network(batch), network(swapped), atol=1e-3)


def test_what_it_accepts(batch):
    network = TransformerNetwork(nqueens(6), **SMALL)
    assert network.accepts(nqueens(6)) is None
    assert "6 variables of 6 values only" in (network.accepts(nqueens(7)) or "")
    with pytest.raises(ValueError, match="expected 7 variables of 7 values"):
        TransformerNetwork(nqueens(7), **SMALL)(batch)
    with pytest.raises(ValueError, match="heads: expected a divisor of the width 16, got 3"):
        TransformerNetwork(nqueens(6), **SMALL | {"heads": 3})
    with pytest.raises(ValueError, match="mixing"):
        TransformerNetwork(nqueens(6), **SMALL, mixing="convolution")  # pyright: ignore


def test_prediction_with_patience(batch):
    torch.manual_seed(0)
    network = TransformerNetwork(nqueens(6), **SMALL)
    plain, patient = predict(network, batch, steps=12), predict(network, batch, steps=12, patience=2)
    assert (patient.steps <= 12).all()
    full = patient.steps == 12
    assert (plain.answers[full] == patient.answers[full]).all()


def test_saved_without_rules(tmp_path):
    problem = Problem("pairs", 3, 3, 4, ())
    settings = NetworkSettings("transformer", width=8, depth=1, steps=2, heads=2)
    network = build_network(settings, problem)
    save_network(tmp_path / "n.safetensors", network, settings, problem)
    again = load_network(tmp_path / "n.safetensors")
    assert again.task == "pairs"
    for name, one in network.state_dict().items():
        assert (again.network.state_dict()[name] == one).all()


def test_it_learns(batch):
    torch.manual_seed(0)
    network = TransformerNetwork(nqueens(6), **SMALL | {"width": 32})
    optimiser, objective = torch.optim.AdamW(network.parameters(), lr=3e-3), MinLoss()
    for _ in range(120):
        optimiser.zero_grad()
        objective(network(batch), batch.solutions, batch.mask).backward()
        optimiser.step()
    answers = predict(network, batch).answers
    assert batch.problem.check(answers, batch.query).all()


def test_the_selector(batch):
    torch.manual_seed(0)
    selector = TransformerSelector(nqueens(6), width=16, layers=1)
    logits = torch.randn(3, 8, 6, 6)
    scores = selector(logits, batch)
    assert scores.shape == batch.mask.shape
    padded = torch.where(batch.mask[..., None], batch.solutions, 3)
    from dataclasses import replace

    again = selector(logits[-1], replace(batch, solutions=padded))
    assert torch.allclose(again[batch.mask], scores[batch.mask], atol=1e-6)
    scores[batch.mask].sum().backward()
    assert all(p.grad is not None for p in selector.parameters())
