"""What each ingredient gives: tables and answers against numbers counted by hand, and the commands of the page."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from oneofmany.cli import sweep
from oneofmany.evaluation.record import DataInfo
from oneofmany.recipes import data_of, matching, planning
from oneofmany.recipes.ingredients import SHORT_RECIPE, ingredient_recipes
from oneofmany.recipes.ingredients import factorial as factorial_recipes
from oneofmany.report import Grid
from report.records import fake_evaluation, fake_history, fake_record
from reproduction.answers import ANSWERS, FEW
from reproduction.controls import other_settings, second_phase
from reproduction.experiments import experiments
from reproduction.ingredients import alike, factorial, factorial_effects, factorial_steps, listed_checker, rise
from reproduction.more_seeds import more_seeds
from reproduction.networks import network_effects, networks
from reproduction.page import all_tables
from reproduction.paired import difference, in_points, mean_difference, of_recipe, verdict
from reproduction.publish import NOTHING, publish
from reproduction.runs import SEEDS_OF_THESIS, TEN_SEEDS, THESIS
from reproduction.tests.our_records import settings
from reproduction.tests.paper_records import write

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ingredients.md").read_text()
SEEDS = (42, 1729, 3120)
QUERIES = 200  # half of them OS
SIZES = {"nqueens": 11, "sudoku": 9}


def answers_to(task, right_os, right_ms, name=None, **more):
    """An evaluation with these numbers of OS and MS queries right, out of 100 each."""
    valid = np.r_[np.arange(100) < right_os, np.arange(100) < right_ms]
    total = np.repeat([1, 3], 100)
    about = {"task": task, "size": SIZES[task], "checksum": f"{task}-test"}
    return fake_evaluation(valid, total, name=name or f"{task}-test", **about | more)


def run(recipe, seed, right_ms, right_os=90, apart="experiments/x", evaluations=None, **more):
    """A run with this number of MS queries right."""
    task = recipe.split("/")[0]
    found = {f"{task}-test": answers_to(task, right_os, right_ms)} | (evaluations or {})
    network = "equivariant" if "/equivariant" in recipe else {"sudoku": "rrn", "nqueens": "nlm"}[task]
    train = DataInfo(data_of(recipe)[0], "feed", 20_000)
    record = fake_record(recipe, seed, found, dev=0.9, network=network, train=train, **more)
    return replace(settings(record), apart=apart)


def runs(recipe, *right, **more):
    """A run for every seed."""
    return [run(recipe, seed, ms, **more) for seed, ms in zip(SEEDS, right, strict=False)]


def texts(row):
    return [cell.text for cell in row]


def interval(values):
    """Student's t interval, by the formula."""
    mean, n = sum(values) / len(values), len(values)
    half = t.ppf(0.975, n - 1) * (sum((v - mean) ** 2 for v in values) / (n - 1) / n) ** 0.5
    return mean, mean - half, mean + half


# ---- pairs -----------------------------------------------------------------------------------------------------------


def test_a_mean_difference_is_over_pairs_then_over_seeds():
    a, b, c, d = (
        [(r, r.evaluations["sudoku-test"]) for r in runs(SHORT_RECIPE, *right)]
        for right in ((80, 81, 85), (70, 75, 76), (60, 66, 61), (50, 50, 50))
    )
    found = mean_difference([(a, b), (c, d)], "ms")
    each = [(10 + 10) / 2, (6 + 16) / 2, (9 + 11) / 2]
    assert (found.mean, found.low, found.high) == pytest.approx(interval(each))
    assert verdict(found) == "higher"
    assert in_points(found).startswith("+10.33 [+8.")
    # A seed that one pair lacks does not count, nor do other queries; two seeds decide nothing.
    assert mean_difference([(a, b), (c, d[:2])], "ms") is None
    other = [(r, replace(e, data=replace(e.data, checksum="other"))) for r, e in b]
    assert difference(a, other) is None
    assert mean_difference([], "ms") is None


def test_a_recipe_has_one_run_for_each_seed():
    first, again = runs(SHORT_RECIPE, 80), runs(SHORT_RECIPE, 10, apart="experiments/repeated")
    assert of_recipe(Grid.of([*first, *again]), SHORT_RECIPE) == first


# ---- checker, revealed cells, burn-in --------------------------------------------------------------------------------


def level(name):
    """Accuracy by cell: the checker gives 4, revealed cells 6, burn-in 10 with the checker and -8 without it."""
    checker, burn_in = "checker" in name, "burn-in" in name
    sparing = 20 * ("sparing" in name)
    return 50 + 4 * checker + 6 * ("reveal" in name) + burn_in * (10 if checker else -8) + sparing


def factorial_grid():
    found = []
    for one in factorial_recipes():
        for place, seed in enumerate(SEEDS):
            right = level(one.name) + place + (place == 2) * ("checker" in one.name)
            steps = {
                f"sudoku-dev-steps{n}": answers_to("sudoku", n, n, "sudoku-dev", steps=n, command=f"steps {n}")
                for n in (16, 64)
            }
            found.append(run(one.name, seed, right, evaluations=steps))
    return Grid.of(found)


def test_main_effects_of_the_factorial():
    grid = factorial_grid()
    rows = {row[0].text: row for row in factorial_effects(grid).rows}
    ms = {name: row[3].numbers["points"] for name, row in rows.items()}
    # The checker: 4, and 18 more where there is burn-in; the third seed gives one more.
    assert ms["the checker"] == pytest.approx((4 + 22) / 2 + 1 / 3)
    assert ms["revealed cells"] == pytest.approx(6)
    assert ms["burn-in without the checker"] == pytest.approx(-8)
    assert ms["burn-in with the checker"] == pytest.approx(10)
    assert ms["leaving settled queries out"] == pytest.approx(20)
    assert {name: row[4].text for name, row in rows.items()} == {
        "the checker": "higher",
        "revealed cells": "higher",
        "burn-in without the checker": "lower",
        "burn-in with the checker": "higher",
        "leaving settled queries out": "higher",
    }
    assert rows["the checker"][2].text == "undecided"  # OS does not change
    lines = ANSWERS["factorial-answer"](grid).splitlines()
    assert lines[2] == "* Burn-in without the checker: −8.00 [−8.00, −8.00] points on MS queries: **hurts**."
    assert [line[:2] for line in lines[:5]] == ["* "] * 5


def test_the_factorial_shows_every_cell_and_its_steps():
    table = factorial(factorial_grid())
    assert len(table.rows) == 10
    row = next(r for r in table.rows if texts(r)[:3] == ["no, settled queries are left out", "80 %", "0, 16, 32"])
    assert row[5].numbers["mean"] == pytest.approx(level(SHORT_RECIPE) + 1)
    steps = factorial_steps(factorial_grid())
    assert [column.name for column in steps.columns[3:]] == ["16", "64"]
    assert {texts(row)[3:] == ["16.00", "64.00"] for row in steps.rows} == {True}
    assert len(steps.rows) == 10


# ---- listed solutions, objectives ------------------------------------------------------------------------------------


def test_the_checker_by_listed_solutions():
    without, checker = ("sudoku/minloss/equivariant", "sudoku/minloss/equivariant-checker")
    grid = Grid.of(
        [
            *runs(f"{without}/short-listed-1", 40, 42, 44),
            *runs(f"{checker}/short-listed-1", 90, 91, 95),
            *runs(SHORT_RECIPE, 90, 90, 90),
            *runs(f"{checker}/short-reveal-burn-in", 91, 89, 90),
        ]
    )
    rows = listed_checker(grid).rows
    assert [row[0].text for row in rows] == ["1", "5"]
    mean, low, high = interval([50, 49, 51])
    assert rows[0][7].numbers == pytest.approx({"points": mean, "low": low, "high": high})
    assert [row[8].text for row in rows] == ["higher", "undecided"]
    answer = ANSWERS["listed-answer"](grid)
    assert "with 1 listed (**helps**)" in answer
    assert "with 5 listed (**undecided**)" in answer


def history(end, before):
    """Dev over ten evaluations of a second phase, with these last two fifths."""
    columns = fake_history(np.random.default_rng(0), "selectr", (0.5, 0.5), entries=10)
    scores = [0.1] * 6 + [before, before, end, end]
    return columns | {"update": list(range(250, 2501, 250)), "dev_overall": scores}


def test_objectives_alike_are_compared_with_minloss():
    names = {one: f"sudoku/{one}/equivariant/alike" for one in ("minloss", "naive", "selectr", "ccloss")}
    right = {"minloss": (90, 91, 92), "naive": (20, 25, 30), "selectr": (91, 90, 92), "ccloss": (93, 94, 96)}
    found = [one for name in right for one in runs(names[name], *right[name], history=history(0.9, 0.85))]
    found += runs("sudoku/minloss/equivariant/alike-start", 70, 70, 70)
    table = alike(Grid.of(found))
    rows = {row[0].text: row for row in table.rows}
    assert list(rows) == ["Naive", "CC-Loss", "MinLoss", "SelectR", "the pre-training alone"]
    assert [rows[name][6].text for name in rows] == ["lower", "higher", "", "undecided", ""]
    assert rows["Naive"][5].numbers["points"] == pytest.approx(-66)
    assert rows["SelectR"][7].text == "+5.00"
    assert rise(found[0]) == pytest.approx(5)
    assert rise(runs(names["minloss"], 90)[0]) is None
    answer = ANSWERS["alike-answer"](Grid.of(found))
    assert re.search(
        r"\*\*higher\*\* CC-Loss \+3\.33 \[.*\]; \*\*lower\*\* Naive .*; \*\*undecided\*\* SelectR", answer
    )


# ---- networks --------------------------------------------------------------------------------------------------------


def test_network_recipe_and_objective():
    """Our network gives 20, our recipe 5, SelectR 1 point."""
    own = [f"sudoku/{objective}/table-2" for objective in ("minloss", "selectr")]
    table_2_runs = [
        one for more, name in enumerate(own) for one in runs(name, *(40 + more + n for n in range(3)), apart="")
    ]
    found = []
    for objective in ("minloss", "selectr"):
        more = objective == "selectr"
        ours = SHORT_RECIPE if objective == "minloss" else "sudoku/selectr/equivariant/same-budget"
        steps = {"sudoku-test-steps64": answers_to("sudoku", 95, 95, "sudoku-test", steps=64)}
        found += runs(ours, *(65 + more + n for n in range(3)))
        found += runs(f"sudoku/{objective}/equivariant/paper-schedule", *(60 + more + n for n in range(3)))
        right = (45 + more + n for n in range(3))
        found += runs(f"sudoku/{objective}/table-2/our-recipe", *right, apart="controls/our-recipe", evaluations=steps)
    grid = Grid.of([*table_2_runs, *found])
    points = {row[1].text: row[4].numbers["points"] for row in network_effects(grid).rows}
    assert points == pytest.approx(
        {
            "our network instead of the paper's": 20,
            "our recipe instead of the paper's": 5,
            "SelectR instead of MinLoss": 1,
        }
    )
    rows = [texts(row)[:5] for row in networks(grid).rows]
    assert ["Sudoku 9", "RRN", "ours", "MinLoss", "64"] in rows
    assert ["Sudoku 9", "RRN", "the paper's", "SelectR", ""] in rows
    assert ["Sudoku 9", "RRN", "published", "SelectR", ""] in rows
    assert len(rows) == 8 + 2 + 2
    answer = ANSWERS["networks-answer"](grid)
    assert answer.startswith("* **Sudoku 9**, all queries, in points: our network instead of the paper's +10.00 [")
    # They are shown here alone.
    assert not any("our-recipe" in row[2].text for row in other_settings(grid).rows)
    assert not experiments(grid).rows
    # Table 2 alone is no comparison.
    assert not networks(Grid.of(table_2_runs)).rows


# ---- the selection module, or the second phase -----------------------------------------------------------------------


def second_phases(phase, selection, seeds=SEEDS_OF_THESIS):
    """Points of MS accuracy that a second phase gives, and the selection module on top, a little more by seed."""
    found = []
    for place, seed in enumerate(seeds):
        for start, change in (("unique", "second-phase-from-unique"), ("minloss", "second-phase")):
            right = {"": 40, "minloss": 40 + phase, "ccloss": 41, "iexplr": 42, "selectr": 40 + phase + selection}
            for objective, ms in right.items():
                name = f"nqueens/{objective}/table-2/{change}" if objective else f"nqueens/{start}/table-2"
                noise = place % 2 if objective in ("minloss", "selectr") else 0
                noise *= 2 if objective == "selectr" else 1
                found.append(run(name, seed, ms + noise, apart=THESIS))
    return Grid.of(found)


def test_the_thesis_is_decided_by_paired_differences():
    grid = second_phases(10, 6)
    answer = ANSWERS["thesis-answer"](grid)
    assert answer.startswith("**On N-Queens both the second phase and the selection module help.**")
    mean, low, high = interval([5, 5.5, 5, 5.5, 5])  # half of the queries are MS
    assert f"gives +{mean:.2f} [+{low:.2f}, +{high:.2f}] points on all queries" in answer
    assert "paired by 5 seeds" in answer
    table = next(one for one in all_tables(grid) if one.name == "thesis")
    assert [texts(row)[:2] for row in table.rows][:5] == [
        ["Unique", "none"],
        ["Unique", "MinLoss"],
        ["Unique", "CC-Loss"],
        ["Unique", "I-ExplR"],
        ["Unique", "SelectR"],
    ]
    rows = {tuple(texts(row)[:2]): row for row in table.rows}
    assert len(rows) == 10
    assert rows["MinLoss", "SelectR"][5].numbers["points"] == pytest.approx(8 + 2 / 5)
    assert texts(rows["MinLoss", "none"])[5:7] == ["", ""]
    assert rows["MinLoss", "none"][8].text == "higher"
    assert texts(rows["MinLoss", "SelectR"])[7:] == ["", "", "5"]
    # They are not in the tables of the other controls.
    assert not second_phase(grid).rows
    assert not other_settings(grid).rows


@pytest.mark.parametrize(
    ("phase", "selection", "words"),
    [(10, 0, "whether the selection module adds"), (0, 6, "whether a second phase alone"), (0, 0, "neither is shown")],
)
def test_undecided_is_an_answer(phase, selection, words):
    assert words in ANSWERS["thesis-answer"](second_phases(phase, selection))
    assert ANSWERS["thesis-answer"](second_phases(phase, selection, SEEDS[:2])) == FEW


def test_more_seeds_beside_the_papers():
    """Only seeds that both have count; three are those of Table 2, which has its own table."""
    seeds = (*SEEDS, 7, 8)
    found = [run("nqueens/minloss/table-2", seed, 70, apart=TEN_SEEDS) for seed in (*seeds, 9)]
    found += [run("nqueens/selectr/table-2", seed, 74 + seed % 2, apart=TEN_SEEDS) for seed in seeds]
    minloss, selectr, gain = (texts(row) for row in more_seeds(Grid.of(found)).rows)
    assert (minloss[0], minloss[4], minloss[-1]) == ("MinLoss", "77.29 ± 0.38", "5")
    assert selectr[2].startswith("74.40 [")
    mean, low, high = interval([4, 5, 4, 5, 4])
    assert gain[2] == f"+{mean:.2f} [+{low:.2f}, +{high:.2f}]"
    assert not other_settings(Grid.of(found)).rows
    assert not more_seeds(Grid.of([one for one in found if one.seed in SEEDS])).rows


# ---- the page --------------------------------------------------------------------------------------------------------


def test_sections_without_records_have_one_sentence_and_no_table(tmp_path):
    for folder in ("docs", "reproduction/records", "src/oneofmany/weights"):
        (tmp_path / folder).mkdir(parents=True)
    empty = re.sub(r"(<!-- results: [\w-]+\?? -->\n).*?(<!-- end -->)", r"\1\2", PAGE, flags=re.DOTALL)
    page = tmp_path / "docs" / "ingredients.md"
    page.write_text(empty)
    (tmp_path / "README.md").write_text("")
    publish(tmp_path)
    text = page.read_text()
    assert text.count(NOTHING) == text.count("-answer -->") == 4
    assert text.count("?") > 4
    assert "| --- |" not in text
    write(tmp_path / "reproduction" / "records", factorial_grid().apart)
    publish(tmp_path)
    text = page.read_text()
    assert text.count(NOTHING) == 3
    assert len(re.findall(r"^\| --- ", text, re.MULTILINE)) == 3
    assert "* Burn-in without the checker: −8.00" in text
    # The page shows the figure if and only if it is drawn.
    assert re.findall(r"\(figures/([\w-]+)\.svg\)", text) == ["factorial"]
    assert "<svg" in (tmp_path / "docs" / "figures" / "factorial.svg").read_text()
    assert not (tmp_path / "docs" / "figures" / "alike.svg").exists()


def sweeps():
    """Every sweep of the page, with the words of its line after the shell's expansion."""
    for line in re.findall(r"^oneofmany sweep .*$", PAGE, re.MULTILINE):
        words = [""]
        for word in shlex.split(line):
            alternatives = [""]
            for part in re.split(r"(\{[^}]*\})", word):
                options = part[1:-1].split(",") if part.startswith("{") else [part]
                alternatives = [one + option for one in alternatives for option in options]
            words += alternatives
        yield sweep.read_arguments(words[3:]).sweep


def test_the_commands_make_every_run_that_the_tables_need():
    asked = {name: one for one in sweeps() for name in planning.expand(one.recipes)}
    assert {one.name for one in ingredient_recipes()} <= set(asked)
    second = [*matching("nqueens/*/table-2/second-phase"), *matching("nqueens/*/table-2/second-phase-from-unique")]
    for name in (*second, "nqueens/minloss/table-2", "nqueens/unique/table-2"):
        assert asked[name].records == Path("reproduction/records/paper") / THESIS
        assert tuple(asked[name].seeds) == SEEDS_OF_THESIS
    for name, one in asked.items():
        task = name.split("/")[0]
        assert any(file.name == f"{task}-test.safetensors" for file in one.evaluate)
        assert one.records is not None
        ours = "/equivariant" in name
        assert ("paper" in one.records.parts) != ours
    changes = {"our-recipe": "controls", "paper-schedule": "experiments", "alike": "experiments"}
    for change, kind in changes.items():
        assert all(kind in one.records.parts for name, one in asked.items() if name.endswith(f"/{change}"))


def test_the_table_of_runs_counts_those_of_the_commands():
    counts = [int(number) for number in re.findall(r"^\| [^|]+ \| (\d+) \| ", PAGE, re.MULTILINE)]
    found = [len(planning.expand(one.recipes)) * len(one.seeds) for one in sweeps()]
    networks_and_recipes = found.pop() + found.pop()
    assert counts == [*found, networks_and_recipes]
