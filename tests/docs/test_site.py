"""The site builds without a warning, and says something about every command and every metric."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from oneofmany.cli import COMMANDS, run
from oneofmany.training import train
from small_runs import files, small, write_data

DOCS = Path(__file__).parents[2] / "docs"
COMMAND_PAGE = (DOCS / "command-line.md").read_text()
NOT_RUN = ("doctor", "demo")
"""Examples that take longer: the doctor has a test of its own, and .ci/run runs the demo."""


def names(tree, before=""):
    for name, place in tree.items():
        yield from names(place, f"{before}{name} ") if isinstance(place, dict) else [before + name]


def test_the_site_builds_without_warnings(tmp_path):
    pytest.importorskip("furo")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    command += ["-D", "report_pictures=0", str(DOCS), str(tmp_path)]  # drawing them takes longest
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "objectives" / "selectr.html").exists()
    # The report is a page of its own, and the results lead to it.
    assert 'id="show-table-2-accuracy"' in (tmp_path / "report.html").read_text()
    assert 'href="report.html"' in (tmp_path / "results.html").read_text()


@pytest.mark.parametrize("command", list(names(COMMANDS)))
def test_every_command_has_a_section_with_an_example_and_its_help(command):
    section = re.search(rf"^## {command}\n(.*?)(?=^## |\Z)", COMMAND_PAGE, re.DOTALL | re.MULTILINE)
    assert section, f"docs/command-line.md has no section about {command}"
    assert f"oneofmany {command}" in section[1].split("```console\n")[1]
    assert f"```{{command-help}} {command}\n" in section[1]


def test_the_examples_of_the_commands_run(tmp_path, monkeypatch):
    """All of them one after another in an empty folder, as the page says."""
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"^```console\n(.*?)^```", COMMAND_PAGE, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            program, *words = shlex.split(line)
            if program == "echo":
                text, _, file = words
                Path(file).write_text(text + "\n")
            elif words[0] not in NOT_RUN:
                assert run(words) == 0, line


def test_every_key_of_the_metrics_is_in_the_glossary(tmp_path):
    data, glossary = write_data(tmp_path), (DOCS / "metric-glossary.md").read_text()
    settings = small("selectr")
    train(settings, *files(data, settings), tmp_path / "selectr")
    for objective in ("minloss", "unique"):
        train(small(objective), *files(data, settings), tmp_path / objective)
    shared = replace(settings, pretrained=(str(tmp_path / "minloss"), str(tmp_path / "unique")))
    train(shared, *files(data, settings), tmp_path / "shared")
    lines = [json.loads((tmp_path / "shared" / "result.json").read_text())]
    for run_name in ("selectr", "shared"):
        lines += [json.loads(line) for line in (tmp_path / run_name / "metrics.jsonl").read_text().splitlines()]
    assert {"train", "dev", "start"} <= {line.get("kind") for line in lines}
    keys = {key for line in lines for key in (*line, *line.get("dev", ()))}
    values = {line[key] for line in lines for key in ("kind", "phase") if key in line}
    missing = sorted(word for word in keys | values if f"`{word}`" not in glossary)
    assert not missing, f"docs/metric-glossary.md does not explain {', '.join(missing)}"
