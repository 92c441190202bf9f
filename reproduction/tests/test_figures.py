"""Figures and answers of the pages, and Example 2."""

import re
from pathlib import Path

import pytest

from oneofmany.report import Grid
from report.records import fake_grid
from reproduction.agreement import LESS_MS, ONE_SEED, agreement, before, compare
from reproduction.answers import ANSWERS, reproduction_answer, results_answer
from reproduction.claims import check_claims
from reproduction.example2 import boundaries
from reproduction.figures import reproduction_chart, results_chart
from reproduction.ours import main_table, same_queries
from reproduction.page import all_charts
from reproduction.paper import EXAMPLE_2_BOUNDARY, STANDARD_ERRORS, TABLE_2
from reproduction.publish import read_grid
from reproduction.replication import exact_replication
from reproduction.tests.our_records import our_runs
from reproduction.tests.paper_records import table_2
from reproduction.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED

ROOT = Path(__file__).parents[2]


def test_all_figures_are_there():
    charts = all_charts(Grid.of(fake_grid(queries=500)))
    names = [chart.name for chart in charts]
    assert len(set(names)) == len(names)
    expected = {f"{kind}-{task}" for kind in ("solutions", "exploratory", "training") for task in
                ("nqueens", "futoshiki", "sudoku")}  # fmt: skip
    assert expected | {"givens-sudoku", "example-2", "solutions-sudoku-equivariant"} <= set(names)
    assert "paper, all queries at first" in next(chart.svg for chart in charts if chart.name == "exploratory-nqueens")


def test_only_example_2_without_runs():
    assert [chart.name for chart in all_charts(Grid.of([]))] == ["example-2"]


def test_example_2_ends_where_the_paper_says():
    ends = boundaries()
    slope, offset = ends["minloss"]
    assert -offset / slope == pytest.approx(EXAMPLE_2_BOUNDARY, abs=0.01)
    slope, offset = ends["ccloss"]
    assert all(slope * x + offset > 0 for x in (-2, -1, 1))


def points_of(chart, panel, series):
    return {point.row: point for point in chart.draw.keywords["panels"][panel] if point.series == series}


def test_the_figure_of_table_2_has_both_means_of_every_objective():
    grid = Grid.of(table_2())
    chart = reproduction_chart(grid)
    for panel, task in enumerate(("nqueens", "futoshiki", "sudoku")):
        ours, theirs = (points_of(chart, panel, series) for series in ("ours", "paper"))
        found = [one for one in compare(grid) if (one.task, one.subset) == (task, "ms")]
        assert [ours[row].mean for row in range(7)] == [one.ours.mean for one in found]
        for row, one in enumerate(found):
            cell = (task, one.objective, "ms")
            assert theirs[row].mean == TABLE_2[cell].mean
            assert theirs[row].high == pytest.approx(TABLE_2[cell].mean + 2 * STANDARD_ERRORS[cell])
            assert 0 <= ours[row].low <= ours[row].mean <= ours[row].high <= 100
    # One file for light and dark, the same bytes every time, not wider than a phone can show.
    assert chart.standalone_svg() == reproduction_chart(grid).standalone_svg()
    assert "prefers-color-scheme:dark" in chart.standalone_svg()
    assert int(re.search(r' width="(\d+)"', chart.standalone_svg())[1]) < 480


def test_the_figure_of_our_network_shows_the_main_table():
    grid = Grid.of([*our_runs(queries=30), *table_2()])
    chart = results_chart(grid)
    rows = [*same_queries(grid).rows, *main_table(grid).rows]
    shown = {row[1].text: row for row in rows if row[0].text == "Futoshiki 6, 18 blanks"}
    for row, column in ((2, 2), (3, 3)):
        assert points_of(chart, 0, "ours")[row].mean == shown["MinLoss"][column].numbers["mean"]
        assert points_of(chart, 0, "flags")[row].mean == shown["MinLoss, flags"][column].numbers["mean"]
        assert f"{points_of(chart, 0, 'paper')[row].mean:.2f}" == shown["NLM with SelectR, published"][column].text
        again = shown["the paper's NLM with SelectR, trained by us"][column].numbers["mean"]
        assert points_of(chart, 0, "again")[row].mean == again
    assert set(points_of(chart, 0, "checker")) == {4, 5}
    assert results_chart(Grid.of([])) is reproduction_chart(Grid.of([])) is None


def test_answers_count_what_the_tables_count():
    grid = read_grid()
    text, last = reproduction_answer(grid), agreement(grid).rows[-1]
    assert f"**{last[4].text} means agree" in text
    assert f"single seed chose it is {last[6].text}" in text
    assert f"flat bound of 2 points {last[5].text} agree" in text
    # Before both changes that were made after test results were read.
    first = before(grid, ONE_SEED, LESS_MS)
    assert f"sampling grid too {sum(one.agrees for one in first)} of 63" in text
    assert len({one.objective for one in first}) == 7
    expected = exact_replication()
    assert f"would score {expected.mean:.0f} [{expected.low}, {expected.high}]" in text
    verdicts = [claim.ours.verdict for claim in check_claims(grid)]
    counts = [verdicts.count(verdict) for verdict in (SUPPORTED, CONTRADICTED, UNDECIDED)]
    assert re.search("15 claims, {} (is|are) supported, {} contradicted and {} undecided at".format(*counts), text)
    # The groups are in order in all tasks, the seven objectives in fewer: Futoshiki's best is another one.
    assert "Naive and Random, in 3 of 3 tasks; the paper's order of all seven holds in 1 of 3" in text
    grid = Grid.of([*our_runs(queries=30), *table_2()])
    text = results_answer(grid)
    for row in main_table(grid).rows:
        if row[0].text != "Futoshiki 6, 20 blanks" and row[1].text == "MinLoss":
            assert f"**{row[4].numbers['mean']:.2f} %**" in text
    again = next(row for row in same_queries(grid).rows if row[1].text.startswith("the paper's RRN"))
    assert f"against {again[4].numbers['mean']:.2f} % (published: 85.21 %)" in text
    assert "read once for each run" in text
    assert "No checker in training." in text
    assert [answer(Grid.of([])) for answer in ANSWERS.values()] == [""] * len(ANSWERS)


def test_the_answer_says_if_only_given_networks_decide():
    sentence = "Those decided with it compare given networks and say nothing about other seeds."
    for grid in (read_grid(), Grid.of(table_2())):
        decided = [one.ours for one in check_claims(grid) if one.ours.verdict != UNDECIDED]
        over_queries = bool(decided) and all(finding.given_networks for finding in decided)
        assert (sentence in reproduction_answer(grid)) == over_queries
    assert decided
    assert not any(finding.given_networks for finding in decided)
    assert sentence in reproduction_answer(read_grid())


def test_every_run_reads_a_fresh_test_set_once():
    tested = [r for r in read_grid().all if any("-fresh-test" in one.data.name for one in r.evaluations.values())]
    for record in tested:
        assert sum("-fresh-test" in one.data.name for one in record.evaluations.values()) == 1, record.name
    # That of Sudoku was read by more than the headline's runs, so no page may say that it was read once.
    assert len({record.recipe for record in tested if record.task == "sudoku"}) > 1
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for sentence in re.findall(r"[^.]*\bread once[^.]*", page.read_text()):
            assert re.search(r"read once\s+for each", sentence), (page.name, sentence)
