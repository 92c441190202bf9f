"""NLM and its selector: the literal network's function and gradients, symmetries, precision, and bad input."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from literal_nlm import LiteralNLM, literal_binary, literal_unary
from torch import Tensor, nn

from oneofmany.networks.nlm import NLM, layers, nlm_for, operators
from oneofmany.networks.nlm.network import LogicMachine
from oneofmany.networks.nlm.operators import logic_layers
from oneofmany.networks.nlm.packing import Spec
from oneofmany.networks.nlm.selector import nlm_selector_for
from oneofmany.networks.protocol import PredictionNetwork, SelectorNetwork
from oneofmany.problems import Batch, Problem, futoshiki, nqueens, sudoku


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def batch_of(problem: Problem, B: int, seed: int = 0, K: int = 3, relations: bool = True) -> Batch:
    """Random queries, solvable or not; half of the variables given, horizontal relations for Futoshiki."""
    g = torch.Generator().manual_seed(seed)
    R, V, n = problem.variables, problem.values, problem.size
    query = torch.randint(1, V + 1, (B, R), generator=g) * (torch.rand(B, R, generator=g) < 0.5)
    pairs = None
    if problem.task == "futoshiki" and relations and n > 1:
        left = torch.randint(0, n, (B, 4), generator=g) * n + torch.randint(0, n - 1, (B, 4), generator=g)
        pairs = torch.stack([left, left + 1], -1)
        pairs[:, ::2] = pairs[:, ::2].flip(-1)
        pairs[0, -1] = -1
    return Batch(
        query=query,
        solutions=torch.randint(0, V, (B, K, R), generator=g),
        mask=torch.ones(B, K, dtype=torch.bool),
        total=torch.full((B,), -1),
        problem=problem,
        relations=pairs,
    )


def sharpen(network: nn.Module, factor: float = 4.0) -> nn.Module:
    """Larger weights, so that outputs differ between objects by more than rounding."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(factor)
    return network


def pair_of(spec: Spec, factor: float = 4.0) -> tuple[LogicMachine, LiteralNLM]:
    """Our network and the literal one with the same parameters."""
    readout = "unary" if spec.unary_readout else "nullary"
    literal = LiteralNLM(spec.nullary, spec.unary, spec.binary, spec.depth, spec.width, spec.residual, readout)
    ours = LogicMachine(
        spec.nullary,
        spec.unary,
        spec.binary,
        depth=spec.depth,
        width=spec.width,
        residual=spec.residual,
        readout=readout,
    )
    sharpen(literal, factor)
    ours.load_state_dict(literal.state_dict())
    return ours, literal


def relative(a: Tensor, b: Tensor) -> float:
    return float((a - b).detach().norm() / b.detach().norm().clamp_min(1e-12))


def gradients(network: nn.Module) -> Tensor:
    """All gradients; None, for parameters that reach no output, counts as zero."""
    return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in network.parameters()])


specs = st.builds(
    Spec,
    nullary=st.integers(0, 3),
    unary=st.integers(1, 3),
    binary=st.integers(0, 4),
    depth=st.integers(1, 12),
    width=st.integers(1, 8),
    residual=st.booleans(),
    unary_readout=st.booleans(),
)


# ---- the literal network's function ---------------------------------------------------------------------------------


@settings(max_examples=50)
@given(spec=specs, B=st.integers(1, 3), n=st.integers(1, 13), seed=st.integers(0, 10_000))
def test_outputs_and_gradients_are_those_of_the_literal_network(spec: Spec, B: int, n: int, seed: int):
    torch.manual_seed(seed)
    ours, literal = pair_of(spec, 2.0)
    ours.double(), literal.double()
    unary, nullary = torch.randn(B, n, spec.unary).double(), torch.randn(B, spec.nullary).double()
    binary = torch.rand(n, n, spec.binary).double()
    results = []
    for network, order in ((literal, (2, 0, 1)), (ours, (0, 1, 2))):
        inputs = [unary.clone().requires_grad_(), binary, nullary.clone().requires_grad_()]
        output = network(*(inputs[i] for i in order))
        weights = torch.linspace(-1, 2, output.numel(), dtype=torch.float64).view_as(output)
        (output * weights).sum().backward()
        results.append((output.detach(), gradients(network), inputs[0].grad, inputs[2].grad))
    for expected, got in zip(*results, strict=True):
        expected = torch.zeros_like(got) if expected is None else expected
        scale = float(expected.abs().max()) if expected.numel() else 0.0
        assert torch.allclose(got, expected, rtol=1e-8, atol=1e-9 * (1 + scale))


@pytest.mark.parametrize(("task", "size", "depth"), [("nqueens", 5, 30), ("nqueens", 6, 9), ("futoshiki", 3, 12)])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("learned_nullary", [0, 16])
def test_tasks_in_float32(task: str, size: int, depth: int, residual: bool, learned_nullary: int):
    torch.manual_seed(size)
    problem = {"nqueens": nqueens, "futoshiki": futoshiki}[task](size)
    batch = batch_of(problem, 2, seed=depth)
    ours = nlm_for(task, depth=depth, residual=residual, learned_nullary=learned_nullary)
    sharpen(ours, 3.0)
    spec = ours.machine.spec
    literal = LiteralNLM(spec.nullary, spec.unary, spec.binary, depth, 8, residual)
    literal.load_state_dict(ours.machine.state_dict())
    unary = torch.stack(
        [
            literal_unary(
                task,
                size,
                query.tolist(),
                [tuple(p) for p in batch.relations[b].tolist() if p[0] >= 0] if batch.relations is not None else [],
            )
            for b, query in enumerate(batch.query)
        ]
    )
    z = torch.zeros(0) if ours.z is None else ours.z.detach().clone()
    nullary = z.requires_grad_().sigmoid().expand(2, -1)
    logits, expected = ours(batch), literal(nullary, unary, literal_binary(task, size))
    assert logits.shape == (2, problem.variables, problem.values)
    assert (logits.flatten(1) - expected).abs().max() < 1e-5 * expected.abs().max().clamp_min(1)
    target = torch.rand(2, problem.choices).round()
    for output in (logits.flatten(1), expected):
        nn.functional.binary_cross_entropy_with_logits(output, target).backward()
    expected_z = z.grad if learned_nullary else torch.zeros(0)
    got_z = torch.zeros(0) if ours.z is None else ours.z.grad
    got, wanted = torch.cat([gradients(ours.machine), got_z]), torch.cat([gradients(literal), expected_z])
    assert relative(got, wanted) < 1e-4
    if residual and learned_nullary:
        # Without residuals, the gradient of the inputs after many layers is only rounding.
        assert relative(got_z, expected_z) < 1e-4


@pytest.mark.parametrize(("seed", "unary_readout"), [(0, True), (1, False)])
def test_gradcheck(seed: int, unary_readout: bool):
    torch.manual_seed(seed)
    spec = Spec(1, 2, 1, 3, 2, True, unary_readout)
    flat = torch.randn(spec.parameters).double().requires_grad_()
    unary, nullary = torch.randn(2, 2, 5).double().requires_grad_(), torch.randn(1, 2).double().requires_grad_()
    binary = torch.rand(1, 5, 5).double()
    assert torch.autograd.gradcheck(
        lambda *x: logic_layers(spec, *x, binary, torch.float64), (flat, unary, nullary), eps=1e-7, atol=1e-6
    )


def test_groups_of_layers_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    network, batch = sharpen(nlm_for("nqueens", depth=9)), batch_of(nqueens(5), 2)
    outputs = []
    for group in (1, 2, 5, 20):
        monkeypatch.setattr(layers, "GROUP", group)
        network.zero_grad()
        logits = network(batch)
        logits.square().sum().backward()
        outputs.append(torch.cat([logits.flatten(), gradients(network)]))
    for output in outputs[1:]:
        assert relative(output, outputs[0]) < 1e-5


# ---- parameters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (lambda: nlm_for("nqueens"), 312_242),
        (lambda: nlm_for("futoshiki"), 313_684),
        (lambda: nlm_for(nqueens(8), learned_nullary=16), 319_938),
        (lambda: nlm_for(futoshiki(4), learned_nullary=16), 321_380),
        (lambda: nlm_selector_for("nqueens"), 7_601),
        (lambda: nlm_selector_for("futoshiki"), 7_841),
        (lambda: nlm_selector_for("nqueens", residual=False), 3_641),
    ],
)
def test_parameter_counts(network, expected: int):
    assert sum(p.numel() for p in network().parameters()) == expected


def test_the_seed_decides_the_parameters_and_they_are_the_literal_networks():
    torch.manual_seed(7)
    first = nlm_for("nqueens", depth=3)
    torch.manual_seed(7)
    second = LiteralNLM(0, 1, 4, 3)
    for ours, literal in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(ours, literal)


@pytest.mark.parametrize("task", ["nqueens", "futoshiki"])
def test_one_step_reaches_every_parameter_that_an_output_sees(task: str):
    torch.manual_seed(0)
    problem = nqueens(5) if task == "nqueens" else futoshiki(3)
    network = sharpen(nlm_for(task, depth=4, learned_nullary=2))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    before = copy.deepcopy(network)
    network(batch_of(problem, 3)).square().sum().backward()
    optimizer.step()
    unseen = {f"machine.layers.3.{arity}.{kind}" for arity in ("nullary", "binary") for kind in ("weight", "bias")}
    for (name, now), then in zip(network.named_parameters(), before.parameters(), strict=True):
        assert now.grad is not None
        assert bool(now.grad.any()) == (name not in unseen), name
        assert not torch.equal(now, then)


# ---- symmetries -----------------------------------------------------------------------------------------------------


def test_nqueens_rotates_with_the_board():
    torch.manual_seed(0)
    network, batch = sharpen(nlm_for("nqueens", depth=8)).double(), batch_of(nqueens(6), 4)
    V = 6
    turned = torch.where(batch.query > 0, V + 1 - batch.query, 0).flip(1)
    logits = network(batch)
    rotated = network(Batch(turned, batch.solutions, batch.mask, batch.total, batch.problem))
    assert torch.allclose(rotated, logits.flip(1, 2), atol=1e-10)
    assert not torch.allclose(logits, logits.flip(1, 2), atol=1e-3)


def test_nqueens_knows_rows_from_columns():
    torch.manual_seed(0)
    network, batch = sharpen(nlm_for("nqueens", depth=4)), batch_of(nqueens(4), 1)
    board = torch.zeros(4, 4, dtype=torch.int64)
    board[0, 1] = board[2, 3] = 1
    queries = [((b > 0) * torch.arange(1, 5)).sum(1)[None] for b in (board, board.T)]
    there, back = (network(Batch(q, batch.solutions, batch.mask, batch.total, batch.problem))[0] for q in queries)
    assert not torch.allclose(there, back.T, atol=1e-3)


@settings(max_examples=10)
@given(rows=st.permutations(range(4)), columns=st.permutations(range(4)), digits=st.permutations(range(4)))
def test_futoshiki_is_equivariant_with_the_flags_carried_along(rows, columns, digits):
    torch.manual_seed(0)
    n = 4
    network = sharpen(nlm_for("futoshiki", depth=6)).double().machine
    predicates = nlm_for("futoshiki", depth=1).predicates
    batch = batch_of(futoshiki(n), 2)
    unary = torch.cat([predicates.prior(batch, torch.float64), predicates.flag_inputs(batch, torch.float64)], -1)
    binary = predicates.static(batch.problem, unary.device, torch.float64).binary
    order = torch.arange(n**3).view(n, n, n)[list(rows)][:, list(columns)][:, :, list(digits)].flatten()
    assert torch.allclose(network(unary[:, order], binary), network(unary, binary)[:, order], atol=1e-10)


def test_futoshiki_flags_matter():
    torch.manual_seed(0)
    network, batch = sharpen(nlm_for("futoshiki", depth=3)), batch_of(futoshiki(3), 1)
    flipped = Batch(batch.query, batch.solutions, batch.mask, batch.total, batch.problem, batch.relations.flip(-1))
    without = Batch(batch.query, batch.solutions, batch.mask, batch.total, batch.problem, None)
    outputs = [network(b) for b in (batch, flipped, without)]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert not torch.allclose(outputs[a], outputs[b], atol=1e-4)


def test_inequalities_of_the_problem_are_seen_like_those_of_the_query():
    torch.manual_seed(0)
    network, batch = sharpen(nlm_for("futoshiki", depth=3)), batch_of(futoshiki(3), 2, relations=False)
    fixed = Batch(batch.query, batch.solutions, batch.mask, batch.total, futoshiki(3, [(0, 1), (5, 4)]))
    pairs = torch.tensor([[0, 1], [5, 4]]).expand(2, -1, -1)
    given_ = Batch(batch.query, batch.solutions, batch.mask, batch.total, futoshiki(3), pairs)
    assert torch.equal(network(fixed), network(given_))
    split = Batch(batch.query, batch.solutions, batch.mask, batch.total, futoshiki(3, [(5, 4)]), pairs[:, :1])
    assert torch.equal(network(split), network(given_))


# ---- precision, memory, compilation ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("precision", "tolerance"), [("float16", 1e-3), ("bfloat16", 1e-2)])
def test_sixteen_bits_are_close(precision: str, tolerance: float):
    torch.manual_seed(0)
    exact = nlm_for("nqueens", depth=12)
    network = nlm_for("nqueens", depth=12, precision=precision)
    network.load_state_dict(exact.state_dict())
    batch = batch_of(nqueens(6), 4)
    outputs = []
    for one in (exact, network):
        logits = one(batch)
        assert logits.dtype == torch.float32
        # Gradients as small as those of a mean over many queries; unscaled float16 would lose them.
        (logits.square().sum() * 1e-7).backward()
        outputs.append((logits, gradients(one)))
    (logits, grads), (half_logits, half_grads) = outputs
    assert (half_logits - logits).abs().max() < tolerance
    assert relative(half_grads, grads) < 3 * tolerance
    # The logits of an untrained network differ between choices by hundredths only.
    spread, half_spread = logits - logits.mean(), half_logits - half_logits.mean()
    assert relative(half_spread, spread) < 20 * tolerance


def test_autocast_does_not_reach_inside():
    torch.manual_seed(0)
    network, batch = nlm_for("nqueens", depth=3), batch_of(nqueens(4), 2)
    plain = network(batch)
    with torch.autocast("cpu", torch.bfloat16):
        logits = network(batch)
        logits.sum().backward()
    assert torch.equal(plain, logits)
    assert gradients(network).dtype == torch.float32


def test_two_forwards_before_a_backward():
    torch.manual_seed(0)
    network = sharpen(nlm_for("nqueens", depth=4))
    first, second = batch_of(nqueens(4), 2, 1), batch_of(nqueens(4), 2, 2)
    together = []
    for batch in (first, second):
        network(batch).square().sum().backward()
    together.append(gradients(network).clone())
    network.zero_grad()
    a, b = network(first), network(second)
    (a.square().sum() + b.square().sum()).backward()
    assert relative(gradients(network), together[0]) < 1e-6


def test_inference_equals_training_and_goes_in_pieces(monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    network, batch = sharpen(nlm_for("futoshiki", depth=4)), batch_of(futoshiki(3), 7)
    logits = network(batch)
    seen = []
    real = layers.forward_pass
    monkeypatch.setattr(layers, "forward_pass", lambda *a: seen.append(a[2].shape[1]) or real(*a))
    monkeypatch.setattr(operators, "INFERENCE_BYTES", 3 * 2 * network.machine.spec.x(3) * 13 * 27 * 4)
    with torch.no_grad():
        assert torch.allclose(network(batch), logits, atol=1e-6)
    assert seen == [3, 3, 1]
    with torch.inference_mode():
        inferred = network(batch)
    assert torch.allclose(inferred, logits, atol=1e-6)
    fresh = nlm_for("futoshiki", depth=4)
    with torch.inference_mode():
        fresh(batch)
    fresh(batch).sum().backward()


@pytest.mark.filterwarnings("ignore")  # warnings of PyTorch's own compiler
@pytest.mark.parametrize("task", ["nqueens", "futoshiki"])
def test_compiles_as_one_graph(task: str):
    torch.manual_seed(0)
    problem = nqueens(4) if task == "nqueens" else futoshiki(2)
    network, batch = sharpen(nlm_for(task, depth=3, learned_nullary=2)), batch_of(problem, 2)
    torch.compiler.reset()
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
    logits = compiled(batch)
    logits.square().sum().backward()
    grads = gradients(network)
    network.zero_grad()
    expected = network(batch)
    expected.square().sum().backward()
    assert torch.allclose(logits, expected, atol=1e-6)
    assert relative(grads, gradients(network)) < 1e-6


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("precision", "tolerance"), [("float16", 1e-3), ("bfloat16", 1e-2)])
@pytest.mark.parametrize("size", [5, 6])
def test_gpu_kernels_agree_with_plain_pytorch(precision: str, tolerance: float, size: int):
    torch.manual_seed(0)
    network = nlm_for("nqueens", depth=12, precision=precision)
    batch = batch_of(nqueens(size), 4)
    outputs = []
    for device in ("cpu", "cuda"):
        network.to(device).zero_grad()
        fields = {name: getattr(batch, name).to(device) for name in ("query", "solutions", "mask", "total")}
        logits = network(changed(batch, **fields))
        logits.square().sum().backward()
        outputs.append((logits.cpu(), gradients(network).cpu()))
    (logits, grads), (gpu_logits, gpu_grads) = outputs
    assert (gpu_logits - logits).abs().max() < 2 * tolerance
    assert relative(gpu_grads, grads) < 5 * tolerance


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_training_step_is_captured_in_a_cuda_graph():
    torch.manual_seed(0)
    network = nlm_for("futoshiki", depth=4, precision="float16").cuda()
    eager = copy.deepcopy(network)
    batch = batch_of(futoshiki(3), 4)
    names = ("query", "solutions", "mask", "total", "relations")
    batch = changed(batch, **{name: getattr(batch, name).cuda() for name in names})

    def stepper(one: NLM):
        optimizer = torch.optim.AdamW(one.parameters(), lr=0.01, capturable=True)

        def step() -> None:
            optimizer.zero_grad()
            one(batch).square().sum().backward()
            optimizer.step()

        return step

    step = stepper(network)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(3):
        graph.replay()
    expected = stepper(eager)
    for _ in range(4):
        expected()
    assert relative(network(batch), eager(batch)) < 1e-2


def test_one_network_serves_every_size():
    torch.manual_seed(0)
    network = nlm_for("nqueens", depth=3)
    for n in (1, 2, 3, 4, 7):
        assert network(batch_of(nqueens(n), 2)).shape == (2, n, n)
    network = nlm_for("futoshiki", depth=3)
    for n in (1, 2, 3, 4):
        assert network(batch_of(futoshiki(n), 2)).shape == (2, n * n, n)


def test_copies_and_state_dict():
    torch.manual_seed(0)
    network, batch = nlm_for("futoshiki", depth=3, learned_nullary=4), batch_of(futoshiki(3), 2)
    expected = network(batch)
    assert torch.equal(copy.deepcopy(network)(batch), expected)
    other = nlm_for("futoshiki", depth=3, learned_nullary=4)
    other.load_state_dict(network.state_dict())
    assert torch.equal(other(batch), expected)


# ---- the selector ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["nqueens", "futoshiki"])
@pytest.mark.parametrize("residual", [True, False])
def test_selector_scores_as_the_literal_network(task: str, residual: bool):
    torch.manual_seed(0)
    size = 4 if task == "nqueens" else 3
    problem = nqueens(size) if task == "nqueens" else futoshiki(size)
    batch = batch_of(problem, 3)
    selector = sharpen(nlm_selector_for(task, residual=residual))
    spec = selector.machine.spec
    literal = LiteralNLM(0, spec.unary, spec.binary, 4, 10, residual, "nullary")
    literal.load_state_dict(selector.machine.state_dict())
    logits = torch.randn(3, problem.variables, problem.values)
    scores = selector(logits, batch)
    assert scores.shape == (3, 3)
    for b in range(3):
        pairs = [] if batch.relations is None else [tuple(p) for p in batch.relations[b].tolist() if p[0] >= 0]
        flags = literal_unary(task, size, batch.query[b].tolist(), pairs)[:, 1:]
        for k in range(3):
            answer = nn.functional.one_hot(batch.solutions[b, k], problem.values).float()
            error = (logits[b].sigmoid() - answer).flatten()[:, None]
            expected = literal(torch.zeros(1, 0), torch.cat([error, flags], -1)[None], literal_binary(task, size))
            assert abs((scores[b, k] - expected).item()) < 1e-5
    steps = torch.stack([torch.randn_like(logits), logits])
    assert torch.equal(selector(steps, batch), scores)


def test_selector_takes_whatever_padding_holds():
    torch.manual_seed(0)
    selector, batch = nlm_selector_for("nqueens"), batch_of(nqueens(4), 2)
    logits = torch.randn(2, 4, 4)
    scores = selector(logits, batch)
    batch.solutions[0, 2], batch.solutions[1, 1] = -1, 2**40
    again = selector(logits, batch)
    assert torch.isfinite(again).all()
    kept = torch.tensor([[True, True, False], [True, False, True]])
    assert torch.equal(again[kept], scores[kept])


def test_selector_learns_in_every_parameter_that_the_score_sees():
    torch.manual_seed(0)
    selector, batch = sharpen(nlm_selector_for("futoshiki"), 2.0), batch_of(futoshiki(3), 3)
    selector(torch.randn(3, 9, 3), batch).square().sum().backward()
    unseen = {"layers.3.unary", "layers.3.binary", "layers.2.binary"}
    for name, parameter in selector.machine.named_parameters():
        assert bool(parameter.grad.any()) == (name.rpartition(".")[0] not in unseen), name


def test_protocols():
    assert isinstance(nlm_for("nqueens", depth=1), PredictionNetwork)
    assert isinstance(nlm_selector_for("nqueens"), SelectorNetwork)
    assert NLM.value_offset == 0


# ---- bad input ------------------------------------------------------------------------------------------------------


def changed(batch: Batch, **fields) -> Batch:
    return Batch(**{**{name: getattr(batch, name) for name in batch.__dataclass_fields__}, **fields})


QUEENS, FUTO = batch_of(nqueens(4), 2), batch_of(futoshiki(3), 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nlm_for("sudoku"), r"^task: .*'sudoku'"),
        (lambda: nlm_for(sudoku(4)), r"^task: .*'sudoku'"),
        (lambda: nlm_for("nqueens", depth=0), r"^depth: expected at least 1, got 0"),
        (lambda: nlm_for("nqueens", width=0), r"^width: expected at least 1, got 0"),
        (lambda: nlm_for("nqueens", learned_nullary=-1), r"^nullary: .*got -1"),
        (lambda: nlm_for("nqueens", precision="float8"), r"^precision: .*'float8'"),
        (lambda: nlm_for("futoshiki", relations="all"), r"^relations: .*'all'"),
        (lambda: LogicMachine(0, 1, 1, readout="binary"), r"^readout: .*'binary'"),
        (lambda: nlm_for("nqueens", depth=1)(FUTO), r"^batch: expected queries of nqueens.*futoshiki"),
        (lambda: nlm_for("futoshiki", depth=1)(QUEENS), r"^batch: expected queries of futoshiki.*nqueens"),
        (lambda: nlm_for("nqueens", depth=1)(changed(QUEENS, query=QUEENS.query[:, :3])), r"^query: .*\[2, 3\]"),
        (lambda: nlm_for("nqueens", depth=1)(changed(QUEENS, query=QUEENS.query[:0])), r"^query: .*\[0, 4\]"),
        (lambda: nlm_for("nqueens", depth=1)(changed(QUEENS, query=QUEENS.query.float())), r"^query: expected int64"),
        (lambda: nlm_for("nqueens", depth=1)(changed(QUEENS, query=QUEENS.query + 4)), r"^query: expected 0 to 4"),
        (
            lambda: nlm_for("nqueens", depth=1)(changed(QUEENS, query=QUEENS.query.to("meta"))),
            r"^query: expected device",
        ),
        (
            lambda: nlm_for("nqueens", depth=1)(changed(QUEENS, relations=FUTO.relations)),
            r"^relations: nqueens has none",
        ),
        (
            lambda: nlm_for("futoshiki", depth=1)(changed(FUTO, relations=FUTO.relations[0])),
            r"^relations: expected shape",
        ),
        (lambda: nlm_for("futoshiki", depth=1)(changed(FUTO, relations=FUTO.relations.int())), r"^relations: .*int32"),
        (lambda: nlm_for("futoshiki", depth=1)(changed(FUTO, relations=FUTO.relations + 9)), r"^relations: .*0 to 8"),
        (lambda: nlm_for("nqueens", depth=1).half()(QUEENS), r"^parameters: .*float16"),
        (lambda: nlm_selector_for("nqueens")(torch.zeros(2, 4, 5), QUEENS), r"^logits: .*\[2, 4, 5\]"),
        (lambda: nlm_selector_for("nqueens")(torch.zeros(2, 4, 4, dtype=torch.int64), QUEENS), r"^logits: .*int64"),
        (lambda: nlm_selector_for("nqueens")(torch.zeros(2, 4, 4, device="meta"), QUEENS), r"^logits: .*device"),
        (
            lambda: nlm_selector_for("nqueens")(torch.zeros(2, 4, 4), changed(QUEENS, solutions=QUEENS.query)),
            r"^solutions: .*\[2, 4\]",
        ),
        (lambda: LogicMachine(0, 1, 1)(torch.zeros(2, 3, 2), torch.zeros(3, 3, 1)), r"^unary: .*\[2, 3, 2\]"),
        (lambda: LogicMachine(0, 1, 1)(torch.zeros(2, 3, 1), torch.zeros(3, 3, 2)), r"^binary: .*\[3, 3, 2\]"),
        (lambda: LogicMachine(1, 1, 1)(torch.zeros(2, 3, 1), torch.zeros(3, 3, 1)), r"^nullary: .*got None"),
        (lambda: LogicMachine(0, 1, 1)(torch.zeros(2, 3, 1).double(), torch.zeros(3, 3, 1)), r"^unary: .*float64"),
    ],
)
def test_bad_input(call, message: str):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("pair", [(0, 3), (3, 0), (2, 3), (0, 2), (0, 4)])
def test_relations_that_the_flags_cannot_tell(pair: tuple[int, int]):
    relations = torch.tensor([[pair], [(0, 1)]])
    batch = changed(FUTO, relations=relations)
    with pytest.raises(ValueError, match=r"^relations: expected horizontal neighbours"):
        nlm_for("futoshiki", depth=1)(batch)
    predicates = nlm_for("futoshiki", depth=1, relations="any").predicates
    predicates.check(batch, torch.device("cpu"))
    flags = predicates.flag_inputs(batch, torch.float32)[0].view(9, 3, 2)
    marked = torch.zeros(9, 2)
    marked[min(pair), int(pair[0] < pair[1])] = 1
    assert torch.equal(flags, marked[:, None].expand(-1, 3, -1))
