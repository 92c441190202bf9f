"""An objective inside `torch.compile`: network and loss are one compiled function.

python examples/ecosystem/compiled.py
"""

import argparse

import torch
from task import ANSWERS, QUERIES, network, right

from oneofmany.objectives import MinLoss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="inductor", help="aot_eager needs no C++ compiler")
    backend = parser.parse_args().backend
    torch.manual_seed(0)
    model, objective = network(), MinLoss(validate=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    @torch.compile(backend=backend, fullgraph=True)
    def loss_of(queries, answers):
        return objective(model(queries), answers)

    for _ in range(200):
        optimizer.zero_grad()
        loss_of(QUERIES, ANSWERS).backward()
        optimizer.step()
    print(f"{right(model(QUERIES).argmax(-1))} of 10 right")


if __name__ == "__main__":
    main()
