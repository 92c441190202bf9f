"""Figures of the page: all that the records fill, and Example 2."""

import pytest

from oneofmany.report import Grid
from report.records import fake_grid
from reproduction.example2 import boundaries
from reproduction.page import all_charts
from reproduction.paper import EXAMPLE_2_BOUNDARY


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
