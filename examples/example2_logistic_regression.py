"""Example 2 of the paper: MinLoss in a local minimum, and which objectives leave it.

Ten points on a line and a logistic regression P(label 1) = sigmoid(slope * x + offset): five points x = 1 with label 1,
four points x = -1 for which both labels are right, one point x = -2 with label 1. Label 1 is right for all ten. From
slope 0.1 and offset 0 the network slightly prefers label 0 at x = -1. MinLoss trains it on that label for ever, and it
never gets x = -2 right: the boundary ends at -0.55.

    python examples/example2_logistic_regression.py [--out FIGURE.png]
"""

import argparse
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from oneofmany.objectives import CCLoss, IExplR, LaggedCopy, MinLoss, Naive, Objective, SelectR

POINTS = torch.tensor([1.0] * 5 + [-1.0] * 4 + [-2.0], dtype=torch.float64)
SOLUTIONS = torch.tensor([[[1], [0]]] * 5 + [[[0], [1]]] * 4 + [[[1], [0]]])  # [B,K,R] with K = 2 labels at most
MASK = torch.tensor([[True, False]] * 5 + [[True, True]] * 4 + [[True, False]])
PAPERS_START = (0.1, 0.0)

OBJECTIVES: dict[str, Objective] = {
    "Naive": Naive(),
    "CCLoss": CCLoss(),
    "MinLoss": MinLoss(),
    "IExplR, temperature 1": IExplR(),
    "IExplR, temperature 0.05": IExplR(temperature=0.05),
}


class LogisticRegression(nn.Module):
    """Logits `[B,1,2]` of the labels 0 and 1 from points `[B]`."""

    def __init__(self, start: tuple[float, float]) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.tensor(start, dtype=torch.float64))

    def forward(self, points: Tensor) -> Tensor:
        score = self.theta[0] * points + self.theta[1]
        return torch.stack([torch.zeros_like(score), score], dim=-1).unsqueeze(1)


@dataclass(frozen=True)
class Outcome:
    """Where a training run ended."""

    theta: tuple[float, float]
    correct: int
    """How many of the 10 points get a right label."""

    @property
    def boundary(self) -> float:
        return -self.theta[1] / self.theta[0]


def outcome(network: LogisticRegression) -> Outcome:
    label = network(POINTS).argmax(-1).unsqueeze(1)
    correct = ((label == SOLUTIONS).all(-1) & MASK).any(-1).sum()
    slope, offset = network.theta.tolist()
    return Outcome((slope, offset), int(correct))


def train(objective: Objective, start: tuple[float, float], *, rate: float = 2.0, updates: int = 200) -> Outcome:
    network = LogisticRegression(start)
    optimizer = torch.optim.SGD(network.parameters(), lr=rate)
    for _ in range(updates):
        optimizer.zero_grad()
        objective(network(POINTS), SOLUTIONS, MASK).backward()
        optimizer.step()
    return outcome(network)


def train_selectr(
    start: tuple[float, float], *, selector_updates_before: int, rate: float = 2.0, updates: int = 200
) -> tuple[Outcome, float]:
    """Run Algorithm 1 on the ten points; returns the outcome and the selector's probability of label 0 at x = -1.

    The selector starts with equal scores. That probability is measured after `selector_updates_before` updates of the
    selector with the network fixed (line 3).
    """
    torch.manual_seed(0)
    network, objective = LogisticRegression(start), SelectR()
    copy = LaggedCopy(network, copy_interval=1)
    last = nn.Linear(8, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    selector = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), last).double()
    optimizer = torch.optim.SGD(network.parameters(), lr=rate)
    selector_optimizer = torch.optim.SGD(selector.parameters(), lr=0.4)

    def score() -> Tensor:
        return selector(nn.functional.one_hot(SOLUTIONS[..., 0], 2) - copy(POINTS).softmax(-1)).squeeze(-1)

    for _ in range(selector_updates_before):
        selector_optimizer.zero_grad()
        objective.selector_loss(network(POINTS), SOLUTIONS, MASK, score()).backward()
        selector_optimizer.step()
    lean = score()[5].softmax(-1)[0].item()
    for _ in range(updates):
        logits, scores = network(POINTS), score()
        loss = objective(logits, SOLUTIONS, MASK, scores)
        selector_loss = objective.selector_loss(logits, SOLUTIONS, MASK, scores)
        optimizer.zero_grad()
        selector_optimizer.zero_grad()
        (loss + selector_loss).backward()
        selector_optimizer.step()
        optimizer.step()
        copy.update()
    return outcome(network), lean


def run_all() -> dict[tuple[str, str], Outcome]:
    """Return the outcome of every (objective, start)."""
    minloss_optimum = train(MinLoss(), PAPERS_START).theta
    table = {}
    for start_name, start in (("(0.1, 0)", PAPERS_START), ("MinLoss's optimum", minloss_optimum)):
        for name, objective in OBJECTIVES.items():
            table[name, start_name] = train(objective, start)
        for selector, updates in (("fresh", 0), ("pre-trained", 25)):
            table[f"SelectR, {selector} selector", start_name], lean = train_selectr(
                start, selector_updates_before=updates
            )
            print(f"the {selector} selector takes label 0 at x = -1 with probability {lean:.2f}, start {start_name}")
    print()
    return table


def draw(table: dict[tuple[str, str], Outcome], path: str) -> None:
    """Draw the paper's figure, with the curves of the other objectives from the same start."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"\n{path} not drawn: this needs matplotlib (pip install matplotlib)")
        return
    line = torch.linspace(-3, 2, 300, dtype=torch.float64)
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    for x, label, count in ((1, 1, 5), (-1, 0, 4), (-1, 1, 4), (-2, 1, 1)):
        axes.scatter(x, label, s=40 + 30 * count, color="tab:blue" if label else "tab:red", zorder=3)
        axes.annotate(f"{count}", (x, label), textcoords="offset points", xytext=(10, -14 if label else 8))
    axes.axvline(0, color="tab:green", label="start: boundary at 0")
    for name, colour in (("MinLoss", "black"), ("Naive", "tab:orange"), ("CCLoss", "tab:purple")):
        slope, offset = table[name, "(0.1, 0)"].theta
        axes.plot(line, (slope * line + offset).sigmoid(), color=colour, alpha=0.6)
        boundary = table[name, "(0.1, 0)"].boundary
        if -3 < boundary < 2:
            axes.axvline(boundary, color=colour, label=f"{name}: boundary at {boundary:.2f}")
        else:
            axes.plot([], [], color=colour, label=f"{name}: label 1 for all ten")
    axes.set(xlabel="x", ylabel="P(label 1)", title="Where logistic regression ends from slope 0.1, offset 0")
    axes.legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=150)
    print(f"\ndrawn: {path}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Example 2 of the paper: MinLoss in a local minimum.")
    parser.add_argument("--out", help="draw the figure into this file, for instance example2.png")
    out = parser.parse_args(arguments).out
    table = run_all()
    print(f"{'objective':30}{'start':20}{'slope':>8}{'offset':>8}{'boundary':>10}{'correct':>9}")
    for (name, start), end in table.items():
        slope, offset = end.theta
        print(f"{name:30}{start:20}{slope:8.3f}{offset:8.3f}{end.boundary:10.3f}{end.correct:6} of 10")
    print(
        "\nLeft of -2 with a rising slope, or right of 1 with a falling one, all ten points are on the side of label 1."
    )
    if out:
        draw(table, out)


if __name__ == "__main__":
    main()
