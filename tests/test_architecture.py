"""Arrows between the rooms never point back."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "oneofmany"
MAY_IMPORT = {
    "problems": set(),
    "exact": {"problems"},
    "data": {"problems", "exact", "files"},
    "objectives": set(),
    "networks": {"problems", "files"},
    "evaluation": {"problems", "data", "networks", "runs", "files"},
    "runs": {"files"},
    "training": {"problems", "data", "networks", "objectives", "evaluation", "runs", "files"},
    "recipes": {"data", "networks", "training"},
    "report": {"problems", "data", "networks", "evaluation", "files"},
    "solving": {"problems", "exact", "networks"},
    "evaluating": {"problems", "data", "networks", "evaluation", "runs", "files"},
    "files": set(),
    "testing": {"problems", "exact"},
    "cli": {
        *("problems", "exact", "data", "networks", "objectives", "evaluation", "runs", "training", "recipes"),
        *("report", "solving", "evaluating", "files"),
    },
}
LIGHT = {"objectives": {"torch", "triton"}, "networks": {"torch", "numpy", "triton"}, "problems": {"torch", "numpy"}}


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path):
    """Absolute names of the modules that a file imports."""
    package = ["oneofmany", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield ".".join([*base, node.module or ""]).rstrip(".")


MODULES = [p for p in sorted(PACKAGE.rglob("*.py")) if p.parent != PACKAGE or room_of(p) in MAY_IMPORT]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports(path):
    room = room_of(path)
    for name in imports(path):
        first, *rest = name.split(".")
        assert first != "reproduction", "what serves the page about the paper is not in the package"
        if first == "oneofmany":
            assert not rest or rest[0] in MAY_IMPORT[room] | {room}, f"{room} must not import {name}"
        elif room in LIGHT and first in {"numba", "scipy", "numpy", "torch", "triton", "rich", "tyro", "matplotlib"}:
            assert first in LIGHT[room], f"{room} must not need {first}"
