"""The objectives can be used in any training loop: they import only torch and the standard library.

The kernels for a GPU import triton, which comes with torch for GPUs, and are loaded there alone.
"""

import ast
import sys
from pathlib import Path

import oneofmany.objectives


def test_torch_only():
    folder = Path(oneofmany.objectives.__file__).parent
    files = list(folder.glob("*.py"))
    assert files
    for file in files:
        allowed = {"torch", *sys.stdlib_module_names} | ({"triton"} if file.name == "pair_kernels.py" else set())
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level <= 1, f"{file.name} reaches outside its folder"
                names = [] if node.level else [node.module or ""]
            else:
                continue
            for name in names:
                assert name.split(".")[0] in allowed, f"{file.name} imports {name}"
