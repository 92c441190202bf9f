"""Figures: drawn from any grid, the same bytes every time, one SVG for light and dark."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from oneofmany.pictures.themes import DARK, LIGHT
from oneofmany.report import Grid
from oneofmany.report.figures import exploratory_chart, user_charts
from oneofmany.report.plots import _joined

from .records import changed, fake_evaluation, fake_grid, fake_record


@pytest.fixture(scope="module")
def charts():
    return user_charts(Grid.of(fake_grid(queries=500)))


def test_all_figures_are_there(charts):
    names = [chart.name for chart in charts]
    assert len(set(names)) == len(names)
    expected = {f"{kind}-{task}" for kind in ("solutions", "exploratory", "training") for task in
                ("nqueens", "futoshiki", "sudoku")}  # fmt: skip
    assert expected | {"givens-sudoku", "solutions-sudoku-equivariant"} <= set(names)
    assert "givens-nqueens" not in names  # all of its queries have as many givens


def test_none_without_runs():
    assert user_charts(Grid.of([])) == []


def test_svg_follows_the_page(charts):
    for chart in charts:
        text = chart.svg
        ET.fromstring(text)
        assert not [colour for colour in LIGHT.values() if colour in text], chart.name
        assert "var(--ink)" in text
        # What a name refers to is in the same picture, and no other picture uses the name.
        ids = set(re.findall(r'\bid="([^"]*)"', text))
        used = set(re.findall(r'(?:href="#|url\(#)([^")]*)', text))
        assert used <= ids
        assert all(name.startswith(f"{chart.name}-") for name in ids)


def test_same_bytes(charts):
    chart = charts[0]
    assert chart.svg == replace(chart).svg
    assert chart.png(LIGHT) == chart.png(LIGHT) != chart.png(DARK)
    ET.fromstring(chart.standalone_svg())


def test_colours_have_one_meaning():
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)


def contrast(first, second):
    """The ratio of the Web Content Accessibility Guidelines."""

    def luminance(colour):
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_readable(theme):
    for name, colour in theme.items():
        if name not in ("paper", "line", "band"):
            least = 4.5 if name in ("ink", "muted", "right", "wrong", "minloss") else 3
            assert contrast(colour, theme["paper"]) >= least, name


def test_phases_follow_each_other():
    history = {"update": [250, 500, 250], "phase": ["train", "train", "joint"], "dev_os": [0.1, 0.2, None]}
    record = fake_record("nqueens/minloss", 42, {}, history=history)
    points = _joined(record, "dev_os")
    assert [x for x, *_ in points] == [250, 500, 500, 750]
    assert np.allclose([y for _, y, *_ in points], [10, 20, np.nan, np.nan], equal_nan=True)
    assert _joined(record, "dev_ms") == []


def test_objectives_on_other_data_are_not_drawn_together():
    total = np.repeat([1, 2], 50)
    runs = [
        fake_record(f"nqueens/{o}", 42, {"nqueens-test": fake_evaluation(total > 1, total, checksum=checksum)})
        for o, checksum in (("minloss", "a"), ("selectr", "b"))
    ]
    assert user_charts(Grid.of(runs)) == []


def test_a_joint_phase_of_ms_queries_has_one_kind_of_them():
    record = next(r for r in fake_grid(queries=50) if (r.task, r.objective) == ("nqueens", "selectr"))
    drawn = exploratory_chart(Grid.of([record]), "nqueens", "").svg
    assert "MS queries alone" in drawn
    drawn = exploratory_chart(Grid.of([changed(record, second={"sampling": "ms"})]), "nqueens", "").svg
    assert "MS queries alone" not in drawn
    assert "all queries, which are MS queries" in drawn


def test_a_band_is_drawn_where_there_is_one():
    record = next(r for r in fake_grid(queries=50) if (r.task, r.objective) == ("nqueens", "selectr"))
    plain, marked = (exploratory_chart(Grid.of([record]), "nqueens", "", band=band) for band in (None, (3.0, 10.0)))
    assert "paper" not in plain.svg + plain.caption
    assert "3 to 10 %" in marked.caption
    assert "paper, all queries at first" in marked.svg
