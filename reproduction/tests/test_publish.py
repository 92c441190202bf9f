"""Every number of the docs comes from a record, and a page that is out of step is found."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from oneofmany.cli import sweep
from oneofmany.evaluation.record_file import read_record
from oneofmany.recipes import planning, recipe
from oneofmany.recipes.fields import resolve
from oneofmany.report import Grid
from reproduction.agreement import summary
from reproduction.claims import check_claims, claims_markdown
from reproduction.ours import each_run, main_table
from reproduction.page import our_tables, paper_tables
from reproduction.publish import NOTHING, export, publish, stale, write_page
from reproduction.runs import RECORDS
from reproduction.tests.our_records import our_experiments, our_runs
from reproduction.tests.paper_records import set_apart, table_2, write

ROOT = Path(__file__).parents[2]
REPRODUCTION = (ROOT / "docs" / "reproduction.md").read_text()
ELSEWHERE = {"starts", "other-data"}
"""Tables of other networks and data, which the report alone shows."""
MARK = re.compile(r"<!-- results: ([\w-]+) -->")


def test_published_results_are_in_step():
    command = [sys.executable, "-m", "reproduction", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_every_table_of_our_network_has_its_place():
    names = MARK.findall((ROOT / "docs" / "results.md").read_text())
    assert names == [table.name for table in our_tables(Grid.of([]))]
    assert set(MARK.findall((ROOT / "README.md").read_text())) <= {"ours", "reproduction"}


def test_every_table_of_the_papers_networks_has_its_place():
    names = MARK.findall(REPRODUCTION)
    expected = {table.name for table in paper_tables(Grid.of([]))} - ELSEWHERE
    assert len(names) == len(set(names))
    assert set(names) == {*expected, "claims"}


def test_a_page_of_the_papers_networks(root):
    """Made-up records fill every block; a part of them fills a part and says what is missing."""
    page, blocks = root / "docs" / "reproduction.md", MARK.findall(REPRODUCTION)
    page.write_text(REPRODUCTION)
    (root / "README.md").write_text("<!-- results: reproduction -->\n<!-- end -->\n")
    publish(root)
    assert page.read_text().count(NOTHING) == len(blocks)
    every = [*table_2(), *set_apart()]
    write(
        root / "reproduction" / "records" / "paper",
        [record for record in every if record.seed == 42 and record.task == "sudoku"],
    )
    publish(root)
    part = page.read_text()
    assert 0 < part.count(NOTHING) < len(blocks)
    assert "| 7 of 21 | Naive 1729, 3120;" in part
    assert "**not enough runs**" in part
    write(root / "reproduction" / "records" / "paper", every)
    publish(root)
    assert stale(root) == []
    whole, grid = page.read_text(), Grid.of(every)
    assert NOTHING not in whole
    for table in paper_tables(grid):
        assert table.name in ELSEWHERE or table.markdown(titled=False) in whole
    assert summary(grid).markdown(titled=False) in (root / "README.md").read_text()
    assert claims_markdown(check_claims(grid)) in whole
    # Every command is there, and not once more under tables that are made of the runs of Table 2 alone.
    for record in every:
        assert f"\n{record.command}\n" in whole
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
    for folder in ("docs", "benchmarks/measured", "reproduction/records", "src/oneofmany/weights"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "benchmarks" / "measured" / "speed.txt").write_text("$ python x.py  \n# a machine\n")
    for page in ("README.md", "docs/page.md"):
        (tmp_path / page).write_text(
            "above\n<!-- results: ours -->\n<!-- end -->\nbetween\n<!-- results: our-runs -->\nold\n<!-- end -->\n"
            "<!-- benchmarks/measured/speed.txt -->\n```text\nold\n```\nbelow\n"
        )
    return tmp_path


def test_pages_without_results_say_so(root):
    assert publish(root) == ["README.md", "docs/page.md"]
    page = (root / "docs" / "page.md").read_text()
    assert page.count("Nothing has been measured here yet.") == 2
    assert "```text\n$ python x.py\n# a machine\n```\nbelow" in page
    assert "No run has been evaluated yet" in (root / "docs" / "report.html").read_text()
    assert publish(root) == stale(root) == []


def test_pages_follow_the_records(root, capsys):
    publish(root)
    runs, others = [r for r in our_runs(queries=30) if r.task != "futoshiki"], our_experiments(30)
    write(root / "reproduction" / "records", [*runs, *others], "ours")
    assert stale(root) == ["README.md", "docs/page.md"]
    publish(root)
    assert stale(root) == []
    page, report = ((root / "docs" / name).read_text() for name in ("page.md", "report.html"))
    grid = Grid.of([*runs, *others])
    for table in (main_table(grid), each_run(grid)):
        assert table.markdown(titled=False) in page
        for _, commands in table.commands():
            assert all(f"\n{command}\n" in page for command in commands)
    assert all(record.name in page for record in runs)
    assert "burn_in 0 instead of 0, 16, 32" in report
    assert "<svg" in report
    # The same records give the same bytes.
    assert publish(root) == []
    assert (root / "docs" / "report.html").read_text() == report
    (root / "README.md").write_text((root / "README.md").read_text().replace("85.21", "99.50"))
    assert stale(root) == ["README.md"]
    publish(root)
    next((root / "reproduction" / "records" / "ours").glob("sudoku-minloss-*-42.json")).unlink()
    assert stale(root) == ["README.md", "docs/page.md"]
    assert capsys.readouterr().err == ""


def test_a_table_that_does_not_exist_is_named(root):
    (root / "README.md").write_text("<!-- results: our-runes -->\n<!-- end -->\n")
    with pytest.raises(ValueError, match=r"'our-runes'.*our-runs"):
        publish(root)


def test_a_report_without_pictures_has_all_the_rest(tmp_path):
    grid = Grid.of([*table_2(seeds=(42,)), *set_apart()])
    write_page(grid, tmp_path / "report.html", pictures=False)
    text = (tmp_path / "report.html").read_text()
    assert 'id="solutions-' in text
    assert 'id="show-table-2-accuracy"' in text
    assert 'id="claims"' in text


def test_every_table_can_be_exported(root):
    write(root / "reproduction" / "records" / "paper", [*table_2(seeds=(42,)), *set_apart()])
    export(root / "tables", root)
    names = {path.name for path in (root / "tables").iterdir()}
    assert {"claims.md", "table-2-accuracy.csv", "table-2-accuracy.md", "our-runs.csv"} <= names
    assert "oneofmany train" in (root / "tables" / "table-2-accuracy.csv").read_text()


@pytest.mark.parametrize("folder", sorted({path.parent for path in RECORDS.rglob("*.json")}), ids=lambda p: p.name)
def test_every_published_record_is_whole(folder):
    """Reading checks that the bits of every query give the scores."""
    for path in folder.glob("*.json"):
        record = read_record(path)
        assert path.name == f"{record.name.replace('/', '-')}.json"
        for evaluation in record.evaluations.values():
            several = evaluation.total > 1
            assert (evaluation.total > 0).all()
            parts = {"os": ~several, "ms": several, "overall": several | True}
            for subset, rows in parts.items():
                score = evaluation.scores.of(subset)
                assert (score.correct, score.total) == (int(evaluation.valid[rows].sum()), int(rows.sum()))
