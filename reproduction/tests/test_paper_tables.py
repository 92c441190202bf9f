"""The paper's tables against a case small enough to compute by hand."""

import numpy as np

from oneofmany.evaluation.record import DataInfo
from oneofmany.report import Grid
from oneofmany.report.grid import OBJECTIVES, name_of
from oneofmany.report.results import every_run
from report.records import changed, fake_evaluation, fake_grid, fake_record
from report.small_grid import MINLOSS, SELECTR, TOTAL, check_parts_of_a_grid, row_of, run, texts
from reproduction.comparisons import seed_gains, significance, unique_training
from reproduction.page import all_tables
from reproduction.paper_tables import accuracy, data_statistics, standard_errors
from reproduction.runs import schedules


def test_table_2():
    table = accuracy(Grid.of([*MINLOSS, *SELECTR]))
    row = texts(row_of(table, "N-Queens", "MinLoss"))
    assert row[2:] == [
        *("66.67 (100.00)", "77.29 (78.00)", "−10.62"),
        *("50.00 (25.00)", "77.22 (77.82)", "−27.22"),
        *("60.00 (70.00)", "77.28 (77.97)", "−17.28"),
        "3",
    ]
    empty = texts(row_of(table, "Sudoku", "Naive"))
    assert empty[2:] == ["", "87.85 (89.08)", "", "", "9.13 (10.59)", "", "", "48.49 (49.84)", "", ""]
    assert row_of(table, "N-Queens", "SelectR")[8].best
    assert not row_of(table, "N-Queens", "MinLoss")[8].best
    assert len(table.rows) == 21


def test_every_number_has_its_commands():
    cell = row_of(accuracy(Grid.of(MINLOSS)), "N-Queens", "MinLoss")[2]
    expected = {f"oneofmany train nqueens/minloss --seed {seed}" for seed in (42, 1729, 3120)}
    assert set(cell.commands) == {*expected, "oneofmany evaluate RUN nqueens-test"}
    for table in all_tables(Grid.of(fake_grid(queries=200))):
        for column, *cells in zip(table.columns, *table.rows, strict=True):
            if column.name == "ours":
                assert all(bool(cell.commands) == bool(cell.text) for cell in cells), (table.name, column)


def test_standard_errors():
    # overall 50, 70, 60: standard deviation 10, standard error 10 / sqrt(3), t(2) at 97.5 % is 4.3027.
    row = texts(row_of(standard_errors(Grid.of(MINLOSS)), "N-Queens", "MinLoss"))
    assert row[8:] == ["60.00 ± 5.77", "35.2 – 84.8", "77.28 ± 0.48", "3"]
    one = texts(row_of(standard_errors(Grid.of(MINLOSS[:1])), "N-Queens", "MinLoss"))
    assert one[8:] == ["", "", "77.28 ± 0.48", "1"]


def test_swapped_headers_are_corrected_and_said():
    table = standard_errors(Grid.of([]))
    assert texts(row_of(table, "Sudoku", "Unique"))[10] == "77.79 ± 1.96"
    assert "swapped" in table.note


def test_seed_gains_of_shared_seeds():
    table = seed_gains(Grid.of([*MINLOSS, *SELECTR]))
    # 80 - 50 and 90 - 70; standard error of 30 and 20 is 5.
    assert texts(row_of(table, "42"))[1:3] == ["+30.00", "+3.40"]
    assert texts(row_of(table, "1729"))[1:3] == ["+20.00", "+2.53"]
    assert texts(row_of(table, "3120"))[1:3] == ["", "+1.39"]
    assert texts(row_of(table, "mean"))[1:3] == ["+25.00 ± 5.00", "+2.44"]


def test_significance_between_the_runs_that_dev_picks():
    # SelectR 42 (queries 0-7) against MinLoss 1729 (0-6): one discordant query.
    row = texts(row_of(significance(Grid.of([*MINLOSS, *SELECTR])), "N-Queens"))
    assert row == ["N-Queens", "1", "0", "7", "2", "1", "1e-16"]


def test_significance_needs_the_same_data():
    other = run("selectr", 42, range(8), 0.6, checksum="other")
    assert texts(row_of(significance(Grid.of([*MINLOSS, other])), "N-Queens"))[1:6] == [""] * 5


def test_four_cells():
    runs = []
    for recipe, train, select_on, right in (
        ("sudoku/unique", "sudoku-train", "overall", range(8)),
        ("sudoku/unique-os-dev", "sudoku-train", "os", range(7)),
        ("sudoku/unique-180k", "sudoku-os-train", "overall", range(6)),
        ("sudoku/unique-180k-os-dev", "sudoku-os-train", "os", range(5)),
    ):
        evaluation = fake_evaluation(np.isin(np.arange(10), right), TOTAL, task="sudoku", size=9)
        about = DataInfo(train, train, 10)
        record = fake_record(recipe, 42, {"sudoku-test": evaluation}, network="rrn", train=about)
        runs.append(changed(record, select_on=select_on))
    grid = Grid.of(runs)
    table = unique_training(grid)
    assert texts(row_of(table, "10k", "OS and MS"))[2:] == [
        "100.00",
        "89.19",
        "+10.81",
        "50.00",
        "66.39",
        "−16.39",
        "1",
    ]
    assert texts(row_of(table, "10k", "OS alone"))[2:] == ["100.00", "", "", "25.00", "", "", "1"]
    assert texts(row_of(table, "180k", "OS and MS"))[2:] == ["100.00", "", "", "0.00", "", "", "1"]
    assert texts(row_of(table, "180k", "OS alone"))[2:] == ["83.33", "94.32", "−10.99", "0.00", "24.48", "−24.48", "1"]
    # Table 2 has the paper's cell alone.
    assert texts(row_of(accuracy(grid), "Sudoku", "Unique"))[2] == "100.00"


def test_larger_batches_have_the_papers_tables_too():
    larger = [fake_record("nqueens/minloss/large-batch", seed, MINLOSS[0].evaluations) for seed in (1, 2)]
    grid = Grid.of([*larger, MINLOSS[0]])
    assert [one.variants.get("nqueens") for one in schedules(grid)] == ["large-batch", ""]
    tables = {table.name: table for table in all_tables(grid)}
    assert row_of(tables["table-2-accuracy"], "N-Queens", "MinLoss")[-1].text == "2"
    assert row_of(tables["table-2-accuracy-other-schedule"], "N-Queens", "MinLoss")[-1].text == "1"
    assert [set(one.variants.values()) for one in schedules(Grid.of([]))] == [{""}]


def test_table_1():
    train = DataInfo("nqueens-train", "a", 200, ms_queries=20, solutions_per_ms_query=2.25)
    record = fake_record("nqueens/minloss", 42, MINLOSS[0].evaluations, train=train)
    table = data_statistics(Grid.of([record]))
    assert texts(row_of(table, "nqueens-train"))[1:] == ["200", "165,744", "10.00", "7.04", "2.25", "2.1"]
    assert texts(row_of(table, "nqueens-test"))[1:] == ["10", "10,000", "40.00", "16.67", "2.50", "2.2"]
    assert texts(row_of(table, "nqueens-dev"))[1:] == ["100", "", "", "", "", ""]
    assert texts(row_of(table, "sudoku-test"))[1:] == ["", "10,000", "", "50.00", "", "13.7"]


def test_any_part_of_a_grid_makes_tables():
    check_parts_of_a_grid(all_tables)


def test_runs_without_evaluations_or_subsets():
    only_os = fake_record("nqueens/naive", 42, {"nqueens-test": fake_evaluation([True, False], [1, 1])})
    grid = Grid.of([only_os, fake_record("nqueens/unique", 42, {}, dev=None)])
    assert texts(row_of(accuracy(grid), "N-Queens", "Naive"))[5] == ""
    assert [texts(row)[0] for row in every_run(grid).rows] == ["nqueens/naive/42", "nqueens/unique/42"]
    for table in all_tables(grid):
        table.csv()


def test_names_of_the_paper_are_in_order():
    assert [cell.text for cell, *_ in (row[1:] for row in accuracy(Grid.of([])).rows[:7])] == [
        name_of(objective) for objective in OBJECTIVES
    ]
