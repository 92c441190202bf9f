"""All steps in compiled kernels on a CPU against the plain formulas: logits, states, gradients, threads."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from oneofmany.data import DeviceData
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.sudoku import build_sudoku
from oneofmany.networks.equivariant import (
    EquivariantNetwork,
    EquivariantSelector,
    cpu_autograd,
    cpu_backward,
    cpu_kernels,
    inputs,
    steps,
)
from oneofmany.networks.equivariant.inputs import checked_tables
from oneofmany.networks.equivariant.plain import top_over_rules
from oneofmany.problems import nqueens
from structures import coloured, graphs, ordered_cages, sums

DATA = {
    "nqueens": lambda: build_nqueens(6, 4, 20, seed=1),
    "sudoku": lambda: build_sudoku(20, "test", seed=1),
    "futoshiki": lambda: build_futoshiki(4, 8, 4, 20, seed=1),
    "graphs": lambda: coloured(12, seed=3),
    "own rules": lambda: graphs(12, seed=3),
    "sums": lambda: sums(12, seed=3),
    "own sums and relations": lambda: ordered_cages(12, seed=3),
}


@pytest.fixture(scope="module", params=DATA)
def data(request):
    return DATA[request.param]()


@pytest.fixture
def plain(monkeypatch):
    """A function that runs another one with the plain formulas."""

    def run(function):
        with monkeypatch.context() as patch:
            for module in (inputs, steps):
                patch.setattr(module, "takes_cpu", lambda _: False)
            return function()

    return run


def batch_of(data, size=7):
    return DeviceData(data).batch(torch.arange(size))


def made_for(data, width=8, **others):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return EquivariantNetwork(data.problem, width=width, steps=4, **others)


def passed(network, batch, **arguments):
    """Logits, last state and the gradients of a random function of both, all in float64."""
    network = deepcopy(network)
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(network.noise_shape(batch), generator=generator).to(network.embed.weight.dtype)
    noise.requires_grad_()
    logits, state = network(batch, noise=noise, return_state=True, **arguments)
    weights = [torch.randn(one.shape, generator=generator).to(one.dtype) for one in (logits, state)]
    ((logits * weights[0]).sum() + (state * weights[1]).sum()).backward()
    gradients = [noise.grad, *(one.grad for one in network.parameters())]
    return [one.detach().double() for one in (logits, state, *gradients)]


def assert_near(found, expected, limit=1e-4):
    for one, other in zip(found, expected, strict=True):
        assert (one - other).norm() <= limit * other.norm()


@pytest.mark.parametrize("every_step", [True, False])
@pytest.mark.parametrize("group", [1, 3, None])
def test_logits_states_and_gradients_are_those_of_float64(data, every_step, group, monkeypatch):
    """Whatever the number of queries that run together, and with more lanes than groups or fewer."""
    batch, network = batch_of(data), made_for(data)
    if group:
        monkeypatch.setattr(cpu_autograd, "ROWS", group * batch.problem.choices)
    monkeypatch.setattr(cpu_autograd, "LANES", 2)
    assert_near(
        passed(network, batch, every_step=every_step), passed(deepcopy(network).double(), batch, every_step=every_step)
    )


def test_of_equal_choices_the_first_is_the_largest(data):
    """The kernels pool as the plain formulas do, ties and rules of any size included, and so does their gradient."""
    batch, P = batch_of(data), 4
    tables = checked_tables(made_for(data), batch, data.problem.kinds, True, data.problem.kinds)
    own = cpu_autograd._rules_of(tables).rows
    S, C, G = tables.blocks, batch.problem.choices, own.members.shape[1]
    generator = torch.Generator().manual_seed(0)
    said = torch.randint(-1, 2, (S * C, 1, P), generator=generator).float().requires_grad_()
    grad = torch.randint(1, 9, (len(tables.members), 1, 2 * P), generator=generator).float()
    expected = top_over_rules(said, tables)

    # Blocks follow each other inside a kind there, and kinds inside a block here.
    counts = np.repeat([count for _, count in own.kinds], [count for _, count in own.kinds]).astype(np.int32)
    begins = np.cumsum([0, *(count * S for _, count in own.kinds)])[:-1]
    first = np.concatenate(
        [begin + np.arange(count) for begin, (_, count) in zip(begins, own.kinds, strict=True)], dtype=np.int32
    )
    at, bias = np.arange(S, dtype=np.int32), np.zeros(P, np.float32)
    pooled, of_out = np.zeros((S * G, 2 * P), np.float32), np.full((S * C, P), 7, np.float32)
    out = said.detach()[:, 0].numpy()
    cpu_kernels.pool(out, at, own.members, own.sizes, first, counts, bias, pooled, S, C, P)
    cpu_backward.pool_back(
        out, at, own.members, own.sizes, first, counts, bias, pooled, grad[:, 0].numpy(), of_out, bias.copy(), S, C, P
    )
    real = (first[None] + counts[None] * at[:, None])[own.sizes > 0]
    assert np.array_equal(pooled[real], expected.detach()[:, 0].numpy()[real])
    padding = np.setdiff1d(np.arange(S * G), real)
    grad[padding] = 0
    (gradient,) = torch.autograd.grad((top_over_rules(said, tables) * grad).sum(), said)
    assert np.array_equal(of_out, gradient[:, 0].numpy())


def test_a_call_continues_from_a_state(data):
    batch, network = batch_of(data), made_for(data)
    with torch.no_grad():
        whole, end = network(batch, steps=5, return_state=True)
        first, state = network(batch, steps=2, return_state=True)
        rest, last = network(batch, steps=3, state=state, return_state=True)
    assert torch.equal(whole, torch.cat([first, rest]))
    assert torch.equal(end, last)


def test_gradients_do_not_change_the_answers(data):
    batch, network = batch_of(data), made_for(data)
    with torch.no_grad():
        answers = network(batch)
    assert torch.equal(network(batch), answers)


def test_any_number_of_threads_gives_the_same_bits(data, monkeypatch):
    if data.problem.kinds_of_sums:
        pytest.skip("what rules with weights and bounds say is plain PyTorch")
    monkeypatch.setattr(cpu_autograd, "ROWS", 1)
    batch, network = batch_of(data, 12), made_for(data, width=16)
    before, found = torch.get_num_threads(), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        try:
            found.append(passed(network, batch))
            assert torch.get_num_threads() == threads
        finally:
            torch.set_num_threads(before)
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


def test_only_what_asks_for_a_gradient_gets_one(data):
    batch, network = batch_of(data), made_for(data)
    expected = passed(network, batch)
    network.step.block.rule.requires_grad_(False)
    network.embed.weight.requires_grad_(False)
    logits, state = network(batch, noise=torch.randn(network.noise_shape(batch)), return_state=True)
    (logits.sum() + state.sum()).backward()
    assert network.step.block.rule.grad is None
    assert network.step.readout.grad is not None
    network.requires_grad_(True)
    assert_near(passed(network, batch), expected, 0)


def test_the_selector_runs_on_them_too(data, plain):
    batch = batch_of(data)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        selector = EquivariantSelector(data.problem, width=8)
    logits = torch.randn(len(batch), batch.problem.variables, batch.problem.values)

    def scored():
        one = deepcopy(selector)
        scores = one(logits, batch)
        scores.square().sum().backward()
        return [scores.detach().double(), *(part.grad.double() for part in one.parameters() if part.grad is not None)]

    assert steps.uses_cpu_kernels(selector.step, *[torch.ones(1, 1, 8)] * 2, None)
    assert_near(scored(), plain(scored))


def test_kernels_run_only_what_they_know(monkeypatch):
    """Other precisions, hooks, replaced and compiled parts run as plain PyTorch."""
    step, state = EquivariantNetwork(nqueens(4), width=8).step, torch.ones(16, 1, 8)

    def takes(step=step, state=state, relations=None):
        return steps.uses_cpu_kernels(step, state, state, relations)

    assert takes()
    assert not takes(state=state.double())
    assert not takes(step=deepcopy(step).double())
    assert not takes(state=state[:0])
    assert not takes(relations=object())
    with torch.autocast("cpu", torch.bfloat16):
        assert not takes()
    hooked = deepcopy(step)
    hooked.block.update.register_forward_hook(lambda *_: None)
    assert not takes(step=hooked)
    replaced = deepcopy(step)
    monkeypatch.setattr(replaced.block, "forward", lambda *_: None)
    assert not takes(step=replaced)
    compiled = deepcopy(step)
    compiled.compile(backend="eager")
    assert not takes(step=compiled)
