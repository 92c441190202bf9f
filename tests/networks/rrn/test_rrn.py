"""The RRN against its literal formulation, its dropout, and its hand-written operator."""

from __future__ import annotations

import copy
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from literal_rrn import LiteralRRN, edge_list

from oneofmany.networks.protocol import PredictionNetwork
from oneofmany.networks.rrn import RRN, operators
from oneofmany.networks.rrn.dropout import kept, kept_counts, scale_of, step_keys, threshold_of
from oneofmany.networks.rrn.graph import returning, sudoku_slots
from oneofmany.networks.rrn.operators import cached_messages
from oneofmany.networks.rrn.plain import Graph, Layer, plain_messages
from oneofmany.problems import Batch, nqueens, sudoku

BOXES = [(2, 2), (2, 3), (3, 2), (3, 3), (1, 3)]


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(0)


def batch_of(problem, B=3):
    R, V = problem.variables, problem.values
    return Batch(
        query=torch.randint(0, V + 1, (B, R)),
        solutions=torch.randint(0, V, (B, 1, R)),
        mask=torch.ones(B, 1, dtype=torch.bool),
        total=torch.ones(B, dtype=torch.int64),
        problem=problem,
    )


def twins(box, dtype=torch.float32, distinct=False, latent=0, palm=False, **ours):
    """Our network and the literal one with the same weights."""
    if palm:
        network = RRN.palm(sudoku(*box), latent=latent, **ours)
    else:
        network = RRN(sudoku(*box), distinct=distinct, latent=latent, **ours)
    literal = LiteralRRN(*box, distinct=distinct, latent=latent, palm=palm, width=network.output.in_features)
    weights = network.state_dict()
    assert weights.keys() == dict(literal.named_parameters()).keys()
    literal.load_state_dict(weights, strict=False)
    return network.to(dtype), literal.to(dtype)


def drop_factors(network, seed, steps, B, row_offset=0):
    """The network's dropout masks for the literal one: [T, B, edges, H], in the order of its edges."""
    box = network.problem.options
    edges = edge_list(box["box_rows"], box["box_columns"], distinct=network.doubles == 0)
    neighbours, doubles = network.neighbours, network.doubles
    R, D = neighbours.shape
    seen: Counter[tuple[int, int]] = Counter()
    numbers = []
    for sender, receiver in edges:
        slot = neighbours[receiver].tolist().index(sender)
        numbers.append(2 * slot + seen[sender, receiver] if slot < doubles else slot + doubles)
        seen[sender, receiver] += 1
    receivers = torch.tensor([receiver for _, receiver in edges])
    rows = torch.arange(B, dtype=torch.int32) + row_offset
    threshold, width = threshold_of(network.dropout), network.output.in_features
    keep = [kept(key, threshold, rows, R, D + doubles, width) for key in step_keys(seed, steps)]
    return torch.stack([k[:, receivers, torch.tensor(numbers)] for k in keep]).double() * scale_of(network.dropout)


def assert_same_function(network, literal, batch, steps, drop, tolerance, **how):
    ours, theirs = network(batch, steps, **how), literal(batch.query, steps, drop)
    assert ours.shape == theirs.shape == (steps, *batch.query.shape, batch.problem.values + 1)
    output, gradient = tolerance
    torch.testing.assert_close(ours, theirs, atol=output, rtol=output)
    g = torch.randn_like(theirs)
    (ours * g).sum().backward()
    (theirs * g).sum().backward()
    theirs = dict(literal.named_parameters())
    whole = torch.cat([p.grad.flatten() for p in theirs.values()]).norm()
    for name, p in network.named_parameters():
        difference = (p.grad - theirs[name].grad).norm()
        # Rounding may flip a ReLU near zero, so the tolerance is relative to the whole gradient.
        assert difference <= gradient * max(theirs[name].grad.norm(), 0.1 * whole), name


TOLERANCE = {torch.float32: (1e-5, 1e-4), torch.float64: (1e-11, 1e-9)}


@settings(max_examples=12, deadline=None)
@given(
    box=st.sampled_from(BOXES),
    distinct=st.booleans(),
    dropout=st.sampled_from([0.0, 0.1, 0.4]),
    kernel=st.sampled_from(["auto", "plain"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    latent=st.sampled_from([0, 16]),
    width=st.sampled_from([8, 34]),
    seed=st.integers(0, 2**62),
)
def test_same_as_literal(box, distinct, dropout, kernel, dtype, latent, width, seed):
    torch.manual_seed(seed % 2**31)
    network, literal = twins(box, dtype, distinct, latent, dropout=dropout, kernel=kernel, width=width)
    batch, steps, key = batch_of(network.problem), 3, torch.tensor([seed])
    drop = drop_factors(network, key, steps, 3).to(dtype) if dropout else 0.0
    assert_same_function(network, literal, batch, steps, drop, TOLERANCE[dtype], seed=key)


@pytest.mark.parametrize("kernel", ["auto", "plain"])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_same_as_literal_at_full_size(dropout, kernel):
    network, literal = twins((3, 3), dropout=dropout, kernel=kernel)
    batch, key = batch_of(network.problem, B=2), torch.tensor([11])
    drop = drop_factors(network, key, 3, 2, row_offset=5).float() if dropout else 0.0
    assert_same_function(network, literal, batch, 3, drop, TOLERANCE[torch.float32], seed=key, row_offset=5)


@pytest.mark.parametrize("box", [(2, 2), (2, 3), (3, 3)])
def test_palm_same_as_literal(box):
    network, literal = twins(box, palm=True)
    assert_same_function(network, literal, batch_of(network.problem, B=2), 3, 0.0, TOLERANCE[torch.float32])


def test_parameters():
    def count(network):
        return sum(p.numel() for p in network.parameters())

    assert count(RRN(sudoku())) == 191_114
    assert count(RRN(sudoku(), distinct=True)) == 191_114
    assert count(RRN(sudoku(), latent=16)) == 192_666
    # Palm: four more layers (192 -> 96 and three times 96 -> 96), a narrower LSTM, and its two biases.
    post, lstm = 192 * 96 + 96 + 3 * (96 * 96 + 96), 384 * 192 + 2 * 384
    assert count(RRN.palm(sudoku())) == 191_114 - 384 * 288 + post + lstm


@pytest.mark.parametrize("box", BOXES)
def test_graph(box):
    neighbours, doubles = sudoku_slots(*box)
    R, D = neighbours.shape
    ours = Counter((int(neighbours[i, d]), i) for i in range(R) for d in range(D) for _ in range(1 + (d < doubles)))
    assert ours == Counter(edge_list(*box, distinct=False))
    assert len(set(ours)) == R * D == len(edge_list(*box, distinct=True))
    edge = returning(neighbours)
    for d in range(D):
        assert (neighbours[edge[:, d] // D, d] == range(R)).all()
        assert (edge[:, d] % D == d).all()


def test_edges_of_the_paper():
    neighbours, doubles = sudoku_slots(3, 3)
    assert neighbours.size == 1620
    assert 81 * (neighbours.shape[1] + doubles) == 1944


# ---- dropout --------------------------------------------------------------------------------------------------------


def draws(p=0.1, B=8, steps=3, seed=3):
    """bool [T, B, 16, 9, 96] on a 4 x 4 board."""
    rows = torch.arange(B, dtype=torch.int32)
    return torch.stack([kept(key, threshold_of(p), rows, 16, 9, 96) for key in step_keys(torch.tensor([seed]), steps)])


@pytest.mark.parametrize("p", [0.1, 0.4])
def test_dropout_rate(p):
    k = draws(p).double()
    sigma = (p * (1 - p)) ** 0.5
    assert abs(k.mean() - (1 - p)) < 5 * sigma / k.numel() ** 0.5
    assert abs(scale_of(p) * k.mean() - 1) < 5 * sigma / (1 - p) / k.numel() ** 0.5
    assert abs(scale_of(p) * (1 - p) - 1) < 2**-16
    for axis in range(5):  # no step, row, cell, edge or channel is treated differently
        means = k.mean([a for a in range(5) if a != axis])
        n = k.numel() / len(means)
        assert (means - (1 - p)).abs().max() < 5 * sigma / n**0.5


def test_dropout_is_independent():
    k = draws().double() - 0.9
    pairs = {
        "duplicated edges": (k[..., 0, :], k[..., 1, :]),
        "channels of one word": (k[..., ::2], k[..., 1::2]),
        "channels": (k[..., :48], k[..., 48:]),
        "edges": (k[..., 2, :], k[..., 3, :]),
        "cells": (k[:, :, 0], k[:, :, 1]),
        "rows": (k[:, 0], k[:, 1]),
        "steps": (k[0], k[1]),
        "seeds": (k[0], draws(seed=4)[0].double() - 0.9),
    }
    for name, (a, b) in pairs.items():
        assert abs((a * b).mean() / 0.09) < 5 / a.numel() ** 0.5, name
    # And the number of kept channels of an edge is binomial.
    variance = (k + 0.9).sum(-1).var()
    assert abs(variance / (96 * 0.09) - 1) < 0.1


def test_counts_are_the_copies():
    key, threshold = step_keys(torch.tensor([1]), 1)[0], threshold_of(0.3)
    k = kept(key, threshold, torch.arange(4, 7, dtype=torch.int32), 16, 9, 8).int()
    counts = kept_counts(key, threshold, 4, (3, 16, 7, 8), doubles=2)
    assert counts.dtype == torch.uint8
    assert torch.equal(counts[:, :, 0].int(), k[:, :, 0] + k[:, :, 1])
    assert torch.equal(counts[:, :, 1].int(), k[:, :, 2] + k[:, :, 3])
    assert torch.equal(counts[:, :, 2:].int(), k[:, :, 4:])


def test_dropout_is_a_function_of_the_seed():
    problem = sudoku(2, 2)
    network, batch = RRN(problem, width=8, steps=3), batch_of(problem, B=7)
    first = network(batch, seed=torch.tensor([5]))
    assert torch.equal(first, network(batch, seed=torch.tensor([5])))
    assert not torch.equal(first, network(batch, seed=torch.tensor([6])))
    # Slices with their offset see what the whole batch saw.
    slices = [network(batch[a:b], seed=torch.tensor([5]), row_offset=a) for a, b in ((0, 2), (2, 7))]
    torch.testing.assert_close(torch.cat(slices, 1), first)
    assert not torch.allclose(network(batch[2:], seed=torch.tensor([5])), first[:, 2:])
    # More steps leave the earlier ones as they were.
    torch.testing.assert_close(network(batch, 5, seed=torch.tensor([5]))[:3], first)


def test_seed_comes_from_the_default_generator():
    problem = sudoku(2, 2)
    network, batch = RRN(problem, width=8, steps=2), batch_of(problem)
    torch.manual_seed(1)
    a, b = network(batch), network(batch)
    torch.manual_seed(1)
    assert torch.equal(network(batch), a)
    assert not torch.equal(a, b)


def test_evaluation_drops_nothing():
    problem = sudoku(2, 2)
    network, batch = RRN(problem, width=8, steps=2), batch_of(problem)
    without = RRN(problem, width=8, steps=2, dropout=0.0)
    without.load_state_dict(network.state_dict())
    network.eval()
    assert torch.equal(network(batch), network(batch, seed=torch.tensor([5])))
    assert torch.equal(network(batch), without(batch))


def test_expected_messages_are_those_without_dropout():
    """The mean of the summed messages over many seeds; the LSTM after them is not linear."""
    problem = sudoku(2, 2)
    network = RRN(problem, width=8, steps=1, dropout=0.3)
    h = torch.randn(1, 16, 8)
    arrive = network._plain_messages(0)
    keys = [step_keys(torch.tensor([s]), 1)[0] for s in range(1000)]
    with torch.no_grad():
        sample = torch.stack([arrive(h, key) for key in keys])
        expected = arrive(h, None)
    error = (sample.mean(0) - expected).abs() / (sample.std(0) / len(keys) ** 0.5)
    assert error.max() < 5


# ---- the hand-written operator --------------------------------------------------------------------------------------


def op_inputs(doubles, drop, B=3, H=4):
    """float64 inputs of ``cached_messages`` on the 2 x 2 Sudoku with boxes of 1 x 2."""
    neighbours, all_doubles = sudoku_slots(1, 2)
    graph = Graph(torch.tensor(neighbours), torch.tensor(returning(neighbours)), all_doubles if doubles else 0)
    R, D = neighbours.shape
    tensors = [torch.randn(B, R, H), torch.randn(B, R, H)]
    tensors += [torch.randn(shape) for _ in range(3) for shape in ((H, H), (H,))]
    counts = torch.randint(0, 3, (B, R, D, H), dtype=torch.uint8) if drop else None
    return [t.double().requires_grad_() for t in tensors], graph, counts


@pytest.mark.parametrize("doubles", [True, False])
@pytest.mark.parametrize("drop", [True, False])
def test_gradcheck(doubles, drop, monkeypatch):
    monkeypatch.setattr(operators, "EDGES_AT_A_TIME", 16)  # several passes, the last one shorter
    tensors, graph, counts = op_inputs(doubles, drop)

    def messages(form):
        def run(p, q, *layers):
            return form(p, q, [Layer(*layers[i : i + 2]) for i in (0, 2, 4)], graph, counts)

        return run

    torch.testing.assert_close(messages(cached_messages)(*tensors), messages(plain_messages)(*tensors))
    # Without dropout the last layer acts outside, so it has no gradient here.
    used = tensors if drop else tensors[:6]
    run = messages(cached_messages)
    assert torch.autograd.gradcheck(lambda *used: run(*used, *(t.detach() for t in tensors[len(used) :])), used)


@pytest.mark.parametrize("drop", [True, False])
def test_operator_is_well_formed(drop):
    tensors, graph, counts = op_inputs(True, drop)
    torch.library.opcheck(
        torch.ops.oneofmany.rrn_messages.default,
        (*tensors, *graph, counts),
        test_utils=("test_schema", "test_faketensor"),
    )


# ---- the network as a module ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"dropout": 0.0}, {"latent": 4}, {"distinct": True}, "palm"])
@pytest.mark.parametrize("kernel", ["auto", "plain"])
def test_every_parameter_gets_a_gradient(settings, kernel):
    problem = sudoku(2, 2)
    make = RRN.palm if settings == "palm" else RRN
    network = make(problem, steps=2, width=32, kernel=kernel, **({} if settings == "palm" else settings))
    assert isinstance(network, PredictionNetwork)
    assert network.value_offset == 1
    network(batch_of(problem)).square().sum().backward()
    for name, p in network.named_parameters():
        assert p.grad is not None, name
        assert p.grad.abs().sum() > 0, name


def test_steps():
    problem = sudoku(2, 2)
    network, batch = RRN(problem, width=8, steps=4).eval(), batch_of(problem)
    whole = network(batch)
    assert whole.shape == (4, 3, 16, 5)
    torch.testing.assert_close(network(batch, 1), whole[:1])
    torch.testing.assert_close(network(batch, 9)[:4], whole)
    torch.testing.assert_close(network(batch, last_only=True), whole[-1])
    with torch.no_grad():
        torch.testing.assert_close(network(batch), whole)


def test_position_matters():
    """The embeddings of rows and columns leave no symmetry: swapping two rows of a band changes the answers."""
    problem = sudoku(2, 2)
    network, batch = RRN(problem, width=8, steps=2).eval(), batch_of(problem)
    swap = torch.arange(16).view(4, 4)[[1, 0, 2, 3]].flatten()
    swapped = Batch(batch.query[:, swap], batch.solutions, batch.mask, batch.total, problem)
    assert not torch.allclose(network(swapped), network(batch)[:, :, swap], atol=1e-3)


def test_same_seed_same_parameters():
    weights = []
    for _ in range(2):
        torch.manual_seed(3)
        weights.append(RRN(sudoku(2, 2), latent=3).state_dict())
    assert all(torch.equal(a, b) for a, b in zip(*(w.values() for w in weights), strict=True))


def test_copy_and_training_step():
    problem = sudoku(2, 2)
    network, batch = RRN(problem, width=8, steps=2), batch_of(problem)
    frozen = copy.deepcopy(network)
    optimizer = torch.optim.AdamW(network.parameters(), 1e-2)
    before = frozen(batch, seed=torch.tensor([1]))
    torch.nn.functional.cross_entropy(
        network(batch).flatten(0, 2), batch.solutions[:, 0].repeat(2, 1).flatten() + 1
    ).backward()
    optimizer.step()
    assert torch.equal(frozen(batch, seed=torch.tensor([1])), before)
    assert not torch.equal(network(batch, seed=torch.tensor([1])), before)


@pytest.mark.parametrize(("kernel", "training"), [("auto", True), ("plain", True), ("auto", False)])
def test_compiles_to_one_graph(kernel, training):
    problem = sudoku(2, 2)
    network, batch = RRN(problem, width=8, steps=2, kernel=kernel).train(training), batch_of(problem)
    seed = torch.tensor([5])
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
    expected = network(batch, seed=seed)
    expected.square().sum().backward()
    gradients = {name: p.grad.clone() for name, p in network.named_parameters()}
    network.zero_grad()
    result = compiled(batch, seed=seed)
    result.square().sum().backward()
    torch.testing.assert_close(result, expected)
    for name, p in network.named_parameters():
        torch.testing.assert_close(p.grad, gradients[name], msg=name)


def test_autocast():
    problem = sudoku(2, 2)
    network, batch = RRN(problem, steps=2), batch_of(problem)
    expected = network(batch, seed=torch.tensor([5]))
    with torch.autocast("cpu", torch.bfloat16):
        result = network(batch, seed=torch.tensor([5]))
    result.float().square().sum().backward()
    assert (result.float() - expected).norm() < 0.02 * expected.norm()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_triton_same_as_plain(dropout):
    pytest.importorskip("triton")
    problem = sudoku()
    network = RRN(problem, dropout=dropout, steps=4, kernel="triton").cuda()
    plain = RRN(problem, dropout=dropout, steps=4, kernel="plain").cuda()
    plain.load_state_dict(network.state_dict())
    batch, seed = batch_of(problem), torch.tensor([5], device="cuda")
    batch = Batch(batch.query.cuda(), batch.solutions.cuda(), batch.mask.cuda(), batch.total.cuda(), problem)
    for model in (network, plain):
        model(batch, seed=seed, row_offset=2).square().mean().backward()
    ours, theirs = network(batch, seed=seed, row_offset=2), plain(batch, seed=seed, row_offset=2)
    assert (ours - theirs).norm() < 0.02 * theirs.norm()
    for (name, a), b in zip(network.named_parameters(), plain.parameters(), strict=True):
        assert (a.grad - b.grad).norm() < 0.1 * b.grad.norm(), name


def test_bad_input():
    problem = sudoku(2, 2)
    network, batch = RRN(problem, width=8), batch_of(problem)
    for steps in (0, -1):
        with pytest.raises(ValueError, match="steps"):
            network(batch, steps)
        with pytest.raises(ValueError, match="steps"):
            RRN(problem, steps=steps)
    with pytest.raises(ValueError, match="batch"):
        network(batch_of(sudoku(1, 4)))
    with pytest.raises(ValueError, match="batch"):
        network(batch_of(nqueens(4)))

    def with_query(query):
        return Batch(query, batch.solutions, batch.mask, batch.total, problem)

    with pytest.raises(ValueError, match=r"query.*int64"):
        network(with_query(batch.query.int()))
    with pytest.raises(ValueError, match=r"query.*shape"):
        network(with_query(batch.query[:, :15]))
    with pytest.raises(ValueError, match=r"query.*device"):
        network(with_query(batch.query.to("meta")))
    for seed in (torch.tensor(5), torch.tensor([5], dtype=torch.int32), torch.tensor([5], device="meta")):
        with pytest.raises(ValueError, match="seed"):
            network(batch, seed=seed)
    with pytest.raises(ValueError, match="problem"):
        RRN(nqueens(4))
    with pytest.raises(ValueError, match="dropout"):
        RRN(problem, dropout=1.0)
    with pytest.raises(ValueError, match="width"):
        RRN(problem, width=7)
    with pytest.raises(ValueError, match="kernel"):
        RRN(problem, kernel="fast")  # pyright: ignore
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="triton"):
            RRN(problem, kernel="triton")
