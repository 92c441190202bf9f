"""The CUDA kernels against the network as PyTorch runs it: on a GPU, or their source as C++ on a CPU (needs g++)."""

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from oneofmany.networks.equivariant import EquivariantNetwork, cuda
from oneofmany.networks.equivariant.blocks import block_tables
from oneofmany.networks.equivariant.tables import relation_tables, rule_tables
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
    """``cuda.Kernels`` on a CPU."""

    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))

    def launch(self, name: str, blocks: int, *arguments: torch.Tensor | int) -> None:
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        assert all(tensor.is_contiguous() for tensor in tensors)
        numbers = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]
        self.library.run_kernel(name.encode(), blocks, (ctypes.c_longlong * len(numbers))(*numbers))

    def blocks(self, name: str, tiles: int) -> int:
        return min(tiles, 2)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """A function from widths to a library for the CPU."""
    folder, built = tmp_path_factory.mktemp("kernels"), {}
    source = Path(__file__).with_name("emulated.cpp")

    def build(widths: cuda.Widths) -> Path:
        if widths not in built:
            built[widths] = folder / f"{'-'.join(map(str, widths))}.so"
            defined = [f"-D{name}={width}" for name, width in zip("DPH", widths, strict=True)]
            include = f"-I{Path(cuda.__file__).parent}"
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
    monkeypatch.setattr(cuda, "kernels", lambda widths, device: Emulated(libraries(widths)))


def some_relations(problem: Problem, B: int, M: int) -> torch.Tensor:
    """int64 [B, M, 2]: random pairs, some of them padding, one query with none."""
    pairs = torch.rand(B, M, problem.variables).argsort(-1)[..., :2]
    pairs[::2, -1] = -1
    pairs[1] = -1
    return pairs.to(HERE)


def compare(step, state, query, tables, relations, steps=3):
    inputs = {"state": state, "query": query, **dict(step.named_parameters())}
    made, theirs = [], state
    for _ in range(steps):
        theirs, logits = step(theirs, query, tables, relations)
        made.append(logits)
    expected = torch.stack(made)
    ours, last = cuda.run_steps(step, state, query, tables, relations, steps, True)
    near(ours, expected, 0.03, "logits")
    near(last, theirs, 0.03, "state")
    a, b = torch.randn_like(expected), torch.randn_like(theirs)
    wanted = torch.autograd.grad((expected * a).sum() + (theirs * b).sum(), list(inputs.values()))
    found = torch.autograd.grad((ours * a).sum() + (last * b).sum(), list(inputs.values()))
    for name, mine, other in zip(inputs, found, wanted, strict=True):
        near(mine, other, 0.06, name)
    with torch.no_grad():
        only, again = cuda.run_steps(step, state, query, tables, relations, steps, False)
    near(only, ours[-1:], 1e-3, "logits alone")
    near(again, last, 1e-3, "state alone")


def near(ours: torch.Tensor, theirs: torch.Tensor, tolerance: float, name: str) -> None:
    assert ours.shape == theirs.shape
    ours, theirs = ours.detach(), theirs.detach()
    error = (ours - theirs).norm() / theirs.norm().clamp_min(1e-6)
    print(f"{name}: {float(error):.2e}")
    assert error <= tolerance, f"{name}: {float(error):.3f}"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("widths", [(16, 32, 16), (64, 64, 64)])
def test_the_same_function_and_gradients(case, widths):
    problem, B, M = CASES[case]
    torch.manual_seed(len(case))
    D, P, H = widths
    step = EquivariantNetwork(problem, width=D, pooled=P, hidden=H).to(HERE).step
    relations = relation_tables(some_relations(problem, B, M), problem) if M else None
    state, query = (torch.randn(problem.choices, B, D, device=HERE, requires_grad=True) for _ in range(2))
    compare(step, state, query, rule_tables(problem, HERE), relations)
