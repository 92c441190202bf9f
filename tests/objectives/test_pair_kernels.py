"""The Triton kernels of the pair losses against PyTorch's operators.

They run where a GPU is. Without one they can be interpreted where triton is installed:

    TRITON_INTERPRET=1 pytest tests/objectives/test_pair_kernels.py
"""

import pytest
import torch

from kernels import DEVICE, INTERPRETED, needs_kernels
from oneofmany.objectives import BinaryNLL, CategoricalNLL, CCLoss, IExplR, MinLoss, Naive, looking_up
from oneofmany.objectives.looking_up import expected_minus_taken, look_up, subtract_taken

from .cases import make_case

pytestmark = needs_kernels
SHAPES = [(1, 1, 1, 1, 1), (2, 3, 5, 7, 4), (3, 2, 17, 20, 9), (1, 4, 9, 300, 2), (2, 2, 8, 3, 300), (1, 2, 3, 2, 3000)]
CLOSE = {"rtol": 0, "atol": 1e-5, "equal_nan": True}
with_masks = pytest.mark.parametrize("masked", ["all", "of the query", "of every solution"])


def inputs(T, B, K, R, V):
    """Some solutions have values outside 0..V-1, and no tensor is contiguous."""
    generator = torch.Generator().manual_seed(K)
    result = torch.randn(T, V, R, B, generator=generator).permute(0, 3, 2, 1)
    solutions = torch.randint(-1, V + 1, (B, R, K), generator=generator).transpose(1, 2)
    return result, solutions, torch.randn(K, B, T, generator=generator).permute(2, 1, 0)


def mask_of(masked, solutions):
    """None, `[B,R]` or `[B,K,R]`, not contiguous; with two thirds of all, some variables are used by no solution."""
    batch, listed, variables = solutions.shape
    shape = {"all": None, "of the query": (variables, batch), "of every solution": (variables, listed, batch)}[masked]
    generator = torch.Generator().manual_seed(variables)
    return None if shape is None else (torch.rand(shape, generator=generator) < 0.3).permute(*range(len(shape))[::-1])


def moved(*tensors):
    return [None if tensor is None else tensor.to(DEVICE, copy=True) for tensor in tensors]


@pytest.fixture
def kernels(monkeypatch):
    """Run a function with the kernels: on a GPU they are chosen, on a CPU interpreted in the operators' place."""

    def run(function, *arguments):
        arguments = moved(*arguments)
        with monkeypatch.context() as patch, torch.no_grad():
            if INTERPRETED:
                patch.setattr(looking_up, "_has_kernels", lambda numbers: not torch.is_grad_enabled())
            return function(*arguments).cpu()

    return run


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("masked", ["all", "of every solution"])
def test_look_up(kernels, shape, masked):
    table, solutions, _ = inputs(*shape)
    kept = mask_of(masked, solutions)
    if kept is not None:
        table = table.masked_fill(~kept.any(1).unsqueeze(-1), torch.nan)
    table[..., :1, -1] = -torch.inf
    for given in ((table, solutions, kept), [None if t is None else t.contiguous() for t in (table, solutions, kept)]):
        actual = kernels(lambda table, solutions, kept: look_up(table, solutions, None, kept), *given)
        torch.testing.assert_close(actual, look_up(table, solutions, None, kept), rtol=1e-5, atol=1e-4)
        assert not actual.isnan().any()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("masked", ["all", "of every solution"])
@pytest.mark.parametrize("weight", [1.0, torch.inf, torch.nan])
def test_the_same_as_scatter_add(kernels, shape, masked, weight):
    """A weight that is not finite stays with the values of its solution."""
    result, solutions, weights = inputs(*shape)
    weights[..., -1] *= weight
    kept = mask_of(masked, solutions)

    def subtract(result, solutions, weights, kept):
        return subtract_taken(result, solutions, weights, None, False, kept)

    wanted = result.clone()
    for k in range(solutions.shape[1]):
        index = solutions[:, k, :, None].clamp(0, result.shape[-1] - 1).expand(len(result), -1, -1, -1)
        weight_of_k = weights[..., k, None, None].expand(*index.shape)
        if kept is not None:
            weight_of_k = weight_of_k.where(kept[:, k, :, None], 0.0)
        wanted.scatter_add_(-1, index, -weight_of_k)
    torch.testing.assert_close(kernels(subtract, result, solutions, weights, kept), wanted, **CLOSE)
    side_by_side = [None if t is None else t.contiguous() for t in (result, solutions, weights, kept)]
    torch.testing.assert_close(kernels(subtract, *side_by_side), wanted, **CLOSE)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("any_order", [False, True])
@with_masks
def test_gradient(kernels, shape, any_order, masked):
    probabilities, solutions, weights = inputs(*shape)
    probabilities = probabilities.softmax(-1)
    kept = mask_of(masked, solutions)
    if kept is not None:
        unused = ~(kept if kept.dim() == 2 else kept.any(1))
        probabilities = probabilities.masked_fill(unused.unsqueeze(-1), torch.nan)

    def gradient(probabilities, solutions, weights, kept):
        return expected_minus_taken(probabilities, solutions, weights, None, any_order, kept)

    with torch.no_grad():
        wanted = gradient(probabilities.clone(), solutions, weights, kept)
    actual = kernels(gradient, probabilities, solutions, weights, kept)
    torch.testing.assert_close(actual, wanted, rtol=1e-5, atol=2e-5)
    assert not actual.isnan().any()


@pytest.mark.parametrize("form", [MinLoss, CCLoss, IExplR, Naive])
@pytest.mark.parametrize("pair_loss", [CategoricalNLL, BinaryNLL])
def test_objectives_with_ignored_values(kernels, form, pair_loss):
    """Forward and backward, with padding and with variables that one or all solutions ignore."""
    case = make_case(5, T=3, B=4, K=5, R=6, V=4, dtype=torch.float32)
    ignored = torch.rand(case.solutions.shape, generator=torch.Generator().manual_seed(0)) < 0.4
    ignored[..., 2] = True
    solutions = case.solutions.masked_fill(ignored, -100)
    spoiled = case.logits.clone()
    spoiled[..., 2, :] = torch.nan
    for validate in (True, False):
        objective = form(pair_loss=pair_loss(), validate=validate)

        def both(logits, solutions, mask, objective=objective):
            with torch.enable_grad():
                logits = logits.detach().requires_grad_()
                loss = objective(logits, solutions, mask)
                loss.backward()
            return torch.cat([loss.detach().view(1), logits.grad.flatten()])

        wanted = both(spoiled, solutions, case.mask)
        actual = kernels(both, spoiled, solutions, case.mask)
        torch.testing.assert_close(actual, wanted, rtol=1e-5, atol=1e-5)
        assert not actual.isnan().any()
