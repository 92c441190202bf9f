"""Time and memory of the objectives, compared with the least work that uses every listed solution.

The reference is log_softmax, a gather of K entries per variable, and their sum over the variables, forward and
backward. Cross-entropy on one solution is shown too. All are measured in turn in one run, so that the ratios also hold
on a noisy machine. On a GPU there are two times: that of single calls, which are dominated by Python and by launches of
small kernels, and that of replays of a captured graph, to which the limit applies.

    python benchmarks/objectives.py [--device cpu|cuda] [--check]
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from measuring import Step, captured, peak_mebibytes
from oneofmany.objectives import CategoricalNLL, CCLoss, IExplR, MinLoss, Naive, SelectR

LIMIT = 1.5
LIMITED = ("MinLoss", "CCLoss", "IExplR")


def reference(logits: Tensor, solutions: Tensor) -> Tensor:
    """log_softmax + K-fold gather + sum, in its faster form: one gather along the values."""
    index = solutions.transpose(1, 2).expand(len(logits), -1, -1, -1)
    return -logits.log_softmax(-1).gather(-1, index).sum(-2).mean()


def cross_entropy(logits: Tensor, solutions: Tensor) -> Tensor:
    """Cross-entropy on the first solution alone."""
    target = solutions[:, 0].expand(len(logits), -1, -1)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 2), target.flatten(), reduction="sum") / target.numel()


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds(run: Step, device: torch.device) -> float:
    synchronize(device)
    start = time.perf_counter()
    run()
    synchronize(device)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=512, help="queries, B")
    parser.add_argument("--solutions", type=int, default=8, help="listed solutions of each, K")
    parser.add_argument("--variables", type=int, default=81, help="R")
    parser.add_argument("--values", type=int, default=9, help="V")
    parser.add_argument("--steps", type=int, default=32, help="T")
    parser.add_argument("--rounds", type=int, default=0, help="measurements of each (default: 7 on a CPU, 50 on a GPU)")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--check", action="store_true", help=f"fail if {', '.join(LIMITED)} exceed limit {LIMIT}")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    rounds = options.rounds or (50 if device.type == "cuda" else 7)
    T, B, K, R, V = options.steps, options.batch, options.solutions, options.variables, options.values

    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(T, B, R, V, generator=generator).to(device).requires_grad_()
    solutions = torch.randint(V, (B, K, R), generator=generator).to(device)
    mask = torch.ones(B, K, dtype=torch.bool, device=device)
    scores = torch.randn(B, K, generator=generator).to(device)
    logits.grad = torch.zeros_like(logits)

    losses: dict[str, Callable[[], Tensor]] = {
        "log_softmax + gather + sum": lambda: reference(logits, solutions),
        "cross-entropy, 1 solution": lambda: cross_entropy(logits, solutions),
    }
    for objective in (MinLoss(validate=False), CCLoss(validate=False), IExplR(validate=False), Naive(validate=False)):
        losses[type(objective).__name__] = lambda objective=objective: objective(logits, solutions, mask)
    known = MinLoss(pair_loss=CategoricalNLL(ignore_index=None), validate=False)
    losses["MinLoss, ignore_index=None"] = lambda: known(logits, solutions, mask)
    checking = MinLoss()
    losses["MinLoss, validate=True"] = lambda: checking(logits, solutions, mask)
    selectr = SelectR(validate=False)
    losses["SelectR, both losses"] = lambda: (
        selectr(logits, solutions, mask, scores) + selectr.selector_loss(logits, solutions, mask, scores)
    )
    runs: dict[str, Step] = {name: (lambda loss=loss: loss().backward()) for name, loss in losses.items()}

    for run in runs.values():
        run()
    memory = {name: peak_mebibytes(run, device) for name, run in runs.items()}
    ways = {"one by one": runs}
    if device.type == "cuda":
        ways["captured"] = {name: captured(run) for name, run in runs.items()}
    times: dict[str, dict[str, list[float]]] = {way: {name: [] for name in runs} for way in ways}
    for _ in range(rounds):
        for way, its_runs in ways.items():
            for name, run in its_runs.items():
                times[way][name].append(seconds(run, device))

    where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {options.threads} thread(s)"
    print(f"B={B} K={K} R={R} V={V} T={T} float32, forward and backward, median of {rounds}; {where}")
    print(f"torch {torch.__version__}; the logits alone are {logits.numel() * 4 / 2**20:.0f} MiB\n")
    print(f"{'':28}" + "".join(f"{way + ' ms':>15}{'ratio':>7}" for way in ways) + f"{'peak MiB':>10}{'ratio':>7}")
    first, failed = next(iter(runs)), []
    for name in runs:
        line, ratio = f"{name:28}", 0.0
        for its_times in times.values():
            ratio = statistics.median(a / b for a, b in zip(its_times[name], its_times[first], strict=True))
            line += f"{statistics.median(its_times[name]) * 1e3:15.2f}{ratio:7.2f}"
        print(line + f"{memory[name]:10.0f}{memory[name] / memory[first]:7.2f}")
        if name in LIMITED and ratio > LIMIT:
            failed.append(name)
    print(f"\nlimit {LIMIT} for {', '.join(LIMITED)}: {'exceeded by ' + ', '.join(failed) if failed else 'kept'}")
    if failed and options.check:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
