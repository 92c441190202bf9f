"""The README, the docs and the examples run."""

import re
import runpy
from pathlib import Path

import pytest

from oneofmany.problems import TASKS

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")])


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_python_of_a_page_runs(page, monkeypatch, tmp_path):
    """All python blocks of a page, one after another in one namespace, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    tasks = dict(TASKS)
    try:
        exec(compile("\n".join(blocks(page)), str(page), "exec"), {"__name__": "page"})
    finally:  # a page may add a task
        TASKS.clear()
        TASKS.update(tasks)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_readme_shows_the_loop_of_the_example():
    """SelectR in a user's own loop: at most 25 lines, the same in the README and in the example that runs."""
    example = (ROOT / "examples" / "selectr_loop.py").read_text()
    loop = example.split("# --8<-- [start:loop]\n")[1].split("# --8<-- [end:loop]")[0].strip()
    assert len(loop.splitlines()) <= 25
    assert loop in (ROOT / "README.md").read_text()


EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.py") if path.parent.name != "ecosystem")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_every_example_runs(example, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


def test_every_published_result_says_its_command_and_hardware():
    for result in (ROOT / "benchmarks" / "measured").glob("*.txt"):
        command, hardware = result.read_text().splitlines()[:2]
        assert command.startswith("$ python benchmarks/")
        assert hardware.startswith("# ")
