"""One training step of the recurrent Transformer: bfloat16, compiled and captured, against eager float32.

Forward pass, MinLoss, backward pass and AdamW, at the size of the recipe `sudoku/minloss/transformer`. Attention is
fused. Both sides are measured in one run. On a CPU, where training uses float32 and no graph, only the eager side is.

    python benchmarks/transformer.py --device cuda
    python benchmarks/transformer.py --batch 8            # a CPU thread
"""

from __future__ import annotations

import argparse
import statistics

import torch

from measuring import Step, captured, seconds
from oneofmany.networks.building import build_network
from oneofmany.networks.kernels import Precision, running
from oneofmany.objectives import CategoricalNLL, MinLoss
from oneofmany.problems import Batch, sudoku
from oneofmany.recipes import recipe

LISTED = 5


def training_step(batch_size: int, device: str, precision: Precision) -> Step:
    torch.manual_seed(0)
    problem, settings = sudoku(9), recipe("sudoku/minloss/transformer").network
    network = build_network(settings, problem, device=device)
    if precision == "bfloat16":
        network.compile_step()
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=torch.tensor(1e-3, device=device), fused=True, capturable=device == "cuda"
    )
    objective = MinLoss(pair_loss=CategoricalNLL(ignore_index=None), validate=False)
    solutions = torch.randint(9, (batch_size, LISTED, 81), device=device)
    shown = torch.rand(batch_size, 81, device=device) < 0.3
    query = torch.where(shown, solutions[:, 0] + 1, 0)
    mask = torch.ones(batch_size, LISTED, dtype=torch.bool, device=device)
    batch = Batch(query, solutions, mask, mask.sum(1), problem)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        with running(torch.device(device), precision, cached=False):
            logits = network(batch)
        objective(logits, batch.solutions, batch.mask).backward()
        optimiser.step()

    return step


def rate(step: Step, batch_size: int, device: str, repeats: int) -> float:
    for _ in range(3):
        step()
    return batch_size / statistics.median(seconds(step, device) for _ in range(repeats))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args()
    if given.device == "cpu":
        torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    network = build_network(recipe("sudoku/minloss/transformer").network, sudoku(9))
    parameters = sum(p.numel() for p in network.parameters())
    print(f"Sudoku 9x9, batch {given.batch}, {LISTED} listed, {parameters:,} parameters; torch {torch.__version__}")
    eager = rate(training_step(given.batch, given.device, "float32"), given.batch, given.device, given.repeats)
    print(f"float32, eager                {eager:12,.1f} queries/s")
    if given.device == "cuda":
        step = captured(training_step(given.batch, given.device, "bfloat16"))
        fast = rate(step, given.batch, given.device, given.repeats)
        print(f"bfloat16, compiled, captured  {fast:12,.1f} queries/s  {fast / eager:.2f} times")


if __name__ == "__main__":
    main()
