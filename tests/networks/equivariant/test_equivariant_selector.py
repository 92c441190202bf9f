"""The selector over choices and rules."""

from __future__ import annotations

import literal_equivariant as literal
import pytest
import torch
from torch import Tensor

from oneofmany.networks.equivariant.selector import EquivariantSelector
from oneofmany.networks.protocol import SelectorNetwork
from oneofmany.problems import Batch, Problem, futoshiki, nqueens, sudoku


def random_batch(problem: Problem, B: int, K: int, seed: int, M: int = 0) -> tuple[Batch, Tensor]:
    g = torch.Generator().manual_seed(seed)
    R, V = problem.variables, problem.values
    query = torch.randint(0, V + 1, (B, R), generator=g) * (torch.rand(B, R, generator=g) < 0.5)
    solutions = torch.randint(0, V, (B, K, R), generator=g)
    mask = torch.rand(B, K, generator=g) < 0.7
    mask[:, 0] = True
    relations = torch.stack([torch.randperm(R, generator=g)[:2] for _ in range(B * M)]).view(B, M, 2) if M else None
    if relations is not None:
        relations[:, -1] = -1
    batch = Batch(query, solutions, mask, mask.sum(1), problem, relations)
    return batch, torch.randn(B, R, V, generator=g)


CASES = {
    "nqueens": (nqueens(4), 0),
    "sudoku": (sudoku(1, 3), 0),
    "futoshiki": (futoshiki(3), 3),
}


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_the_literal_formulation(case):
    problem, M = CASES[case]
    torch.manual_seed(0)
    selector = EquivariantSelector(problem, width=6, rounds=2)
    batch, logits = random_batch(problem, 2, 2, 0, M)
    parameters = dict(selector.named_parameters())
    ours = selector(logits, batch)
    theirs = literal.selector_scores(
        parameters, selector.step.block.kinds, problem, batch.query, logits, batch.solutions, 2, batch.relations
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    weights = torch.randn_like(ours)
    mine = torch.autograd.grad((ours * weights).sum(), list(parameters.values()))
    other = torch.autograd.grad((theirs * weights).sum(), list(parameters.values()))
    for name, a, b in zip(parameters, mine, other, strict=True):
        assert b.norm() > 0, name
        assert (a - b).norm() <= 1e-4 * b.norm(), name


def test_a_network_with_a_class_for_blank():
    problem = nqueens(3)
    selector = EquivariantSelector(problem, width=6, rounds=1, value_offset=1)
    batch, logits = random_batch(problem, 2, 3, 0)
    logits = torch.cat([torch.randn(2, 3, 1), logits], -1)
    parameters = dict(selector.named_parameters())
    theirs = literal.selector_scores(
        parameters, selector.step.block.kinds, problem, batch.query, logits, batch.solutions, 1, value_offset=1
    )
    torch.testing.assert_close(selector(logits, batch), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("inequalities", ["rules", "flags"])
def test_pairs_do_not_depend_on_each_other(inequalities):
    problem = futoshiki(4)
    selector = EquivariantSelector(problem, width=8, inequalities=inequalities)
    assert isinstance(selector, SelectorNetwork)
    batch, logits = random_batch(problem, 3, 4, 1, M=3)
    scores = selector(torch.stack([torch.randn_like(logits), logits]), batch)
    assert scores.shape == (3, 4)
    torch.testing.assert_close(selector(logits, batch), scores)
    garbage = torch.where(batch.mask[..., None], batch.solutions, torch.tensor([-7, 99, 0, 10**9] * 4))
    other = Batch(batch.query, garbage, batch.mask, batch.total, problem, batch.relations)
    polluted = selector(logits, other)
    torch.testing.assert_close(polluted[batch.mask], scores[batch.mask])
    assert polluted.isfinite().all()
    for b in range(3):
        torch.testing.assert_close(selector(logits[b : b + 1], batch[b : b + 1]), scores[b : b + 1])
    order = torch.tensor([2, 0, 3, 1])
    shuffled = Batch(
        batch.query, batch.solutions[:, order], batch.mask[:, order], batch.total, problem, batch.relations
    )
    torch.testing.assert_close(selector(logits, shuffled), scores[:, order])


def test_no_parameter_depends_on_the_size():
    small, large = (EquivariantSelector(nqueens(n)) for n in (5, 8))
    large.load_state_dict(small.state_dict())
    assert sum(p.numel() for p in small.parameters()) < 20_000


def test_learns_to_prefer_the_solution_that_the_copy_is_near_to():
    """It learns to rank by agreement with the lagged copy on boards of one size, and also ranks on a larger one."""
    torch.manual_seed(0)
    selector = EquivariantSelector(nqueens(4), width=12, rounds=2)
    optimizer = torch.optim.AdamW(selector.parameters(), 1e-2)

    def agreement(batch: Batch, logits: Tensor) -> Tensor:
        p = logits.softmax(-1)[:, None].expand(-1, batch.solutions.shape[1], -1, -1)
        return p.gather(3, batch.solutions[..., None])[..., 0].mean(-1)

    for seed in range(60):
        batch, logits = random_batch(nqueens(4), 16, 4, seed)
        chosen = selector(logits, batch).log_softmax(1)
        optimizer.zero_grad()
        (-chosen.gather(1, agreement(batch, logits).argmax(1, keepdim=True)).mean()).backward()
        optimizer.step()
    batch, logits = random_batch(nqueens(6), 200, 4, 1000)
    picked = selector(logits, batch).argmax(1)
    assert (picked == agreement(batch, logits).argmax(1)).float().mean() > 0.8


# PyTorch's own warnings while tracing, from 2.13.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")
def test_compiles_as_one_graph():
    torch._dynamo.reset()
    problem = nqueens(3)
    selector = EquivariantSelector(problem, width=4, rounds=1)
    batch, logits = random_batch(problem, 2, 2, 0)
    compiled = torch.compile(selector, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(logits, batch), selector(logits, batch), rtol=1e-5, atol=1e-5)


def test_bad_input():
    problem = nqueens(4)
    selector = EquivariantSelector(problem, width=4, rounds=1)
    batch, logits = random_batch(problem, 2, 3, 0)
    for bad, message in (
        (logits[:, :3], r"logits: expected .*\[2, 4, 4\]"),
        (logits.long(), "logits: expected floating point"),
        (logits[None, None], "logits: expected"),
        (logits.to("meta"), "logits and solutions: expected both on cpu"),
    ):
        with pytest.raises(ValueError, match=message):
            selector(bad, batch)
    with pytest.raises(ValueError, match=r"solutions: expected \[2, K, 4\]"):
        selector(logits, Batch(batch.query, batch.solutions[:, 0], batch.mask, batch.total, problem))
    with pytest.raises(ValueError, match="problem: expected rules of the kinds"):
        selector(torch.zeros(1, 9, 3), random_batch(futoshiki(3), 1, 1, 0)[0])
    for settings, message in (
        ({"rounds": 0}, "rounds: "),
        ({"width": 0}, "width: "),
        ({"value_offset": -1}, "value_offset: "),
        ({"inequalities": "x"}, "inequalities: "),
    ):
        with pytest.raises(ValueError, match=message):
            EquivariantSelector(problem, **settings)
