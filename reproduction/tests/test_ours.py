"""Tables of our network against numbers counted query by query."""

import math
import random
from dataclasses import replace

import pytest
from scipy.stats import binomtest, t

from oneofmany.evaluation.record_file import save_record
from oneofmany.evaluation.record_json import to_json
from oneofmany.evaluation.statistics import mcnemar
from oneofmany.report import Grid
from oneofmany.report.page import render
from report.records import changed, fake_evaluation, fake_grid, fake_record
from reproduction.curves import sizes, starts, steps
from reproduction.differences import different
from reproduction.experiments import experiments, listed, our_repeated, splits
from reproduction.ours import each_run, fixed_givens, main_table, objectives, same_queries
from reproduction.page import all_charts, all_tables, our_tables, paper_tables, sections
from reproduction.paper import SEEDS, TABLE_2
from reproduction.runs import is_ours, read_published
from reproduction.tests.our_records import (
    CHECKER,
    experiment,
    our_experiments,
    our_runs,
    repetition,
    settings,
    split_by_puzzle,
)
from reproduction.tests.paper_records import table_2

RUNS = our_runs()
GRID = Grid.of([*RUNS, *our_experiments()])


def find(recipe):
    """The runs of a recipe by seed."""
    return {record.seed: record for record in RUNS if record.recipe == recipe}


def bits(recipe, name):
    """For every seed a list with (right, number of solutions, number of givens) of each query."""
    evaluations = [record.evaluations[name] for record in find(recipe).values()]
    return [list(zip(e.valid, e.total, e.givens, strict=True)) for e in evaluations]


def shares(recipe, name, keep=lambda total, givens: True):
    """For every seed the percentage of right answers among the queries to keep."""
    found = []
    for queries in bits(recipe, name):
        kept = [bool(right) for right, total, givens in queries if keep(total, givens)]
        found.append(100 * sum(kept) / len(kept))
    return found


def mean(numbers):
    return sum(numbers) / len(numbers)


SUBSETS = (lambda total, _: total == 1, lambda total, _: total > 1, lambda *_: True)


def texts(row):
    return [cell.text for cell in row]


def row_of(table, *labels):
    return next(row for row in table.rows if texts(row)[: len(labels)] == list(labels))


def test_main_table_has_means_with_t_intervals_over_seeds():
    row = row_of(main_table(GRID), "N-Queens 11", "MinLoss")
    for cell, keep in zip(row[2:5], SUBSETS, strict=True):
        values = shares("nqueens/minloss/equivariant", "nqueens-fresh-test", keep)
        deviation = math.sqrt(sum((x - mean(values)) ** 2 for x in values) / 2)
        half = t.ppf(0.975, 2) * deviation / math.sqrt(3)
        low, high = max(mean(values) - half, 0), min(mean(values) + half, 100)
        expected = {"mean": mean(values), "low": low, "high": high}
        mark = ""
        if len(set(values)) == 1:  # the seeds do not differ
            first = next(iter(bits("nqueens/minloss/equivariant", "nqueens-fresh-test")))
            total, mark = sum(keep(total, givens) for _, total, givens in first), " (queries)"
            ends = binomtest(round(values[0] * total / 100), total).proportion_ci(method="wilson")
            expected |= {"low": 100 * ends.low, "high": 100 * ends.high}
        assert cell.numbers == pytest.approx(expected)
        assert cell.text == f"{expected['mean']:.2f} [{expected['low']:.2f}, {expected['high']:.2f}]{mark}"
        assert {f"oneofmany train nqueens/minloss/equivariant --seed {seed}" for seed in SEEDS} < set(cell.commands)
    assert texts(row)[5:] == ["fresh", "3", "123 s, CPU"]


def test_main_table_names_the_test_of_every_row():
    table = main_table(GRID)
    assert [(*texts(row)[:2], row[5].text) for row in table.rows] == [
        ("N-Queens 11", "MinLoss", "fresh"),
        ("Futoshiki 6, 18 blanks", "MinLoss", "fresh"),
        ("Futoshiki 6, 18 blanks", "MinLoss, flags", "first"),
        ("Futoshiki 6, 20 blanks", "MinLoss", "first"),
        ("Futoshiki 6, 20 blanks", "MinLoss, flags", "first"),
        ("Sudoku 9", "MinLoss", "fresh"),
        ("Sudoku 9", "MinLoss, with the checker", "first"),
    ]
    # Runs that were not all tested on the fresh set are shown on the first.
    some = [
        replace(r, evaluations={k: e for k, e in r.evaluations.items() if r.seed != 42 or "fresh" not in k})
        for r in RUNS
    ]
    assert {row[5].text for row in main_table(Grid.of(some)).rows} == {"first"}


def test_the_papers_networks_answer_the_same_queries():
    paper = table_2()
    table = same_queries(Grid.of([*RUNS, *paper]))
    assert [tuple(texts(row)[:2]) for row in table.rows if row[0].text != "Futoshiki 6, 18 blanks"] == [
        ("N-Queens 11", "MinLoss"),
        ("N-Queens 11", "the paper's NLM with SelectR, trained by us"),
        ("N-Queens 11", "NLM with SelectR, published"),
        ("Sudoku 9", "MinLoss"),
        ("Sudoku 9", "MinLoss, with the checker"),
        ("Sudoku 9", "the paper's RRN with SelectR, trained by us"),
        ("Sudoku 9", "RRN with SelectR, published"),
    ]
    assert texts(row_of(table, "Futoshiki 6, 18 blanks", "without the inequalities"))[2:5] == [
        "79.94",
        "90.12",
        "82.64",
    ]
    published = [f"{TABLE_2['sudoku', 'selectr', subset].mean:.2f}" for subset in ("os", "ms", "overall")]
    assert texts(row_of(table, "Sudoku 9", "RRN with SelectR, published"))[2:5] == published
    assert all(not cell.commands for row in table.rows for cell in row if "published" in row[1].text)
    again = [r.evaluations["sudoku-test"].valid.mean() for r in paper if (r.task, r.objective) == ("sudoku", "selectr")]
    cell = row_of(table, "Sudoku 9", "the paper's RRN with SelectR, trained by us")[4]
    assert cell.numbers["mean"] == pytest.approx(100 * mean(again))
    own = row_of(table, "Sudoku 9", "MinLoss")[4].numbers["mean"]
    assert own == pytest.approx(mean(shares("sudoku/minloss/equivariant", "sudoku-test")))
    # Without our runs there is nothing to compare.
    assert not same_queries(Grid.of(paper)).rows


def test_an_objective_enters_the_main_table_with_all_seeds():
    more = [fake_record("nqueens/naive/equivariant", seed, find("nqueens/naive/equivariant")[42].evaluations,
                        network="equivariant") for seed in SEEDS]  # fmt: skip
    others = [record for record in RUNS if record.recipe != "nqueens/naive/equivariant"]
    for count in (2, 3):
        labels = [row[1].text for row in main_table(Grid.of([*others, *more[:count]])).rows]
        assert ("Naive" in labels) == (count == 3)
    assert labels.index("MinLoss") < labels.index("Naive")


def test_data_of_another_size_does_not_count():
    small = fake_record("nqueens/minloss/equivariant", 42, {"nqueens-test": fake_evaluation([True], [1], size=8)},
                        network="equivariant")  # fmt: skip
    assert not main_table(Grid.of([small])).filled


def test_every_run_has_wilsons_interval_and_its_two_commands():
    table = each_run(GRID)
    tests = [(r.name, name) for r in RUNS for name in r.evaluations if name.endswith("-test") and "size" not in name]
    assert sorted(row[1].text for row in table.rows) == sorted(name for name, _ in tests)
    record = find("sudoku/naive/equivariant")[42]
    row = row_of(table, "Sudoku 9, first", record.name)
    right = [bool(right) for right, total, _ in bits(record.recipe, "sudoku-test")[0] if total > 1]
    found = binomtest(sum(right), len(right)).proportion_ci(method="wilson")
    assert row[3].text == f"{100 * mean(right):.2f} [{100 * found.low:.1f}, {100 * found.high:.1f}]"
    assert row[3].commands == (record.command, record.evaluations["sudoku-test"].command)
    assert texts(row)[5:] == [f"{100 * record.dev.overall:.2f}", "123", "CPU"]


def test_objectives_of_every_task():
    table = objectives(GRID)
    assert [row[1].text for row in table.rows] == 3 * ["Naive", "Random", "Unique", "CC-Loss", "MinLoss", "I-ExplR",
                                                       "SelectR"]  # fmt: skip
    row = row_of(table, "Futoshiki 6, 18 blanks", "SelectR")
    assert row[4].numbers["mean"] == pytest.approx(shares("futoshiki/selectr/equivariant", "futoshiki-test")[0])
    mine, theirs = ([right for right, *_ in bits(f"futoshiki/{o}/equivariant", "futoshiki-test")[0]]
                    for o in ("selectr", "minloss"))  # fmt: skip
    apart = [a for a, b in zip(mine, theirs, strict=True) if a != b]
    assert row[5].numbers["p"] == pytest.approx(binomtest(sum(map(bool, apart)), len(apart)).pvalue)
    assert texts(row_of(table, "Futoshiki 6, 18 blanks", "MinLoss"))[5:7] == ["", "3"]
    # Single seeds are not interpreted: no objective is marked as the best.
    assert not any(cell.best for row in table.rows for cell in row)
    # One objective alone is no comparison.
    assert not objectives(Grid.of(list(find("sudoku/minloss/equivariant").values()))).rows


def test_sizes():
    table = sizes(GRID)
    assert [(row[0].text, row[1].text) for row in table.rows] == [
        *(("N-Queens, MinLoss", size) for size in ("11", "12", "14", "16", "20")),
        *(("Futoshiki, MinLoss", size) for size in ("6", "9")),
        *(("Sudoku, MinLoss", size) for size in ("9", "16")),
    ]
    row = row_of(table, "N-Queens, MinLoss", "20")
    values = shares("nqueens/minloss/equivariant", "nqueens-size-20-test", SUBSETS[1])
    assert row[5].numbers["mean"] == pytest.approx(mean(values))
    assert texts(row)[2:4] == ["10", "90"]


def test_steps_on_dev():
    table = steps(GRID)
    assert [row[1].text for row in table.rows[:6]] == ["8", "16", "32", "64", "128 (the recipe's)", "256"]
    row = row_of(table, "Sudoku, MinLoss", "32")
    assert row[4].numbers["mean"] == pytest.approx(mean(shares("sudoku/minloss/equivariant", "sudoku-dev-steps32")))


def test_starts_tell_the_three_ways_apart():
    row = row_of(starts(GRID), "N-Queens, MinLoss", "8")
    runs = [r.evaluations["nqueens-dev-starts8"] for r in find("nqueens/minloss/equivariant").values()]
    expected = [mean([100 * part.of(s).correct / part.of(s).total for part in parts])
                for parts in ([e.scores for e in runs], [e.chosen for e in runs], [e.checked for e in runs])
                for s in ("os", "ms", "overall")]  # fmt: skip
    assert texts(row)[2:] == [*(f"{value:.2f}" for value in expected), "3"]


def test_givens_are_fixed_along_a_row():
    table = fixed_givens(GRID)
    assert texts([row[0] for row in table.rows]) == ["17–19", "20–22", "23–25", "26–28", "29–31", "32–34"]
    counted = 0
    for row, low in zip(table.rows, range(17, 35, 3), strict=True):
        for cell, (first, last) in zip(row[1:], ((1, 1), (2, 5), (6, 15), (16, 50)), strict=True):
            inside = [[bool(right) for right, total, givens in queries
                       if low <= givens < low + 3 and first <= total <= last]
                      for queries in bits("sudoku/minloss/equivariant", "sudoku-fresh-test")]  # fmt: skip
            counted += len(inside[0])
            if not inside[0]:
                assert cell.text == ""
            else:
                pooled = [right for part in inside for right in part]
                assert cell.text == f"{100 * mean(pooled):.2f} ({len(inside[0])})"
    assert counted == 90


def test_a_split_by_puzzle_beside_the_split_by_grid_class():
    table = splits(GRID)
    assert [texts(row)[:2] for row in table.rows] == [["by grid class", "90"], ["by puzzle", "40"]]
    for cell, keep in zip(table.rows[0][2:5], SUBSETS, strict=True):
        values = shares(CHECKER, "sudoku-test", keep)
        assert cell.numbers["mean"] == pytest.approx(mean(values))
    assert [row[-1].text for row in table.rows] == ["3", "1"]
    assert [cell.numbers["mean"] for cell in table.rows[1][2:5]] == [50, 100, 75]
    # No other table shows it.
    without = Grid.of([record for record in GRID.all if record.apart != "experiments/split-by-puzzle"])
    assert not splits(without).filled
    for one, other in zip(all_tables(GRID), all_tables(without), strict=True):
        assert one == other or one.name in ("our-split", "provenance")


@pytest.mark.parametrize("record", [split_by_puzzle(burn_in=[0]), replace(split_by_puzzle(), evaluations={})])
def test_a_split_by_puzzle_with_other_settings_or_untested_is_one_more_experiment(record):
    grid = Grid.of([*RUNS, record])
    assert not splits(grid).filled
    (row,) = experiments(grid).rows
    assert "training data sudoku-puzzle-train instead of sudoku-train" in row[2].text


def test_listed_solutions():
    table = listed(GRID)
    assert [row[0].text for row in table.rows] == ["1", "2", "5", "all (at most 50)"]
    assert [row[3].text.split()[0] for row in table.rows] == [
        "80.00",
        "85.00",
        f"{100 * mean([r.dev.overall for r in find(CHECKER).values()]):.2f}",
        "95.00",
    ]
    assert [bool(row[6].text) for row in table.rows] == [False, False, True, False]
    # Where something else differs too, the number of listed solutions is not what is measured.
    both = experiment("listed-1", CHECKER, 0.8, listed=1, burn_in=[0], discover=True)
    assert not listed(Grid.of([*RUNS, both])).rows


def test_experiments_say_what_differs_beside_the_recipe():
    table = experiments(GRID)
    differs = {row[1].text: row[2].text for row in table.rows}
    assert differs == {
        "listed-1": "listed 1 instead of not set",
        "listed-2": "listed 2 instead of not set",
        "listed-all": "training data sudoku-all-train instead of sudoku-train",
        "no-burn-in": "burn_in 0 instead of 0, 16, 32",
    }
    row = next(row for row in table.rows if row[1].text == "no-burn-in")
    own = 100 * find("nqueens/minloss/equivariant")[42].dev.overall
    assert texts(row)[3:] == [*3 * ["70.00"], *3 * [f"{own:.2f}"], "1", "123 s, CPU", "123 s, CPU"]
    (alone,) = experiments(Grid.of(our_experiments()[:1])).rows
    assert alone[2].text == "there is no run of the recipe"


def test_a_run_that_was_made_twice():
    (row,) = our_repeated(GRID).rows
    run = find("nqueens/minloss/equivariant")[42]
    again, first = (record.evaluations["nqueens-test"].valid for record in (repetition(), run))
    assert row[3].numbers["mean"] == pytest.approx(100 * first.mean()) != 100
    assert texts(row)[4:7] == 3 * ["100.00"]
    assert row[7].numbers["p"] == pytest.approx(mcnemar(again, first).p)
    assert row[8].text == "nothing"
    assert "repeated" not in {row[1].text for row in experiments(GRID).rows}
    (other,) = our_repeated(Grid.of([*RUNS, repetition(burn_in=[0])])).rows
    assert other[8].text == "burn_in 0 instead of 0, 16, 32"
    assert not our_repeated(Grid.of([repetition()])).rows


def test_a_selector_that_is_not_trained_makes_no_difference():
    base, selectr = (find(f"nqueens/{objective}/equivariant")[42] for objective in ("minloss", "selectr"))
    assert different(settings(base, selector={"width": 24}), settings(base, selector={"width": 32})) == {}
    narrow, wide = (settings(selectr, selector={"width": width}) for width in (24, 32))
    assert different(wide, narrow) == {"selector.width": (32, 24)}
    seeds = [settings(base, selector={"width": 24}), replace(settings(base, selector={"width": 32}), seed=1729)]
    assert len(Grid.of(seeds).runs) == 2


def test_what_differs_is_no_matter_of_machine_or_seed():
    base = find("nqueens/minloss/equivariant")[42]
    other = changed(base, seed=7, device="cpu", new=1)
    assert different(other, base) == {}
    wider = changed(base, network={"kind": "equivariant", "width": 128})
    assert different(wider, base) == {"network.width": (128, 64)}


def test_experiments_never_take_the_place_of_a_recipes_runs(tmp_path):
    """The same recipe, seed, settings and file name, better on dev and with more seeds, in any order."""
    run = find("nqueens/minloss/equivariant")[42]
    better = [replace(run, seed=seed, dev=replace(run.dev, overall=1.0)) for seed in (42, 1, 2)]
    folders = {"ours": [run], "experiments/lucky": better}
    for folder, records in folders.items():
        (tmp_path / folder).mkdir(parents=True)
        for record in records:
            save_record(record, tmp_path / folder / f"nqueens-minloss-equivariant-{record.seed}.json")
    grid = Grid.of(read_published(tmp_path))
    assert [to_json(record) for record in grid.runs] == [to_json(run)]
    assert {record.apart for record in grid.apart} == {"experiments/lucky"}
    assert len(grid.apart) == 3
    assert grid.left_out == ()


def test_our_runs_are_in_our_tables_alone():
    general = [table for table in paper_tables(GRID) if table.filled]
    assert [table.name for table in general] == ["table-1-data"]
    names = [table.name for table in all_tables(GRID)]
    assert len(set(names)) == len(names)
    others = next(table for table in our_tables(GRID) if table.name == "our-other-data")
    assert [row[1].text for row in others.rows] == ["nqueens-odd", "futoshiki-odd", "sudoku-odd"]
    assert not any(is_ours(record) for record in fake_grid(queries=10) if record.recipe.count("/") < 2)


def test_any_part_of_the_runs_makes_tables_and_figures():
    chance = random.Random(0)
    for share in (0, 0.05, 0.2, 0.6):
        part = [record for record in [*RUNS, *our_experiments()] if chance.random() < share]
        part = [replace(r, evaluations={k: e for k, e in r.evaluations.items() if chance.random() < 0.5}) for r in part]
        grid = Grid.of(part)
        for table in our_tables(grid):
            assert all(len(row) == len(table.columns) for row in table.rows)
            assert not table.filled or part
            table.csv()
        all_charts(grid)


def test_the_page_has_a_section_of_our_network_where_there_are_runs():
    text = render(GRID, sections(GRID)[:3])
    section = text[text.index('<section id="ours">') : text.index('<section id="runs">')]
    assert "without the inequalities" in section
    assert "burn_in 0 instead of 0, 16, 32" in section
    assert "nqueens/minloss/equivariant (experiments/no-burn-in)" in text
    assert 'id="claims"' not in text  # these runs decide none
    grid = Grid.of(fake_grid(queries=10)[:3])
    assert 'id="ours"' not in render(grid, sections(grid)[:3])


def test_figures():
    charts = {chart.name: chart for chart in all_charts(GRID)}
    for name in ("our-steps", "our-sizes"):
        assert charts[name].commands
        assert "N-Queens" in charts[name].svg
    assert not {"our-steps", "our-sizes"} & {chart.name for chart in all_charts(Grid.of(RUNS[:1]))}


def test_records_stay_as_they_are():
    before = [to_json(record) for record in RUNS]
    render(GRID, sections(GRID)[:3])
    assert [to_json(record) for record in RUNS] == before
