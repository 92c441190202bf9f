"""Lemmas 1 and 2 of the paper as numbers, on 4x4 Sudoku with the zero-one loss.

Lemma 1: for any prediction, Naive's loss is the error plus the mean of (listed solutions - 1). So even a network
without errors has a loss above 0, which grows with the number of solutions.
Lemma 2: MinLoss's loss is the error if all solutions are listed. If only some are, as in the paper's Sudoku (at most 5
of up to 50), right answers that are not listed count as wrong.

    python examples/lemmas.py
"""

from itertools import permutations

import torch
from torch import Tensor

from oneofmany.objectives import MinLoss, Naive

BLOCKS = [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
LISTED_AT_MOST = 5


def all_grids() -> Tensor:
    """Return all 288 grids of 4x4 Sudoku, `[288,16]`, values 0..3."""
    rows = list(permutations(range(4)))
    grids = []
    for first in rows:
        for second in rows:
            top = first + second
            if any(len({top[cell] for cell in block}) < 4 for block in BLOCKS[:2]):
                continue
            for third in rows:
                for fourth in rows:
                    grid = top + third + fourth
                    columns = all(len(set(grid[column::4])) == 4 for column in range(4))
                    if columns and all(len({grid[cell] for cell in block}) == 4 for block in BLOCKS):
                        grids.append(grid)
    return torch.tensor(grids)


def make_queries(grids: Tensor, count: int, givens: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Blank random cells of random grids; returns the solutions `[count,K,16]` of each query and their mask."""
    found = []
    for _ in range(count):
        grid = grids[torch.randint(len(grids), (1,), generator=generator)]
        given = torch.randperm(16, generator=generator)[:givens]
        found.append(grids[(grids[:, given] == grid[:, given]).all(-1)])
    most = max(len(solutions) for solutions in found)
    solutions, mask = torch.full((count, most, 16), -1), torch.zeros(count, most, dtype=torch.bool)
    for row, listed in enumerate(found):
        solutions[row, : len(listed)] = listed[torch.randperm(len(listed), generator=generator)]
        mask[row, : len(listed)] = True
    return solutions, mask


def zero_one(prediction: Tensor, solutions: Tensor) -> Tensor:
    """Return the zero-one loss `[B,K]` of predictions `[B,16]` against listed solutions `[B,K,16]`."""
    return (prediction.unsqueeze(1) != solutions).any(-1).double()


def predict(solutions: Tensor, mask: Tensor, right: float, generator: torch.Generator) -> Tensor:
    """Return one of a query's solutions; with probability 1 - `right` one of its cells is made wrong."""
    draw = torch.rand(mask.shape, generator=generator).masked_fill(~mask, -1.0).argmax(-1)
    prediction = solutions[torch.arange(len(mask)), draw].clone()
    wrong = torch.rand(len(mask), generator=generator) >= right
    prediction[wrong, 0] = (prediction[wrong, 0] + 1) % 4
    return prediction


def measure(*, queries: int = 200, seed: int = 0) -> list[dict[str, float]]:
    """Return losses and errors of predictors that are right with a fixed probability."""
    generator = torch.Generator().manual_seed(seed)
    solutions, mask = make_queries(all_grids(), queries, 3, generator)
    listed = mask & (torch.arange(mask.shape[1]) < LISTED_AT_MOST)
    table = []
    for right in (0.0, 0.25, 0.5, 0.75, 1.0):
        prediction = predict(solutions, mask, right, generator)
        losses = zero_one(prediction, solutions)
        table.append(
            {
                "right": right,
                "error": 1 - ((losses == 0) & mask).any(-1).double().mean().item(),
                "naive": Naive().reduce(losses, mask).item(),
                "others": (mask.sum(-1) - 1).double().mean().item(),
                "minloss": MinLoss().reduce(losses, mask).item(),
                "minloss_some_listed": MinLoss().reduce(losses, listed).item(),
            }
        )
    return table


def main() -> None:
    print("4x4 Sudoku, 200 queries with 3 givens, zero-one loss\n")
    print(
        f"{'right':>6}{'error':>8}{'Naive':>9}{'mean |Y|-1':>12}{'Naive - error':>15}"
        f"{'MinLoss':>9}{f'MinLoss, {LISTED_AT_MOST} listed':>19}"
    )
    for row in measure():
        print(
            f"{row['right']:6.2f}{row['error']:8.3f}{row['naive']:9.3f}{row['others']:12.3f}"
            f"{row['naive'] - row['error']:15.3f}{row['minloss']:9.3f}{row['minloss_some_listed']:19.3f}"
        )
    print("\nLemma 1: Naive - error is the mean of |Y| - 1, for every prediction.")
    print("Lemma 2: MinLoss is the error when all solutions are listed; with some, right answers count as wrong.")


if __name__ == "__main__":
    main()
