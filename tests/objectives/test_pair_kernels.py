"""The Triton kernel of the pair losses' gradient against ``scatter_add_``.

It runs where a GPU is. Without one it can be interpreted where triton is installed:

    TRITON_INTERPRET=1 pytest tests/objectives/test_pair_kernels.py
"""

import pytest
import torch

from kernels import DEVICE, needs_kernels
from oneofmany.objectives.looking_up import subtract_taken

pytestmark = needs_kernels
SHAPES = [(1, 1, 1, 1, 1), (2, 3, 5, 7, 4), (3, 2, 17, 20, 9), (1, 4, 9, 100, 2), (2, 2, 8, 3, 300), (1, 2, 3, 2, 3000)]


def inputs(T, B, K, R, V):
    """Some solutions have values outside 0..V-1, and no tensor is contiguous."""
    generator = torch.Generator().manual_seed(K)
    result = torch.randn(T, V, R, B, generator=generator).permute(0, 3, 2, 1)
    solutions = torch.randint(-1, V + 1, (B, R, K), generator=generator).transpose(1, 2)
    return result, solutions, torch.randn(K, B, T, generator=generator).permute(2, 1, 0)


def with_kernel(result, solutions, weights):
    from oneofmany.objectives.pair_kernels import subtract_taken

    result = result.to(DEVICE, copy=True)
    subtract_taken(result, solutions.to(DEVICE), weights.to(DEVICE))
    return result.cpu()


def on_cpu(result, solutions, weights):
    return subtract_taken(result.clone(), solutions, weights, None, any_order=False)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_as_scatter_add(shape):
    given = inputs(*shape)
    torch.testing.assert_close(with_kernel(*given), on_cpu(*given), rtol=0, atol=1e-5)
    side_by_side = tuple(tensor.contiguous() for tensor in given)
    torch.testing.assert_close(with_kernel(*side_by_side), on_cpu(*side_by_side), rtol=0, atol=1e-5)


@pytest.mark.parametrize("weight", [torch.inf, torch.nan])
def test_a_weight_that_is_not_finite_stays_with_its_values(weight):
    result, solutions, weights = inputs(2, 3, 5, 7, 4)
    weights[..., 2] = weight
    given = result, solutions, weights
    torch.testing.assert_close(with_kernel(*given), on_cpu(*given), rtol=0, atol=1e-5, equal_nan=True)
