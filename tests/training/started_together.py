"""Runs of two processes, and what it means that they do what one does."""

import os
import subprocess
import sys

import pytest

from small_runs import fields, files


def arguments(settings, folder, out):
    train_file, dev_file = files(folder, settings)
    own = ["--out", out, "--train", train_file, "--dev", dev_file]
    return [str(part) for part in ("sudoku/minloss/tiny", *own, *fields(settings))]


def torchrun(*command):
    torch_run = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    return subprocess.Popen(
        [*torch_run, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def assert_close(mine, theirs, where):
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        if isinstance(value, dict):
            assert_close(value, theirs[name], where)
        elif isinstance(value, float):
            assert theirs[name] == pytest.approx(value, rel=2e-3, abs=1e-6), (where, name)
        else:
            assert theirs[name] == value, (where, name)
