"""The CUDA kernels against the network as PyTorch runs it: on a GPU, or their source as C++ on a CPU (needs g++)."""

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from oneofmany.data import DeviceData
from oneofmany.data.colouring import build_colouring
from oneofmany.networks.equivariant import EquivariantNetwork, EquivariantSelector, steps
from oneofmany.networks.equivariant.blocks import block_tables
from oneofmany.networks.equivariant.cuda import running
from oneofmany.networks.equivariant.cuda.compiled import resident_memory, resident_queries
from oneofmany.networks.equivariant.steps import Step
from oneofmany.networks.equivariant.tables import RelationTables, RuleTables, relation_tables, rule_tables
from oneofmany.problems import Batch, Problem, futoshiki, nqueens, sudoku

HERE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CASES = {
    "nqueens, more queries than a tile": (nqueens(4), 20, 0),
    "a single queen": (nqueens(1), 2, 0),
    "a single query": (nqueens(3), 1, 0),
    "sudoku": (sudoku(2, 2), 3, 0),
    "futoshiki without relations": (futoshiki(3), 3, 0),
    "futoshiki": (futoshiki(3), 5, 4),
}


class Emulated:
    """``Kernels`` on a CPU."""

    multiprocessors, limit, span = 2, 227 << 10, 32

    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))

    def launch(self, name: str, blocks: int, *arguments: torch.Tensor | int, memory: int = 0) -> None:
        assert memory <= self.limit
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        assert all(tensor.is_contiguous() for tensor in tensors)
        numbers = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]
        self.library.run_kernel(name.encode(), blocks, (ctypes.c_longlong * len(numbers))(*numbers))

    def warps(self, name: str) -> int:
        return 3

    def blocks(self, name: str, tiles: int) -> int:
        return min(tiles, 2)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """A function from widths to a library for the CPU."""
    folder, built = tmp_path_factory.mktemp("kernels"), {}
    source = Path(__file__).with_name("emulated.cpp")

    def build(widths: tuple[int, int, int]) -> Path:
        if widths not in built:
            built[widths] = folder / f"{'-'.join(map(str, widths))}.so"
            defined = ["-DSPAN=32", *(f"-D{name}={width}" for name, width in zip("DPH", widths, strict=True))]
            include = f"-I{Path(running.__file__).parent}"
            options = ["-std=c++20", "-O1", "-w", "-shared", "-fPIC", include, *defined]
            subprocess.run(["g++", *options, str(source), "-o", str(built[widths])], check=True)
        return built[widths]

    return build


@pytest.fixture(autouse=True)
def kernels(libraries, monkeypatch):
    if HERE.type == "cuda":
        return
    if shutil.which("g++") is None:
        pytest.skip("needs a GPU or g++")
    monkeypatch.setattr(running, "kernels", lambda widths, device: Emulated(libraries(widths)))


def whole_queries(monkeypatch, queries: int) -> None:
    """Let blocks take so many whole queries through all steps; 0: every step has its own kernels."""

    def sizes(step: Step, state: torch.Tensor, tables: RuleTables, *_):
        widths = step.block.width, step.block.pooled, step.block.hidden
        return resident_memory(widths, len(state), len(tables.members), queries) if queries else None

    monkeypatch.setattr(running, "resident", sizes)


def some_relations(problem: Problem, B: int, M: int) -> torch.Tensor:
    """int64 [B, M, 2]: random pairs, some of them padding, one query with none."""
    pairs = torch.rand(B, M, problem.variables).argsort(-1)[..., :2]
    pairs[::2, -1] = -1
    pairs[1] = -1
    return pairs.to(HERE)


def random_batch(problem: Problem, B: int, M: int) -> Batch:
    query = torch.randint(0, problem.values + 1, (B, problem.variables)).to(HERE)
    solutions = torch.zeros(B, 1, problem.variables, dtype=torch.int64, device=HERE)
    mask = torch.ones(B, 1, dtype=torch.bool, device=HERE)
    return Batch(query, solutions, mask, mask.sum(1), problem, some_relations(problem, B, M) if M else None)


def made_by(run, inputs, weights) -> list[torch.Tensor]:
    """The outputs of a function and the gradients of its inputs."""
    outputs = run()
    gradients = torch.autograd.grad(sum((x * w).sum() for x, w in zip(outputs, weights, strict=True)), inputs)
    return [x.detach() for x in (*outputs, *gradients)]


def errors_of(made: list[torch.Tensor], exact: list[torch.Tensor]) -> list[float]:
    """Relative errors."""
    pairs = zip(made, exact, strict=True)
    return [float((mine - other).norm() / other.norm().clamp_min(1e-6)) for mine, other in pairs]


def compare(step: Step, columns: int, tables: RuleTables, relations: RelationTables | None, steps: int = 3) -> None:
    """The kernels are as close to float32 as PyTorch's own products in bfloat16.

    A small batch is drawn several times: if a rule's choices are so close that 16 bits pick another winner, the
    error of its single gradient is large, with and without kernels.
    """
    rows = len(tables.rules)
    of_kinds: dict[str, list[list[torch.Tensor]]] = {"exact": [], "without": [], "with": []}
    for _ in range(max(1, 64 // (rows * columns))):
        state, query = (torch.randn(rows, columns, step.block.width, device=HERE, requires_grad=True) for _ in range(2))
        inputs = [state, query, *step.parameters()]

        def plain(state=state, query=query) -> list[torch.Tensor]:
            made, now = [], state
            for _ in range(steps):
                now, logits = step(now, query, tables, relations)
                made.append(logits)
            return [torch.stack(made), now]

        def in_16_bits(plain=plain) -> list[torch.Tensor]:
            with torch.autocast(HERE.type, torch.bfloat16, cache_enabled=False):
                return plain()

        def ours(state=state, query=query) -> list[torch.Tensor]:
            return list(running.run_steps(step, state, query, tables, relations, steps, True))

        weights = [torch.randn(steps, rows, columns, device=HERE), torch.randn_like(state)]
        for kind, run in (("exact", plain), ("without", in_16_bits), ("with", ours)):
            of_kinds[kind].append(made_by(run, inputs, weights))
        with torch.no_grad():
            only, again = running.run_steps(step, state, query, tables, relations, steps, False)
            every, last = ours()
        assert only.equal(every[-1:])
        assert again.equal(last)
    exact, without, ours_made = ([torch.stack(x) for x in zip(*of_kinds[k], strict=True)] for k in of_kinds)
    check(errors_of(ours_made, exact), errors_of(without, exact))


def check(with_kernels: list[float], without: list[float]) -> None:
    close = [mine < 2 * other + 0.01 for mine, other in zip(with_kernels, without, strict=True)]
    assert all(close), (with_kernels, without)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("widths", [(16, 32, 16), (64, 64, 64)])
@pytest.mark.parametrize("queries", [0, 2])
def test_the_same_function_and_gradients(case, widths, queries, monkeypatch):
    problem, B, M = CASES[case]
    if M and queries:
        pytest.skip("relations have kernels of each step")
    whole_queries(monkeypatch, queries)
    torch.manual_seed(len(case))
    D, P, H = widths
    step = EquivariantNetwork(problem, width=D, pooled=P, hidden=H).to(HERE).step
    relations = relation_tables(some_relations(problem, B, M), problem) if M else None
    compare(step, B, rule_tables(problem, HERE), relations)


@pytest.mark.parametrize("queries", [1, 2, 3, 20])
def test_whole_queries_in_a_block(queries, monkeypatch):
    problem, B, _ = CASES["nqueens, more queries than a tile"]
    torch.manual_seed(0)
    step, tables = EquivariantNetwork(problem, width=16).to(HERE).step, rule_tables(problem, HERE)
    state, query = (torch.randn(problem.choices, B, 16, device=HERE) for _ in range(2))
    whole_queries(monkeypatch, 0)
    expected = running.run_steps(step, state, query, tables, None, 2, True)
    whole_queries(monkeypatch, queries)
    found = running.run_steps(step, state, query, tables, None, 2, True)
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    ("problem", "B", "keep", "expected"),
    [
        (sudoku(3, 3), 512, True, 1),  # a query fits
        (sudoku(4, 4), 512, False, None),  # none fits
        (sudoku(3, 3), 20, False, None),  # too few for the GPU
        (nqueens(10), 2048, True, 4),  # more would fit, and take longer
        (nqueens(15), 512, False, 2),
        (nqueens(15), 512, True, None),  # slots have 4 bits
    ],
)
def test_queries_of_a_block(problem, B, keep, expected):
    rules, longest = rule_tables(problem, torch.device("cpu")).members.shape
    sizes = resident_queries((64, 64, 64), problem.choices, rules, longest, B, 132, 227 << 10, keep)
    assert (sizes and sizes.queries) == expected


def test_a_large_batch_runs_in_parts(monkeypatch):
    problem, B, M = CASES["futoshiki"]
    torch.manual_seed(0)
    step = EquivariantNetwork(problem, width=16).to(HERE).step
    relations, tables = relation_tables(some_relations(problem, B, M), problem), rule_tables(problem, HERE)
    state, query = (torch.randn(problem.choices, B, 16, device=HERE) for _ in range(2))
    whole = running.run_steps(step, state, query, tables, relations, 2, True)
    monkeypatch.setattr(running, "QUERIES", 2)
    parts = running.run_steps(step, state, query, tables, relations, 2, True)
    assert all(mine.equal(other) for mine, other in zip(parts, whole, strict=True))


@pytest.mark.parametrize("columns", [1, 3])
def test_a_structure_per_query(columns):
    torch.manual_seed(0)
    dataset = build_colouring(6, (5, 6), 3, "train", seed=1, degrees=(2, 3))
    batch = next(DeviceData(dataset, HERE).in_order(6))
    step = EquivariantNetwork(batch.problem, width=16).to(HERE).step
    compare(step, columns, block_tables(batch), None)


def test_selector(monkeypatch):
    problem, B, M = CASES["futoshiki"]
    torch.manual_seed(0)
    selector = EquivariantSelector(problem, width=16).to(HERE)
    batch = random_batch(problem, B, M)
    solutions = torch.randint(problem.values, (B, 3, problem.variables), device=HERE)
    batch = replace(batch, solutions=solutions, mask=torch.ones(B, 3, dtype=torch.bool, device=HERE))
    logits = torch.randn(B, problem.variables, problem.values, device=HERE)
    expected = selector(logits, batch)
    monkeypatch.setattr(steps, "uses_kernels", lambda *_: True)
    torch.testing.assert_close(selector(logits, batch), expected, rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("queries", [0, 2])
def test_of_equal_choices_the_first_one_wins(queries, monkeypatch):
    whole_queries(monkeypatch, queries)
    problem = nqueens(3)
    step = EquivariantNetwork(problem, width=16).to(HERE).step
    state = torch.zeros(problem.choices, 2, 16, device=HERE)
    seen = {}
    launch = running.kernels((16, 16, 16), HERE).launch

    def watched(self, name: str, blocks: int, *arguments, **memory):
        launch(name, blocks, *arguments, **memory)
        if name in ("rules_forward", "resident_forward"):
            seen["winners"] = arguments[7 if name == "rules_forward" else 17].clone()
            seen["bits"] = 8 if name == "rules_forward" else 4

    monkeypatch.setattr(type(running.kernels((16, 16, 16), HERE)), "launch", watched)
    running.run_steps(step, state, state, rule_tables(problem, HERE), None, 1, True)
    winners, slots = seen["winners"].int(), 1 << seen["bits"]
    winners = winners if slots == 256 else winners[0].transpose(0, 1)
    tables = rule_tables(problem, HERE)
    single = tables.real.sum(1) == 1
    assert (winners % slots == 0).all()
    assert (winners[~single] // slots == 1).all()
    assert (winners[single] // slots == (127 if slots == 256 else 15)).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: autocast chooses the kernels there")
@pytest.mark.parametrize(("problem", "M"), [(nqueens(8), 0), (sudoku(3, 3), 0), (futoshiki(5), 10)])
def test_bfloat16_is_as_close_as_without_the_kernels(problem, M, monkeypatch):
    torch.manual_seed(0)
    network = EquivariantNetwork(problem).cuda()
    batch = random_batch(problem, 48, M)
    noise = torch.randn(network.noise_shape(batch), device="cuda")
    weights = torch.randn(6, len(batch), problem.variables, problem.values, device="cuda")
    parameters = list(network.parameters())

    def run() -> list[torch.Tensor]:
        return [network(batch, noise=noise, steps=6)]

    def in_16_bits() -> list[torch.Tensor]:
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            return run()

    exact = made_by(run, parameters, [weights])
    with_kernels = made_by(in_16_bits, parameters, [weights])
    monkeypatch.setattr(steps, "uses_kernels", lambda *_: False)
    without = made_by(in_16_bits, parameters, [weights])
    check(errors_of(with_kernels, exact), errors_of(without, exact))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("problem", "width", "B"), [(nqueens(5), 24, 3), (nqueens(130), 16, 2), (nqueens(5), 16, 0)])
def test_what_the_kernels_cannot_do_runs_without_them(problem, width, B):
    network = EquivariantNetwork(problem, width=width).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        assert network(random_batch(problem, B, 0), steps=2).isfinite().all()
