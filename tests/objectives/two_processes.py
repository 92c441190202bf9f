"""One of two processes: the gradients of two processes, summed by hand and by DistributedDataParallel."""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parents[1]))
from objectives.every import EVERY
from objectives.parts import PARTS, build, counts, gradients, losses


def main(folder: Path, rank: int, size: int = 2) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=size)
    found = {}
    for name in EVERY:
        network, selector, inputs, case = build()
        part = PARTS[rank]
        total = counts(name, case, part)
        dist.all_reduce(total)
        losses(name, network, selector, inputs, case, part, *total).backward()
        by_hand = gradients(network, selector)
        for gradient in by_hand:
            if gradient is not None:
                dist.all_reduce(gradient)
        # DistributedDataParallel takes the mean over the processes, so every process divides by its share.
        network.zero_grad()
        wrapped = DistributedDataParallel(network)
        losses(name, wrapped, selector, inputs, case, part, *(total / size)).backward()
        averaged = gradients(network, selector)[: len(list(network.parameters()))]
        found[name] = {"sums": by_hand, "averages": averaged}
    if rank == 0:
        torch.save(found, folder / "gradients.pt")
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # threads of Gloo can abort a process that exits the usual way


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
