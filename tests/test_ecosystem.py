"""The examples with other libraries run, each in a process of its own."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "ecosystem"
EXAMPLES = {
    "compiled": (["--backend", "aot_eager"], ()),
    "data_parallel": ([], ()),
    "lightning_selectr": ([], ("lightning",)),
    "hugging_face": ([], ("transformers", "accelerate")),
}
"""Example -> its arguments, and the packages that it needs."""


def test_every_example_is_tested():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*EXAMPLES, "task"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * bool(needed)) for name, (_, needed) in EXAMPLES.items()]
)
def test_an_example_in_a_process_of_its_own(name, tmp_path):
    arguments, needed = EXAMPLES[name]
    if missing := [package for package in needed if find_spec(package) is None]:
        pytest.skip(f"{' and '.join(missing)} not installed: pip install 'oneofmany[ecosystem]'")
    command = [sys.executable]
    if name == "data_parallel":
        command += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, str(FOLDER / f"{name}.py"), *arguments],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(FOLDER)])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"(\d+) of 10 right", done.stdout)
    assert found, done.stdout
    assert int(found[1]) >= 9
