"""Plain `DistributedDataParallel` by torchrun: every process has its own queries, and the gradient is that of one.

`DistributedDataParallel` averages the gradients of the processes. The mean over all queries is therefore the local sum,
times the number of processes, over the queries of all of them: `count`, summed, is the `normaliser`.

    torchrun --nproc-per-node 2 examples/ecosystem/data_parallel.py
"""

import os
import sys

import torch
import torch.distributed as dist
from task import ANSWERS, QUERIES, network, right
from torch.nn.parallel import DistributedDataParallel

from oneofmany.objectives import MinLoss


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = slice(rank, None, size)
    mask = torch.ones(10, 10, dtype=torch.bool)
    model, objective = DistributedDataParallel(network()), MinLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(200):
        trained = objective.count(mask[mine])
        dist.all_reduce(trained)
        optimizer.zero_grad()
        objective(model(QUERIES[mine]), ANSWERS[mine], mask[mine], normaliser=trained / size).backward()
        optimizer.step()
    if rank == 0:
        print(f"{right(model.module(QUERIES).argmax(-1))} of 10 right, {size} processes")
    dist.barrier()  # torchrun stops all processes as soon as one has failed
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # a thread of Gloo may still hold a tensor, and Python 3.11 can abort when such a thread lets go of it


if __name__ == "__main__":
    main()
