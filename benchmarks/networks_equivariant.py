"""Queries/s of a training step (forward, MinLoss, backward, clip, AdamW) of the equivariant network: ours and plain.

Plain is a direct implementation of the same function: rules as one padded gather, the two largest by topk, and
PyTorch's own backward. On a GPU ours runs in bf16 with its kernels; --compiled adds variants without kernels, with one
step or the whole network compiled. The whole update is a CUDA graph. --before times the kernels of another revision in
the same run.

    python benchmarks/networks_equivariant.py                       # CPU: small boards, one thread
    python benchmarks/networks_equivariant.py --device cuda --batch 512 1024 2048
    git worktree add ../before REVISION
    python benchmarks/networks_equivariant.py --device cuda --before ../before/src
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
import traceback
from collections.abc import Callable
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from measuring import Step, captured, numbers_from
from oneofmany.networks.equivariant import EquivariantNetwork
from oneofmany.networks.equivariant import steps as equivariant_steps
from oneofmany.problems import Batch, Problem, nqueens, sudoku


def random_batch(problem: Problem, B: int, K: int, device: str) -> Batch:
    """Half of the variables given, K listed solutions; the speed does not depend on the values."""
    g = torch.Generator().manual_seed(0)
    values = torch.randint(1, problem.values + 1, (B, problem.variables), generator=g)
    query = torch.where(torch.rand(values.shape, generator=g) < 0.5, values, 0).to(device)
    solutions = torch.randint(0, problem.values, (B, K, problem.variables), generator=g).to(device)
    mask = torch.ones(B, K, dtype=torch.bool, device=device)
    return Batch(query, solutions, mask, mask.sum(1), problem)


def min_loss(logits: Tensor, solutions: Tensor, mask: Tensor) -> Tensor:
    """MinLoss with one solution for all steps: logits [T, B, R, V], solutions [B, K, R], mask [B, K]."""
    log_p = logits.float().log_softmax(-1)
    T, K = len(log_p), solutions.shape[1]
    index = solutions.permute(0, 2, 1)[None].expand(T, -1, -1, K)
    pair = -log_p.gather(3, index).sum(2).mean(0)
    return pair.masked_fill(~mask, torch.inf).amin(1).mean()


class Plain(nn.Module):
    """A direct implementation with the same weights; the first axis is the query."""

    def __init__(self, network: EquivariantNetwork, problem: Problem, device: str) -> None:
        super().__init__()
        self.network, block = network, network.step.block
        members = torch.as_tensor(problem.members, device=device)
        self.members, self.real = members.clamp_min(0), (members >= 0)[..., None]
        self.of_kind = [
            (block.kinds.index(kind), torch.as_tensor((problem.kind == k).nonzero()[0], device=device))
            for k, kind in enumerate(problem.kinds)
        ]
        own = torch.arange(problem.choices, device=device)
        self.belongs = [
            (self.members[of][..., None] == own).logical_and(self.real[of]).any(1) for _, of in self.of_kind
        ]

    def forward(self, batch: Batch, noise: Tensor) -> Tensor:
        problem, step, block = batch.problem, self.network.step, self.network.step.block
        given = (batch.query[..., None] == torch.arange(1, problem.values + 1, device=noise.device)).flatten(1)
        query = self.network.embed(torch.stack([given.float(), noise], -1))
        state, logits = query, []
        for _ in range(self.network.steps):
            spoken, own = block.choice(state + query).split([block.pooled, 2 * block.hidden], -1)
            said = spoken[:, self.members]
            largest, second = said.masked_fill(~self.real, -torch.inf).topk(2, 2).values.unbind(2)
            pooled = torch.cat([largest, second.masked_fill(second == -torch.inf, 0)], -1)
            for (kind, of), belongs in zip(self.of_kind, self.belongs, strict=True):
                answers = pooled[:, of] @ block.rule[kind]
                share = belongs / belongs.sum(0).clamp_min(1)
                own = own + torch.einsum("gc,bgf->bcf", share.to(answers.dtype), answers)
            gate, value = own.chunk(2, -1)
            state = F.layer_norm(state + block.update(F.silu(gate) * value), (block.width,))
            logits.append((state.float() @ step.readout).view(len(state), problem.variables, problem.values))
        return torch.stack(logits)


def update(run: Callable[..., Tensor], network: nn.Module, batch: Batch, noise: Tensor, half: bool) -> Step:
    """Return a training step as a function without arguments: forward, MinLoss, backward, clip, AdamW."""
    cuda = noise.is_cuda
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01, fused=True, capturable=cuda
    )
    loss_of = torch.compile(min_loss, dynamic=False) if cuda else min_loss

    def one() -> None:
        optimizer.zero_grad(set_to_none=True)
        context = torch.autocast("cuda", torch.bfloat16, cache_enabled=False) if half else contextlib.nullcontext()
        with context:
            logits = run(batch, noise=noise)
        loss_of(logits, batch.solutions, batch.mask).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()

    return one


def seconds(one: Step, cuda: bool, least: float = 1.0) -> float:
    """Return the median time of a step."""
    for _ in range(2):
        one()
    times: list[float] = []
    while sum(times) < least or len(times) < 3:
        if cuda:
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for _ in range(5):
                one()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 5000)
        else:
            began = time.perf_counter()
            one()
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def floor(network: EquivariantNetwork, problem: Problem, steps: int, flops: float, bandwidth: float) -> float:
    """Return the least seconds per query: its products at the measured rate, or all states moved in 16 bits."""
    block, C, G = network.step.block, problem.choices, len(problem.rules)
    of_choice = 2 * block.width * (block.pooled + 2 * block.hidden) + 2 * block.hidden * block.width
    of_rule = 2 * 2 * block.pooled * 2 * block.hidden
    work = 3 * steps * (C * of_choice + G * of_rule)
    return max(work / flops, steps * 2 * C * block.width * 2 / bandwidth)


def ceilings(device: str) -> tuple[float, float]:
    """Measure the FLOP/s of a matrix product (bf16 on a GPU) and the bytes/s of a copy."""
    cuda = device == "cuda"
    n, size = (8192, 2**30) if cuda else (1024, 2**26)
    a, b = (torch.randn(n, n, device=device, dtype=torch.bfloat16 if cuda else torch.float32) for _ in range(2))
    x = torch.empty(size, dtype=torch.uint8, device=device).random_()
    y = torch.empty_like(x)
    return 2 * n**3 / seconds(lambda: a @ b, cuda, 0.3), 2 * size / seconds(lambda: y.copy_(x), cuda, 0.3)


def measure(problem: Problem, B: int, width: int, steps: int, device: str, variant: str) -> tuple[float, float]:
    """Return the seconds of a training step and the peak memory in GB (0 on a CPU)."""
    cuda = device == "cuda"
    torch.manual_seed(0)
    network = EquivariantNetwork(problem, width=width, steps=steps).to(device)
    batch = random_batch(problem, B, 5, device)
    noise = torch.randn(network.noise_shape(batch), device=device)
    run: Callable[..., Tensor] = network
    no_kernels = contextlib.nullcontext()
    if variant.startswith("plain"):
        run = Plain(network, problem, device)
    elif "step" in variant:
        no_kernels = patch.object(equivariant_steps, "uses_kernels", lambda *_: False)
        network.compile_step()
    elif "whole" in variant:
        run = torch.compile(network, dynamic=False, fullgraph=True)
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    with no_kernels:
        step = update(run, network, batch, noise, half=cuda)
        one = captured(step) if "graph" in variant else step
        time_of_step = seconds(one, cuda)
    return time_of_step, torch.cuda.max_memory_allocated() / 1e9 if cuda else 0.0


def measure_before(source: str, problem: Problem, B: int, width: int, steps: int, variant: str) -> tuple[float, float]:
    """As ``measure`` on a GPU, in a process with the sources of another revision."""
    arguments = ["--measure", problem.task, str(problem.size), str(B), str(width), str(steps), variant]
    took, memory = numbers_from(source, __file__, *arguments)
    return took, memory


def agreement(problem: Problem, width: int, device: str) -> float:
    """Return the largest difference between plain and ours, in float32."""
    network = EquivariantNetwork(problem, width=width, steps=4).to(device)
    batch = random_batch(problem, 4, 1, device)
    noise = torch.randn(network.noise_shape(batch), device=device)
    with torch.no_grad():
        return float((network(batch, noise=noise) - Plain(network, problem, device)(batch, noise)).abs().max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--queens", type=int, help="size of the chess board (10 on a GPU, 8 on a CPU)")
    parser.add_argument("--batch", type=int, nargs="+", help="batch sizes (512 1024 2048 on a GPU, 32 128 on a CPU)")
    parser.add_argument("--sudoku-batch", type=int, nargs="+", help="batch sizes of Sudoku 9 (256 512, or 8 on a CPU)")
    parser.add_argument("--width", type=int, help="channels of a choice (64 on a GPU, 32 on a CPU)")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument(
        "--compiled", choices=["step", "whole"], nargs="+", default=[], help="on a GPU also compiled, without kernels"
    )
    parser.add_argument("--before", metavar="SRC", help="on a GPU also the kernels of the sources in this folder")
    parser.add_argument("--measure", nargs=6, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        task, size, B, width, steps, variant = arguments.measure
        problem = {"nqueens": nqueens, "sudoku": sudoku}[task](int(size))
        print(*measure(problem, int(B), int(width), int(steps), "cuda", variant))
        return
    cuda = arguments.device == "cuda"
    torch.set_num_threads(1)
    width = arguments.width or (64 if cuda else 32)
    queens = nqueens(arguments.queens or (10 if cuda else 8))
    variants = ["plain", "ours"]
    if cuda:
        kernels = ["ours, kernels, graph", *(["before, kernels, graph"] if arguments.before else [])]
        variants = ["plain", *kernels, *(f"ours, {what} compiled, graph" for what in arguments.compiled)]
    flops, bandwidth = ceilings(arguments.device)
    print(f"ceilings: {flops / 1e12:.2f} TFLOP/s, {bandwidth / 1e12:.3f} TB/s; width {width}, {arguments.steps} steps")
    print(
        f"{'problem':<12}{'batch':>6}  {'variant':<28}{'ms':>9}{'queries/s':>11}{'ratio':>7}{'roofline':>10}{'GB':>7}"
    )
    for problem, batches in (
        (queens, arguments.batch or ([512, 1024, 2048] if cuda else [32, 128])),
        (sudoku(), arguments.sudoku_batch or ([256, 512] if cuda else [8])),
    ):
        difference = agreement(problem, width, arguments.device)
        assert difference < 1e-3, f"plain and ours differ by {difference}"
        least = floor(EquivariantNetwork(problem, width=width), problem, arguments.steps, flops, bandwidth)
        for B in batches:
            plain = None
            for variant in variants:
                about = problem, B, width, arguments.steps
                try:
                    if variant.startswith("before"):
                        took, memory = measure_before(arguments.before, *about, variant)
                    else:
                        took, memory = measure(*about, arguments.device, variant)
                except Exception:
                    traceback.print_exc()
                    continue
                plain = took if variant == "plain" else plain
                name, ratio = f"{problem.task} {problem.size}", f"{plain / took:.1f}" if plain else "-"
                row = f"{name:<12}{B:>6}  {variant:<28}{took * 1e3:>9.2f}{B / took:>11.0f}{ratio:>7}"
                print(f"{row}{least * B / took:>10.1%}{memory:>7.1f}", flush=True)


if __name__ == "__main__":
    main()
