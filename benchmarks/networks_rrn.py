"""Time and memory of an RRN training step (forward, backward, AdamW), compared with the literal formulation.

python benchmarks/networks_rrn.py                   # one CPU thread, batch 32, with and without message dropout
python benchmarks/networks_rrn.py --device cuda     # literal at batch 256, ours at its best batch in a CUDA graph
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "networks" / "rrn"))

from literal_rrn import LiteralRRN  # pyright: ignore[reportMissingImports]

from measuring import Step, captured, peak_now, seconds
from oneofmany.networks.rrn import RRN
from oneofmany.problems import Batch, sudoku


def puzzles(batch: int, device: str) -> tuple[Batch, Tensor]:
    """Return random boards (whether they have solutions does not matter) and a class for every cell."""
    problem = sudoku()
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(1, 10, (batch, 81), generator=generator)
    query = target * (torch.rand(batch, 81, generator=generator) < 0.3)
    real, total = torch.ones(batch, 1, dtype=torch.bool), torch.ones(batch, dtype=torch.int64)
    tensors = (t.to(device) for t in (query, target[:, None] - 1, real, total))
    return Batch(*tensors, problem=problem), target.to(device)


def training_step(network: nn.Module, logits: Callable[[], Tensor], target: Tensor, capture: bool) -> Step:
    """Forward, cross entropy at every step, backward, AdamW."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.001, fused=capture, capturable=capture)

    def step() -> None:
        optimizer.zero_grad()
        out = logits()
        classes = target.expand(len(out), -1, -1)
        nn.functional.cross_entropy(out.flatten(0, 2), classes.flatten()).backward()
        optimizer.step()

    return captured(step) if capture else step


def literal_step(args: argparse.Namespace, batch: int, dropout: float) -> Step:
    data, target = puzzles(batch, args.device)
    torch.manual_seed(0)
    network = LiteralRRN(3, 3).to(args.device)
    return training_step(network, lambda: network(data.query, args.steps, dropout), target, capture=False)


def our_step(args: argparse.Namespace, batch: int, dropout: float) -> Step:
    data, target = puzzles(batch, args.device)
    torch.manual_seed(0)
    network = RRN(data.problem, dropout=dropout, steps=args.steps, kernel=args.kernel).to(args.device)
    return training_step(network, lambda: network(data), target, capture=args.device == "cuda")


SIDES: dict[str, Callable[[argparse.Namespace, int, float], Step]] = {"literal": literal_step, "ours": our_step}


def on_cpu(args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    for dropout in (0.1, 0.0):
        steps = {name: make(args, args.batch, dropout) for name, make in SIDES.items()}
        times: dict[str, list[float]] = {name: [] for name in steps}
        for turn in range(args.repeats + 1):
            for name, step in steps.items():
                took = seconds(step, "cpu")
                # The first turn warms up.
                times[name] += [took] if turn else []
        del steps
        memory = {name: peak_of(name, args, dropout) for name in SIDES}
        # The turn with the median ratio: both sides of a turn ran under the same load of a shared machine.
        turns = sorted(zip(*times.values(), strict=True), key=lambda turn: turn[0] / turn[1])
        print("ratios of all turns:", *(f"{slow / fast:.2f}" for slow, fast in turns))
        middle = dict(zip(SIDES, turns[len(turns) // 2], strict=True))
        report(args, dropout, {name: (args.batch, middle[name], memory[name]) for name in SIDES})


def peak_of(side: str, args: argparse.Namespace, dropout: float) -> float:
    """Return the peak memory in bytes that one step adds, measured in a separate process."""
    options = ["--batch", args.batch, "--steps", args.steps, "--kernel", args.kernel, "--dropout", dropout]
    command = [sys.executable, __file__, *map(str, options), "--memory-of", side]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak(args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    step = SIDES[args.memory_of](args, args.batch, args.dropout)
    before = peak_now()
    step()
    print(peak_now() - before)


def on_cuda(args: argparse.Namespace) -> None:
    for dropout in (0.1, 0.0):
        results = {}
        for name, batches in (("literal", args.literal_batches), ("ours", args.batches)):
            best = None
            for batch in batches:
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
                try:
                    step = SIDES[name](args, batch, dropout)
                    for _ in range(2):
                        step()
                    took = statistics.median(seconds(step, "cuda") for _ in range(args.repeats))
                except torch.cuda.OutOfMemoryError:
                    print(f"{name} batch {batch}: out of memory")
                    break
                memory = torch.cuda.max_memory_allocated()
                print(
                    f"{name} batch {batch}: {took * 1e3:.2f} ms, {batch / took:,.0f} puzzles/s, {memory / 1e9:.2f} GB"
                )
                del step
                if best is None or batch / took > best[0] / best[1]:
                    best = (batch, took, memory)
            results[name] = best
        report(args, dropout, results)


def operations(steps: int, dropout: float) -> int:
    """Return the multiplications and additions needed per puzzle: forward, and twice as many backward.

    Counted on the exact rewrites: the second and third message layers on 1,620 distinct edges, the fourth on edges with
    dropout and on 81 cells without, the first one and the LSTM on cells. Recomputation is not counted.
    """
    per_edge = 96 * 96 * (3 if dropout else 2)
    per_cell = 96 * (2 * 96 + 2 * 4 * 96 + 10) + (0 if dropout else 96 * 96)
    return 3 * 2 * steps * (1620 * per_edge + 81 * per_cell)


def matrix_rate(device: str) -> float:
    """Return the operations per second of a large product: bfloat16 on a GPU, float32 on a CPU."""
    n, dtype = (8192, torch.bfloat16) if device == "cuda" else (1536, torch.float32)
    a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    return 2 * n**3 / min(seconds(lambda: a @ b, device) for _ in range(7))


def report(args: argparse.Namespace, dropout: float, results: dict[str, tuple[int, float, float]]) -> None:
    print(f"\nRRN, 9 x 9, {args.steps} steps, message dropout {dropout}, {args.device}")
    for name, (batch, took, memory) in results.items():
        print(
            f"{name:8} batch {batch:5}  {took * 1e3:9.2f} ms/step  {batch / took:9,.1f} puzzles/s  "
            f"peak {memory / 1e6:9,.0f} MB ({memory / batch / 1e6:,.1f} MB a puzzle)"
        )
    (a, slow, much), (b, fast, little) = results["literal"], results["ours"]
    print(f"ratio    {b / fast / (a / slow):.2f}x puzzles/s, {much / a / (little / b):.2f}x less memory a puzzle")
    needed, rate = operations(args.steps, dropout), matrix_rate(args.device)
    print(
        f"roofline {needed / 1e9:.2f} GFLOP a puzzle; a large matrix product reaches {rate / 1e12:,.3f} TFLOP/s, "
        f"so at most {rate / needed:,.0f} puzzles/s: ours is at {100 * b / fast * needed / rate:.0f} %",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--batch", type=int, default=32, help="on the CPU")
    parser.add_argument("--batches", type=int, nargs="+", default=[256, 512, 1024, 2048], help="of ours on the GPU")
    parser.add_argument("--literal-batches", type=int, nargs="+", default=[256], help="on the GPU")
    parser.add_argument("--steps", type=int, default=32, help="of the network")
    parser.add_argument("--kernel", choices=["auto", "plain", "triton"], default="auto", help="of ours")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--dropout", type=float, default=0.1, help=argparse.SUPPRESS)
    parser.add_argument("--memory-of", choices=["literal", "ours"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory_of:
        print_peak(args)
    else:
        (on_cpu if args.device == "cpu" else on_cuda)(args)


if __name__ == "__main__":
    main()
