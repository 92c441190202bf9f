"""Pooling over rules against brute force: the two largest of every rule's choices, at any size of a rule."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from oneofmany.networks.equivariant.plain import pool_relations, spread_relations, sum_rows, top_over_rules
from oneofmany.networks.equivariant.tables import relation_tables, rule_tables
from oneofmany.problems import Problem, Rule, futoshiki, nqueens, sudoku

CPU = torch.device("cpu")
PROBLEMS = {
    "nqueens": nqueens(5),
    "one queen, whose rules have a single choice": nqueens(1),
    "sudoku": sudoku(2, 2),
    "futoshiki with its own inequalities": futoshiki(3, [(0, 1), (5, 2)]),
    "rules of one, two and four choices": Problem(
        "own", 2, 2, 4, (Rule("single", (5,), False), Rule("pair", (0, 6), False))
    ),
}


def drawn(problem: Problem, ties: bool, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """States [C, 3, 2], some negative: with many ties, or all different by a margin."""
    g = torch.Generator().manual_seed(seed)
    shape = (problem.choices, 3, 2)
    count = problem.choices * 6
    x = torch.randint(-1, 2, shape, generator=g) if ties else torch.randperm(count, generator=g).view(shape) - count / 2
    return x.to(dtype)


def order_of(numbers: list[float]) -> list[int]:
    """Places from the largest number to the smallest, the first of equal ones first."""
    return sorted(range(len(numbers)), key=lambda place: -numbers[place])


def kept_rules(problem: Problem) -> list[Rule]:
    """The rules in the order of the tables."""
    return sorted(problem.rules, key=lambda rule: problem.kinds.index(rule.kind))


# ---- static rules --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_two_largest_and_their_gradient_against_brute_force(name, ties, dtype):
    problem, rules = PROBLEMS[name], kept_rules(PROBLEMS[name])
    x = drawn(problem, ties, dtype=dtype).requires_grad_()
    pooled = top_over_rules(x, rule_tables(problem, CPU))
    assert (pooled.shape, pooled.dtype) == ((len(rules), 3, 4), dtype)
    weights = torch.randint(1, 9, pooled.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    (gradient,) = torch.autograd.grad((pooled * weights).sum(), x)
    expected, expected_gradient = torch.zeros_like(pooled), torch.zeros_like(x)
    for g, rule in enumerate(rules):
        for b in range(3):
            for channel in range(2):
                said = [x[choice, b, channel].item() for choice in rule.choices]
                for rank, place in enumerate(order_of(said)[:2]):  # with a single choice the second stays 0
                    expected[g, b, 2 * rank + channel] = said[place]
                    choice = rule.choices[place]
                    expected_gradient[choice, b, channel] += weights[g, b, 2 * rank + channel]
    assert torch.equal(pooled, expected)
    assert torch.equal(gradient, expected_gradient)


@pytest.mark.parametrize("name", PROBLEMS)
def test_gradients_against_difference_quotients(name):
    tables = rule_tables(PROBLEMS[name], CPU)
    x = drawn(PROBLEMS[name], ties=False, dtype=torch.float64).requires_grad_()
    answers = torch.randn(len(tables.members), 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: top_over_rules(x, tables), x)
    assert torch.autograd.gradcheck(lambda x: sum_rows(x, tables.spread), answers)


@given(st.data())
def test_choices_below_the_second_largest_do_not_matter(data):
    """One of five or one of nine: the number and order of the others do not matter."""
    few = data.draw(st.lists(st.integers(-50, 50), min_size=2, max_size=5))
    second = sorted(few)[-2]
    many = list(few)
    for low in data.draw(st.lists(st.integers(second - 50, second), max_size=9)):
        many.insert(data.draw(st.integers(0, len(many))), low)
    pooled = [
        top_over_rules(torch.tensor(said).float().view(-1, 1, 1), rule_tables(Problem("one", 1, 1, len(said), ()), CPU))
        for said in (few, many)
    ]
    assert torch.equal(*pooled)


# ---- relations -----------------------------------------------------------------------------------------------------

RELATED = {
    "futoshiki": (futoshiki(3), [[(0, 1), (7, 2), (3, 4)], [(8, 0), (-1, -1), (0, 1)], [(-1, -1)] * 3]),
    "one value": (Problem("own", 1, 2, 1, (), relation_kind="inequality"), [[(0, 1)], [(1, 0)], [(-1, -1)]]),
}


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("name", RELATED)
def test_relations_against_brute_force(name, ties):
    problem, pairs = RELATED[name]
    relations = torch.tensor(pairs)
    tables, members = relation_tables(relations, problem), problem.relation_members(relations)
    x = drawn(problem, ties)
    pooled = pool_relations(x, tables)
    messages = torch.randint(-9, 9, (*members.shape[:3], 2), generator=torch.Generator().manual_seed(2)).float()
    spread = spread_relations(messages, tables)
    assert pooled.shape == (*members.shape[:3], 4)
    expected = torch.zeros_like(x)
    for b, m, d in torch.cartesian_prod(*map(torch.arange, members.shape[:3])).tolist():
        choices = members[b, m, d].tolist()
        if choices[0] < 0:  # padding sends nothing
            continue
        for channel in range(2):
            said = [x[choice, b, channel].item() for choice in choices]
            wanted = [said[place] for place in order_of(said)[:2]]
            assert pooled[b, m, d, channel::2].tolist() == wanted
        for choice in choices:
            expected[choice, b] += messages[b, m, d] / problem.values
    torch.testing.assert_close(spread, expected)


def test_gradients_of_relations_against_difference_quotients():
    problem, pairs = RELATED["futoshiki"]
    tables = relation_tables(torch.tensor(pairs), problem)
    x = drawn(problem, ties=False, dtype=torch.float64).requires_grad_()
    messages = torch.randn(3, 3, 3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: pool_relations(x, tables), x)
    assert torch.autograd.gradcheck(lambda m: spread_relations(m, tables), messages)


def test_equally_large_choices_of_relations_share_one_gradient():
    problem, pairs = RELATED["futoshiki"]
    x = torch.ones(problem.choices, 3, 1, requires_grad=True)
    pooled = pool_relations(x, relation_tables(torch.tensor(pairs), problem))
    weights = torch.rand(pooled.shape, generator=torch.Generator().manual_seed(0))
    (gradient,) = torch.autograd.grad((pooled * weights).sum(), x)
    real = (torch.tensor(pairs)[..., 0] >= 0)[..., None, None]
    torch.testing.assert_close(gradient.sum((0, 2)), (weights * real).sum((1, 2, 3)))
