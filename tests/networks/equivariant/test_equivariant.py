"""The equivariant network: the literal formulation, symmetries, sizes, learning."""

from __future__ import annotations

import itertools

import literal_equivariant as literal
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from oneofmany.networks.equivariant import EquivariantNetwork, inputs, steps
from oneofmany.networks.equivariant.inputs import flag_features
from oneofmany.networks.inference import draw_noise, predict
from oneofmany.networks.protocol import PredictionNetwork
from oneofmany.problems import Batch, Problem, Rule, futoshiki, nqueens, sudoku

BOARD = nqueens(5)


def batch_of(problem: Problem, query: Tensor, relations: Tensor | None = None) -> Batch:
    B = len(query)
    solutions = torch.zeros(B, 1, problem.variables, dtype=torch.int64)
    return Batch(query, solutions, torch.ones(B, 1, dtype=torch.bool), torch.ones(B).long(), problem, relations)


def random_batch(problem: Problem, B: int, seed: int, M: int = 0) -> Batch:
    """Random partial assignments: a network must answer unsolvable queries too."""
    g = torch.Generator().manual_seed(seed)
    values = torch.randint(1, problem.values + 1, (B, problem.variables), generator=g)
    query = torch.where(torch.rand(values.shape, generator=g) < 0.4, values, 0)
    relations = None
    if M:
        pairs = torch.stack([torch.randperm(problem.variables, generator=g)[:2] for _ in range(B * M)]).view(B, M, 2)
        relations = torch.where(torch.rand(B, M, 1, generator=g) < 0.3, -1, pairs)
    return batch_of(problem, query, relations)


def colouring() -> Problem:
    """A user's own task whose choices have one to five rules: a star of five nodes and a triangle, three colours."""
    edges = [(0, i) for i in range(1, 5)] + [(1, 2)]
    rules = [Rule("edge", (a * 3 + c, b * 3 + c), exact=False) for a, b in edges for c in range(3)]
    return Problem("colouring", 5, 5, 3, tuple(rules))


CASES = {
    "nqueens": (nqueens(4), 0, "rules"),
    "nqueens, odd": (nqueens(5), 0, "rules"),
    "sudoku": (sudoku(2, 2), 0, "rules"),
    "futoshiki": (futoshiki(3), 4, "rules"),
    "futoshiki with flags": (futoshiki(3), 4, "flags"),
    "futoshiki with its own and the queries' inequalities": (futoshiki(3, [(0, 1), (5, 2), (4, 3)]), 3, "rules"),
    "futoshiki with its own inequalities and the queries' as flags": (futoshiki(3, [(0, 1), (5, 2)]), 3, "flags"),
    "colouring": (colouring(), 0, "rules"),
}


@pytest.fixture(params=["CPU kernels", "plain"])
def path(request, monkeypatch):
    """Both ways to run the steps: compiled kernels, and the plain formulas."""
    if request.param == "plain":
        for module in (inputs, steps):
            monkeypatch.setattr(module, "takes_cpu", lambda _: False)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_the_literal_formulation(case):
    problem, M, inequalities = CASES[case]
    torch.manual_seed(len(case))
    network = EquivariantNetwork(problem, width=6, pooled=5, hidden=7, inequalities=inequalities)
    batch = random_batch(problem, 2, len(case), M)
    noise = torch.randn(network.noise_shape(batch))
    ours = network(batch, steps=3, noise=noise)
    parameters = dict(network.named_parameters())
    theirs = literal.network_logits(
        parameters, network.step.block.kinds, problem, batch.query, noise, 3, batch.relations, inequalities
    )
    assert ours.shape == (3, 2, problem.variables, problem.values)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    weights = torch.randn_like(ours)
    mine = torch.autograd.grad((ours * weights).sum(), list(parameters.values()), allow_unused=True)
    other = torch.autograd.grad((theirs * weights).sum(), list(parameters.values()), allow_unused=True)
    for name, a, b in zip(parameters, mine, other, strict=True):
        assert a is not None, name
        assert b is not None, name
        assert (a - b).norm() <= 1e-4 * b.norm(), name


@settings(max_examples=10)
@given(st.integers(1, 6), st.integers(1, 8), st.integers(1, 4), st.integers(0, 10**6))
def test_agrees_with_the_literal_formulation_at_any_size(n, width, steps, seed):
    problem = nqueens(n)
    torch.manual_seed(seed)
    network = EquivariantNetwork(problem, width=width, steps=steps)
    batch = random_batch(problem, 1, seed)
    noise = torch.randn(network.noise_shape(batch))
    parameters = dict(network.named_parameters())
    theirs = literal.network_logits(parameters, network.step.block.kinds, problem, batch.query, noise, steps)
    torch.testing.assert_close(network(batch, noise=noise), theirs, rtol=1e-5, atol=1e-5)


# ---- symmetries ----------------------------------------------------------------------------------------------------


def moved_batch(batch: Batch, to: np.ndarray, relations: Tensor | None = None) -> Batch:
    """The batch with choice c renamed to[c], givens included."""
    V = batch.problem.values
    query = torch.zeros_like(batch.query)
    for b, variable in (batch.query > 0).nonzero().tolist():
        new = int(to[variable * V + int(batch.query[b, variable]) - 1])
        query[b, new // V] = new % V + 1
    return batch_of(batch.problem, query, relations)


def assert_equivariant(network: EquivariantNetwork, batch: Batch, to: np.ndarray, relations: Tensor | None = None):
    kinds = {frozenset(rule.choices): rule.kind for rule in batch.problem.rules}
    assert {frozenset(to[list(r)].tolist()): k for r, k in kinds.items()} == kinds, "not a symmetry of the rules"
    noise = torch.randn(network.noise_shape(batch))
    moved_noise = torch.empty_like(noise)
    moved_noise[:, to] = noise
    before = network(batch, noise=noise).flatten(2)
    after = network(moved_batch(batch, to, relations), noise=moved_noise).flatten(2)
    torch.testing.assert_close(after[..., to], before, rtol=1e-4, atol=1e-4)
    assert before.std() > 0.01


def placed_batch(problem: Problem, B: int, seed: int) -> Batch:
    """A partial permutation: given choices that share no variable, also after any symmetry."""
    g = torch.Generator().manual_seed(seed)
    n = problem.values
    query = torch.stack([torch.randperm(n, generator=g) + 1 for _ in range(B)])
    return batch_of(problem, torch.where(torch.rand(query.shape, generator=g) < 0.5, query, 0))


@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("n", [5, 6])
def test_all_symmetries_of_the_chess_board(n, turns, mirrored):
    cells = np.rot90(np.arange(n * n).reshape(n, n), turns)
    cells = (cells[::-1] if mirrored else cells).reshape(-1)
    to = np.argsort(cells)
    torch.manual_seed(turns)
    network = EquivariantNetwork(nqueens(n), width=16, steps=6)
    assert_equivariant(network, placed_batch(nqueens(n), 4, turns), to)


@settings(max_examples=15)
@given(st.sampled_from([(2, 2), (2, 3), (3, 3)]), st.integers(0, 10**6))
def test_all_symmetries_of_sudoku(shape, seed):
    rows, columns = shape
    problem, n = sudoku(rows, columns), rows * columns
    rng = np.random.default_rng(seed)

    def lines(groups: int, size: int) -> np.ndarray:
        return np.concatenate([group * size + rng.permutation(size) for group in rng.permutation(groups)])

    r, c = lines(n // rows, rows), lines(n // columns, columns)
    choice = np.arange(n**3).reshape(n, n, n)[r][:, c][:, :, rng.permutation(n)]
    if rows == columns and rng.integers(2):
        choice = choice.transpose(1, 0, 2)
    torch.manual_seed(seed)
    network = EquivariantNetwork(problem, width=12, steps=4)
    assert_equivariant(network, random_batch(problem, 2, seed), np.argsort(choice.reshape(-1)))


@pytest.mark.parametrize("inequalities", ["rules", "flags"])
@settings(max_examples=15)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_symmetries_of_futoshiki(inequalities, n, seed):
    """Permute rows and columns and transpose, together with the relations; reverse values and relations."""
    problem, rng = futoshiki(n), np.random.default_rng(seed)
    cells = np.arange(n * n).reshape(n, n)
    values = np.arange(n)
    if inequalities == "rules":  # flags depend on the order of the cells, which a permutation changes
        cells = cells[rng.permutation(n)][:, rng.permutation(n)]
        cells = cells.T if rng.integers(2) else cells
        values = values[::-1] if rng.integers(2) else values
    else:
        values = rng.permutation(n)
    choice = cells.reshape(-1, 1) * n + values
    batch = random_batch(problem, 3, seed, M=4)
    related = batch.relations
    assert related is not None
    to_cell = torch.from_numpy(np.argsort(cells.reshape(-1)))
    moved = torch.where(related < 0, -1, to_cell[related.clamp_min(0)])
    moved = moved.flip(2) if inequalities == "rules" and n > 1 and values[0] else moved
    torch.manual_seed(seed)
    network = EquivariantNetwork(problem, width=12, steps=4, inequalities=inequalities)
    assert_equivariant(network, batch, np.argsort(choice.reshape(-1)), moved)


def test_relations_tell_the_larger_cell():
    network = EquivariantNetwork(futoshiki(3), width=8, steps=2)
    query = torch.zeros(1, 9, dtype=torch.int64)
    one = network(batch_of(futoshiki(3), query, torch.tensor([[[0, 1]]])))
    other = network(batch_of(futoshiki(3), query, torch.tensor([[[1, 0]]])))
    assert (one - other).abs().max() > 1e-3


def test_flags_of_horizontal_and_vertical_pairs():
    relations = torch.tensor([[[0, 1], [5, 4], [1, 4], [6, 3], [-1, -1]]])
    larger, smaller = flag_features(batch_of(futoshiki(3), torch.zeros(1, 9).long(), relations))
    cells = [flag.view(9, 3) for flag in (larger, smaller)]
    assert all((flag == flag[:, :1]).all() for flag in cells)
    assert [flag[:, 0].nonzero()[:, 0].tolist() for flag in cells] == [[3, 4], [0, 1]]


# ---- what must not matter ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inequalities", ["rules", "flags"])
def test_padding_relations_change_nothing(inequalities):
    network = EquivariantNetwork(futoshiki(4), width=8, steps=3, inequalities=inequalities)
    batch = random_batch(futoshiki(4), 3, 1, M=3)
    assert batch.relations is not None
    padded = torch.cat([torch.full((3, 2, 2), -1), batch.relations, torch.full((3, 5, 2), -1)], 1)
    expected = network(batch)
    torch.testing.assert_close(network(batch_of(batch.problem, batch.query, padded)), expected)
    only_padding = batch_of(batch.problem, batch.query, torch.full((3, 4, 2), -1))
    without = network(batch_of(batch.problem, batch.query))
    torch.testing.assert_close(network(only_padding), without)
    assert (without - expected).abs().max() > 1e-3


def test_inequalities_of_the_problem_equal_relations_of_the_queries():
    pairs = [(0, 1), (1, 5), (5, 4), (15, 14)]
    network = EquivariantNetwork(futoshiki(4), width=8, steps=3)
    batch = random_batch(futoshiki(4), 2, 0)
    noise = torch.randn(network.noise_shape(batch))
    expected = network(batch_of(batch.problem, batch.query, torch.tensor([pairs] * 2)), noise=noise)
    for split in (0, 2, 4):
        relations = torch.tensor([pairs[split:]] * 2, dtype=torch.int64).view(2, 4 - split, 2)
        mixed = batch_of(futoshiki(4, pairs[:split]), batch.query, relations)
        torch.testing.assert_close(network(mixed, noise=noise), expected, rtol=1e-5, atol=1e-5)


def test_queries_do_not_depend_on_each_other():
    network = EquivariantNetwork(futoshiki(4), width=8, steps=4)
    batch = random_batch(futoshiki(4), 5, 2, M=4)
    noise = torch.randn(network.noise_shape(batch))
    together = network(batch, noise=noise)
    for b in range(5):
        alone = network(batch[b : b + 1], noise=noise[b : b + 1])
        torch.testing.assert_close(alone[:, 0], together[:, b], rtol=1e-5, atol=1e-5)


def test_no_parameter_depends_on_the_size():
    torch.manual_seed(0)
    small = EquivariantNetwork(nqueens(6), width=8, steps=2)
    large = EquivariantNetwork(nqueens(9), width=8, steps=2)
    large.load_state_dict(small.state_dict())
    batch = random_batch(nqueens(9), 2, 0)
    assert torch.equal(small(batch), large(batch))
    assert EquivariantNetwork(sudoku(), width=8).state_dict().keys() == small.state_dict().keys()
    assert sum(p.numel() for p in EquivariantNetwork(nqueens(10)).parameters()) < 60_000


@pytest.mark.usefixtures("path")
def test_how_many_others_a_rule_has_does_not_matter():
    """One given in 9x9 and in 16x16: choices in the same position relative to it get the same logits, since a rule
    pools two of its choices only; a mean would depend on the size of the board.
    """
    torch.manual_seed(0)
    network = EquivariantNetwork(sudoku(), width=8, steps=4)
    logits = []
    for problem in (sudoku(), sudoku(4, 4)):
        query = torch.zeros(1, problem.variables, dtype=torch.int64)
        query[0, 0] = 1
        logits.append(network(batch_of(problem, query)).view(4, *[problem.size] * 3))
    # The given's line and value stay first, lines of its box stay in it, and other lines stay outside.
    to = torch.tensor([0, 1, 2, 4, 5, 8, 9, 14, 15])
    small, large = logits
    torch.testing.assert_close(large[:, to][:, :, to][..., to], small, rtol=1e-5, atol=1e-5)
    assert len(small[-1].detach().flatten().round(decimals=3).unique()) > 8


def test_the_same_seed_gives_the_same_parameters():
    def parameters(seed: int) -> list[Tensor]:
        torch.manual_seed(seed)
        return list(EquivariantNetwork(nqueens(4), width=8).parameters())

    assert all(torch.equal(a, b) for a, b in zip(parameters(3), parameters(3), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(parameters(3), parameters(4), strict=True))


# ---- the call ------------------------------------------------------------------------------------------------------


def test_steps_state_and_noise():
    network = EquivariantNetwork(BOARD, width=8, steps=5)
    batch = random_batch(BOARD, 3, 0)
    noise = torch.randn(network.noise_shape(batch))
    assert isinstance(network, PredictionNetwork)
    all_at_once = network(batch, noise=noise)
    assert len(all_at_once) == 5
    head, state = network(batch, steps=2, noise=noise, return_state=True)
    tail = network(batch, steps=3, noise=noise, state=state)
    torch.testing.assert_close(torch.cat([head, tail]), all_at_once)
    torch.testing.assert_close(network(batch, noise=noise, every_step=False), all_at_once[-1])
    assert state.shape == (3, 25, 8)
    picked = torch.tensor([2, 0])
    some = network(batch[picked], steps=3, noise=noise[picked], state=state[picked])
    torch.testing.assert_close(some, tail[:, picked])
    torch.testing.assert_close(network(batch), network(batch, noise=torch.zeros_like(noise)))
    assert (network(batch) - all_at_once).abs().max() > 1e-3


def test_every_parameter_gets_a_gradient():
    for problem, M, inequalities in CASES.values():
        network = EquivariantNetwork(problem, width=8, steps=2, inequalities=inequalities)
        batch = random_batch(problem, 4, 0, M)
        network(batch, noise=torch.randn(network.noise_shape(batch))).log_softmax(-1)[..., 0].sum().backward()
        for name, parameter in network.named_parameters():
            assert parameter.grad is not None, name
            assert (parameter.grad.flatten(1) if name.endswith("rule") else parameter.grad).abs().amax(-1).all(), name


def test_half_precision_stays_close():
    torch.manual_seed(0)
    network = EquivariantNetwork(BOARD, width=32, steps=4)
    batch = random_batch(BOARD, 4, 0)
    noise = torch.randn(network.noise_shape(batch))
    exact = network(batch, noise=noise)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = network(batch, noise=noise)
    assert rounded.dtype == torch.float32
    assert 0 < (rounded - exact).norm() / exact.norm() < 0.05


# PyTorch's own warnings while tracing: 2.13 makes an autograd.Function and reads the gradient of a non-leaf input.
quiet = pytest.mark.filterwarnings("ignore:.*should not be instantiated", "ignore:The .grad attribute of a Tensor")


@quiet
def test_compiles_as_one_graph():
    torch._dynamo.reset()
    network = EquivariantNetwork(futoshiki(2), width=8, steps=1)
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
    batch = random_batch(futoshiki(2), 2, 5, M=3)
    noise = torch.randn(network.noise_shape(batch))
    runs = [run(batch, noise=noise) for run in (network, compiled)]
    torch.testing.assert_close(*runs, rtol=1e-5, atol=1e-5)
    gradients = [torch.autograd.grad(logits.square().sum(), list(network.parameters())) for logits in runs]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@quiet
def test_a_compiled_network_tells_boards_of_one_shape_apart():
    torch._dynamo.reset()
    network = EquivariantNetwork(sudoku(1, 2), width=8, steps=1)
    compiled = torch.compile(network, fullgraph=True, backend="eager")
    wide, high = (random_batch(problem, 2, 0) for problem in (sudoku(1, 2), sudoku(2, 1)))
    noise = torch.randn(network.noise_shape(wide))
    assert (network(wide, noise=noise) - network(high, noise=noise)).abs().max() > 1e-3
    for batch in (wide, high, wide):
        torch.testing.assert_close(compiled(batch, noise=noise), network(batch, noise=noise), rtol=1e-5, atol=1e-5)


@quiet
def test_one_step_compiles_in_place():
    torch._dynamo.reset()
    network = EquivariantNetwork(nqueens(3), width=8, steps=3)
    batch = random_batch(nqueens(3), 2, 0)
    expected = network(batch)
    network.compile_step(backend="eager")
    torch.testing.assert_close(network(batch), expected, rtol=1e-5, atol=1e-5)


BAD = {
    "another task": ({"batch": random_batch(sudoku(2, 2), 2, 0)}, "problem: .*cell"),
    "relations without weights": (
        {"batch": batch_of(BOARD, torch.zeros(2, 5).long(), torch.zeros(2, 1, 2).long())},
        "relations: expected none",
    ),
    "board of another size": (
        {"batch": batch_of(BOARD, torch.zeros(2, 6, dtype=torch.int64))},
        r"query: expected \[B, 5\]",
    ),
    "query dtype": ({"batch": batch_of(BOARD, torch.zeros(2, 5))}, "query: expected int64, got torch.float32"),
    "device": (
        {"batch": batch_of(BOARD, torch.zeros(2, 5, dtype=torch.int64, device="meta"))},
        "device cpu, got meta",
    ),
    "steps": ({"steps": 0}, "steps: .* got 0"),
    "steps that are no number": ({"steps": 2.5}, "steps: .* got 2.5"),
    "noise shape": ({"noise": torch.zeros(2, 5)}, r"noise: expected .*\[2, 25\], got"),
    "noise dtype": ({"noise": torch.zeros(2, 25).long()}, "noise: expected floating point"),
    "state shape": ({"state": torch.zeros(25, 2, 8)}, r"state: expected .*\[2, 25, 8\]"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    arguments, message = BAD[case]
    network = EquivariantNetwork(BOARD, width=8, steps=1)
    with pytest.raises(ValueError, match=message):
        network(**{"batch": random_batch(BOARD, 2, 0), **arguments})


def test_relations_that_the_network_has_no_weights_for_are_not_ignored():
    network, batch = EquivariantNetwork(sudoku(1, 3), width=8, steps=1), random_batch(futoshiki(3), 1, 0, M=2)
    assert network(batch_of(batch.problem, batch.query)).shape == (1, 1, 9, 3)
    with pytest.raises(ValueError, match=r"problem: expected .* with \['inequality'\]"):
        network(batch)


def test_bad_settings():
    for settings_, message in (
        ({"inequalities": "none"}, "inequalities: "),
        ({"width": 0}, "width: "),
        ({"steps": 0}, "steps: "),
        ({"hidden": 0}, "hidden: "),
    ):
        with pytest.raises(ValueError, match=message):
            EquivariantNetwork(BOARD, **settings_)
    relations = torch.zeros(1, 2, 3).long()
    with pytest.raises(ValueError, match=r"relations: expected \[1, M, 2\]"):
        EquivariantNetwork(futoshiki(3), width=4)(batch_of(futoshiki(3), torch.zeros(1, 9).long(), relations))
    rules = (Rule("set", (0, 3), exact=False), Rule("set", (1, 4), exact=True))
    mixed = Problem("mixed", 2, 2, 3, rules)
    network = EquivariantNetwork(mixed, width=4)
    mixed = Problem("mixed", 2, 2, 3, rules)
    network, batch = EquivariantNetwork(mixed, width=4), random_batch(mixed, 1, 0)
    with pytest.raises(ValueError, match="kind 'set': expected all"):
        network(batch)


# ---- it learns -----------------------------------------------------------------------------------------------------


def queens(n: int, blanks: int) -> Batch:
    """All queries with this many blank rows, with all their solutions."""
    solutions = [
        p
        for p in itertools.permutations(range(n))
        if all(abs(p[i] - p[j]) != j - i for j in range(n) for i in range(j))
    ]
    listed: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for rows in itertools.combinations(range(n), blanks):
        for solution in solutions:
            query = tuple(0 if r in rows else solution[r] + 1 for r in range(n))
            listed.setdefault(query, []).append(solution)
    most = max(map(len, listed.values()))
    padded = torch.tensor([found + [found[0]] * (most - len(found)) for found in listed.values()])
    total = torch.tensor([len(found) for found in listed.values()])
    return Batch(torch.tensor(list(listed)), padded, torch.arange(most) < total[:, None], total, nqueens(n))


def test_learns_queens_it_has_not_seen():
    """MinLoss over the listed solutions at every step, one solution for all steps, written out here."""
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    data = queens(7, 4)
    order = torch.randperm(len(data), generator=g)
    train, test = data[order[400:]], data[order[:400]]
    network = EquivariantNetwork(data.problem, width=24, steps=8)
    updates = 140
    optimizer = torch.optim.AdamW(network.parameters(), 6e-3, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, updates, pct_start=0.1, cycle_momentum=False)
    for _ in range(updates):
        batch = train[torch.randint(len(train), (32,), generator=g)]
        log_p = network(batch, noise=draw_noise(network, batch, g)).log_softmax(-1)
        taken = torch.nn.functional.one_hot(batch.solutions, 7).float()
        pair_loss = -torch.einsum("tbrv,bkrv->bk", log_p, taken)
        optimizer.zero_grad()
        pair_loss.masked_fill(~batch.mask, torch.inf).amin(1).mean().backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    valid = test.problem.check(predict(network, test, steps=16, generator=g).answers, test.query)
    several = test.total > 1
    assert several.sum() > 20
    assert valid[several].float().mean() > 0.8
    assert valid[~several].float().mean() > 0.9
