"""Example 1 of the paper: two Boolean variables whose solutions are (0, 1) and (1, 0), so exactly one must be 1.

A network without an input learns two numbers: P(first = 1) and P(second = 1). The only minimum of Naive is (0.5, 0.5),
where every assignment has probability 0.25. CC-Loss and I-ExplR have a zero gradient there too, but for them it is a
saddle point: training leaves it from every start with unequal probabilities, and reaches it only from starts with equal
ones. MinLoss takes the first solution in a tie, so it reaches a solution from every start.

    python examples/example1_xor.py
"""

import torch
from torch import Tensor

from oneofmany.objectives import CCLoss, IExplR, MinLoss, Naive, Objective

SOLUTIONS = torch.tensor([[[0, 1], [1, 0]]])
MASK = torch.tensor([[True, True]])

OBJECTIVES: dict[str, Objective] = {"Naive": Naive(), "CCLoss": CCLoss(), "IExplR": IExplR(), "MinLoss": MinLoss()}
STARTS = {
    "at the centre": (0.5, 0.5),
    "a little off": (0.501, 0.5),
    "far off": (0.9, 0.6),
    "equal, not 0.5": (0.7, 0.7),
}


def gradient(objective: Objective, position: Tensor) -> Tensor:
    """Return the gradient of the objective with respect to the log-odds `[2]` of the two variables."""
    position = position.detach().requires_grad_()
    logits = torch.stack([torch.zeros_like(position), position], dim=-1).unsqueeze(0)
    (slope,) = torch.autograd.grad(objective(logits, SOLUTIONS, MASK), position)
    return slope


def descend(objective: Objective, start: tuple[float, float], *, rate: float = 2.0, steps: int = 100) -> Tensor:
    """Follow the gradient from `start`; returns the two probabilities at the end."""
    position = torch.tensor(start, dtype=torch.float64).logit()
    for _ in range(steps):
        position = position - rate * gradient(objective, position)
    return position.sigmoid()


def main() -> None:
    centre = torch.zeros(2, dtype=torch.float64)
    print(
        "P(first = 1), P(second = 1) after 100 steps of gradient descent, and the size of the gradient at (0.5, 0.5)\n"
    )
    print(f"{'objective':10}{'gradient':>9}" + "".join(f"{name + ' ' + str(at):>29}" for name, at in STARTS.items()))
    for name, objective in OBJECTIVES.items():
        ends = [descend(objective, start) for start in STARTS.values()]
        cells = "".join(f"{f'({first:.3f}, {second:.3f})':>29}" for first, second in ends)
        print(f"{name:10}{gradient(objective, centre).norm():9.3f}{cells}")


if __name__ == "__main__":
    main()
