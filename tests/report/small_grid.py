"""A few runs on ten queries, small enough to compute tables by hand."""

import numpy as np

from oneofmany.report import Grid

from .records import fake_evaluation, fake_grid, fake_record

TOTAL = [1] * 6 + [2, 2, 2, 4]
"""Six OS and four MS queries."""


def run(objective, seed, right, dev, **more):
    """An N-Queens run that answered the queries of these numbers."""
    valid = np.isin(np.arange(10), right)
    return fake_record(f"nqueens/{objective}", seed, {"nqueens-test": fake_evaluation(valid, TOTAL, **more)}, dev=dev)


# MinLoss: OS 3/6, 6/6, 3/6; MS 2/4, 1/4, 3/4; overall 5, 7, 6 of 10. The dev set picks seed 1729.
MINLOSS = [
    run("minloss", 42, [0, 1, 2, 6, 7], 0.5),
    run("minloss", 1729, [0, 1, 2, 3, 4, 5, 6], 0.9),
    run("minloss", 3120, [0, 1, 2, 7, 8, 9], 0.7),
]
SELECTR = [run("selectr", 42, range(8), 0.6), run("selectr", 1729, range(1, 10), 0.4)]


def row_of(table, *labels):
    return next(row for row in table.rows if [cell.text for cell in row[: len(labels)]] == list(labels))


def texts(row):
    return [cell.text for cell in row]


def check_parts_of_a_grid(tables_of):
    """Any part of a grid makes whole tables, and none is filled without a run."""
    rng = np.random.default_rng(0)
    records = fake_grid(queries=60)
    for share in (0, 0.02, 0.1, 0.5, 1):
        part = [record for record in records if rng.random() < share]
        for table in tables_of(Grid.of(part)):
            assert all(len(row) == len(table.columns) for row in table.rows)
            table.markdown()
            table.csv()
            assert not table.filled or part
