"""The commands of the gallery run, and draw its pictures."""

import re
import shlex
from pathlib import Path

from oneofmany.cli import run
from oneofmany.cli.new_task import QUERY, TEMPLATE
from oneofmany.problems import TASKS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gallery.md").read_text()


def test_the_commands_of_the_gallery_draw_its_pictures(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    tasks = dict(TASKS)
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            code = run(shlex.split(line)[1:])
            TASKS.clear()
            TASKS.update(tasks)
            assert code == ("Peru=green" in line), line
    out = capsys.readouterr().out
    assert "Brazil=green and Peru=green break a rule of kind 'border'" in out
    assert "116\n" in out
    drawn = {path.name: path.read_text() for path in tmp_path.glob("*.svg")}
    assert drawn == {path.name: path.read_text() for path in (ROOT / "docs" / "gallery").glob("*.svg")}
    assert all(f"(gallery/{name})" in PAGE for name in drawn)


def test_every_example_is_in_the_gallery():
    assert all(f"`{path.name}`" in PAGE for path in (ROOT / "examples" / "tasks").glob("*.py"))


def test_the_page_about_own_tasks_shows_the_starting_file():
    text = TEMPLATE.replace("NAME", "mytask").replace("FILE", "mytask.py").replace("QUERY", QUERY)
    assert f"```python\n{text}```" in (ROOT / "docs" / "own-task.md").read_text()
