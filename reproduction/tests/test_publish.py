"""Every number of the docs comes from a record, and a page that does not match the records is found."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from oneofmany.cli import sweep
from oneofmany.data.benchmark import CMUDICT, NAMED
from oneofmany.evaluation.record_file import read_record
from oneofmany.recipes import planning, recipe
from oneofmany.recipes.fields import resolve
from oneofmany.report import Grid
from oneofmany.report.grid import OBJECTIVES
from reproduction.agreement import summary
from reproduction.answers import ANSWERS
from reproduction.claims import check_claims, claims_markdown
from reproduction.commands import FILE
from reproduction.figures import page_charts
from reproduction.given_rules import HALVES
from reproduction.hard import RATINGS
from reproduction.large_boards import TESTS as LARGE_BOARDS
from reproduction.measured import FILE as MEASURED
from reproduction.ours import each_run, main_table
from reproduction.page import all_tables, paper_tables
from reproduction.pronunciations import TEST
from reproduction.publish import FIGURES, NOTHING, SEARCH_ANSWER, export, publish, read_grid, stale, write_page
from reproduction.runs import RECORDS
from reproduction.searches import read_searches
from reproduction.tests.our_records import our_experiments, our_runs
from reproduction.tests.paper_records import set_apart, table_2, write

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
ELSEWHERE = {"starts", "other-data", "thesis", "more-seeds"}
"""Tables that the made-up records of the paper's networks do not fill."""
MARK = re.compile(r"<!-- results: ([\w-]+)\?? -->")
SHOWN = [(path, name) for path in DOCS for name in MARK.findall(path.read_text())]
"""Every page with every block that it shows."""


def test_published_results_are_in_step():
    command = [sys.executable, "-m", "reproduction", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_every_table_is_on_one_page():
    names = [name for _, name in SHOWN]
    tables = {table.name for table in all_tables(Grid.of([]))}
    assert len(names) == len(set(names))
    assert set(names) == (tables - {"reproduction"}) | {"claims", "weights", SEARCH_ANSWER, *ANSWERS}
    assert MARK.findall((ROOT / "README.md").read_text()) == [
        "ours",
        "conditions",
        "hard-answer",
        "colouring-answer",
        "same-queries",
        "reproduction",
    ]


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.stem)
def test_pages_are_short(path):
    lines = path.read_text().splitlines()
    assert len(lines) <= (300 if path.name == "results.md" else 400)
    assert not any("<details" in line for line in lines)


@pytest.mark.parametrize(
    ("page", "first"),
    [("reproduction.md", ["reproduction-answer", "agreement"]), ("results.md", ["results-answer", "ours"])],
)
def test_the_answer_is_on_the_first_screen(page, first):
    text = "\n".join((ROOT / "docs" / page).read_text().splitlines()[:40])
    assert MARK.findall(text) == first
    assert text.count("<!-- end -->") == len(first)
    (figure,) = re.findall(r"!\[[^\]]+\]\((figures/[\w-]+\.svg)\)", text)
    assert (ROOT / "docs" / figure).is_file()


def test_figures_are_there():
    drawn = {chart.name for chart in page_charts(read_grid(), read_searches(ROOT))}
    files = {path.stem for path in (ROOT / FIGURES).glob("*.svg")}
    used = {name for path in DOCS for name in re.findall(r"\(figures/([\w-]+)\.svg\)", path.read_text())}
    assert drawn == files == used


def commands_in(text):
    """Every command that the file of commands stands for."""
    found = set(re.findall(r"^\| [^|]+ \| `(.*)` \| \| \|$", text, re.MULTILINE))
    for name, seeds, data in re.findall(r"^\| .+ \| ([^|`]+) \| ([\d, ]+) \| (.*) \|$", text, re.MULTILINE):
        for seed in seeds.split(", "):
            found.add(f"oneofmany train {name} --seed {seed}")
            for one in filter(None, data.split(", ")):
                file, *options = one.split(" ")
                found.add(" ".join([f"oneofmany evaluate runs/{name}/{seed} data/{file}.safetensors", *options]))
    return found


def test_the_file_of_commands_has_every_command_and_no_other():
    grid, text = read_grid(), (ROOT / FILE).read_text()
    tables = [table for table in all_tables(grid, read_searches(ROOT)) if table.filled]
    behind = {command for table in tables for _, commands in table.commands() for command in commands}
    assert commands_in(text) == behind
    assert {record.command for record in grid.all} <= behind
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == [table.name for table in tables]
    linked = {name for path in DOCS for name in re.findall(r"COMMANDS\.md#([\w-]+)", path.read_text())}
    assert linked | {"reproduction"} == set(headings)
    assert set(re.findall(r"\(#([\w-]+)\)", text)) <= set(headings)


def test_a_page_of_the_papers_networks(root):
    """Made-up records fill every block; a part of them fills a part and says what is missing."""
    page, tables = root / "docs" / "page.md", paper_tables(Grid.of([]))
    blocks = ["claims", "reproduction-answer", *(table.name for table in tables if table.name not in ELSEWHERE)]
    page.write_text("".join(f"<!-- results: {name} -->\n<!-- end -->\n" for name in blocks))
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
    assert "**undecided** (p = " in part
    write(root / "reproduction" / "records" / "paper", every)
    publish(root)
    assert stale(root) == []
    whole, grid = page.read_text(), Grid.of(every)
    assert NOTHING not in whole
    for table in paper_tables(grid):
        assert table.name in ELSEWHERE or table.markdown(titled=False) in whole
    assert summary(grid).markdown(titled=False) in (root / "README.md").read_text()
    assert claims_markdown(check_claims(grid)) in whole
    text = (root / FILE).read_text()
    assert {record.command for record in every} <= commands_in(text)
    # The runs of Table 2 are not listed again under tables that are made of them alone.
    assert text.count("Its runs are listed under [table-2-accuracy](#table-2-accuracy).") >= 5
    assert "<svg" in (root / FIGURES / "reproduction.svg").read_text()


def expand(line):
    """The words of a command after the shell's expansion."""
    words = []
    for word in shlex.split(line):
        braces = re.search(r"\{(.*)\}", word)
        words += [word.replace(braces[0], part) for part in braces[1].split(",")] if braces else [word]
    return words


def test_the_commands_of_the_page_exist():
    page = (ROOT / "docs" / "reproduction-again.md").read_text()
    blocks = re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
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


@pytest.mark.parametrize(
    ("page", "folder", "recipes"),
    [
        ("pronunciations.md", "cmudict", [o + v for v in ("/ctc/cmudict", "/cmudict") for o in ("random", "minloss")]),
        ("choosing.md", "no-rules", [f"{objective}/transformer" for objective in OBJECTIVES]),
        ("hard-sudokus.md", "hard", ["minloss/equivariant"]),
    ],
)
def test_the_sweeps_of_a_page_make_what_its_tables_read(page, folder, recipes):
    text = (ROOT / "docs" / page).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.startswith("oneofmany sweep") and "--records" in line]
    asked = [sweep.read_arguments(expand(line)[2:]).sweep for line in lines]
    assert {one.records for one in asked} == {Path("reproduction/records/experiments") / folder}
    names = {name for one in asked for name in planning.expand(one.recipes)}
    assert all(any(name.partition("/")[2] == wanted for name in names) for wanted in recipes)
    files = {file.stem for one in asked for file in one.evaluate}
    assert files <= {*NAMED, *CMUDICT}
    own = {test for half in HALVES.values() for test in half.tests}
    assert files & {*own, *RATINGS, *LARGE_BOARDS, TEST} == files


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
    assert publish(root) == ["README.md", "docs/page.md", str(FILE), str(MEASURED)]
    page = (root / "docs" / "page.md").read_text()
    assert page.count("Nothing has been measured here yet.") == 2
    assert "```text\n$ python x.py\n# a machine\n```\nbelow" in page
    assert "No run has been evaluated yet" in (root / "docs" / "report.html").read_text()
    assert publish(root) == stale(root) == []


def test_pages_follow_the_records(root, capsys):
    publish(root)
    runs, others = [r for r in our_runs(queries=30) if r.task != "futoshiki"], our_experiments(30)
    write(root / "reproduction" / "records", [*runs, *others], "ours")
    assert stale(root) == ["README.md", "docs/page.md", str(FILE), str(MEASURED)]
    publish(root)
    assert stale(root) == []
    listed = commands_in((root / FILE).read_text())
    page, report = ((root / "docs" / name).read_text() for name in ("page.md", "report.html"))
    grid = Grid.of([*runs, *others])
    for table in (main_table(grid), each_run(grid)):
        assert table.markdown(titled=False) in page
        for _, commands in table.commands():
            assert listed.issuperset(commands)
        assert f"[Commands](../{FILE}#{table.name})" in page
    assert all(record.name in page for record in runs)
    assert "burn_in 0 instead of 0, 16, 32" in report
    assert "<svg" in report
    # The same records give the same bytes.
    assert publish(root) == []
    assert (root / "docs" / "report.html").read_text() == report
    (root / "README.md").write_text((root / "README.md").read_text().replace("| 123 s", "| 12 s"))
    assert stale(root) == ["README.md"]
    publish(root)
    next((root / "reproduction" / "records" / "ours").glob("sudoku-minloss-*-42.json")).unlink()
    assert stale(root) == ["README.md", "docs/page.md", str(FILE), str(MEASURED)]
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
            # -1: more than could be counted or, in files of graphs that were not searched, unknown.
            searched = "-all-" not in evaluation.data.name
            several = evaluation.total != 1 if searched else evaluation.total > 1
            parts = {"os": ~several, "ms": several, "overall": several | True}
            if evaluation.judged_by == "listed":  # the number of right answers is not known
                parts = {"overall": several | True}
            known = (evaluation.total > 0).all()
            assert not known if evaluation.judged_by == "listed" else known or record.task == "colouring"
            for subset, rows in parts.items():
                score = evaluation.scores.of(subset)
                assert (score.correct, score.total) == (int(evaluation.valid[rows].sum()), int(rows.sum()))
