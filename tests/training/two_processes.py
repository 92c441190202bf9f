"""Started by torchrun: runs ``oneofmany train`` several times, in processes of which only the first may write.

A run whose arguments begin with ``stop-at N`` is asked to stop at its N-th line of metrics. The numbers of queries that
every run holds in a process are written beside the plan.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch

import oneofmany.training.trainer as trainer_module
from oneofmany.cli import leave, run
from oneofmany.runs.folder import RunFolder


def refuse(*_, **__):
    raise AssertionError("a process that is not the first one writes")


def stopping(at):
    log, lines = RunFolder.log, []

    def stop(folder, line):
        log(folder, line)
        lines.append(line)
        if len(lines) == at:
            signal.raise_signal(signal.SIGTERM)

    return stop


def train(arguments):
    if arguments[0] != "stop-at":
        return run(["train", *arguments])
    log = RunFolder.log
    if os.environ["RANK"] == "0":
        RunFolder.log = stopping(int(arguments[1]))
    code = run(["train", *arguments[2:]])
    RunFolder.log = log
    return abs(code - (128 + signal.SIGTERM))


def main(plan):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    if os.environ["RANK"] != "0":
        for name in ("log", "save_state", "cut_metrics", "create"):
            setattr(RunFolder, name, refuse)
        for name in ("save_network", "write_json"):
            setattr(trainer_module, name, refuse)
    place, held = trainer_module.place, []

    def noting(*given, **how):
        placed = place(*given, **how)
        held.append((len(placed), len(placed.solutions)))
        return placed

    trainer_module.place = noting
    codes = [train(arguments) for arguments in json.loads(plan.read_text())]
    plan.with_name(f"held-{os.environ['RANK']}.json").write_text(json.dumps(held[::2]))  # the others are dev data
    torch.distributed.destroy_process_group()
    return max(codes)


if __name__ == "__main__":
    leave(main(Path(sys.argv[1])))
