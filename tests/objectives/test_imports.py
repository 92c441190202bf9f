"""The objectives can be used in any training loop: they import only torch and the standard library.

The kernels for a GPU import triton, which comes with torch for GPUs, and are loaded there alone. The best order of a
set is computed by scipy, which is imported when it is used.
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
        own = {"pair_kernels.py": {"triton"}, "set_losses.py": {"scipy"}}.get(file.name, set())
        allowed = {"torch", *sys.stdlib_module_names} | own
        tree = ast.parse(file.read_text())
        assert not any(isinstance(node, ast.ImportFrom) and node.module == "scipy.optimize" for node in tree.body)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level <= 1, f"{file.name} reaches outside its folder"
                names = [] if node.level else [node.module or ""]
            else:
                continue
            for name in names:
                assert name.split(".")[0] in allowed, f"{file.name} imports {name}"
