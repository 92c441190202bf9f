"""The engine for CPUs against the network in PyTorch: logits of every step, noise, stopping, starts and answers."""

from pathlib import Path

import numpy as np
import pytest
import torch

import oneofmany
from oneofmany.data import DeviceData
from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.data.nqueens import build_nqueens
from oneofmany.data.sudoku import build_sudoku
from oneofmany.files import FileError
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.equivariant import EquivariantNetwork, cpu_steps
from oneofmany.networks.equivariant.cpu import CpuNetwork, load_for_cpu
from oneofmany.networks.equivariant.cpu_inference import predict_on_cpu
from oneofmany.networks.inference import predict
from oneofmany.networks.noise import Noise
from oneofmany.networks.saved import save_network
from oneofmany.objectives import MinLoss
from oneofmany.problems import Batch, Problem, Rule, cage, futoshiki, nqueens, sudoku, total
from structures import cages, graphs

WEIGHTS = Path(oneofmany.__file__).parent / "weights"


def batch_of(problem, queries, relations=None):
    none = torch.zeros(len(queries), 0)
    return Batch(
        torch.from_numpy(queries.astype(np.int64)),
        none[..., None].expand(-1, -1, problem.variables).long(),
        none.bool(),
        none.sum(1).long(),
        problem,
        None if relations is None else torch.from_numpy(relations.astype(np.int64)),
    )


def random_queries(problem, number, seed, pairs=0):
    """Random givens and relations (some are padding): a network must answer unsolvable queries too."""
    rng = np.random.default_rng(seed)
    shape = (number, problem.variables)
    queries = rng.integers(1, problem.values + 1, shape) * (rng.random(shape) < 0.4)
    relations = None
    if pairs:
        relations = np.array([rng.permutation(problem.variables)[:2] for _ in range(number * pairs)])
        relations = relations.reshape(number, pairs, 2).astype(np.int16)
        relations[rng.random((number, pairs)) < 0.3] = -1
    return queries.astype(np.uint8), relations, rng.standard_normal((number, problem.choices)).astype(np.float32)


def drawn(settings, problem, seed=0):
    """The same random network in both forms."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = build_network(settings, problem).eval()
    assert isinstance(network, EquivariantNetwork)
    return network, engine_of(network)


def engine_of(network, tensors=None):
    block = network.step.block
    return CpuNetwork(
        tensors or {name: one.numpy() for name, one in network.state_dict().items()},
        kinds=block.kinds,
        relation_kind=block.relation_kind,
        inequalities=network.inequalities,
        steps=network.steps,
        trained="some task",
        sums=block.sums,
    )


def own_task():
    """Choices with one to seven rules, and a rule with a single choice, whose second largest is 0."""
    edges = [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6), (1, 2)]
    rules = [Rule("edge", (a * 3 + c, b * 3 + c), exact=False) for a, b in edges for c in range(3)]
    return Problem("colouring", 7, 7, 3, (*rules, Rule("alone", (4,), exact=False)))


def weighed(problem=None):
    """Rules with weights and bounds of two kinds, on top of a problem's own."""
    problem = problem or Problem("sums", 16, 16, 4, ())
    rules = [
        *cage("cage", [0, 1, 2], problem.values, 6),
        *cage("cage", [2, 3], problem.values, 4),
        *total("sum", [1, 3], problem.values, low=-2, high=5, factors=[2, -3]),
        Rule("sum", (0, 5, 10), low=2),
    ]
    return problem.with_rules(rules)


def unequal():
    """A graph whose edges are relations; one edge is a rule, too."""
    edge = [Rule("edge", (c, 3 + c), exact=False) for c in range(3)]
    return Problem("graph", 6, 6, 3, tuple(edge), relation_kind="edge", relation="!=")


CASES = {
    "nqueens": (nqueens(5), NetworkSettings(width=16), 0),
    "one queen": (nqueens(1), NetworkSettings(width=16), 0),
    "sudoku, narrow hidden": (sudoku(2, 3), NetworkSettings(width=24, hidden=8), 0),
    "futoshiki without relations": (futoshiki(4), NetworkSettings(width=16), 0),
    "futoshiki with relations": (futoshiki(4), NetworkSettings(width=16), 5),
    "futoshiki with flags": (futoshiki(4), NetworkSettings(width=16, inequalities="flags"), 5),
    "futoshiki with static relations": (futoshiki(3, [(0, 1), (4, 2)]), NetworkSettings(width=8, hidden=20), 2),
    "own task": (own_task(), NetworkSettings(width=16), 0),
    "sums": (weighed(), NetworkSettings(width=16), 0),
    "sums, and futoshiki with relations": (weighed(futoshiki(4)), NetworkSettings(width=16, hidden=8), 5),
    "relations that differ": (unequal(), NetworkSettings(width=16), 6),
    "relations that differ, and sums": (weighed(unequal()), NetworkSettings(width=16), 6),
}


@pytest.mark.parametrize("case", CASES)
def test_logits_of_every_step(case):
    problem, settings, pairs = CASES[case]
    network, engine = drawn(settings, problem)
    queries, relations, noise = random_queries(problem, 5, 0, pairs)
    with torch.no_grad():
        expected = network(batch_of(problem, queries, relations), steps=6, noise=torch.from_numpy(noise))
    assert isinstance(expected, torch.Tensor)
    for step in range(1, 7):
        made = engine.run(problem, queries, relations, noise=noise, steps=step)
        np.testing.assert_allclose(made.last, expected[step - 1], atol=2e-5)
        if step == 1:
            assert made.before is None
        else:
            np.testing.assert_allclose(made.before, expected[step - 2], atol=2e-5)
        assert made.steps.tolist() == [step] * 5


@pytest.mark.parametrize(
    "problem", [sudoku(2, 2), sudoku(), nqueens(8), nqueens(13), futoshiki(4), futoshiki(6)], ids=str
)
def test_logits_of_the_bundled_networks(problem):
    network, engine = (
        oneofmany.load(problem.task).network,
        load_for_cpu(WEIGHTS / f"{problem.task}.safetensors").network,
    )
    queries, relations, noise = random_queries(problem, 3, 1, 4 if problem.relation_kind else 0)
    with torch.no_grad():
        expected = network(batch_of(problem, queries, relations), steps=8, noise=torch.from_numpy(noise))
    for step in (1, 2, 5, 8):
        made = engine.run(problem, queries, relations, noise=noise, steps=step)
        np.testing.assert_allclose(made.last, expected[step - 1], atol=2e-3, rtol=1e-4)


@pytest.mark.parametrize("seed", [0, 7, 2**32 + 1, 2**63 - 1])
def test_noise_is_that_of_torch(seed):
    generator, noise = torch.Generator().manual_seed(seed), Noise(seed)
    for shape in ((2, 729), (1, 9), (3, 5), (1, 16), (1, 17), (1, 1), (64, 121), (1, 3), (3, 100)):
        np.testing.assert_allclose(noise.normal(shape), torch.randn(shape, generator=generator), atol=2e-6)


def both(task, dataset, number, **options):
    """The predictions of both for the first queries of a dataset, as the solver asks for them."""
    saved, engine = oneofmany.load(task), load_for_cpu(WEIGHTS / f"{task}.safetensors").network
    queries = dataset.query[:number]
    relations = None if dataset.relations is None else dataset.relations[:number]
    arguments = {"steps": saved.settings.test_steps, "patience": 8} | options
    generator = torch.Generator().manual_seed(0)
    expected = predict(saved.network, batch_of(dataset.problem, queries, relations), generator=generator, **arguments)
    return expected, predict_on_cpu(engine, dataset.problem, queries, relations, noise=Noise(0), **arguments)


# Starts that have settled are equally sure, up to rounding, so several starts are compared before that.
UNSETTLED = {"starts": 3, "steps": 6, "patience": None}


@pytest.mark.parametrize("options", [{}, UNSETTLED, UNSETTLED | {"choose": "confidence"}], ids=str)
def test_predictions_with_patience_and_starts(options):
    expected, made = both("nqueens", build_nqueens(8, 6, 12, "dev", seed=0), 12, **options)
    assert made.answers.tolist() == expected.answers.tolist()
    assert made.steps.tolist() == expected.steps.tolist()
    assert made.start.tolist() == expected.start.tolist()
    np.testing.assert_allclose(made.logits, expected.logits, atol=0.05, rtol=1e-2)
    np.testing.assert_allclose(made.confidence, expected.confidence, atol=1e-3)
    np.testing.assert_allclose(made.residual, expected.residual, atol=1e-3)


def test_of_several_starts_the_one_that_moved_least_answers():
    dataset = build_nqueens(8, 6, 12, "dev", seed=0)
    engine, noise = load_for_cpu(WEIGHTS / "nqueens.safetensors").network, Noise(0)
    each = [predict_on_cpu(engine, dataset.problem, dataset.query, noise=noise, steps=9) for _ in range(3)]
    made = predict_on_cpu(engine, dataset.problem, dataset.query, noise=Noise(0), steps=9, starts=3)
    residuals = np.stack([one.residual for one in each if one.residual is not None])
    assert made.start.tolist() == residuals.argmin(0).tolist()
    assert made.answers.tolist() == [each[start].answers[i].tolist() for i, start in enumerate(made.start)]
    assert len(set(made.start.tolist())) > 1


def test_answers_of_the_bundled_networks():
    for task, dataset in (
        ("sudoku", build_sudoku(4, "test", seed=0)),
        ("futoshiki", build_futoshiki(6, 18, 5, 24, "test", seed=0)),
    ):
        expected, made = both(task, dataset, len(dataset.query))
        assert made.answers.tolist() == expected.answers.tolist()
        assert made.steps.tolist() == expected.steps.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "build"),
    [
        ("sudoku", lambda: build_sudoku(1000, "test", seed=3, ms_queries=500)),
        ("futoshiki", lambda: build_futoshiki(6, 18, 5, 1000, "test", seed=3)),
        ("nqueens", lambda: build_nqueens(11, 6, 1000, "test", seed=3)),
    ],
)
def test_answers_to_a_thousand_queries(task, build):
    # Equal means equal: the value of every variable of every query. Should rounding turn a query that stands on the
    # edge, on another machine, its answer may differ: one in a thousand is allowed.
    expected, made = both(task, build(), 1000)
    same = (made.answers == expected.answers.numpy()).all(1)
    assert same.sum() >= 999


def trained(data):
    """A network that has learned a little of the data: MinLoss over the listed solutions."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = EquivariantNetwork(data.problem, width=16, steps=6)
    g = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(network.parameters(), 1e-2, betas=(0.9, 0.98))
    placed = DeviceData(data)
    for _ in range(25):
        batch = placed.draw(32, g)
        logits = network(batch, noise=torch.randn(network.noise_shape(batch), generator=g))
        optimizer.zero_grad()
        MinLoss()(logits, batch.solutions, batch.mask).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    return network.eval()


@pytest.mark.parametrize("make", [graphs, cages])
def test_answers_to_queries_with_rules_of_their_own(make):
    """Several structures in one batch of PyTorch, the same in the slots of the engine, and every query alone."""
    network = trained(make(200, seed=1))
    engine, data = engine_of(network), make(300, seed=2)
    batch = DeviceData(data).batch(torch.arange(300))
    expected = predict(network, batch, generator=torch.Generator().manual_seed(0), steps=24, patience=4)
    problems = data.own.problems(data.problem)
    made = predict_on_cpu(engine, problems, data.query, noise=Noise(0), steps=24, patience=4, threads=2)
    same = (made.answers == expected.answers.numpy()).all(1)
    assert same.sum() >= 299  # an answer that hangs on the rounding of float32 may differ
    assert batch.check(expected.answers).float().mean() > 0.3
    alone = engine.run(problems[7], data.query[7:8], noise=Noise(0).normal((300, data.problem.choices))[7:8], steps=9)
    many = engine.run(problems, data.query, noise=Noise(0).normal((300, data.problem.choices)), steps=9)
    np.testing.assert_allclose(many.last[7], alone.last[0], atol=1e-4)


@pytest.mark.parametrize("rows", [1, 60, 10_000])
def test_slots_and_threads_do_not_change_the_answers(rows, monkeypatch):
    problem = nqueens(5)
    _, engine = drawn(NetworkSettings(width=16), problem)
    queries, _, noise = random_queries(problem, 17, 3)
    alone = [engine.run(problem, queries[i : i + 1], noise=noise[i : i + 1], steps=30, patience=2) for i in range(17)]
    assert len({int(one.steps[0]) for one in alone}) > 1  # so queries leave their slots at different times
    monkeypatch.setattr(cpu_steps, "ROWS", rows)
    for threads in (1, 3):
        made = engine.run(problem, queries, noise=noise, steps=30, patience=2, threads=threads)
        np.testing.assert_allclose(made.last, np.concatenate([one.last for one in alone]), atol=1e-4)
        assert made.steps.tolist() == [int(one.steps[0]) for one in alone]


def test_stopping_ends_every_query_after_a_step_at_least(monkeypatch):
    problem = nqueens(5)
    _, engine = drawn(NetworkSettings(width=16), problem)
    queries, _, _ = random_queries(problem, 9, 3)
    monkeypatch.setattr(cpu_steps, "ROWS", 50)  # two slots
    calls = iter([False, True])
    made = engine.run(problem, queries, steps=40, patience=4, stop=lambda: next(calls, True))
    assert made.steps.tolist() == [2, 2, *[1] * 7]
    np.testing.assert_allclose(made.last[5], engine.run(problem, queries[5:6], steps=1).last[0], atol=1e-5)


def test_no_queries():
    problem = nqueens(4)
    _, engine = drawn(NetworkSettings(width=16), problem)
    assert engine.run(problem, np.zeros((0, 4), np.uint8)).last.shape == (0, 4, 4)


def test_damaged_weights_show_in_the_logits():
    problem = nqueens(4)
    network, _ = drawn(NetworkSettings(width=16), problem)
    tensors = {name: one.numpy().copy() for name, one in network.state_dict().items()}
    tensors["step.block.update.weight"][0, 0] = np.nan
    engine = engine_of(network, tensors)
    assert np.isnan(engine.run(problem, np.zeros((1, 4), np.uint8)).last).all()


def test_what_it_cannot_do_is_said(tmp_path):
    problem = nqueens(4)
    network, engine = drawn(NetworkSettings(width=16), problem)
    assert engine.accepts(problem) is None
    assert "some task and has no weights for rules of kind cell and box" in str(engine.accepts(sudoku(2, 2)))
    with pytest.raises(ValueError, match="no weights for rules of kind"):
        engine.run(sudoku(2, 2), np.zeros((1, 16), np.uint8))
    queries = np.zeros((1, 4), np.uint8)
    for argument in ("steps", "threads"):
        with pytest.raises(ValueError, match=f"{argument}: expected at least 1, got 0"):
            engine.run(problem, queries, **{argument: 0})
    with pytest.raises(ValueError, match="patience: expected at least 0, got -1"):
        engine.run(problem, queries, patience=-1)
    with pytest.raises(ValueError, match="noise: expected some for 2 starts"):
        predict_on_cpu(engine, problem, queries, starts=2)
    with pytest.raises(ValueError, match="expected 'confidence'"):
        predict_on_cpu(engine, problem, queries, starts=2, steps=1, noise=Noise(0))
    nlm = NetworkSettings(kind="nlm", depth=2, width=4)
    save_network(tmp_path / "nlm", build_network(nlm, problem), nlm, problem)
    with pytest.raises(FileError, match="expected an equivariant network, got 'nlm'"):
        load_for_cpu(tmp_path / "nlm")
    save_network(tmp_path / "wide", network, NetworkSettings(width=32), problem)
    with pytest.raises(FileError, match="expected"):
        load_for_cpu(tmp_path / "wide")
