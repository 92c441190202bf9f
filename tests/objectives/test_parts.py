"""With a normaliser, processes and micro-batches give the gradient of one process with the whole batch."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from .every import EVERY
from .parts import PARTS, build, counts, gradients, losses


def close(actual, wanted, name):
    assert len(actual) == len(wanted)
    for a, w in zip(actual, wanted, strict=True):
        assert (a is None) == (w is None), name
        if a is not None:
            torch.testing.assert_close(a, w, rtol=1e-12, atol=1e-14, msg=name)


def whole(name):
    network, selector, inputs, case = build()
    losses(name, network, selector, inputs, case, slice(None)).backward()
    return gradients(network, selector), len(list(network.parameters()))


def accumulated(name, total):
    network, selector, inputs, case = build()
    for part in PARTS:
        losses(name, network, selector, inputs, case, part, *total).backward()
    return gradients(network, selector)


@pytest.mark.parametrize("name", EVERY)
def test_micro_batches(name):
    case = build()[3]
    total = sum(counts(name, case, part) for part in PARTS)
    wanted, _ = whole(name)
    close(accumulated(name, total), wanted, name)
    # Without it, the mean of the means of the parts is another gradient.
    halves = [gradient / 2 for gradient in accumulated(name, (None, None)) if gradient is not None]
    assert any((a - w).abs().max() > 1e-3 for a, w in zip(halves, wanted, strict=False)), name


def test_two_processes(tmp_path):
    script = Path(__file__).with_name("two_processes.py")
    commands = [[sys.executable, str(script), str(tmp_path), str(rank)] for rank in range(2)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    for process in processes:
        _, stderr = process.communicate(timeout=300)
        assert process.returncode == 0, stderr
    found = torch.load(tmp_path / "gradients.pt", weights_only=True)
    assert list(found) == list(EVERY)
    for name, of in found.items():
        wanted, own = whole(name)
        close(of["sums"], wanted, name)
        close(of["averages"], wanted[:own], name)
