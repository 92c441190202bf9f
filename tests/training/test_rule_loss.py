"""The loss from the rules alone against all assignments of small problems, one by one."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from oneofmany.data import Dataset, DeviceData
from oneofmany.files import FileError
from oneofmany.networks import EquivariantNetwork, predict
from oneofmany.networks.building import NetworkSettings
from oneofmany.problems import Batch, OwnRules, Problem, Rule, all_different, cage, domain, forbid, implies, total
from oneofmany.training import PhaseSettings, Settings
from oneofmany.training.checks import check_data
from oneofmany.training.rule_loss import RuleLoss, expected_violation
from structures import graphs

R, V = 4, 3
RULES = [
    *all_different("line", [0, 1, 2], V),
    *all_different("few", [2, 3], V),
    *domain("domain", 3, [1, 3], V),
    Rule("both", (0, 1, 5), exact=False),
    *cage("cage", [0, 1, 3], V, 6),
    *total("sum", [1, 3], V, low=-2, high=1, factors=[2, -3]),
    Rule("counts", (0, 3, 6, 9), low=2, high=3),
    *implies("if", 0, [4, 8]),
    *forbid("not", [1, 4, 10]),
]


def violation(rule, values):
    """The distance of the rule's sum from its bounds, in units of its largest weight."""
    taken = {variable * V + value for variable, value in enumerate(values)}
    whole = sum(weight for choice, weight in rule.weighed() if choice in taken)
    low, high = rule.bounds
    return max(low - whole, whole - high, 0) / max(abs(weight) for _, weight in rule.weighed())


def by_hand(belief, query, rules, problem, relations):
    """The expectation over all assignments, each with the product of its probabilities; belief [R, V]."""
    implied = []
    if problem.relation_kind is not None:
        members = problem.relation_members(np.array(relations)[None])
        implied = [
            Rule("pair", tuple(row), exact=False) for row in members.reshape(-1, members.shape[-1]) if row[0] >= 0
        ]
    expected = torch.zeros((), dtype=belief.dtype)
    for values in product(range(V), repeat=R):
        p = torch.stack([belief[variable, value] for variable, value in enumerate(values)]).prod()
        broken = sum(violation(rule, values) for rule in [*rules, *implied])
        broken += sum(given > 0 and given - 1 != value for given, value in zip(query, values, strict=True))
        expected = expected + p * broken
    return expected


def batch_of(problem, query, relations=None, own=None):
    none = torch.zeros(len(query), 0)
    batch = Batch(query, none[..., None].expand(-1, -1, R).long(), none.bool(), none.sum(1).long(), problem, relations)
    return batch if own is None else replace(batch, own=own.to(query.device), rows=torch.arange(len(query)).flip(0))


CASES = {
    "shared": (Problem("p", 1, R, V, tuple(RULES)), None, None),
    "own": (Problem("p", 1, R, V, tuple(RULES[:3]), own_kinds=("few",)), [RULES[3:9], [], RULES[9:]], None),
    "less": (
        Problem("p", 1, R, V, (), relation_kind="<"),
        None,
        [[(0, 1), (3, 2)], [(-1, -1), (1, 0)], [(-1, -1)] * 2],
    ),
    "unequal": (
        Problem("p", 1, R, V, tuple(RULES[4:]), relation_kind="edge", relation="!="),
        None,
        [[(0, 1), (3, 2)], [(-1, -1), (1, 0)], [(-1, -1)] * 2],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_loss_is_the_expectation_over_all_assignments(case):
    torch.manual_seed(0)
    problem, rules, relations = CASES[case]
    own = None if rules is None else OwnRules.of(rules)
    query = torch.tensor([[0, 0, 0, 0], [2, 0, 0, 1], [0, 3, 0, 0]])
    batch = batch_of(problem, query, None if relations is None else torch.tensor(relations), own)
    logits = torch.randn(2, 3, R, V).requires_grad_()
    belief = logits.softmax(-1)
    made = expected_violation(belief, batch)
    wanted = torch.stack(
        [
            torch.stack(
                [
                    by_hand(
                        belief[t, b].double(),
                        query[b].tolist(),
                        [*problem.rules, *([] if rules is None else rules[2 - b])],
                        problem,
                        [] if relations is None else relations[b],
                    )
                    for b in range(3)
                ]
            )
            for t in range(2)
        ]
    )
    torch.testing.assert_close(made.double(), wanted, atol=1e-5, rtol=1e-5)
    weights = torch.randn(2, 3)
    ours, theirs = (torch.autograd.grad((x * weights).sum(), logits, retain_graph=True)[0] for x in (made, wanted))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    loss = RuleLoss()
    torch.testing.assert_close(loss(logits, batch), made.mean())
    torch.testing.assert_close(loss(logits[0], batch, normaliser=6), made[0].sum() / 6)
    assert loss.count(batch.mask) == 3


def test_it_is_zero_for_a_solution_alone():
    problem = Problem("p", 1, R, V, tuple(r for r in RULES if r.kind in ("line", "domain", "sum", "if", "not")))
    values = torch.tensor(list(product(range(V), repeat=R)))
    batch = batch_of(problem, torch.zeros(len(values), R).long())
    broken = expected_violation(torch.nn.functional.one_hot(values, V)[None].float(), batch)[0]
    valid = problem.check(values)
    assert valid.any()
    assert broken[valid].max() < 1e-4
    assert broken[~valid].min() > 0.1


def test_sums_of_large_weights_are_refused():
    problem = Problem("p", 1, R, V, (Rule("sum", (0, 3), weights=(5000, 1), high=4000),))
    with pytest.raises(ValueError, match="5,002 different sums, expected at most 4,096"):
        expected_violation(torch.rand(1, 1, R, V), batch_of(problem, torch.zeros(1, R).long()))


def test_it_learns_to_colour_graphs_without_a_listed_solution():
    torch.manual_seed(0)
    train, test = (graphs(150, seed=seed, largest=8) for seed in (1, 2))
    none = np.zeros(len(train) + 1, np.int64)
    blind = DeviceData(replace(train, solutions=train.solutions[:0], offsets=none, total=np.full(len(train), -1)))
    network, g, loss = (
        EquivariantNetwork(train.problem, width=16, steps=6),
        torch.Generator().manual_seed(0),
        RuleLoss(),
    )
    optimizer = torch.optim.AdamW(network.parameters(), 1e-2, betas=(0.9, 0.98))
    for _ in range(60):
        batch = blind.draw(32, g)
        optimizer.zero_grad()
        loss(network(batch, noise=torch.randn(network.noise_shape(batch), generator=g)), batch).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    solvable = test.take(np.flatnonzero(test.total > 0))
    batch = next(DeviceData(solvable).in_order(len(solvable)))
    assert batch.check(predict(network, batch, steps=12, generator=g).answers).float().mean() > 0.6


def test_settings_and_data_that_it_cannot_use():
    phase = PhaseSettings(updates=1)
    with pytest.raises(ValueError, match="objective rules: expected the equivariant network"):
        Settings(objective="rules", network=NetworkSettings("rrn"), first=phase)
    with pytest.raises(ValueError, match="no reveal"):
        Settings(objective="rules", network=NetworkSettings("equivariant"), first=phase, reveal=0.5)
    with pytest.raises(ValueError, match="discover: expected an objective"):
        Settings(objective="rules", network=NetworkSettings("equivariant"), first=phase, discover=True)
    bare = Problem("bare", 1, 2, 2, ())
    data = Dataset(bare, np.zeros((1, 2)), np.ones((1, 2)), [0, 1], [1], np.zeros((1, 0, 2)), [0])  # pyright: ignore
    settings = Settings(task="bare", objective="rules", network=NetworkSettings("transformer"), first=phase)
    with pytest.raises(FileError, match="bare has none"):
        check_data(settings, data, data)
