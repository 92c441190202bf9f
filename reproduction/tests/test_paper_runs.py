"""The tables of the 63 runs, and of the runs kept apart, against numbers counted by hand."""

import math
import random
from dataclasses import replace
from statistics import mean, stdev

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_rel
from statsmodels.stats.proportion import confint_proportions_2indep

from oneofmany.evaluation.record import DataInfo, Dev
from oneofmany.evaluation.record_json import history_of, to_json
from oneofmany.evaluation.scores import Score
from oneofmany.report import Grid
from oneofmany.report.grid import OBJECTIVES, TASKS, name_of
from oneofmany.report.page import render
from report.records import changed, fake_evaluation, fake_grid
from reproduction import paper
from reproduction.agreement import agreement, agreement_by_mean, compare, ms_order, summary
from reproduction.budgets import busy_minutes, cost, schedule
from reproduction.claims import check_claims
from reproduction.comparisons import unique_training
from reproduction.controls import naive_authors, other_settings, repeated, second_phase, start_of
from reproduction.evidence import OurResults
from reproduction.literal import dev_scores, literal_runs, literal_tests, noise
from reproduction.page import all_charts, all_tables, paper_tables, sections
from reproduction.paper import SEEDS, STANDARD_ERRORS, TABLE_2
from reproduction.paper_tables import accuracy
from reproduction.runs import counting, read_published
from reproduction.tests.paper_records import MS, OS, answers, paper_run, set_apart, table_2, write
from reproduction.tuning import tuning
from reproduction.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED

BOTH = "the better of MinLoss and Unique"
RUNS, APART = table_2(), set_apart()
GRID = Grid.of([*RUNS, *APART])


def texts(row):
    return [cell.text for cell in row]


def row_of(table, *labels):
    return next(row for row in table.rows if texts(row)[: len(labels)] == list(labels))


def shares(records, task, objective):
    """(OS, MS, overall) in percent of every seed of the 63, counted from the records' scores."""
    found = []
    for record in records:
        if (record.task, record.objective) == (task, objective):
            scores = record.evaluations[f"{task}-test"].scores
            found.append([100 * scores.of(s).correct / scores.of(s).total for s in ("os", "ms", "overall")])
    return list(zip(*found, strict=True))


def test_agreement_is_the_formula():
    found = compare(GRID)
    assert len(found) == 63
    agree = 0
    for one in found:
        values = shares(RUNS, one.task, one.objective)[("os", "ms", "overall").index(one.subset)]
        cell = (one.task, one.objective, one.subset)
        points = mean(values) - TABLE_2[cell].mean
        allowed = max(2.0, 2 * math.sqrt(STANDARD_ERRORS[cell] ** 2 + stdev(values) ** 2 / 3))
        assert one.points == pytest.approx(points)
        assert one.allowed == pytest.approx(allowed)
        assert one.agrees == (abs(points) <= allowed)
        agree += abs(points) <= allowed
    counts = agreement(GRID)
    flat = sum(abs(one.points) <= 2 for one in found)
    assert texts(counts.rows[-1])[-3:] == [f"{agree} of 63", f"{flat} of 63", "63 of 63"]
    assert sum(row[4].numbers["agree"] for row in counts.rows[:-1]) == agree
    assert [sum(row[i].numbers["agree"] for row in counts.rows[:-1]) for i in (1, 2, 3)] == [
        counts.rows[-1][i].numbers["agree"] for i in (1, 2, 3)
    ]


def test_the_count_with_what_one_seed_chose_stands_beside():
    (whole,) = [one for one in compare(GRID) if (one.task, one.objective, one.subset) == ("sudoku", "unique", "ms")]
    assert whole.agrees
    # With these two runs no mean of Sudoku's Unique agrees; all other means are those of Table 2.
    others = [paper_run("sudoku/unique", seed, (0, 0), apart="controls/one-seed-choice") for seed in SEEDS[:2]]
    table, before = agreement(Grid.of([*RUNS, *APART, *others])), agreement(GRID)
    assert len(table.columns) == len(before.columns) + 1
    for row, old in zip(table.rows, before.rows, strict=True):
        fewer = 3 if texts(row)[0] in ("Sudoku", "all") else 0
        assert texts(row[:6]) == texts(old[:6])
        assert row[6].numbers["agree"] == old[4].numbers["agree"] - fewer
        assert not row[6].commands
        assert row[7] == old[6]


def test_a_mean_beyond_the_bound_does_not_agree():
    theirs, error = TABLE_2["sudoku", "minloss", "ms"].mean, STANDARD_ERRORS["sudoku", "minloss", "ms"]
    for ms in range(MS):
        (cell,) = [one for one in compare(Grid.of([paper_run("sudoku/minloss", 42, (100, ms))])) if one.subset == "ms"]
        # One seed: our standard error counts as 0.
        assert cell.agrees == (abs(100 * ms / MS - theirs) <= max(2, 2 * error))
    table = agreement_by_mean(Grid.of([paper_run("sudoku/minloss", 42, (OS, 0))]))
    (row,) = table.rows
    assert [row[i].text for i in (4, 7, 10)] == ["no", "no", "no"]
    assert row[5].text == f"−{theirs:.2f}"
    counts = agreement(Grid.of([paper_run("sudoku/minloss", 42, (OS, 0))]))
    assert texts(row_of(counts, "Sudoku")) == ["Sudoku", "0 of 1", "0 of 1", "0 of 1", "0 of 3", "0 of 3", "3 of 21"]
    assert texts(row_of(counts, "N-Queens"))[1:] == ["", "", "", "", "", "0 of 21"]
    assert not agreement(Grid.of([])).rows


def test_every_mean_stands_in_its_row():
    table = agreement_by_mean(GRID)
    assert len(table.rows) == 21
    row = row_of(table, "Futoshiki", "CC-Loss")
    for i, values in enumerate(shares(RUNS, "futoshiki", "ccloss")):
        published = TABLE_2["futoshiki", "ccloss", ("os", "ms", "overall")[i]].mean
        assert row[2 + 3 * i].numbers["points"] == pytest.approx(mean(values) - published)
    assert row[-1].text == "3"


def test_order_and_gaps_on_ms_queries():
    table = ms_order(GRID)
    for task in TASKS:
        means = {o: mean(shares(RUNS, task, o)[1]) for o in OBJECTIVES}
        assert row_of(table, name_of(task), "worst to best")[4].text == "the groups are in order"
        for high, low in (("unique", "naive"), ("selectr", "unique"), ("selectr", "minloss")):
            row = row_of(table, name_of(task), f"{name_of(high)} − {name_of(low)}")
            theirs = TABLE_2[task, high, "ms"].mean - TABLE_2[task, low, "ms"].mean
            ours, published, apart = (cell.numbers["points"] for cell in row[2:])
            assert (ours, published) == pytest.approx((means[high] - means[low], theirs))
            assert apart == pytest.approx(ours - theirs)
    order = row_of(table, "Sudoku", "worst to best")
    assert order[2].text == order[3].text == "Naive < Random < Unique < CC-Loss < MinLoss < I-ExplR < SelectR"
    # One reversed pair decides, a missing one leaves it open.
    perfect = [paper_run("nqueens/naive/large-batch", seed, (OS, MS)) for seed in SEEDS]
    turned = [*perfect, *(record for record in RUNS if record.objective != "naive")]
    found = row_of(ms_order(Grid.of(turned)), "N-Queens", "worst to best")
    assert found[2].text.endswith("SelectR < Naive")
    assert found[4].text == "the groups are not in order"
    few = [record for record in RUNS if record.objective != "random"]
    assert row_of(ms_order(Grid.of(few)), "N-Queens", "worst to best")[4].text == ""


def test_a_task_is_shown_in_one_schedule_and_the_table_says_which():
    assert counting(GRID).variants == {"nqueens": "large-batch", "futoshiki": "large-batch", "sudoku": ""}
    table = accuracy(GRID)
    assert table.name == "table-2-accuracy"
    assert all(row[-1].text == "3" for row in table.rows)
    assert "TASK/OBJECTIVE/large-batch (N-Queens, Futoshiki), TASK/OBJECTIVE (Sudoku)" in table.note
    more = [*RUNS, paper_run("nqueens/minloss", 42, (1, 1), dev=1.0)]
    # Runs that were not tested do not decide.
    untested = [paper_run(f"nqueens/{objective}", seed) for objective in OBJECTIVES for seed in range(9)]
    assert counting(Grid.of([*RUNS, *untested])) == counting(GRID)
    both = Grid.of(more)
    assert accuracy(both) == accuracy(Grid.of(RUNS))
    names = [table.name for table in all_tables(both)]
    assert "table-2-accuracy-other-schedule" in names
    assert len(names) == len(set(names))
    other = next(table for table in all_tables(both) if table.name == "table-2-accuracy-other-schedule")
    assert {row[0].text for row in other.rows} == {"N-Queens"}


def test_the_table_of_schedules():
    rows = schedule(GRID).rows
    assert texts(rows[0]) == ["N-Queens", "nqueens/OBJECTIVE/large-batch", "6,250 x 32", "50,000 x 4", "6,250 x 32",
                              "50,000 x 4", "21 of 21", ""]  # fmt: skip
    assert texts(rows[2])[1:] == ["sudoku/OBJECTIVE", "50,000 x 4", "125,000 x 32", "50,000 x 4", "125,000 x 16",
                                  "21 of 21", ""]  # fmt: skip
    part = [r for r in RUNS if r.task == "nqueens" and (r.seed == 42 or r.objective == "naive")]
    part = [r for r in part if r.objective != "selectr"]
    part[2] = changed(part[2], first={"updates": 1000, "batch": 32})
    found = schedule(Grid.of(part)).rows
    assert found[0][2].text == (
        "not the same: 6,250 x 32 (Naive, Random, CC-Loss, MinLoss, I-ExplR); 1,000 x 32 (Unique)"
    )
    assert texts(found[0])[6:] == ["8 of 21", "Random 1729, 3120; Unique 1729, 3120; CC-Loss 1729, 3120; "
                                   "MinLoss 1729, 3120; I-ExplR 1729, 3120; SelectR"]  # fmt: skip
    assert texts(found[1])[6:] == ["0 of 21", "all"]
    assert not schedule(Grid.of([])).rows
    assert "dev is evaluated" not in schedule(GRID).note
    cosine = {"updates": 24_000, "batch": 32, "schedule": "cosine"}
    often = [changed(r, evaluate_every=125, first=cosine) for r in part]
    table = schedule(Grid.of(often))
    assert table.rows[0][2].text == "24,000 x 32, cosine"
    assert table.note.endswith(" N-Queens: dev is evaluated every 125 updates.")
    whole = [changed(r, first=cosine | {"stop_after": None}, second={}) for r in part]
    assert schedule(Grid.of(whole)).note.endswith(" N-Queens: every phase runs to its end.")
    mixed = [one if one.objective == "iexplr" else other for one, other in zip(often, whole, strict=True)]
    assert "to its end" not in schedule(Grid.of(mixed)).note


def test_summary_for_a_readme():
    table = summary(GRID)
    assert table.note.startswith("Means over the seeds 42, 1729, 3120. ")
    assert "3120, as far as they exist. " in summary(Grid.of(RUNS[:-1])).note
    row = row_of(table, "SelectR")
    assert row[5].text == f"{mean(shares(RUNS, 'sudoku', 'selectr')[1]):.2f}"
    assert row[6].text == "81.73"
    assert table.rows[-1][1].text == row_of(agreement(GRID), "N-Queens")[4].text


# ---- what stands apart -------------------------------------------------------------------------------------------


def test_nothing_that_stands_apart_displaces_the_63(tmp_path):
    """The same recipes, seeds and settings, perfect on dev and on the test set, with more seeds, in any folder."""
    write(tmp_path / "paper", RUNS)
    before = Grid.of(read_published(tmp_path))
    perfect = [
        paper_run(recipe, seed, (OS, MS), dev=1.0, apart=apart)
        for recipe in {record.recipe for record in RUNS}
        for seed in (*SEEDS, 1, 2)
        for apart in ("literal", "tuning/decay=0", "controls/second-phase")
    ]
    write(tmp_path / "paper", perfect)
    grid = Grid.of(read_published(tmp_path))
    assert [to_json(record) for record in grid.runs] == [to_json(record) for record in before.runs]
    assert len(grid.apart) == len(perfect)
    assert not grid.left_out
    assert accuracy(grid) == accuracy(before)
    assert [c.ours for c in check_claims(grid)] == [c.ours for c in check_claims(before)]
    assert {r.apart for r in grid.apart} == {"literal", "tuning/decay=0", "controls/second-phase"}


def test_the_interval_of_a_difference_is_newcombes():
    rng = random.Random(0)
    for _ in range(50):
        n, m = rng.randint(20, 2000), rng.randint(20, 2000)
        a, b = rng.randint(0, n), rng.randint(0, m)
        low, high = confint_proportions_2indep(a, n, b, m, compare="diff", method="newcomb")
        expected = [100 * (a / n - b / m), 100 * low, 100 * high]
        assert list(noise(Score(a, n), Score(b, m))) == pytest.approx(expected, abs=1e-6)


def test_literal_runs_beside_the_shared_schedule():
    literal = paper_run("nqueens/minloss", 42, dev=0.58, apart="literal")
    table = literal_runs(Grid.of([*RUNS, literal]))
    first, second, apart = table.rows
    assert texts(first)[:4] == ["N-Queens", "nqueens/minloss/42", "50,000", "200,000"]
    assert texts(second)[1:4] == ["nqueens/minloss/large-batch/42", "6,250", "200,000"]
    assert second[-1].text == "first.updates 6250 instead of 50000; first.batch 32 instead of 4"
    ends = binomtest(116, 200).proportion_ci(method="wilson")
    assert first[6].text == f"58.00 [{100 * ends.low:.1f}, {100 * ends.high:.1f}]"
    assert apart[6].numbers["points"] == pytest.approx(1.0)  # 0.59 of 200 is 118
    assert apart[-1].text == "within noise"
    worse = literal_runs(Grid.of([*RUNS, replace(literal, dev=Dev(0.9, 0.58, 0.7, 1, "train"))]))
    assert worse.rows[2][-1].text == "more than noise"
    # A run beside it in the same folder is what it is compared with, whatever Table 2 has.
    beside = paper_run("nqueens/minloss/large-batch", 42, dev=0.5, apart="literal")
    assert literal_runs(Grid.of([*RUNS, literal, beside])).rows[1][6].text.startswith("50.00")
    (alone,) = literal_runs(Grid.of([literal])).rows
    assert alone[-1].text == "the paper's schedule"
    # Where Table 2 itself is literal but for what was tuned, there is nothing to compare.
    (alone,) = literal_runs(Grid.of([paper_run("nqueens/minloss", 42, (90, 50), first__sampling=0.5), literal])).rows
    assert alone[-1].text == "the paper's schedule, which all runs of Table 2 have"
    assert not literal_runs(Grid.of(RUNS)).rows


def test_literal_runs_on_the_test_set():
    literal = paper_run("nqueens/minloss", 42, (92, 60), apart="literal")
    (row,) = literal_tests(Grid.of([*RUNS, literal])).rows
    assert texts(row)[:2] == ["N-Queens", "nqueens/minloss/42"]
    assert [row[i].numbers["accuracy"] for i in (2, 4, 6)] == pytest.approx([9200 / OS, 6000 / MS, 76])
    assert [row[i].text for i in (3, 5, 7)] == ["77.29 ± 0.38", "77.22 ± 1.28", "77.28 ± 0.48"]
    assert not literal_tests(Grid.of([*RUNS, replace(literal, evaluations={})])).rows


def test_dev_counts():
    scores = dev_scores(paper_run("nqueens/minloss", 42, dev=0.25))
    assert {subset: (s.correct, s.total) for subset, s in scores.items()} == {
        "os": (30, 120),
        "ms": (20, 80),
        "overall": (50, 200),
    }
    assert not dev_scores(paper_run("nqueens/minloss", 42, dev_queries=10))


def test_curves_of_the_literal_runs():
    charts = {chart.name: chart for chart in all_charts(GRID)}
    chart = charts["literal-nqueens-minloss-42"]
    assert "nqueens/minloss/large-batch, shared schedule" in chart.svg
    assert len(chart.commands) == 2
    assert "literal-nqueens-minloss-42" not in {chart.name for chart in all_charts(Grid.of(APART))}


def test_tuning_says_what_was_tried_and_what_is_used():
    table = tuning(GRID)
    assert len(table.rows) == 21
    rows = [row for row in table.rows if row[1].text == "SelectR, large-batch"]
    assert [(row[2].text, row[5].text, row[5].best, row[6].text) for row in rows] == [
        ("decay=0", "52.00", False, "not used"),
        ("decay=0.0001", "50.00", False, "not used"),
        ("decay=1e-05", "55.00", True, "used"),
    ]
    assert table.note.startswith("3 settings of every objective of N-Queens. ")
    assert "settings of every objective" not in tuning(Grid.of(APART[4:])).note
    alone = tuning(Grid.of([r for r in APART if r.apart.startswith("tuning")]))
    assert {row[6].text for row in alone.rows} == {""}
    assert not tuning(Grid.of(RUNS)).rows
    assert "was tuned with" not in table.note
    # Means over seeds; a setting with fewer seeds does not compete.
    of = [
        ("decay=0", 42, 0.5),
        ("decay=0", 1729, 0.6),
        ("decay=1", 42, 0.7),
        ("decay=1", 1729, 0.2),
        ("decay=2", 42, 0.9),
    ]
    runs = [paper_run("nqueens/naive", seed, dev=dev, apart=f"tuning/{name}") for name, seed, dev in of]
    rows = [texts(row)[5:] for row in tuning(Grid.of(runs)).rows]
    assert rows == [["55.00", "", "42, 1729"], ["45.00", "", "42, 1729"], ["90.00", "", "42"]]
    assert [row[5].best for row in tuning(Grid.of(runs)).rows] == [True, False, False]
    first = {"updates": 1000, "batch": 32, "sampling": "uniform"}
    short = [changed(r, first=first) for r in APART if r.apart.startswith("tuning")]
    assert tuning(Grid.of([*RUNS, *short])).note.endswith(" N-Queens was tuned with 1,000 updates of the first phase.")


def test_a_second_phase_for_all():
    table = second_phase(GRID)
    assert [(row[1].text, row[3].text, row[4].text) for row in table.rows] == [
        (name, "Unique", "6,250 x 32") for name in ("CC-Loss", "MinLoss", "I-ExplR", "SelectR")
    ]
    row = row_of(table, "N-Queens", "MinLoss")
    assert [cell.text for cell in row[6:9]] == [f"{100 * x:.2f}" for x in (92 / OS, 60 / MS, 152 / 200)]
    assert [row[i].numbers["points"] for i in (9, 10)] == pytest.approx([100 * 4 / MS, 100 * 6 / 200])
    mine, theirs = answers(94, 64), answers(92, 60)
    apart = [bool(a) for a, b in zip(mine, theirs, strict=True) if a != b]
    assert row[11].numbers["p"] == pytest.approx(binomtest(sum(apart), len(apart)).pvalue)
    assert texts(row_of(table, "N-Queens", "SelectR"))[9:12] == ["", "", ""]
    # Without a SelectR of its own, Table 2's stands beside it, on the seeds that both have.
    part = [r for r in APART if not (r.apart == "controls/second-phase" and r.objective in ("iexplr", "selectr"))]
    row = row_of(second_phase(Grid.of([*RUNS, *part])), "N-Queens", "MinLoss")
    own = next(r for r in RUNS if (r.task, r.objective, r.seed) == ("nqueens", "selectr", 42))
    right = own.evaluations["nqueens-test"].scores.ms.correct
    assert row[9].numbers["points"] == pytest.approx(100 * (right - 60) / MS)
    labels = [row[1].text for row in second_phase(Grid.of([*RUNS, *part])).rows]
    assert labels == ["CC-Loss", "MinLoss", "I-ExplR (of Table 2)", "SelectR (of Table 2)"]
    assert not second_phase(Grid.of(RUNS)).rows


@pytest.mark.parametrize(
    ("objective", "changes", "start"),
    [
        ("selectr", {}, BOTH),
        ("selectr", {"pretraining": "unique"}, "Unique"),
        ("iexplr", {"pretrained": ["runs/nqueens/unique/1", "runs/nqueens/minloss/1"]}, BOTH),
        ("ccloss", {"pretrained": ["nqueens/unique/large-batch/42"]}, "Unique"),
        ("ccloss", {"second__updates": 10}, "CC-Loss"),
    ],
)
def test_where_a_second_phase_starts(objective, changes, start):
    assert start_of(paper_run(f"nqueens/{objective}", 42, **changes)) == start


def test_naive_with_the_authors_slip():
    equation, authors = naive_authors(GRID).rows
    assert equation[1].numbers["mean"] == pytest.approx(mean(shares(RUNS, "nqueens", "naive")[0]))
    assert texts(authors)[4:7] == [f"{100 * 40 / MS:.2f}", "55.34", "−5.34"]
    assert authors[-1].text == "1"
    # Among the runs that count it has the same place, and no table of its own.
    loose = [replace(r, apart="") for r in APART if r.recipe.startswith("nqueens/naive-a")]
    assert naive_authors(Grid.of([*RUNS, *loose])) == naive_authors(GRID)
    assert not naive_authors(Grid.of(RUNS)).rows


def test_naive_stands_beside_the_authors_with_the_nearest_settings():
    slip = paper_run("nqueens/naive-authors/large-batch", 42, (80, 40), apart="controls/naive-authors", decay=1e-4)
    near = paper_run("nqueens/naive/large-batch", 42, (60, 20), apart="controls/one-seed-choice", decay=1e-4)
    other = paper_run("nqueens/naive/large-batch", 42, (10, 10), apart="controls/other", decay=0.0)
    equation, authors = naive_authors(Grid.of([*RUNS, slip, near, other])).rows
    assert texts(equation)[1] == f"{100 * 60 / OS:.2f}"
    assert texts(authors)[1] == f"{100 * 80 / OS:.2f}"
    # Table 2's where nothing is nearer.
    assert naive_authors(Grid.of([*RUNS, slip, other])).rows[0][1] == naive_authors(GRID).rows[0][1]
    assert texts(naive_authors(Grid.of([slip])).rows[0])[1] == ""


def test_other_settings_beside_the_runs_with_the_same_seeds():
    other = paper_run("nqueens/minloss/large-batch", 7, dev=0.9, apart="controls/no-decay", decay=0.0)
    for grid in (GRID, Grid.of([*RUNS, *APART, other])):  # Table 2 has no seed 7
        (row,) = other_settings(grid).rows  # second phases, the authors' Naive and 180k puzzles have their own tables
        assert texts(row)[:4] == ["N-Queens", "MinLoss", "no-decay", "decay 0.0 instead of 1e-05"]
        beside = [r.dev.overall for r in RUNS if r.recipe == other.recipe and r.seed in SEEDS[:2]]
        assert row[6].numbers["mean"] == pytest.approx(70)
        assert row[9].numbers["mean"] == pytest.approx(100 * mean(beside))
        assert row[10].text == "2"
    assert not other_settings(Grid.of(RUNS)).rows


def test_a_control_of_second_phases_alone_is_another_setting():
    """A control without an objective that gains a second phase does not compare budgets."""
    start = {"apart": "controls/start", "pretraining": "unique"}
    grid = Grid.of([*RUNS, paper_run("nqueens/selectr/large-batch", 42, (90, 60), dev=0.4, **start)])
    (row,) = other_settings(grid).rows
    assert texts(row)[:4] == ["N-Queens", "SelectR", "start", "pretraining unique instead of both"]
    assert row[6].text == "40.00"
    assert not second_phase(grid).rows


def test_a_run_of_the_papers_that_was_made_twice():
    (row,) = repeated(GRID).rows
    first = next(r for r in RUNS if (r.recipe, r.seed) == ("nqueens/iexplr/large-batch", 42))
    scores = first.evaluations["nqueens-test"].scores
    assert row[1].numbers["mean"] == pytest.approx(100 * scores.os.correct / OS)
    assert texts(row)[4:7] == [f"{100 * x:.2f}" for x in (90 / OS, 60 / MS, 150 / 200)]
    assert row[8].text == "nothing"
    assert "repeated" not in {row[2].text for table in (second_phase, other_settings) for row in table(GRID).rows}


def test_unique_puzzles_among_the_controls():
    table = unique_training(GRID)
    assert texts(row_of(table, "180k", "OS alone"))[2:] == [
        *(f"{100 * 114 / OS:.2f}", "94.32", f"+{100 * 114 / OS - 94.32:.2f}".replace("+-", "−")),
        *("25.00", "24.48", "+0.52", "1"),
    ]
    assert row_of(table, "10k", "OS and MS")[-1].text == "3"
    claims = {claim.claim.split()[0]: claim.ours for claim in check_claims(GRID)}
    # These runs have one seed: the claims are about given networks, tested over the few queries.
    assert (claims["Trained"].verdict, claims["Trained"].uncorrected) == (UNDECIDED, SUPPORTED)
    assert [one.estimate > 0 for one in claims["Trained"].comparisons] == [True, False]
    assert claims["That"].verdict == UNDECIDED
    assert all(one.estimate > 0 for one in claims["That"].comparisons)
    # Where stopping on mixed dev makes up for little of what 180k seem to cost, it does not explain it.
    little = paper_run(
        "sudoku/unique-180k",
        42,
        (112, 25),
        apart="controls/unique-training",
        train=DataInfo("sudoku-os-train", "os", 180_000),
    )
    others = [record for record in APART if record.recipe != "sudoku/unique-180k"]
    (found,) = [
        claim.ours for claim in check_claims(Grid.of([*RUNS, *others, little])) if claim.claim.startswith("That")
    ]
    assert found.verdict == CONTRADICTED
    assert [one.estimate >= 0 for one in found.comparisons] == [True, True, False]


def test_stopping_is_compared_over_the_seeds_that_both_have():
    results = OurResults(GRID)
    (first,) = [r for r in RUNS if (r.task, r.objective, r.seed) == ("sudoku", "unique", 42)]
    score = first.evaluations["sudoku-test"].scores.ms
    expected = 100 * score.correct / score.total - 100 * 40 / MS
    found = results.stopping("10k")
    assert found.estimate == pytest.approx(expected)
    assert results.mean("sudoku", "unique", "ms") - 100 * 40 / MS != pytest.approx(expected)
    # One shared seed: the interval is over its queries.
    assert "over queries" in str(found)
    first_ms, other_ms = (answers(*right)[OS:].astype(int) for right in ((0, score.correct, -1), (0, 40, 0)))
    interval = ttest_rel(100 * first_ms, 100 * other_ms).confidence_interval()
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert OurResults(Grid.of(RUNS)).stopping("10k").estimate is None


def test_minutes():
    table = cost(GRID)
    everything = row_of(table, "all")
    tested = len(RUNS) + 12  # literal runs and controls are tested too, tuning runs are not
    minutes = (60 * (len(RUNS) + len(APART)) + 6 * tested) / 60
    assert everything[-1].numbers == {"minutes": pytest.approx(minutes), "runs": len(RUNS) + len(APART)}
    assert texts(row_of(table, "Futoshiki")) == ["Futoshiki", "23.1 (21)", "1.1 (1)", "", "", "", "24.2 (22)"]
    assert everything[-1].numbers["runs"] == sum(cell.numbers["runs"] for cell in everything[1:-1] if cell.text)
    assert not cost(Grid.of([])).rows


def dev_history(**columns):
    count = len(columns["seconds"])
    return history_of(columns | {"phase": ["train"] * count, "update": [*range(count)]})


def test_minutes_that_runs_share():
    """Two runs at a time: one over a stop in between, and an evaluation after it."""
    made = {"time": [1060.0, 1120.0, 5060.0], "seconds": [60.0, 120.0, 180.0]}, {"time": [1090.0], "seconds": [80.0]}
    runs = []
    for record, columns, end in zip(fake_grid(queries=10)[:2], made, (5070.0, 1180.0), strict=True):
        evaluations = {k: replace(e, time=end, seconds=30.0) for k, e in record.evaluations.items()}
        runs.append(replace(record, evaluations=evaluations, history=dev_history(**columns)))
    first, second = runs
    assert busy_minutes([first]) == pytest.approx((120 + 60 + 10) / 60)
    assert busy_minutes([first, second]) == pytest.approx((120 + 30 + 60 + 10) / 60)
    cell = row_of(cost(Grid.of([first, second])), "all")[-1]
    assert cell.numbers["busy"] == busy_minutes([first, second])
    assert cell.text.startswith("3.7 of ")
    assert busy_minutes([first, replace(second, history=dev_history(seconds=[80.0]))]) is None


def test_a_run_of_several_columns_counts_once_in_all():
    run = replace(paper_run("nqueens/minloss", 42, (90, 50)), history=dev_history(time=[1060.0], seconds=[60.0]))
    again = replace(run, evaluations={}, apart="tuning/decay=0")
    other = replace(again, history=dev_history(time=[2060.0], seconds=[60.0]), apart="tuning/decay=1")
    row = row_of(cost(Grid.of([run, again, other])), "N-Queens")
    # Training and evaluation of the first, training of the second.
    assert [cell.numbers.get("runs") for cell in row[1:]] == [1, None, 2, None, None, 2]
    assert row[-1].numbers["minutes"] == pytest.approx((60 + 6 + 60) / 60)


# ---- parts and pages ---------------------------------------------------------------------------------------------


def test_any_part_of_it_makes_tables():
    rng = np.random.default_rng(0)
    every = [*RUNS, *APART]
    for share in (0, 0.02, 0.1, 0.5, 1):
        for _ in range(3):
            part = [record for record in every if rng.random() < share]
            part = [r if rng.random() < 0.8 else replace(r, evaluations={}, dev=None, data={}) for r in part]
            for table in all_tables(Grid.of(part)):
                assert all(len(row) == len(table.columns) for row in table.rows)
                assert not table.filled or part
                table.markdown()
                table.csv()
            all_charts(Grid.of(part))


def test_every_row_has_the_commands_behind_it():
    tables = {table.name: table for table in paper_tables(GRID)}
    for name in (
        "agreement-by-mean",
        "ms-order",
        "second-phase",
        "naive-authors",
        "other-settings",
        "tuning",
        "cost",
        "schedule",
    ):
        table = tables[name]
        assert len(table.commands()) == len(table.rows), name
    rows = dict(tables["second-phase"].commands())
    made = next(commands for what, commands in rows.items() if "MinLoss" in what)
    assert "oneofmany train nqueens/minloss/large-batch --seed 42" in made
    assert "oneofmany evaluate runs/nqueens/minloss/large-batch/42 data/nqueens-test.safetensors" in made


def test_the_page_has_all_parts():
    text = render(GRID, sections(GRID)[:5])
    for name in ("schedule", "agreement", "agreement-by-mean", "ms-order", "second-phase", "naive-authors",
                 "literal-runs", "tuning", "cost"):  # fmt: skip
        assert f'id="show-{name}"' in text
    assert "nqueens/minloss/large-batch (controls/second-phase)" in text
    assert 'id="claims"' in text
    few = Grid.of([paper_run("nqueens/minloss", 42, (1, 1))])
    empty = render(few, sections(few)[:4])
    assert 'id="show-tuning"' not in empty


def test_the_papers_settings_are_those_of_its_recipes():
    from oneofmany.recipes import recipe

    for task in TASKS:
        settings = recipe(f"{task}/selectr")
        assert paper.FIRST_PHASE[task] == (settings.first.updates, settings.first.batch)
        assert paper.SECOND_PHASE[task] == (settings.second.updates, settings.second.batch)


def test_our_runs_do_not_count_as_the_papers():
    answered = fake_evaluation(answers(OS, MS), np.repeat([1, 3], (OS, MS)))
    ours = replace(
        paper_run("nqueens/minloss/equivariant", 42), network="equivariant", evaluations={"nqueens-test": answered}
    )
    for table in (agreement, schedule, cost, summary, literal_runs, tuning, second_phase):
        assert not table(Grid.of([ours])).filled
