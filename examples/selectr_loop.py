"""SelectR with your own network: name two digits whose sum ends in the digit that is given.

Every query has ten right answers, and any one of them is enough. Naive learns their mean, which is not an answer;
SelectR learns one answer for each query.

    python examples/selectr_loop.py
"""

import torch
from torch import Tensor, nn

from oneofmany.objectives import LaggedCopy, Naive, SelectR

QUERIES = torch.arange(10)
SOLUTIONS = torch.tensor([[[a, (query - a) % 10] for a in range(10)] for query in range(10)])  # [B,K,R]
MASK = torch.ones(10, 10, dtype=torch.bool)  # [B,K]


def make_network() -> nn.Module:
    """Make your network: here from a digit to logits `[B,R,V]` = `[B,2,10]`."""
    return nn.Sequential(nn.Embedding(10, 64), nn.ReLU(), nn.Linear(64, 2 * 10), nn.Unflatten(-1, (2, 10)))


# --8<-- [start:loop]
def train_with_selectr(network: nn.Module, queries: Tensor, solutions: Tensor, mask: Tensor, updates: int) -> None:
    objective = SelectR()
    copy = LaggedCopy(network, copy_interval=10)
    values = int(solutions.max()) + 1
    selector = nn.Sequential(nn.Linear(solutions.shape[-1] * values, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    selector_optimizer = torch.optim.Adam(selector.parameters(), lr=0.01)
    for _ in range(updates):
        # The selector sees the lagged copy's prediction against each listed solution.
        prediction = copy(queries).softmax(-1).unsqueeze(1)
        difference = nn.functional.one_hot(solutions, values) - prediction
        scores = selector(difference.flatten(2)).squeeze(-1)
        logits = network(queries)
        loss = objective(logits, solutions, mask, scores)
        selector_loss = objective.selector_loss(logits, solutions, mask, scores)
        optimizer.zero_grad()
        selector_optimizer.zero_grad()
        (loss + selector_loss).backward()
        selector_optimizer.step()
        optimizer.step()
        copy.update()


# --8<-- [end:loop]


def train_naively(network: nn.Module, queries: Tensor, solutions: Tensor, mask: Tensor, updates: int) -> None:
    objective, optimizer = Naive(), torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(updates):
        optimizer.zero_grad()
        objective(network(queries), solutions, mask).backward()
        optimizer.step()


def right_answers(network: nn.Module) -> int:
    """Return how many of the 10 queries get a right answer."""
    answer = network(QUERIES).argmax(-1)
    return int((answer.sum(-1) % 10 == QUERIES).sum())


def main() -> None:
    torch.manual_seed(0)
    network = make_network()
    print(f"before training:      {right_answers(network)} of 10 right")
    train_with_selectr(network, QUERIES, SOLUTIONS, MASK, updates=200)
    print(f"trained with SelectR: {right_answers(network)} of 10 right")
    print("answers:", ", ".join(f"{q}: {a}+{b}" for q, (a, b) in enumerate(network(QUERIES).argmax(-1).tolist())))
    torch.manual_seed(0)
    network = make_network()
    train_naively(network, QUERIES, SOLUTIONS, MASK, updates=200)
    print(f"trained with Naive:   {right_answers(network)} of 10 right")


if __name__ == "__main__":
    main()
