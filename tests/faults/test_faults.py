"""Killed commands, full disks and commands at the same time; each module here is also a program with larger counts."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from oneofmany.data import Dataset
from oneofmany.data.nqueens import build_nqueens

from . import full_disk, kills, two_at_once

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("only", ["data", "train", "sweep"])
def test_killed_commands_give_the_undisturbed_result(only):
    """In a process of its own: PyTorch must not have trained in a process that forks."""
    driver([kills.__name__, "--count", 40, "--seed", 1, "--only", only])


@pytest.mark.slow
def test_a_full_disk_at_every_write():
    driver([full_disk.__name__])


@pytest.mark.slow
def test_two_of_every_command_at_once():
    driver([two_at_once.__name__])


def driver(arguments):
    module, *rest = arguments
    name = f"tests.faults.{module.rpartition('.')[2]}"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", name, *map(str, rest)]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("force", [False, True])
def test_a_file_that_the_system_does_not_let_grow(tmp_path, force):
    """A limit of the kernel on the size of files, as a full disk is."""
    out = tmp_path / "data.safetensors"
    if force:
        build_nqueens(5, 3, seed=1).save(out)
    before = out.read_bytes() if force else None
    command = [sys.executable, "-m", "oneofmany", "data", "nqueens", "--size", "6", "--blanks", "3", "--out", str(out)]

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))

    result = subprocess.run([*command, *["--force"] * force], capture_output=True, text=True, preexec_fn=limit)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "oneofmany: File too large\n"
    assert [path.name for path in tmp_path.iterdir()] == ["data.safetensors"] * force
    assert not force or (out.read_bytes() == before and len(Dataset.load(out)))
