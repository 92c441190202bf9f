"""Time and memory of an NLM training step (forward, backward, AdamW), compared with the literal formulation.

python benchmarks/networks_nlm.py                     # one CPU thread, N-Queens 10, depth 30, batch 4
python benchmarks/networks_nlm.py --device cuda       # each side at its best batch, ours captured in a CUDA graph
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "networks" / "nlm"))

from literal_nlm import LiteralNLM  # pyright: ignore[reportMissingImports]

from measuring import Step, captured, peak_now, seconds
from oneofmany.networks.nlm import nlm_for
from oneofmany.networks.nlm.layers import GROUP
from oneofmany.networks.nlm.packing import Spec
from oneofmany.problems import Batch, futoshiki, nqueens


def queries(task: str, size: int, batch: int, device: str) -> tuple[Batch, Tensor]:
    """Return random queries (whether they have solutions does not matter) and a 0/1 target for every choice."""
    problem = nqueens(size) if task == "nqueens" else futoshiki(size)
    generator = torch.Generator().manual_seed(0)
    shape = (batch, problem.variables)
    query = torch.randint(1, problem.values + 1, shape, generator=generator)
    query *= torch.rand(shape, generator=generator) < 0.5
    target = (torch.rand(batch, problem.choices, generator=generator) < 1 / problem.values).float()
    none = torch.zeros(batch, 1, problem.variables, dtype=torch.int64)
    one = Batch(query, none, none[..., 0].bool(), none[:, 0, 0], problem)
    moved = Batch(*(getattr(one, name).to(device) for name in ("query", "solutions", "mask", "total")), problem=problem)
    return moved, target.to(device)


def literal_step(task: str, size: int, depth: int, batch: int, device: str) -> Step:
    data, target = queries(task, size, batch, device)
    predicates = nlm_for(task, depth=1).predicates
    unary = torch.cat([predicates.prior(data, torch.float32), predicates.flag_inputs(data, torch.float32)], -1)
    binary = predicates.static(data.problem, data.query.device, torch.float32).binary
    torch.manual_seed(0)
    network = LiteralNLM(0, unary.shape[2], binary.shape[2], depth).to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.005)
    nullary = unary.new_zeros(batch, 0)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(network(nullary, unary, binary), target).backward()
        optimizer.step()

    return step


def our_step(task: str, size: int, depth: int, batch: int, device: str, precision: str) -> Step:
    data, target = queries(task, size, batch, device)
    torch.manual_seed(0)
    network = nlm_for(task, depth=depth, precision=precision).to(device)  # type: ignore[arg-type]
    cuda = device == "cuda"
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.005, fused=cuda, capturable=cuda)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(network(data).flatten(1), target).backward()
        optimizer.step()

    return captured(step) if cuda else step


def traffic(spec: Spec, objects: int, itemsize: int) -> int:
    """Return the bytes of pair channels that a training step moves per query; each read and each write counts once.

    Forward: the buffer before each group of layers, the groups' sums (written and read), the group's own earlier
    channels, and the new channels (written, and read again to reduce them). Backward: the same for gradients, and the
    outputs are read. Weights: buffer and gradients once.
    """
    W, layers, group = spec.width, spec.binary_layers, GROUP
    channels = 0
    for layer in range(layers):
        first = layer - layer % group
        end = min(first + group, layers)
        if layer == first:
            channels += spec.x(first) + W * (layers - end)
        channels += 2 * 2 * W + W * (layer - first) + W * (end - layer - 1) + 2 * W + 3 * W
    channels += spec.x(layers) + W * layers
    return channels * 2 * (objects // 2) * objects * itemsize


def copy_bandwidth(device: str) -> float:
    """Return the bytes per second, read and written, of a large copy."""
    a = torch.rand(2**28 if device == "cuda" else 2**25, device=device)
    b = torch.empty_like(a)
    return 2 * a.nbytes / statistics.median(seconds(lambda: b.copy_(a), device) for _ in range(7))


def on_cpu(args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    common = (args.task, args.size, args.depth, args.batch, "cpu")
    steps = {"literal": literal_step(*common), "ours": our_step(*common, args.precision)}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(args.repeats + 1):
        for name, step in steps.items():
            took = seconds(step, "cpu")
            # The first turn warms up.
            times[name] += [took] if turn else []
    memory = {name: peak_of(name, args) for name in steps}
    report(args, {name: (args.batch, statistics.median(t), memory[name]) for name, t in times.items()})


def peak_of(side: str, args: argparse.Namespace) -> float:
    """Return the peak memory in bytes that one step adds, measured in a separate process."""
    options = [
        str(v) for name in ("task", "size", "depth", "batch", "precision") for v in (f"--{name}", getattr(args, name))
    ]
    command = [sys.executable, __file__, *options, "--memory-of", side]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak(args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    common = (args.task, args.size, args.depth, args.batch, "cpu")
    step = literal_step(*common) if args.memory_of == "literal" else our_step(*common, args.precision)
    before = peak_now()
    step()
    print(peak_now() - before)


def on_cuda(args: argparse.Namespace) -> None:
    results = {}
    for name, batches in (("literal", args.literal_batches), ("ours", args.batches)):
        best = None
        for batch in batches:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            common = (args.task, args.size, args.depth, batch, "cuda")
            try:
                step = literal_step(*common) if name == "literal" else our_step(*common, args.precision)
                for _ in range(2):
                    step()
                took = statistics.median(seconds(step, "cuda") for _ in range(args.repeats))
            except torch.cuda.OutOfMemoryError:
                print(f"{name} batch {batch}: out of memory")
                break
            memory = torch.cuda.max_memory_allocated()
            print(f"{name} batch {batch}: {took * 1e3:.2f} ms, {batch / took:,.0f} queries/s, {memory / 1e9:.2f} GB")
            del step
            if best is None or batch / took > best[0] / best[1]:
                best = (batch, took, memory)
        results[name] = best
    report(args, results)


def report(args: argparse.Namespace, results: dict[str, tuple[int, float, float]]) -> None:
    network = nlm_for(args.task, depth=args.depth)
    objects = queries(args.task, args.size, 1, "cpu")[0].problem.choices
    print(f"\n{args.task} {args.size}, depth {args.depth}, {args.device}, ours in {args.precision}")
    for name, (batch, took, memory) in results.items():
        print(
            f"{name:8} batch {batch:5}  {took * 1e3:9.2f} ms/step  {batch / took:9,.1f} queries/s  "
            f"peak {memory / 1e6:9,.0f} MB ({memory / batch / 1e6:,.1f} MB a query)"
        )
    (a, slow, much), (b, fast, little) = results["literal"], results["ours"]
    print(f"ratio    {b / fast / (a / slow):.1f}x queries/s, {much / a / (little / b):.1f}x less memory a query")
    itemsize = 4 if args.precision == "float32" else 2
    moved, bandwidth = traffic(network.machine.spec, objects, itemsize), copy_bandwidth(args.device)
    print(
        f"roofline {moved / 1e6:.1f} MB of pair channels a query and step; a copy reaches {bandwidth / 1e9:,.0f} GB/s, "
        f"so at most {bandwidth / moved:,.0f} queries/s: ours is at {100 * b / fast * moved / bandwidth:.0f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--task", choices=["nqueens", "futoshiki"], default="nqueens")
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--depth", type=int, default=30)
    parser.add_argument("--batch", type=int, default=4, help="on the CPU")
    parser.add_argument("--batches", type=int, nargs="+", default=[128, 256, 512, 1024], help="of ours on the GPU")
    parser.add_argument("--literal-batches", type=int, nargs="+", default=[4, 16, 32, 64], help="on the GPU")
    parser.add_argument(
        "--precision", choices=["float32", "bfloat16", "float16"], help="of ours; CPU float32, GPU float16"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory-of", choices=["literal", "ours"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.precision = args.precision or ("float32" if args.device == "cpu" else "float16")
    if args.memory_of:
        print_peak(args)
    else:
        (on_cpu if args.device == "cpu" else on_cuda)(args)


if __name__ == "__main__":
    main()
