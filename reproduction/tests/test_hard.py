"""Hard Sudokus: our networks beside the published numbers, by rating, and searches by noise."""

from dataclasses import replace

import numpy as np
import pytest

from oneofmany.evaluation.record import DataInfo, History
from oneofmany.evaluation.scores import Score
from oneofmany.evaluation.searching import Searched, SearchPoint
from oneofmany.files import FileError
from oneofmany.recipes import recipe
from oneofmany.report.grid import Grid
from oneofmany.training.settings import to_json
from report.records import fake_evaluation, fake_record
from reproduction.conditions import hard_conditions
from reproduction.experiments import experiments
from reproduction.hard import hard_answer, hard_chart, hard_ratings, hard_sudokus, main_recipe, parameters
from reproduction.large_boards import OWN, large_boards, large_chart
from reproduction.other_papers import HARD_SUDOKU
from reproduction.ours import main_table
from reproduction.page import paper_tables
from reproduction.publish import NOTHING, SEARCH_ANSWER, publish, stale
from reproduction.searches import FOLDER, read_searches, search_answer, search_figure, search_table, shorten_searches
from reproduction.tests.our_records import our_runs
from reproduction.tests.paper_records import write

SEEDS = (42, 1729, 3120)
HARD = "sudoku-hard/minloss/equivariant"


def evaluation(run, name, share, steps=1024, **more):
    """An evaluation on 200 Sudokus, the last half MS if the name says so."""
    valid, total = np.arange(200) < 2 * share, np.ones(200, int)
    if "-ms-" in name or "rating" in name:
        total[100 * ("rating" in name) :] = 4
    command = f"oneofmany evaluate runs/{run} data/{name}.safetensors"
    return fake_evaluation(
        valid, total, task="sudoku", size=9, name=name, checksum=name, steps=steps, command=command, **more
    )


def hard_run(name=HARD, seed=42, extreme=96, dev=0.9, apart="experiments/hard", **more):
    """A made-up run: extreme OS and MS, a rating, the first test set, more steps, and 8 starts."""
    run = f"{name}/{seed}"
    found = {
        one: evaluation(run, one, share)
        for one, share in (
            ("sudoku-extreme-test", extreme),
            ("sudoku-extreme-ms-test", 98),
            ("sudoku-rating-0-10-test", 100),
            ("sudoku-test", 99),
        )
    }
    found["sudoku-extreme-test-steps4096"] = evaluation(run, "sudoku-extreme-test", extreme + 1, 4096)
    starts = evaluation(run, "sudoku-extreme-test", extreme, starts=8, chosen=np.arange(200) < 198,
                        checked=np.arange(200) < 199)  # fmt: skip
    found["sudoku-extreme-test-starts8"] = starts
    data = {"train": DataInfo("sudoku-hard-train", "a", 120_000), "dev": DataInfo("sudoku-extreme-dev", "b", 1000)}
    record = fake_record(name, seed, found, dev=dev, network="equivariant", task="sudoku", seconds=840.0, data=data)
    return replace(record, settings=to_json(recipe(name)), apart=apart, **more)


def hard_grid():
    """Three seeds of the recipe, and one with the checker that dev likes more."""
    runs = [hard_run(seed=seed, extreme=95 + place) for place, seed in enumerate(SEEDS)]
    return Grid.of([*runs, hard_run("sudoku-hard/minloss/equivariant-checker", dev=0.99)])


def texts(row):
    return [cell.text for cell in row]


def test_our_numbers_are_beside_the_published_ones():
    rows = [texts(row) for row in hard_sudokus(hard_grid()).rows]
    count = parameters(hard_run())
    assert 10_000 < count < 200_000
    label = [HARD, "one trajectory, 1,024 steps", "our extreme set, one solution (200)"]
    assert rows[0][:3] == label
    assert rows[0][3].startswith("96.00 [")
    assert rows[0][4:] == [f"{count:,}", "14.0, CPU", "3"]
    answers = [row[1] for row in rows[:4]]
    assert answers == [label[1], label[1], "one trajectory, 4,096 steps", "the best of 8 starts, 1,024 steps"]
    # Chosen by the residual, not by the checker.
    assert rows[3][3].startswith("99.00")
    published = {row[0]: row[1:] for row in rows if row[0].endswith("published")}
    assert len(published) == len(HARD_SUDOKU) == 6
    assert published["EqR, published"] == ["128 restarts", "Sudoku-Extreme", "99.8", "", "", ""]
    assert published["HRM, published"][2:] == ["55.0", "27 M", "", ""]
    assert published["TRM, published"][4] == "2,160, NVIDIA L40S"
    assert not hard_sudokus(Grid.of([])).rows


def test_by_rating():
    table = hard_ratings(hard_grid())
    names = [column.full_name for column in table.columns]
    row = dict(zip(names, texts(table.rows[0]), strict=True))
    assert row["rating 0 to 10"] == "100.00"
    assert "rating 10 to 30" not in row  # no run was tested there
    assert "other test set fresh" not in row
    assert row["rating extreme"] == "96.00"
    assert row["other test set first"] == "99.00"
    assert row["seeds"] == "3"


def test_the_answer_is_of_one_trajectory_without_the_checker():
    grid = hard_grid()
    assert main_recipe(grid) == HARD
    text = hard_answer(grid)
    assert text.startswith("In one trajectory of at most 1,024 steps, without the checker")
    assert "**96.00 %** of our 200 extreme Sudokus, **98.00 %** of the 200 with several solutions" in text
    assert "(means over 3 seeds)" in text
    assert "trains in 14.0 minutes on one CPU" in text
    wider = [hard_run("sudoku-hard/minloss/equivariant/windows", seed, dev=0.95) for seed in SEEDS]
    assert main_recipe(Grid.of([*grid.apart, *wider])) == "sudoku-hard/minloss/equivariant/windows"
    assert hard_answer(Grid.of([])) == ""


def test_what_the_numbers_used():
    table = hard_conditions(hard_grid())
    used = {row[0].text: row[1].text for row in table.rows}
    assert used["rules checker in training"] == used["rules checker at test time"] == "no"
    assert used["listed solutions per training query"] == "up to 5"
    assert (used["steps at test time"], used["starts"]) == ("1024", "1")
    assert used["training"] == f"{recipe(HARD).first.updates:,} updates x 512 queries"
    assert not hard_conditions(Grid.of([])).rows


def test_the_figure_has_a_line_for_every_seed():
    logged = {"update": (600, 1200), "seconds": (60.0, 120.0), "dev_overall": (0.5, 0.9)}
    grid = Grid.of([replace(one, history=History(phase=("train",) * 2, **logged)) for one in hard_grid().apart])
    chart = hard_chart(grid)
    assert all(f"seed {seed}" in chart.svg for seed in SEEDS)
    assert "checker" not in chart.caption
    assert len(chart.commands) == 3
    assert hard_chart(hard_grid()) is None  # nothing was logged
    assert hard_chart(Grid.of([])) is None


def test_they_are_not_mixed_with_the_other_sudokus():
    """The same task, objective and network, but another recipe and other data."""
    usual = our_runs(queries=30)
    for apart in ("experiments/hard", ""):
        grid = Grid.of([*usual, hard_run(apart=apart)])
        assert main_table(grid).markdown() == main_table(Grid.of(usual)).markdown()
    assert not experiments(Grid.of([*usual, hard_run()])).rows
    before, after = (paper_tables(Grid.of(runs)) for runs in (usual, [*usual, hard_run()]))
    assert [table.markdown() for table in before] == [table.markdown() for table in after]


# ---- searches --------------------------------------------------------------------------------------------------------


def searched(seed=42, data="sudoku-extreme-test", shift=0, restarts=("noise",), starts=(1, 8, 32, 128)):
    """Made up: more starts and more steps are better, and perturbed starts better still."""
    points = []
    for restart in restarts:
        for steps in (64, 1024):
            for place, number in enumerate(starts):
                right = 150 + 4 * place + (steps > 64) * 20 + (restart == "perturbed") * 2 + shift
                os, none = Score(right, 200), Score(0, 0)
                settled = Score(right - 10, right - 9)
                points.append(SearchPoint(restart, steps, number, os, none, os, settled, 40.0 * number, 2.5 * number))
    about = {
        "network": f"/somewhere/runs/{HARD}/{seed}",
        "recipe": HARD,
        "data": {"name": data, "checksum": data, "task": "sudoku", "size": 9, "queries": 200},
        "command": f"oneofmany search /somewhere/runs/{HARD}/{seed} /elsewhere/{data}.safetensors --starts 1 8",
        "environment": {"device": "a device"},
    }
    return Searched(tuple(points), about)


def test_a_row_for_every_number_of_steps():
    table = search_table([searched(), searched(1729, shift=2)])
    names = [column.full_name for column in table.columns]
    assert names[4:8] == [f"starts at most {number}" for number in (1, 8, 32, 128)]
    assert texts(table.rows[0])[:5] == [
        HARD,
        "sudoku-extreme-test",
        "starts with new noise",
        "64",
        "75.50 (2 s)",
    ]
    row = table.rows[1]
    assert row[6].numbers == {"accuracy": pytest.approx(89.5), "seconds": 80}
    assert row[6].commands == tuple(
        f"oneofmany search runs/{HARD}/{seed} data/sudoku-extreme-test.safetensors --starts 1 8" for seed in (42, 1729)
    )
    assert texts(row)[8:] == ["5,120", "99.43", "2"]
    assert "a device" in table.note
    assert not search_table([]).rows


def test_dev_chooses_how_to_search():
    both = ("noise", "perturbed")
    text = search_answer([searched(restarts=both), searched(data="sudoku-extreme-dev", restarts=both)])
    assert "at most 1,024 steps a start, starts from perturbed states (chosen on dev)" in text
    assert "**86.00 %** with one start, **90.00 %** with up to 32 starts, **92.00 %** with up to 128 starts." in text
    assert text.endswith("(figures/hard-search.svg)")
    few = search_answer([searched(starts=(1, 8))])
    assert "**85.00 %** with one start, **87.00 %** with up to 8 starts." in few
    assert "chosen on dev" not in few
    assert search_answer([]) == ""


def test_the_figure_has_a_panel_for_every_data_set_and_way():
    chart = search_figure([searched(restarts=("noise", "perturbed")), searched(data="sudoku-extreme-dev")])
    panels = chart.draw.keywords["panels"]
    assert [title for title, _ in panels] == [
        "sudoku-extreme-test, starts with new noise",
        "sudoku-extreme-test, starts from perturbed states",
        "sudoku-extreme-dev, starts with new noise",
    ]
    assert [line.label for line in panels[0][1]] == ["64 steps", "1,024 steps"]
    assert panels[0][1][1].points[0][:2] == (1, 85)
    assert "<svg" in chart.standalone_svg()
    assert search_figure([]) is None


def test_pages_are_filled_from_files(tmp_path):
    """A record and the file of a search fill the page, its figure and the file of commands."""
    for folder in ("docs", "reproduction/records", "src/oneofmany/weights"):
        (tmp_path / folder).mkdir(parents=True)
    page = tmp_path / "docs" / "page.md"
    blocks = ("hard-answer", "hard-sudokus", "hard-ratings", SEARCH_ANSWER, "hard-search")
    page.write_text("".join(f"<!-- results: {name} -->\n<!-- end -->\n" for name in blocks))
    (tmp_path / "README.md").write_text("")
    publish(tmp_path)
    assert page.read_text().count(NOTHING) == 5
    write(tmp_path / "reproduction" / "records", [hard_run(seed=seed) for seed in SEEDS])
    (tmp_path / FOLDER).mkdir()
    searched().save(tmp_path / FOLDER / "one.json")
    assert stale(tmp_path)
    publish(tmp_path)
    text = page.read_text()
    assert NOTHING not in text
    assert "| 75.00 (2 s) |" in text
    assert "<svg" in (tmp_path / "docs" / "figures" / "hard-search.svg").read_text()
    commands = (tmp_path / "reproduction" / "records" / "COMMANDS.md").read_text()
    assert f"`oneofmany search runs/{HARD}/42 data/sudoku-extreme-test.safetensors --starts 1 8`" in commands
    assert stale(tmp_path) == []
    (tmp_path / FOLDER / "one.json").write_text("{}")
    with pytest.raises(FileError, match="does not hold a search"):
        read_searches(tmp_path)


def test_searches_lose_the_places_of_another_machine(tmp_path):
    (tmp_path / FOLDER).mkdir(parents=True)
    searched(1729).save(tmp_path / FOLDER / "run.json")
    bundled = searched()
    command = "oneofmany search sudoku-hard /elsewhere/x.safetensors --steps 64"
    replace(bundled, about=bundled.about | {"network": "sudoku-hard", "command": command}).save(
        tmp_path / FOLDER / "bundled.json"
    )
    assert shorten_searches(tmp_path) == ["bundled.json", "run.json"]
    found = [(one.about["network"], one.about["command"]) for one in read_searches(tmp_path)]
    data = "data/sudoku-extreme-test.safetensors"
    run = f"runs/{HARD}/1729"
    assert found == [
        ("sudoku-hard", f"oneofmany search sudoku-hard {data} --steps 64"),
        (run, f"oneofmany search {run} {data} --starts 1 8"),
    ]
    assert shorten_searches(tmp_path) == []


def large_run(name, seed, train, shares):
    """A made-up run with an accuracy on boards with each number of givens."""
    found = {
        test: evaluation(f"{name}/{seed}", test, share)
        for test, share in ((f"sudoku-size-{size}-givens-{givens}-test", share) for size, givens, share in shares)
    }
    data = {"train": DataInfo(train, "a", 100), "dev": DataInfo("sudoku-size-16-dev", "b", 100)}
    record = fake_record(name, seed, found, dev=0.9, network="equivariant", task="sudoku", data=data)
    return replace(record, settings=to_json(recipe(name)), apart="experiments/hard")


def test_larger_boards_by_the_number_of_givens():
    nine = [large_run(HARD, seed, "sudoku-hard-train", [(16, 96, 60 + seed % 2), (25, 380, 50)]) for seed in SEEDS]
    own = large_run(f"{HARD}/size-16", 42, OWN, [(16, 96, 90), (16, 144, 99)])
    table = large_boards(Grid.of([*nine, own]))
    names = [column.full_name for column in table.columns]
    first, second = (dict(zip(names, texts(row), strict=True)) for row in table.rows)
    assert (first["network"], first["trained on"], first["seeds"]) == (HARD, "9x9", "3")
    assert first["16x16, givens of 256 96"].startswith("60.33 [")
    assert first["25x25, givens of 625 380"].startswith("50.00 [")
    assert first["16x16, givens of 256 144"] == ""
    assert (second["trained on"], second["16x16, givens of 256 144"][:5]) == ("16x16", "99.00")
    chart = large_chart(Grid.of([*nine, own]))
    assert all(f"trained on {size}" in chart.svg for size in ("9x9", "16x16"))
    assert large_chart(Grid.of([])) is None
    assert not hard_ratings(Grid.of([*nine, own])).rows  # not on extreme Sudokus


def test_searches_on_larger_boards_have_rows_of_their_own():
    def on(givens, seed=42):
        one = searched(seed, f"sudoku-size-16-givens-{givens}-test", starts=(1, 8))
        return replace(one, about=one.about | {"data": one.about["data"] | {"size": 16}})

    searches = [on(96), on(96, 1729), on(144)]
    table = large_boards(Grid.of([]), searches)
    names = [column.full_name for column in table.columns]
    rows = [dict(zip(names, texts(row), strict=True)) for row in table.rows]
    assert [row["answers"].split(",")[0] for row in rows] == ["one trajectory", "up to 8 starts"] * 2
    assert {(row["network"], row["trained on"], row["seeds"]) for row in rows} == {(HARD, "9x9", "1 to 2")}
    assert rows[0]["16x16, givens of 256 96"].startswith("75.00 [")
    assert rows[0]["16x16, givens of 256 96"].endswith("(queries)")  # both seeds are the same
    assert rows[0]["16x16, givens of 256 144"].startswith("75.00 [")
    assert "trained on 9x9" in large_chart(Grid.of([]), searches).svg
    assert not search_table(searches).rows  # those of 9x9
