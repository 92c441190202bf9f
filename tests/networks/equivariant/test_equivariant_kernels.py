"""The kernels of the equivariant network against the network as PyTorch runs it.

They need a GPU. Without one, Triton's interpreter runs them slowly (triton must be installed):

    TRITON_INTERPRET=1 pytest tests/networks/equivariant/test_equivariant_kernels.py
"""

from dataclasses import replace

import pytest
import torch

from kernels import DEVICE, INTERPRETED, needs_kernels
from oneofmany.networks.equivariant import EquivariantNetwork, EquivariantSelector, steps
from oneofmany.networks.equivariant.tables import relation_tables, rule_tables
from oneofmany.problems import Batch, Problem, futoshiki, nqueens, sudoku

pytestmark = needs_kernels

CASES = {
    "nqueens, more queries than a block": (nqueens(4), 40, 0),
    "a single queen": (nqueens(1), 2, 0),
    "sudoku": (sudoku(2, 2), 3, 0),
    "futoshiki without relations": (futoshiki(3), 3, 0),
    "futoshiki": (futoshiki(3), 5, 4),
    "futoshiki with inequalities of its own": (futoshiki(4, [(0, 1)]), 34, 3),
}


def some_relations(problem: Problem, B: int, M: int) -> torch.Tensor:
    """int64 [B, M, 2]: random pairs, some of them padding, one query with none."""
    pairs = torch.rand(B, M, problem.variables).argsort(-1)[..., :2]
    pairs[::2, -1] = -1
    pairs[1] = -1
    return pairs


def random_batch(problem: Problem, B: int, M: int) -> Batch:
    query = torch.randint(0, problem.values + 1, (B, problem.variables)).to(DEVICE)
    solutions = torch.zeros(B, 1, problem.variables, dtype=torch.int64, device=DEVICE)
    mask = torch.ones(B, 1, dtype=torch.bool, device=DEVICE)
    relations = some_relations(problem, B, M).to(DEVICE) if M else None
    return Batch(query, solutions, mask, mask.sum(1), problem, relations)


@pytest.mark.parametrize("case", CASES)
def test_the_same_function_and_gradients(case):
    from oneofmany.networks.equivariant.triton import run_steps

    problem, B, M = CASES[case]
    torch.manual_seed(len(case))
    step = EquivariantNetwork(problem, width=16, pooled=32, hidden=16).to(DEVICE).step
    tables = rule_tables(problem, DEVICE)
    relations = relation_tables(some_relations(problem, B, M).to(DEVICE), problem) if M else None
    state, query = (torch.randn(problem.choices, B, 16, device=DEVICE, requires_grad=True) for _ in range(2))
    inputs = {"state": state, "query": query, **dict(step.named_parameters())}

    made, theirs = [], state
    for _ in range(3):
        theirs, logits = step(theirs, query, tables, relations)
        made.append(logits)
    expected = torch.stack(made)
    ours, last = run_steps(step, state, query, tables, relations, 3, True, torch.float32)
    # A GPU's matrix units round float32 to 19 bits.
    tolerance = 1e-5 if INTERPRETED else 2e-2
    torch.testing.assert_close(ours, expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(last, theirs, rtol=tolerance, atol=tolerance)
    a, b = torch.randn_like(expected), torch.randn_like(theirs)
    expected_gradients = torch.autograd.grad((expected * a).sum() + (theirs * b).sum(), list(inputs.values()))
    gradients = torch.autograd.grad((ours * a).sum() + (last * b).sum(), list(inputs.values()))
    for name, mine, other in zip(inputs, gradients, expected_gradients, strict=True):
        assert (mine - other).norm() <= tolerance * other.norm(), name

    with torch.no_grad():
        only, again = run_steps(step, state, query, tables, relations, 3, False, torch.float32)
    torch.testing.assert_close(only, expected[-1:], rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(again, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: autocast chooses the kernels there")
@pytest.mark.parametrize(("problem", "M"), [(nqueens(8), 0), (sudoku(3, 3), 0), (futoshiki(5), 10)])
def test_bfloat16_is_as_close_as_without_the_kernels(problem, M, monkeypatch):
    torch.manual_seed(0)
    network = EquivariantNetwork(problem).cuda()
    batch = random_batch(problem, 48, M)
    noise = torch.randn(network.noise_shape(batch), device="cuda")
    expected = network(batch, noise=noise, steps=6)
    weights = torch.randn_like(expected)
    parameters = list(network.parameters())
    exact = torch.autograd.grad((expected * weights).sum(), parameters)

    def errors() -> list[float]:
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            logits = network(batch, noise=noise, steps=6)
        gradients = torch.autograd.grad((logits * weights).sum(), parameters)
        pairs = zip((logits, *gradients), (expected, *exact), strict=True)
        return [((mine - other).norm() / other.norm()).item() for mine, other in pairs]

    with_kernels = errors()
    monkeypatch.setattr(steps, "uses_triton", lambda *_: False)
    without = errors()
    assert all(mine < 2 * other + 0.01 for mine, other in zip(with_kernels, without, strict=True))


@pytest.mark.parametrize("case", ["sudoku", "futoshiki"])
def test_selector(case, monkeypatch):
    from oneofmany.networks.equivariant import triton

    problem, B, M = CASES[case]
    torch.manual_seed(0)
    selector = EquivariantSelector(problem, width=16).to(DEVICE)
    batch = random_batch(problem, B, M)
    solutions = torch.randint(problem.values, (B, 3, problem.variables), device=DEVICE)
    batch = replace(batch, solutions=solutions, mask=torch.ones(B, 3, dtype=torch.bool, device=DEVICE))
    logits = torch.randn(B, problem.variables, problem.values, device=DEVICE)
    expected = selector(logits, batch)
    monkeypatch.setattr(steps, "uses_triton", lambda *_: True)
    # The interpreter takes products in float32.
    run = triton.run_steps
    if INTERPRETED:
        monkeypatch.setattr(triton, "run_steps", lambda *given: run(*given[:-1], torch.float32))
    tolerance = 1e-5 if INTERPRETED else 5e-2
    torch.testing.assert_close(selector(logits, batch), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("problem", "width", "B"), [(nqueens(5), 24, 3), (nqueens(40), 16, 2), (nqueens(5), 16, 0)])
def test_what_the_kernels_cannot_do_runs_without_them(problem, width, B):
    network = EquivariantNetwork(problem, width=width).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        assert network(random_batch(problem, B, 0), steps=2).isfinite().all()
