"""Pronunciations: accuracies, gains over the first pronunciation only, the answer and its figure."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oneofmany.evaluation.record import Dev
from oneofmany.report.grid import OBJECTIVES, Grid
from report.records import fake_evaluation, fake_record
from reproduction.answers import ANSWERS, FEW
from reproduction.pronunciations import (
    KINDS,
    TEST,
    gains,
    preferred,
    pronunciation_gains,
    pronunciations,
    pronunciations_answer,
    pronunciations_chart,
    runs_of,
)

PAGE = Path(__file__).parents[2] / "docs" / "pronunciations.md"
SEEDS = (42, 1729, 3120)
AUTOREGRESSIVE = ("naive", "random", "ccloss", "minloss", "selectr")
SHARES = {"naive": 40, "random": 40, "unique": 30, "ccloss": 46, "minloss": 45, "iexplr": 41, "selectr": 44}
"""Made up: right words of 100 with several pronunciations."""


def pronouncing(shares=SHARES, seeds=SEEDS, kinds=KINDS, dev=None):
    """A grid of made-up runs: 100 words with one pronunciation, 70 of them right, and 100 with several."""
    records = []
    for kind in kinds:
        for name in OBJECTIVES if kind == KINDS[0] else AUTOREGRESSIVE:
            for place, seed in enumerate(seeds):
                several = shares[name] + place + (place == 1 and name == "iexplr") * 6
                valid = np.r_[np.arange(100) < 70 + place, np.arange(100) < several]
                total = np.r_[np.ones(100, int), np.full(100, 2)]
                evaluation = fake_evaluation(
                    valid,
                    total,
                    task="sequences",
                    size=39,
                    name=TEST,
                    judged_by="listed",
                    error_rate=0.2 - shares[name] / 1000 + place / 500,
                    command=f"oneofmany evaluate runs/sequences/{name}/{kind.variant}/{seed} data/{TEST}.safetensors",
                )
                # The test's scores are those of its queries; which words have several answers is not in `total`.
                evaluation = replace(evaluation, total=np.full(200, -1, np.int32))
                share = (dev or shares)[name] / 100
                record = fake_record(f"sequences/{name}/{kind.variant}", seed, {TEST: evaluation}, network="ctc")
                on_dev = Dev(share, share, share, 1000, "train", "listed")
                records.append(replace(record, dev=on_dev, apart="experiments/cmudict"))
    return Grid.of(records)


def texts(row):
    return [cell.text for cell in row]


def test_accuracies_are_means_over_seeds():
    table = pronunciations(pronouncing())
    assert len(table.rows) == len(OBJECTIVES) + len(AUTOREGRESSIVE)
    row = {cells[1].text: cells for cells in table.rows[:7]}["CC-Loss"]
    assert texts(row)[0].startswith("encoder with CTC")
    assert row[2].numbers["mean"] == pytest.approx(71)
    assert row[3].numbers["mean"] == pytest.approx(47)
    assert row[4].numbers["mean"] == pytest.approx(59)
    assert row[5].numbers["mean"] == pytest.approx(100 * (0.2 - 0.046 + 0.002))
    assert row[5].numbers["low"] < row[5].numbers["mean"] < row[5].numbers["high"]
    assert texts(row)[6:8] == ["3", "50,000"]
    assert "Random (the first pronunciation only)" in texts(table.rows[1])
    assert "Without stress marks" in table.note
    assert len(row[3].commands) == 6


def test_gains_are_paired_with_the_first_pronunciation_only():
    of = runs_of(pronouncing(), KINDS[0])
    found = gains(of, "ms")
    assert "random" not in found
    assert (found["minloss"].mean, found["minloss"].low) == pytest.approx((5, 5))
    assert gains(of, "os")["minloss"].mean == 0
    assert gains(of, "errors")["minloss"].mean == pytest.approx(-0.5)
    rows = {cells[1].text: texts(cells) for cells in pronunciation_gains(pronouncing()).rows[:6]}
    assert rows["MinLoss"][4:6] == ["+5.00 [+5.00, +5.00]", "higher"]
    assert rows["Unique"][5] == "lower"
    assert rows["I-ExplR"][5] == "undecided"
    assert rows["MinLoss"][8:] == ["−0.50 [−0.50, −0.50]", "lower"]


def test_the_answer_names_what_dev_prefers_and_every_verdict():
    text = pronunciations_answer(pronouncing())
    shares = "59.0 % of all words and 47.0 % of those with several pronunciations"
    assert text.count(f"dev prefers **CC-Loss**: {shares}") == 2
    assert "only (Random): 56.0 % of all words and 41.0 % of those with several pronunciations. Gained: +3.00" in text
    assert "+3.00 [+3.00, +3.00] points on all words (**better**)" in text
    assert "−0.60 [−0.60, −0.60] points of phoneme error rate (**better**)" in text
    ctc = text.splitlines()[1]
    assert re.search(r"\*\*better\*\* CC-Loss .*, MinLoss .*, SelectR .*; \*\*worse\*\* Unique", ctc)
    assert re.search(r"\*\*undecided\*\* Naive .*, I-ExplR", ctc)
    assert text.endswith("(figures/pronunciations.svg)")


def test_dev_chooses_not_the_test():
    grid = pronouncing(dev=SHARES | {"random": 90})
    assert preferred(runs_of(grid, KINDS[0])) == "random"
    assert "dev prefers **the first pronunciation only** (Random): 56.0 % of all words" in pronunciations_answer(grid)


def test_a_worse_choice_is_called_worse():
    """Dev may prefer what the test words do not."""
    grid = pronouncing(dev=SHARES | {"unique": 90}, kinds=KINDS[:1])
    text = pronunciations_answer(grid)
    assert "−10.00 [−10.00, −10.00] points on those with several (**worse**)" in text
    assert "+1.00 [+1.00, +1.00] points of phoneme error rate (**worse**)" in text


def test_the_page_begins_with_the_question_and_the_answer():
    lines = PAGE.read_text().splitlines()
    assert lines[2].startswith("**Which objective for pronunciations, and what is gained over the usual practice")
    assert lines[4] == "<!-- results: pronunciations-answer -->"


def test_too_few_seeds_decide_nothing():
    assert ANSWERS["pronunciations-answer"](pronouncing(seeds=SEEDS[:2])) == FEW
    assert not pronunciation_gains(pronouncing(seeds=SEEDS[:2])).rows
    assert pronunciations_chart(pronouncing(seeds=SEEDS[:2])) is None
    assert ANSWERS["pronunciations-answer"](Grid.of([])) == ""
    assert pronunciations_chart(Grid.of([])) is None
    # One network is enough for an answer.
    assert pronunciations_answer(pronouncing(kinds=KINDS[:1])).count("dev prefers") == 1


def test_the_figure_has_the_gains_of_both_networks():
    chart = pronunciations_chart(pronouncing())
    panels = chart.draw.keywords["panels"]
    assert [title for title, _ in panels] == [kind.title for kind in KINDS]
    (several, rows), (every, _) = panels[1][1]
    assert (several, every) == ("words with several", "all words")
    assert list(rows) == ["Naive", "CC-Loss", "MinLoss", "SelectR"]
    assert rows["CC-Loss"].mean == pytest.approx(6)
    svg = chart.standalone_svg()
    assert "I-ExplR" in svg
    assert int(re.search(r' width="(\d+)"', svg)[1]) < 480
