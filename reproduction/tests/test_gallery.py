"""The table of the gallery's networks, from made-up runs, and its files."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from oneofmany.report import Grid
from report.records import fake_evaluation, fake_record
from reproduction.experiments import GALLERY, experiments
from reproduction.gallery import gallery
from reproduction.measured import measured_json
from reproduction.runs import read_published

TASKS = Path(__file__).parents[2] / "examples" / "tasks"


def run(task, right, name):
    valid, total = np.arange(100) < right, np.where(np.arange(100) < 40, 1, 3)
    found = fake_evaluation(valid, total, task=task, size=4, name=name, checksum=name)
    record = fake_record(f"{task}/minloss/equivariant", 42, {name: found}, network="equivariant", task=task)
    return replace(record, apart=GALLERY)


def test_a_row_for_every_task_that_was_tested():
    runs = [run("magic-square", 70, "magic-square-4-test"), run("map", 50, "map-dev")]
    (row,) = gallery(Grid.of(runs)).rows
    assert [cell.text for cell in row[:3]] == ["magic-square", "4", "magic_square.py"]
    assert [cell.text.split(" ")[0] for cell in row[3:6]] == ["100.00", "50.00", "70.00"]
    assert row[6].text == "100"
    assert not experiments(Grid.of(runs)).rows
    assert measured_json(runs) == measured_json([])  # of the package's recipes only


def test_the_published_tasks_are_files_of_the_gallery():
    rows = gallery(Grid.of(read_published())).rows
    assert {"latin", "killer", "sudoku-x"} <= {row[0].text for row in rows}
    assert all((TASKS / row[2].text).is_file() for row in rows)
