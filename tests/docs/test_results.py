"""Every number of the docs comes from results/, and a page that is out of step is found."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from oneofmany.cli import sweep
from oneofmany.recipes import planning, recipe
from oneofmany.recipes.fields import resolve
from oneofmany.report import Grid
from oneofmany.report.agreement import summary
from oneofmany.report.claims import check_claims, claims_markdown
from oneofmany.report.learned import our_tables
from oneofmany.report.ours import each_run, main_table
from oneofmany.report.tables import general_tables
from report.our_records import our_experiments, our_runs
from report.paper_records import set_apart, table_2, write

ROOT = Path(__file__).parents[2]
PUBLISH = runpy.run_path(str(ROOT / "results" / "publish.py"))
NOTHING = PUBLISH["NOTHING"]
REPRODUCTION = (ROOT / "docs" / "reproduction.md").read_text()
ELSEWHERE = {"starts", "other-data"}
"""Tables of other networks and data, which the report alone shows."""
MARK = re.compile(r"<!-- results: ([\w-]+) -->")


def test_published_results_are_in_step():
    command = [sys.executable, str(ROOT / "results" / "publish.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_table_of_our_network_has_its_place():
    names = MARK.findall((ROOT / "docs" / "results.md").read_text())
    assert names == [table.name for table in our_tables(Grid.of([]))]
    assert set(MARK.findall((ROOT / "README.md").read_text())) <= {"ours", "reproduction"}


def test_every_table_of_the_papers_networks_has_its_place():
    names = MARK.findall(REPRODUCTION)
    expected = {table.name for table in general_tables(Grid.of([]))} - ELSEWHERE
    assert len(names) == len(set(names))
    assert set(names) == {*expected, "claims"}


def test_a_page_of_the_papers_networks(root):
    """Made-up records fill every block; a part of them fills a part and says what is missing."""
    page, blocks = root / "docs" / "reproduction.md", MARK.findall(REPRODUCTION)
    page.write_text(REPRODUCTION)
    (root / "README.md").write_text("<!-- results: reproduction -->\n<!-- end -->\n")
    PUBLISH["publish"](root)
    assert page.read_text().count(NOTHING) == len(blocks)
    every = [*table_2(), *set_apart()]
    write(
        root / "results" / "paper", [record for record in every if record["seed"] == 42 and record["task"] == "sudoku"]
    )
    PUBLISH["publish"](root)
    part = page.read_text()
    assert 0 < part.count(NOTHING) < len(blocks)
    assert "| 7 of 21 | Naive 1729, 3120;" in part
    assert "**not enough runs**" in part
    write(root / "results" / "paper", every)
    PUBLISH["publish"](root)
    assert PUBLISH["stale"](root) == []
    whole, grid = page.read_text(), Grid.of(every)
    assert NOTHING not in whole
    for table in general_tables(grid):
        assert table.name in ELSEWHERE or table.markdown(titled=False) in whole
    assert summary(grid).markdown(titled=False) in (root / "README.md").read_text()
    assert claims_markdown(check_claims(grid)) in whole
    # Every command is there, and not once more under tables that are made of the runs of Table 2 alone.
    for record in every:
        assert f"\n{record['command']}\n" in whole
    assert whole.count("The commands are those of the same runs in Table 2.") >= 5


def expand(line):
    """The words of a command as the shell has them."""
    words = []
    for word in shlex.split(line):
        braces = re.search(r"\{(.*)\}", word)
        words += [word.replace(braces[0], part) for part in braces[1].split(",")] if braces else [word]
    return words


def test_the_commands_of_the_page_exist():
    blocks = re.findall(r"^```console\n(.*?)^```", REPRODUCTION, re.DOTALL | re.MULTILINE)
    found = [line.strip().replace("$seed", "42") for text in blocks for line in text.splitlines()]
    lines = [line for line in found if line.startswith("oneofmany sweep")]
    assert len(lines) >= 10
    lengths = {"nqueens": set(), "futoshiki": set(), "sudoku": set()}
    for line in lines:
        asked = sweep.read_arguments(expand(line)[2:]).sweep
        for name in planning.expand(asked.recipes):
            for _, fields in planning.points_of(asked, name):
                settings = resolve(name, [*asked.fields, *fields])
                assert settings.network.kind in ("nlm", "rrn")
                if settings.second.updates:
                    lengths[settings.task].add(settings.second.updates)
                assert settings.second.updates or "controls/second-phase" not in line
            assert all(file.name.startswith(name.split("/")[0]) for file in asked.evaluate)
    assert all(any(f"{task}/" in line and "controls/second-phase" in line for line in lines) for task in lengths)
    # A second phase is of SelectR's length for all, also where it is cut.
    assert all(len(found) == 1 for found in lengths.values())
    assert all(lengths[task] == {recipe(f"{task}/selectr").second.updates} for task in ("nqueens", "futoshiki"))


@pytest.fixture
def root(tmp_path):
    """A repository with a page, a README and no results."""
    for folder in ("docs", "results/benchmarks", "src/oneofmany/weights"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "results" / "benchmarks" / "speed.txt").write_text("$ python x.py  \n# a machine\n")
    for page in ("README.md", "docs/page.md"):
        (tmp_path / page).write_text(
            "above\n<!-- results: ours -->\n<!-- end -->\nbetween\n<!-- results: our-runs -->\nold\n<!-- end -->\n"
            "<!-- results/benchmarks/speed.txt -->\n```text\nold\n```\nbelow\n"
        )
    return tmp_path


def test_pages_without_results_say_so(root):
    assert PUBLISH["publish"](root) == ["README.md", "docs/page.md", "docs/report.html"]
    page = (root / "docs" / "page.md").read_text()
    assert page.count("Nothing has been measured here yet.") == 2
    assert "```text\n$ python x.py\n# a machine\n```\nbelow" in page
    assert "No run has been evaluated yet" in (root / "docs" / "report.html").read_text()
    assert PUBLISH["publish"](root) == PUBLISH["stale"](root) == []


def test_pages_follow_the_records(root, capsys):
    PUBLISH["publish"](root)
    runs, others = [r for r in our_runs(queries=30) if r["task"] != "futoshiki"], our_experiments(30)
    write(root / "results", [*runs, *others], "ours")
    assert PUBLISH["stale"](root) == ["README.md", "docs/page.md", "docs/report.html"]
    PUBLISH["publish"](root)
    assert PUBLISH["stale"](root) == []
    page, report = ((root / "docs" / name).read_text() for name in ("page.md", "report.html"))
    grid = Grid.of([*runs, *others])
    for table in (main_table(grid), each_run(grid)):
        assert table.markdown(titled=False) in page
        for _, commands in table.commands():
            assert all(f"\n{command}\n" in page for command in commands)
    assert all(record["name"] in page for record in runs)
    assert "burn_in 0 instead of 0, 16, 32" in report
    assert "<svg" in report
    # The same results give the same bytes.
    (root / "docs" / "report.html").unlink()
    assert PUBLISH["publish"](root) == ["docs/report.html"]
    assert (root / "docs" / "report.html").read_text() == report
    # A number changed by hand or by another record is found; a figure drawn by another matplotlib is not a change.
    (root / "docs" / "report.html").write_text(
        re.sub(r"<svg.*?</svg>", "<svg>drawn otherwise</svg>", report, flags=re.S)
    )
    assert PUBLISH["stale"](root) == []
    (root / "README.md").write_text((root / "README.md").read_text().replace("85.21", "99.50"))
    assert PUBLISH["stale"](root) == ["README.md"]
    PUBLISH["publish"](root)
    next((root / "results" / "ours").glob("sudoku-minloss-*-42.json")).unlink()
    assert PUBLISH["stale"](root) == ["README.md", "docs/page.md", "docs/report.html"]
    assert capsys.readouterr().err == ""


def test_a_table_that_does_not_exist_is_named(root):
    (root / "README.md").write_text("<!-- results: our-runes -->\n<!-- end -->\n")
    with pytest.raises(ValueError, match=r"'our-runes'.*our-runs"):
        PUBLISH["publish"](root)
