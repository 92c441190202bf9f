"""Started by torchrun: runs ``oneofmany train`` several times, in processes of which only the first may write."""

import json
import os
import sys

import torch

import oneofmany.training.trainer as trainer_module
from oneofmany.cli import leave, run
from oneofmany.runs.folder import RunFolder


def refuse(*_, **__):
    raise AssertionError("a process that is not the first one writes")


def main(plan):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    if os.environ["RANK"] != "0":
        for name in ("log", "save_state", "cut_metrics", "create"):
            setattr(RunFolder, name, refuse)
        for name in ("save_network", "write_json"):
            setattr(trainer_module, name, refuse)
    codes = [run(["train", *arguments]) for arguments in plan]
    torch.distributed.destroy_process_group()
    return max(codes)


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        leave(main(json.load(file)))
