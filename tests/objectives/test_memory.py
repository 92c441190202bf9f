"""Hundreds of listed solutions are looked up in chunks: the same numbers without [T,B,K,R] tensors."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from oneofmany.objectives import BinaryNLL, CategoricalNLL, CCLoss, IExplR, MinLoss, Naive, SelectR

from .cases import make_case

T, B, K, R, V = 4, 3, 300, 20, 5


class LargestTensor(TorchDispatchMode):
    """Records the number of elements of the largest tensor that any operation allocates."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.untyped_storage().nbytes() // tensor.element_size())
        return result


def run(objective, case, *scores):
    case = case.with_gradient()
    with LargestTensor() as largest:
        loss = objective(case.logits, case.solutions, case.mask, *scores)
        loss.backward()
    return loss.detach(), case.logits.grad, largest.elements


@pytest.mark.parametrize("pair_loss", [CategoricalNLL, BinaryNLL])
@pytest.mark.parametrize("form", [Naive, CCLoss, MinLoss, IExplR, SelectR])
def test_chunks_give_the_same_and_need_less(form, pair_loss):
    case = make_case(0, T=T, B=B, K=K, R=R, V=V)
    scores = [torch.randn(B, K, dtype=torch.float64)] if form is SelectR else []
    whole = run(form(pair_loss=pair_loss(solutions_at_once=K), validate=False), case, *scores)
    parts = run(form(pair_loss=pair_loss(solutions_at_once=7), validate=False), case, *scores)
    torch.testing.assert_close(parts[0], whole[0], rtol=1e-12, atol=0)
    torch.testing.assert_close(parts[1], whole[1], rtol=1e-12, atol=1e-15)
    assert whole[2] == T * B * K * R
    # The rest is of the size of the inputs: the pair losses, the logits, the solutions.
    assert parts[2] <= max(T * B * K, T * B * R * V, B * K * R)
    assert parts[2] <= whole[2] / 4


def test_the_default_keeps_to_the_size_of_the_logits_or_16_million():
    from oneofmany.objectives.looking_up import default_solutions_at_once

    for shape in ((1, 4, 9, 5), (32, 512, 81, 9), (64, 4096, 81, 9), (1, 10**6, 81, 2)):
        steps, batch, variables, values = shape
        at_once = default_solutions_at_once(torch.empty(shape, device="meta"))
        assert at_once is not None
        assert at_once >= 1
        assert steps * batch * variables * at_once <= max(2**24, steps * batch * variables * values)
    assert (default_solutions_at_once(torch.empty(32, 512, 81, 9, device="meta")) or 0) >= 8
