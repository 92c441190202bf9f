"""Hooks, workflow, issue forms and release notes are what CONTRIBUTING.md says they are."""

import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
import yaml

import oneofmany

ROOT = Path(__file__).parents[2]
HOOKS = ROOT / ".pre-commit-config.yaml"
PRE_COMMIT = [sys.executable, "-m", "pre_commit"]


def read(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def hooks():
    return [hook for repository in read(HOOKS)["repos"] for hook in repository["hooks"]]


def test_hooks_use_the_tools_of_the_environment():
    """Nothing is downloaded: every hook is a program in .venv, with options or our own files as arguments."""
    assert {hook["id"] for hook in hooks()} == {"ruff-check", "ruff-format", "pyright", "subject"}
    for hook in hooks():
        program, *arguments = hook["entry"].split()
        assert hook["language"] == "system"
        assert Path(program).parent == Path(".venv/bin")
        assert (Path(sys.prefix) / "bin" / Path(program).name).exists()
        assert all((ROOT / argument).is_file() for argument in arguments if argument.endswith(".py"))


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("x" * 72, 0),
        ("x" * 73, 1),
        ("\n# a comment\n" + "x" * 72 + "\n\n" + "y" * 200, 0),
        ("x" * 40 + "\n" + "y" * 40 + "\n\nbody", 1),  # git joins the lines of the first paragraph
        ("fixup! " + "x" * 72, 0),
        ("fixup! " + "x" * 73, 1),
        ("é" * 72 + "\n# ------------------------ >8 ------------------------\n" + "diff " * 40, 0),
    ],
)
def test_subjects(tmp_path, message, code):
    (tmp_path / "message").write_text(message, encoding="utf-8")
    call = [sys.executable, str(ROOT / ".ci" / "subject.py"), str(tmp_path / "message")]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert ("at most 72" in done.stderr) == bool(code)


def test_the_hooks_refuse_a_commit(tmp_path):
    """In a separate repository, git runs the checks of the subject and the linter."""
    place = tmp_path / "repository"
    (place / ".ci").mkdir(parents=True)
    for name in (".pre-commit-config.yaml", ".ci/subject.py", "pyproject.toml"):
        (place / name).write_bytes((ROOT / name).read_bytes())
    (place / ".venv").symlink_to(sys.prefix)
    (place / ".gitignore").write_text(".venv\n")
    who = {
        f"GIT_{role}_{what}": "someone@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    no_git = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = no_git | who | {"PRE_COMMIT_HOME": str(tmp_path / "home"), "GIT_CONFIG_GLOBAL": os.devnull}

    def call(*command):
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    assert call("git", "init", "-q") == (0, "")
    code, said = call(*PRE_COMMIT, "install")
    assert code == 0, said
    assert {"pre-commit", "commit-msg"} <= {path.name for path in (place / ".git" / "hooks").iterdir()}
    assert call("git", "add", "-A")[0] == 0
    code, said = call("git", "commit", "-qm", "x" * 73)
    assert code == 1
    assert "the subject has 73 characters" in said
    code, said = call("git", "commit", "-qm", "Short")
    assert code == 0, said
    (place / "wrong.py").write_text('"""A module."""\n\nimport os\n')
    assert call("git", "add", "-A")[0] == 0
    code, said = call("git", "commit", "-qm", "Short")
    assert code == 1
    assert "`os` imported but unused" in said


def test_the_workflow_runs_what_ci_runs():
    workflow = read(".github/workflows/ci.yml")
    assert set(workflow[True]) == {"push", "pull_request"}  # YAML reads the key "on" as true
    [job] = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == ["bash .ci/run"]
    assert re.findall(r"^make .*", (ROOT / ".ci" / "run").read_text(), re.MULTILINE) == ["make demo", "make test"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_issue_forms(path):
    """GitHub's requirements for a form."""
    form = read(path)
    assert form["name"]
    assert form["description"]
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert fields
    assert len({field["id"] for field in fields}) == len(fields)
    for field in fields:
        assert field["type"] in {"input", "textarea", "dropdown", "checkboxes"}
        assert field["attributes"]["label"]


def test_release_notes_by_version():
    """Versions are listed from newest to oldest with their dates; the newest is the package's and the one to cite."""
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    released = [
        re.fullmatch(r"(\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)", heading)
        for heading in headings
        if heading != "Unreleased"
    ]
    assert all(released), headings
    assert "Unreleased" not in headings[1:]
    days = [date.fromisoformat(one[2]) for one in released]
    assert days == sorted(days, reverse=True)
    assert released[0][1] == oneofmany.__version__
    citation = read("CITATION.cff")
    assert (citation["version"], citation["date-released"]) == (oneofmany.__version__, days[0])
