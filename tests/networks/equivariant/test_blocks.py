"""Queries with their own rules in one batch: the answers of each query alone, and rules with weights and bounds."""

import gc
import itertools
from dataclasses import replace
from weakref import ref

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounter

from oneofmany.data import DeviceData
from oneofmany.networks import EquivariantNetwork, EquivariantSelector, predict
from oneofmany.networks.equivariant import blocks
from oneofmany.networks.equivariant.blocks import block_tables, shared_tables
from oneofmany.networks.equivariant.rules import neighbourhoods as without_torch
from oneofmany.networks.equivariant.sums import beliefs, sum_features
from oneofmany.networks.equivariant.tables import neighbourhoods
from oneofmany.problems import Batch, OwnRules, Problem, Rule, cage, futoshiki, sudoku, total
from structures import cages, coloured, edges, graphs, ordered_cages, unequal_cages


def alone(batch, row, problem):
    """The batch of one query, whose problem has the query's own rules."""
    return replace(batch[torch.tensor([row])], problem=problem, own=None, rows=None)


@pytest.mark.parametrize("make", [graphs, cages, ordered_cages, unequal_cages])
def test_a_batch_gives_what_each_query_gives_alone(make):
    torch.manual_seed(0)
    data = make(12, seed=3)
    network = EquivariantNetwork(data.problem, width=8, steps=3)
    rows = torch.tensor([5, 0, 5, 11, 7])
    batch = DeviceData(data).batch(rows)
    noise = torch.randn(network.noise_shape(batch))
    together = network(batch, noise=noise)
    together.square().mean().backward()
    gradients = [p.grad.clone() for p in network.parameters()]
    network.zero_grad()
    each = [
        network(alone(batch, i, data.problem_of(row)), noise=noise[i : i + 1]) for i, row in enumerate(rows.tolist())
    ]
    torch.testing.assert_close(together, torch.cat(each, 1), atol=1e-5, rtol=1e-4)
    torch.cat(each, 1).square().mean().backward()
    for found, parameter in zip(gradients, network.parameters(), strict=True):
        torch.testing.assert_close(found, parameter.grad, atol=1e-5, rtol=1e-3)


def ordered(size):
    """Futoshiki with relations among its rules, and cages."""
    plain = futoshiki(size, [(0, 1), (4, 2), (1, 5)])
    return replace(plain, rules=plain.rules + tuple(cage("cage", [0, 3], size, 4)), relation_kind="inequality")


@pytest.mark.parametrize("problem", [sudoku(2, 2), ordered(3)], ids=str)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_own_rules_are_the_same_rules(problem, share):
    """Any part of a problem's rules can be the queries' own: logits and gradients stay."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    own = [rule.kind not in ("variable", "cell") and rng.random() < share for rule in problem.rules]
    rest = tuple(rule for rule, is_own in zip(problem.rules, own, strict=True) if not is_own)
    moved = [rule for rule, is_own in zip(problem.rules, own, strict=True) if is_own]
    kinds = tuple(dict.fromkeys(rule.kind for rule in moved if not rule.linear))
    bare = replace(problem, rules=rest, own_kinds=kinds, own_sums=tuple({r.kind for r in moved if r.linear}))
    network = EquivariantNetwork(problem, width=8, steps=3)
    query = torch.randint(0, problem.values + 1, (4, problem.variables))
    none = torch.zeros(4, 0)
    listed = none[..., None].expand(-1, -1, problem.variables).long()
    batch = Batch(query, listed, none.bool(), none.sum(1).long(), problem)
    rules = OwnRules.of([moved] * 4).to(query.device)
    other = replace(batch, problem=bare, own=rules, rows=torch.tensor([3, 0, 2, 1]))
    noise = torch.randn(network.noise_shape(batch))
    made, expected = network(other, noise=noise), network(batch, noise=noise)
    torch.testing.assert_close(made, expected, atol=1e-5, rtol=1e-4)
    parameters = list(network.parameters())
    found, wanted = (torch.autograd.grad(x.square().mean(), parameters, allow_unused=True) for x in (made, expected))
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-3)
    order = torch.randperm(4)
    torch.testing.assert_close(network(other[order], noise=noise[order]), made[:, order], atol=1e-5, rtol=1e-4)


def test_tables_do_not_keep_their_problem_alive():
    graph = Problem("graph", 1, 3, 3, (), relation_kind="edge", relation="!=")
    none = torch.zeros(1, 0)
    batch = Batch(torch.zeros(1, 3).long(), none[..., None].expand(-1, -1, 3).long(), none.bool(), none.sum(1), graph)
    EquivariantNetwork(graph, width=4, steps=1)(replace(batch, relations=torch.tensor([[[0, 1]]])))
    gone = ref(graph)
    del graph, batch
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("make", [graphs, cages, ordered_cages, unequal_cages])
def test_the_selector_scores_a_batch_as_each_query_alone(make):
    torch.manual_seed(0)
    data = make(12, seed=3)
    selector = EquivariantSelector(data.problem, width=8, rounds=2)
    rows = torch.tensor([5, 0, 5, 11, 7])
    batch = DeviceData(data).batch(rows)
    assert batch.solutions.shape[1] > 1
    logits = torch.randn(len(rows), data.problem.variables, data.problem.values)
    parameters = list(selector.parameters())
    together = selector(logits, batch)
    each = torch.cat(
        [selector(logits[i : i + 1], alone(batch, i, data.problem_of(row))) for i, row in enumerate(rows.tolist())]
    )
    torch.testing.assert_close(together, each, atol=1e-5, rtol=1e-4)
    weights = torch.randn_like(together)
    found, expected = (torch.autograd.grad((scores * weights).sum(), parameters) for scores in (together, each))
    for ours, theirs in zip(found, expected, strict=True):
        assert theirs.norm() > 0
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("make", [graphs, cages])
def test_the_selector_does_not_see_order_and_padding(make):
    torch.manual_seed(0)
    data = make(8, seed=6)
    selector = EquivariantSelector(data.problem, width=8, rounds=2)
    batch = DeviceData(data).batch(torch.arange(8))
    logits = torch.randn(8, data.problem.variables, data.problem.values)
    scores = selector(logits, batch)
    garbage = torch.where(batch.mask[..., None], batch.solutions, 10**9)
    torch.testing.assert_close(selector(logits, replace(batch, solutions=garbage))[batch.mask], scores[batch.mask])
    order = torch.randperm(8)
    torch.testing.assert_close(selector(logits[order], batch[order]), scores[order], atol=1e-5, rtol=1e-4)
    places = torch.randperm(batch.solutions.shape[1])
    torch.testing.assert_close(
        selector(logits, replace(batch, solutions=batch.solutions[:, places])), scores[:, places], atol=1e-5, rtol=1e-4
    )


@pytest.mark.parametrize("make", [graphs, cages])
def test_states_resume_and_batches_shrink(make):
    data = make(9, seed=4)
    network = EquivariantNetwork(data.problem, width=8, steps=6).eval()
    batch = DeviceData(data).batch(torch.arange(9))
    with torch.no_grad():
        whole = network(batch, steps=6, every_step=False)
        _, state = network(batch, steps=4, every_step=False, return_state=True)
        assert state.shape == (9, data.problem.choices, 8)
        torch.testing.assert_close(network(batch, steps=2, state=state, every_step=False), whole)
        few = torch.tensor([8, 2])
        torch.testing.assert_close(network(batch[few], steps=6, every_step=False), whole[few], atol=1e-5, rtol=1e-4)
    kept, cut = (predict(network, batch, steps=20, patience=2, compact=compact) for compact in (False, True))
    assert (kept.answers == cut.answers).all()


def literal_features(problem, rules, belief):
    """What the rules tell one choice after the other: [kinds, C, features] from belief [R, V]."""
    kinds = [kind for kind in problem.kinds if any(rule.kind == kind for rule in rules)]
    V = problem.values
    told = torch.zeros(len(kinds), problem.choices, 5)
    number = torch.zeros(len(kinds), problem.variables)
    for rule in rules:
        scale = max(abs(weight) for _, weight in rule.weighed())
        weights = torch.zeros(problem.choices)
        for choice, weight in rule.weighed():
            weights[choice] = weight / scale
        low, high = (bound / scale for bound in rule.bounds)
        expected = (weights.view(-1, V) * belief).sum(1)
        k = kinds.index(rule.kind)
        for variable in {choice // V for choice in rule.choices}:
            number[k, variable] += 1
            others = expected.sum() - expected[variable]
            for value in range(V):
                w = weights[variable * V + value]
                above, below = high - others - w, others + w - low
                told[k, variable * V + value] += torch.stack(
                    [w, above / (1 + above.abs()), below / (1 + below.abs()), (-above).relu(), (-below).relu()]
                )
    return told / number.repeat_interleave(V, 1).clamp_min(1)[..., None]


def test_the_features_of_sums_are_the_literal_formula():
    torch.manual_seed(1)
    rules = [
        *cage("cage", [0, 1, 2], 4, 7),
        *total("sum", [1, 3], 4, low=-2, high=5, factors=[2, -3]),
        Rule("sum", (0, 5, 10), low=2),
        *cage("cage", [2, 3], 4, 5),
    ]
    problem = Problem("sums", 1, 4, 4, tuple(rules))
    belief = torch.randn(4, 1, 4).softmax(-1)
    made = sum_features(belief, shared_tables(problem, torch.device("cpu")).sums)
    linear = [rule for rule in problem.rules if rule.linear]
    torch.testing.assert_close(made[:, :, 0], literal_features(problem, linear, belief[:, 0]))
    assert beliefs(torch.randn(16, 2), 4).sum(-1).allclose(torch.ones(4, 2))


@pytest.mark.parametrize("make", [graphs, cages, coloured])
def test_block_tables_have_the_same_shape_for_any_rows(make):
    placed = DeviceData(make(20, seed=5))
    tables = [block_tables(placed.batch(torch.tensor(rows))) for rows in ([0, 1], [4, 19], [3, 3])]
    assert len({(t.members.shape, t.rules.shape, t.kinds, t.spans) for t in tables}) == 1


@pytest.mark.parametrize("make", [graphs, coloured])
def test_batches_with_the_same_structures_share_their_tables(make):
    batch = DeviceData(make(20, seed=5)).batch(torch.arange(4))
    tables = block_tables(batch)
    assert block_tables(replace(batch, query=batch.query.clone(), mask=~batch.mask)) is tables
    assert block_tables(batch[torch.arange(4)]) is not tables
    assert block_tables(replace(batch, problem=replace(batch.problem))) is not tables


def degrees(data):
    """The largest number of relations at a node of every graph, one after the other."""
    return [max(sum(node in pair for pair in graph) for node in range(7)) for graph in data.relations.tolist()]


def test_padding_to_the_whole_data_changes_no_bit():
    torch.manual_seed(0)
    data = coloured(40, seed=1)
    found = degrees(data)
    placed = DeviceData(data)
    assert placed.most_related == max(found)
    few = [row for row, degree in enumerate(found) if degree < max(found) - 1][:5]
    assert len(few) == 5
    batch = placed.batch(torch.tensor(few))
    alone = replace(batch, most_related=max(found[row] for row in few))
    assert block_tables(batch).rules.shape[1] > block_tables(alone).rules.shape[1]
    network = EquivariantNetwork(data.problem, width=8, steps=3)
    noise, parameters = torch.randn(network.noise_shape(batch)), list(network.parameters())
    made = [network(b, noise=noise) for b in (batch, alone, replace(batch, most_related=None))]
    assert torch.equal(made[0], made[1])
    assert torch.equal(made[0], made[2])
    gradients = [torch.autograd.grad(logits.square().mean(), parameters) for logits in made]
    for ours, theirs, waited in zip(*gradients, strict=True):
        assert torch.equal(ours, theirs)
        assert torch.equal(ours, waited)


def test_a_captured_graph_keeps_its_tables():
    """Rules on a device are not dropped if the same rules are used for another problem."""
    batch = DeviceData(graphs(5, seed=5)).batch(torch.arange(3))
    prepared = blocks._prepared(batch)
    assert blocks._prepared(replace(batch, problem=replace(batch.problem))) is not prepared
    assert blocks._prepared(batch) is prepared


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # the compiler's own
@pytest.mark.parametrize("make", [cages, coloured])
def test_one_step_compiles_once(make):
    torch._dynamo.reset()
    torch.manual_seed(0)
    placed = DeviceData(make(12, seed=3))
    network, counter = EquivariantNetwork(placed.problem, width=4, steps=2), CompileCounter()
    batches = [placed.batch(rows) for rows in torch.arange(12).split(4)]
    expected = [network(batch) for batch in batches]
    network.compile_step(backend=counter)
    for batch, logits in zip(batches, expected, strict=True):
        torch.testing.assert_close(network(batch), logits)
    assert counter.frame_count == 1


def test_networks_say_what_they_cannot_answer():
    data = cages(2, seed=0)
    other = EquivariantNetwork(Problem("other", 1, 4, 4, ()), width=4)
    assert "no weights for rules of kind" in str(other.accepts(data.problem))
    assert EquivariantNetwork(data.problem, width=4).accepts(data.problem_of(0)) is None
    graph = Problem("graph", 1, 2, 3, (), relation_kind="edge", relation="!=")
    flags = EquivariantNetwork(graph, width=4, inequalities="flags")
    assert "a != b need" in str(flags.accepts(graph, np.array([[0, 1]])))
    assert EquivariantNetwork(graph, width=4).accepts(graph, np.array([[0, 1]])) is None


def graphs_of_four():
    """Queries of 4 variables with 3 values: a graph with an edge that is named twice, another one, and no relations."""
    pairs = torch.tensor([[(0, 1), (2, 1), (1, 0)], [(3, 0), (1, 2), (0, 2)], [(-1, -1)] * 3])
    problem = Problem("graph", 4, 4, 3, (), relation_kind="edge", relation="!=")
    query = torch.randint(0, 4, (3, 4))
    none = torch.zeros(3, 0)
    return Batch(query, none[..., None].expand(-1, -1, 4).long(), none.bool(), none.sum(1).long(), problem, pairs)


@torch.no_grad()
def test_a_choice_hears_the_two_largest_of_itself_and_its_neighbours():
    torch.manual_seed(0)
    batch = graphs_of_four()
    network, noise = EquivariantNetwork(batch.problem, width=8, steps=1), torch.randn(3, 12)
    block = network.step.block
    near = [{0: [1], 1: [0, 2], 2: [1]}, {0: [2, 3], 1: [2], 2: [0, 1], 3: [0]}, {}]
    for of, logits, query, own_noise in zip(near, network(batch, noise=noise)[0], batch.query, noise, strict=True):
        given = (query[:, None] == torch.arange(1, 4)).flatten().float()
        state = network.embed(torch.stack([given, own_noise], 1))
        spoken, told = block.choice(2 * state).split([8, 16], 1)

        def heard(choices, kind, spoken=spoken):
            return spoken[choices].topk(2, 0).values.flatten() @ block.rule[block.kinds.index(kind)]

        for node, value in itertools.product(range(4), range(3)):
            told[3 * node + value] += heard([3 * node + other for other in range(3)], "variable")
            if node in of:
                told[3 * node + value] += heard([3 * one + value for one in (node, *of[node])], "edge")
        gate, value = told.chunk(2, 1)
        new = torch.nn.functional.layer_norm(state + block.update(torch.nn.functional.silu(gate) * value), (8,))
        torch.testing.assert_close(logits.flatten(), new @ network.step.readout)


def test_an_answer_does_not_depend_on_the_order_of_relations_or_on_other_queries():
    torch.manual_seed(0)
    batch = graphs_of_four()
    network, noise = EquivariantNetwork(batch.problem, width=8, steps=3), torch.randn(3, 12)
    together = network(batch, noise=noise)
    turned = replace(batch, relations=batch.relations.flip(1, 2))
    torch.testing.assert_close(network(turned, noise=noise), together)
    for row in range(3):
        one = batch[torch.tensor([row])]
        torch.testing.assert_close(network(one, noise=noise[row : row + 1])[:, 0], together[:, row])


def test_relations_that_differ_are_checked_as_the_rules_that_they_imply():
    batch = graphs_of_four()
    rules = [edges([pair for pair in of_query if pair[0] >= 0], 3) for of_query in batch.relations.tolist()]
    own = Problem("graph", 4, 4, 3, (), own_kinds=("edge",))
    other = replace(
        batch, problem=own, relations=None, own=OwnRules.of(rules).to(batch.query.device), rows=torch.arange(3)
    )
    answers = torch.randint(0, 3, (3, 4))
    assert (batch.check(answers) == other.check(answers)).all()


@pytest.mark.parametrize("seed", range(20))
def test_neighbourhoods_are_those_without_torch(seed):
    rng = np.random.default_rng(seed)
    R, V = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    pairs = [pair for pair in rng.integers(0, R, (int(rng.integers(1, 20)), 2)).tolist() if pair[0] != pair[1]]
    if not pairs:
        return
    relations = np.full((1, 25, 2), -1)
    relations[0, : len(pairs)] = pairs
    most = int(np.bincount(np.array(pairs).ravel()).max())
    found = neighbourhoods(torch.from_numpy(relations), R, V, most)[0].tolist()
    near = {(a, b) for pair in pairs for a, b in (pair, pair[::-1])}
    expected = [
        [a * V + v, *(b * V + v for b in range(R) if (a, b) in near)]
        for a in range(R)
        for v in range(V)
        if any(one == a for one, _ in near)
    ]
    assert [[c for c in rule if c >= 0] for rule in found if rule[0] >= 0] == expected
    without = without_torch(np.array(pairs), R, V).tolist()
    assert [[c for c in rule if c >= 0] for rule in without] == expected


def test_it_learns_cages_it_has_not_seen():
    """MinLoss over the listed solutions at every step."""
    torch.manual_seed(0)
    train, test = DeviceData(cages(200, seed=1)), DeviceData(cages(100, seed=2))
    g = torch.Generator().manual_seed(0)
    network = EquivariantNetwork(train.problem, width=16, steps=6)
    optimizer = torch.optim.AdamW(network.parameters(), 1e-2, betas=(0.9, 0.98))
    for _ in range(40):
        batch = train.draw(32, g)
        noise = torch.randn(network.noise_shape(batch), generator=g)
        log_p = network(batch, noise=noise).log_softmax(-1)
        taken = torch.nn.functional.one_hot(batch.solutions, 4).float()
        pair_loss = -torch.einsum("tbrv,bkrv->bk", log_p, taken)
        optimizer.zero_grad()
        pair_loss.masked_fill(~batch.mask, torch.inf).amin(1).mean().backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    batch = next(test.in_order(100))
    assert batch.check(predict(network, batch, steps=12, generator=g).answers).float().mean() > 0.5
