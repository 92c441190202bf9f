"""Every number of the docs comes from results/, and a page that is out of step is found."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from oneofmany.report import Grid
from oneofmany.report.learned import our_tables
from oneofmany.report.ours import each_run, main_table
from report.our_records import our_experiments, our_runs

ROOT = Path(__file__).parents[2]
PUBLISH = runpy.run_path(str(ROOT / "results" / "publish.py"))
MARK = re.compile(r"<!-- results: ([\w-]+) -->")


def test_published_results_are_in_step():
    command = [sys.executable, str(ROOT / "results" / "publish.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_table_of_our_network_has_its_place():
    names = MARK.findall((ROOT / "docs" / "results.md").read_text())
    assert names == [table.name for table in our_tables(Grid.of([]))]
    assert MARK.findall((ROOT / "README.md").read_text()) == ["ours"]


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


def write(root, records):
    for record in records:
        folder = root / "results" / ("learned/" + record["experiment"] if "experiment" in record else "ours")
        folder.mkdir(parents=True, exist_ok=True)
        kept = {key: value for key, value in record.items() if key != "experiment"}
        (folder / f"{record['name'].replace('/', '-')}.json").write_text(json.dumps(kept))


def test_pages_without_results_say_so(root):
    assert PUBLISH["publish"](root) == ["README.md", "docs/page.md", "docs/report.html"]
    page = (root / "docs" / "page.md").read_text()
    assert page.count("Nothing has been measured here yet.") == 2
    assert "```text\n$ python x.py\n# a machine\n```\nbelow" in page
    assert "No run has been evaluated yet" in (root / "docs" / "report.html").read_text()
    assert PUBLISH["publish"](root) == PUBLISH["stale"](root) == []


def test_pages_follow_the_records(root, capsys):
    PUBLISH["publish"](root)
    runs, others = [r for r in our_runs(queries=30) if r["task"] != "futoshiki"], our_experiments()
    write(root, [*runs, *others])
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
