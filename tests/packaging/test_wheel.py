"""The wheel is built, inspected and used in a separate environment, outside of the repository."""

import email
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import oneofmany
from oneofmany.doctor import NEEDED
from oneofmany.extras import OPTIONAL

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAME = f"oneofmany-{oneofmany.__version__}"
KINDS = {".json", ".cu", ".py", ".typed", ".safetensors", ".html", ".css", ".js", ".mjs", ".c", ".wasm"}
"""The allowed files of the package: anything else was included by accident."""
WHERE = """
import json, sys
from importlib.metadata import version
import oneofmany, oneofmany.cli
saved = oneofmany.load("sudoku")
files = [module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "oneofmany"]
print(json.dumps({"files": files, "path": sys.path, "version": version("oneofmany"), "task": saved.task}))
"""


def call(*command, **where):
    """Run a command and return its stdout; a failure shows its output."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **where)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(source, target):
    """The wheel and the sdist of a source tree, as ``make wheel`` builds them."""
    call(sys.executable, "-m", "hatchling", "build", "-d", target, cwd=source)
    [wheel], [sdist] = target.glob("*.whl"), target.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def package_files():
    """Every file of the package in the source tree, as the wheel names it."""
    files = (path.relative_to(SOURCE) for path in (SOURCE / "oneofmany").rglob("*") if path.is_file())
    return {path.as_posix() for path in files if "__pycache__" not in path.parts}


def test_the_wheel_holds_the_package_and_nothing_else(built):
    wheel, _ = built
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for path in (SOURCE / "oneofmany" / "weights").glob("*.safetensors"):
            assert archive.read(f"oneofmany/weights/{path.name}") == path.read_bytes()
    about = {f"{NAME}.dist-info/{file}" for file in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    assert names == package_files() | about | {f"{NAME}.dist-info/licenses/LICENSE"}
    assert {Path(name).suffix for name in package_files()} <= KINDS
    data = {name for name in package_files() if name.endswith(".json")}
    assert data == {"oneofmany/recipes/measured.json", "oneofmany/playground/accuracy.json"}
    assert not [name for name in names if "reproduction" in name or "/records/" in name]
    assert "oneofmany/py.typed" in names
    assert wheel.name == f"{NAME}-py3-none-any.whl"


def name_of(requirement):
    return re.match(r"[\w-]+", requirement)[0]


def test_what_the_wheel_says_about_itself(built):
    with zipfile.ZipFile(built[0]) as archive:
        about = email.message_from_string(archive.read(f"{NAME}.dist-info/METADATA").decode())
        scripts = archive.read(f"{NAME}.dist-info/entry_points.txt").decode()
    assert (about["Name"], about["Version"]) == ("oneofmany", oneofmany.__version__)
    assert (about["License-Expression"], about["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    assert about["Summary"] == PROJECT["description"]
    entries = about.get_all("Requires-Dist", [])
    needed = {entry for entry in entries if "extra ==" not in entry}
    assert needed == set(PROJECT["dependencies"])
    assert {name_of(entry) for entry in needed} == {"torch", "numpy", "safetensors", "numba", "scipy", "tyro", "rich"}
    assert {name_of(entry) for entry in needed} == set(NEEDED)
    assert set(about.get_all("Provides-Extra")) == {
        *("report", "parquet", "tensorboard", "slurm", "ray", "tune"),
        *("ecosystem", "all", "docs", "dev"),
    }
    extras = {(extra, name_of(entry)) for entry in entries for extra in re.findall(r"extra == '(\w+)'", entry)}
    assert {name for extra, name in extras if extra == "report"} == {"matplotlib", "jinja2"}
    assert {(package.extra, name) for name, package in OPTIONAL.items()} <= extras
    assert {name for extra, name in extras if extra == "all"} == set(OPTIONAL)
    assert "[console_scripts]\noneofmany = oneofmany.cli:main" in scripts


def test_the_sdist_builds_the_same_wheel(built, tmp_path):
    wheel, sdist = built
    with tarfile.open(sdist) as archive:
        files = {name.removeprefix(f"{NAME}/") for name in archive.getnames()}
        archive.extractall(tmp_path, filter="data")
    beside = {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "PKG-INFO", ".gitignore"}
    assert files == beside | {f"src/{name}" for name in package_files()}
    assert not [name for name in files if "reproduction" in name]
    again, _ = build(tmp_path / NAME, tmp_path / "dist")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert {name: one.read(name) for name in one.namelist()} == {
            name: other.read(name) for name in other.namelist()
        }


def new_environment(folder, **options):
    """An environment without any package, and its Python."""
    venv.create(folder, symlinks=os.name != "nt", **options)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def try_out(python, folder):
    """A user's first commands, in an empty folder; every module must come from the environment of ``python``."""
    folder.mkdir()
    own = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NUMBA_CACHE_DIR"}
    environment = {name: value for name, value in os.environ.items() if name not in own} | {"OMP_NUM_THREADS": "1"}

    def use(*arguments):
        return call(python.parent / "oneofmany", *arguments, cwd=folder, env=environment)

    found = json.loads(call(python, "-c", WHERE, cwd=folder, env=environment))
    assert len(found["files"]) > 10
    assert all(Path(file).is_relative_to(python.parents[1]) for file in found["files"])
    assert str(SOURCE) not in found["path"]
    assert (found["version"], found["task"]) == (oneofmany.__version__, "sudoku")
    assert "solve" in use("--help")
    assert use("--version").strip() == oneofmany.__version__
    answer = json.loads(use("solve", "nqueens", "1 3 6 9 7 . . . . .", "--json"))
    assert (answer["source"], answer["valid"]) == ("network", True)
    use("data", "nqueens", "--size", "6", "--blanks", "4", "--out", "queries.safetensors")
    scored = json.loads(use("evaluate", "nqueens", "queries.safetensors", "--json"))
    assert scored["overall"]["total"] > 0
    weights = json.loads(use("doctor", "--json"))["weights"]
    bundled = {path.stem for path in (SOURCE / "oneofmany" / "weights").glob("*.safetensors")}
    assert {task for task, one in weights.items() if one["bundled"]} == bundled
    assert sorted(path.name for path in folder.iterdir()) == ["queries.safetensors"]


def test_the_wheel_works_without_the_repository(built, tmp_path):
    """Only the dependencies come from the environment of the tests, not its editable install of the package."""
    python = new_environment(tmp_path / "venv")
    installer = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
    call(*installer, "--no-deps", "--no-index", built[0], cwd=tmp_path)
    [packages] = (tmp_path / "venv").rglob("site-packages")
    # A folder that a .pth file names is searched; the .pth files in it, such as the editable install's, are not read.
    borrowed = [place for place in sys.path if re.search(r"(site|dist)-packages$", place)]
    (packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    # A base install: the extras cannot be imported, although they are in the borrowed folder.
    (packages / "base.pth").write_text(f"import sys; sys.modules.update(dict.fromkeys({list(OPTIONAL)}))\n")
    try_out(python, tmp_path / "empty")
    report = [python.parent / "oneofmany", "report", ".", "--out", "report.html"]
    done = subprocess.run(report, capture_output=True, text=True, check=False, cwd=tmp_path / "empty")
    sentence = "jinja2 is needed for the HTML report and is not installed: pip install 'oneofmany[report]'"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"oneofmany: {sentence}\n")


@pytest.mark.slow
def test_the_wheel_and_its_dependencies_install_from_nothing(built):
    with tempfile.TemporaryDirectory() as place:  # gigabytes, which pytest would keep for three runs
        folder = Path(place).resolve()
        python = new_environment(folder / "venv", with_pip=True)
        call(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", built[0], cwd=folder)
        call(python, "-m", "pip", "check", cwd=folder)
        try_out(python, folder / "empty")
