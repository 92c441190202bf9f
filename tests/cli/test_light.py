"""Help and the light imports load neither torch nor numba, and solving on a CPU loads no torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import oneofmany
from oneofmany.cli import COMMANDS

SOURCE = Path(oneofmany.__file__).parents[1]
HEAVY = {"torch", "numba", "scipy", "matplotlib"}


def loaded(program):
    """Which heavy packages a program loads."""
    program += (
        "\nimport sys\nprint(*sorted({'torch', 'numba', 'scipy', 'matplotlib'} & set(sys.modules)), file=sys.stderr)"
    )
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1].split()


def commands():
    yield []
    for name, place in COMMANDS.items():
        yield [name]
        if isinstance(place, dict):
            yield from ([name, one] for one in place)


def test_help_loads_nothing_heavy():
    # All in one process: what one command loads, the assertion after it sees.
    program = f"""
import sys
from oneofmany.cli import run
for command in {list(commands())}:
    try:
        assert run([*command, "--help"]) == 0
    except SystemExit as end:
        assert end.code == 0
    heavy = {HEAVY} & set(sys.modules)
    assert not heavy, (command, heavy)
"""
    assert loaded(program) == []


@pytest.mark.parametrize(
    "module",
    [
        "oneofmany",
        "oneofmany.problems",
        "oneofmany.data",
        "oneofmany.networks",
        "oneofmany.networks.equivariant.cpu_inference",
        "oneofmany.evaluation",
    ],
)
def test_light_imports(module):
    assert loaded(f"import {module}") == []


def test_solving_on_a_cpu_loads_no_torch():
    program = """
import oneofmany
assert oneofmany.solve("nqueens", ". 4 . .").valid
from oneofmany.cli import run
assert run(["solve", "nqueens", ". 4 . .", "--answer", "network"]) == 0
"""
    assert "torch" not in loaded(program)
