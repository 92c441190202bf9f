"""Compiled code is kept where it can be, numba never refuses to compile, and "compiling" is said only if it is true."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import oneofmany
from oneofmany.compiled import announced, njit, temporary_folder

PACKAGE = Path(oneofmany.__file__).parent
PROGRAM = """
import tempfile
write = tempfile.TemporaryFile
def refuse(*, dir):
    if not dir.startswith(tempfile.gettempdir()):
        raise PermissionError(13, "Permission denied")
    return write(dir=dir)
tempfile.TemporaryFile = refuse  # numba looks for a folder by writing a file there

import numba
from oneofmany.compiled import announced, njit

@njit()
def one_more(x):
    return x + 1

with announced(lambda: print("compiling")):
    print(one_more(1))
print(one_more.stats.cache_path)

import importlib, pathlib, sys, oneofmany
package = pathlib.Path(oneofmany.__file__).parent
for path in package.rglob("*.py"):  # every function of the package that is compiled
    if "njit" in path.read_text():
        importlib.import_module(".".join(["oneofmany", *path.relative_to(package).with_suffix("").parts]))
ours = [module for name, module in sys.modules.items() if name.startswith("oneofmany.")]
values = [value for module in ours for value in vars(module).values()]
functions = {value for value in values if isinstance(value, numba.core.dispatcher.Dispatcher)}
assert len(functions) > 20
for function in functions:
    assert function.stats.cache_path.startswith(tempfile.gettempdir()), function
assert not numba.config.CACHE_DIR  # functions of others stay where they are
"""


def one_more(x):
    return x + 1


def test_a_folder_among_the_temporary_files(tmp_path):
    """What a read-only installation does with a read-only home: the second process finds the code of the first."""
    program, folder = tmp_path / "program.py", tmp_path / "temporary"
    program.write_text(PROGRAM)
    folder.mkdir()
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": str(PACKAGE.parent)}
    environment.pop("NUMBA_CACHE_DIR", None)
    first, second = (
        subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first == f"compiling\n{second}"
    answer, kept = second.splitlines()
    assert answer == "2"
    assert Path(kept).is_relative_to(folder)


def test_a_folder_of_others_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = temporary_folder()
    assert folder is not None
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert temporary_folder() is None
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert temporary_folder() is None


@pytest.mark.parametrize("folder", ["a file", "missing/deep"])
def test_without_any_folder_functions_still_compile(folder, tmp_path, monkeypatch):
    (tmp_path / "a file").touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / folder))
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    kept = njit(nogil=True)(one_more)
    assert kept(1) == 2
    assert kept.stats.cache_path is None


def test_compiling_is_said_once_and_only_when_it_is_true(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    said = []
    for _ in range(2):
        function = njit()(one_more)
        with announced(lambda: said.append("compiling")):
            assert function(1) == 2
            assert function(1.0) == 2
    assert said == ["compiling"]  # the second function came from the cache
