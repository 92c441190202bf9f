"""Imports between rooms never point back, and modules and chains of imports stay short."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "oneofmany"
MAY_IMPORT = {
    "problems": set(),
    "exact": {"problems", "compiled"},
    "data": {"problems", "exact", "files", "tensor_files", "progress", "extras", "compiled", "launching"},
    "objectives": set(),
    "networks": {"problems", "files", "tensor_files", "compiled"},
    "pictures": {"problems", "networks", "files", "extras"},
    "evaluation": {"problems", "data", "networks", "runs", "files", "tensor_files", "progress"},
    "runs": {"files", "tensor_files"},
    "launching": {"runs", "files", "extras"},
    "training": {"problems", "data", "networks", "objectives", "evaluation", "runs", "launching", "files"},
    "recipes": {"problems", "data", "networks", "training"},
    "report": {"problems", "data", "networks", "evaluation", "pictures", "files", "tensor_files", "extras"},
    "tuning": {"data", "recipes", "training", "runs", "launching", "report", "files", "extras"},
    "solving": {"problems", "exact", "networks", "progress"},
    "playground": {"files"},
    "compiled": set(),
    "files": set(),
    "extras": set(),
    "doctor": {"problems", "exact", "networks", "objectives", "solving", "extras", "compiled"},
    "progress": set(),
    "tensor_files": {"files"},
    "testing": {"problems", "exact"},
    "cli": {
        *("problems", "exact", "data", "networks", "objectives", "evaluation", "runs", "training", "recipes"),
        *("launching", "tuning", "report", "pictures", "playground", "solving"),
        *("files", "progress", "extras", "doctor", "compiled"),
    },
}
LIGHT = {
    "objectives": {"torch", "triton", "scipy"},
    "networks": {"torch", "numpy", "triton"},
    "problems": {"torch", "numpy"},
}


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path):
    """Absolute names of the modules that a file imports, including imports inside functions."""
    package = ["oneofmany", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, node.module or ""]).rstrip(".")
            # ``from room import module`` imports the module; any other name is in the room's ``__init__``.
            modules = [f"{name}.{alias.name}" for alias in node.names if f"{name}.{alias.name}" in FILES]
            yield from modules
            if len(modules) < len(node.names):
                yield name


def name_of(path):
    return ".".join(["oneofmany", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


EVERY = sorted(PACKAGE.rglob("*.py"))
FILES = {name_of(path): path for path in EVERY}
MODULES = [path for path in EVERY if path.parent != PACKAGE or room_of(path) in MAY_IMPORT]


@cache
def graph():
    """Module -> the modules that it imports, without the package itself."""
    found = {}
    for name, path in FILES.items():
        found[name] = {other for other in imports(path) if other in FILES} - {"oneofmany", name}
    del found["oneofmany"]
    return found


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


def test_every_module_is_in_a_room():
    rooms = {room_of(path) for path in EVERY} - {"__init__", "__main__"}
    assert rooms == set(MAY_IMPORT)


def test_no_module_imports_itself_by_way_of_others():
    try:
        list(TopologicalSorter(graph()).static_order())
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def folder_of(name):
    """The folder of a module: its room, or its sub-package of networks."""
    return FILES[name].parent


FOLDERS = sorted({path.parent for path in EVERY if path.parent != PACKAGE})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_no_chain_of_imports_inside_a_room_is_longer_than_six_modules(folder):
    # Imports inside functions count. An ``__init__`` only gathers a room's names and does not count as a module.
    own = {name for name in graph() if folder_of(name) == folder and FILES[name].name != "__init__.py"}
    chains = {}
    for name in TopologicalSorter({name: graph()[name] & own for name in own}).static_order():
        chains[name] = [name, *max((chains[other] for other in graph()[name] & own), key=len, default=[])]
    longest = max(chains.values(), key=len, default=[])
    assert len(longest) <= 6, " -> ".join(longest)


def test_no_module_is_longer_than_350_lines():
    lengths = {name: len(path.read_text().splitlines()) for name, path in FILES.items()}
    assert {name: length for name, length in lengths.items() if length > 350} == {}


def test_modules_are_imported_by_name_and_not_by_a_string():
    by_string = {name for name, path in FILES.items() if re.search(r"import_module\(|__import__", path.read_text())}
    assert by_string == {"oneofmany.cli"}  # its table of commands


def test_few_types_are_ignored():
    ignored = {name: len(re.findall(r"(?:pyright|type): ignore", path.read_text())) for name, path in FILES.items()}
    assert sum(ignored.values()) <= 10, {name: count for name, count in ignored.items() if count}


def test_the_report_stays_small():
    report = [path for name, path in FILES.items() if name.startswith("oneofmany.report")]
    assert len(report) <= 12
    assert sum(len(path.read_text().splitlines()) for path in report) <= 2000
