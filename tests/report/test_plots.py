"""Figures of the runs that a user names, and what a run cannot give."""

import re

import numpy as np
import pytest

from oneofmany.cli import run
from oneofmany.evaluation.record_file import save_record
from oneofmany.report import Grid, answer_of, plot
from oneofmany.report.answer import percents

from .records import fake_evaluation, fake_grid, fake_history, fake_record
from .small_grid import MINLOSS, SELECTR, TOTAL
from .small_grid import run as small_run


def words(chart):
    """The texts of a figure."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", chart.svg)


def test_the_answer_is_one_sentence_about_the_same_queries():
    (sentence,) = answer_of(Grid.of([*MINLOSS, *SELECTR])).sentences
    assert sentence == "N-Queens 11: of 10 test queries, SelectR answers 85\u00a0% correctly and MinLoss 60\u00a0%."
    (alone,) = answer_of(Grid.of(MINLOSS)).sentences
    assert alone == "N-Queens 11: of 10 test queries, MinLoss answers 60\u00a0% correctly."
    other = small_run("selectr", 42, range(8), 0.6, checksum="other")
    assert len(answer_of(Grid.of([*MINLOSS, other])).sentences) == 2, "other queries are another sentence"
    many = answer_of(Grid.of([r for r in fake_grid(queries=300, seeds=(42,)) if r.task == "nqueens"]))
    assert "8 other recipes are between them" in many.sentences[0]
    assert "(equivariant)" in many.sentences[0]


def test_nothing_is_said_without_numbers():
    for records in ([], [fake_record("nqueens/naive", 42, {})]):
        answer = answer_of(Grid.of(records))
        assert (list(answer.sentences), answer.chart, answer.note) == ([], None, "")


@pytest.mark.parametrize(
    ("shares", "texts"),
    [
        ([98.06, 43.69], ["98", "44"]),
        ([43.69, 44.1], ["43.7", "44.1"]),
        ([99.96, 50], ["99.96", "50.00"]),
        ([100, 0], ["100", "0"]),
        ([50, 50], ["50", "50"]),
    ],
)
def test_percentages_have_as_few_digits_as_tell_them_apart(shares, texts):
    assert percents(shares) == [f"{text}\u00a0%" for text in texts]


def test_training_curves_of_several_runs():
    rng = np.random.default_rng(0)
    runs = [
        fake_record(f"nqueens/{o}", seed, {}, history=fake_history(rng, o, (0.9, 0.8)))
        for o in ("minloss", "naive")
        for seed in (1, 2)
    ]
    chart = plot(runs, "training")
    assert [word for word in words(chart) if word in ("Naive", "MinLoss")] == ["Naive", "MinLoss"], (
        "once each, in order"
    )
    assert {"one solution (OS)", "several solutions (MS)", "updates"} <= set(words(chart))
    said = []
    plot([*runs, fake_record("nqueens/selectr", 3, {})], "training", said.append)
    assert len(said) == 1
    assert said[0].startswith("left out: nqueens/selectr/3 was evaluated on its dev set fewer than two times")
    with pytest.raises(ValueError, match="no training curve"):
        plot([fake_record("nqueens/selectr", 3, {})], "training")


def test_a_figure_has_room_for_its_legend_and_refuses_too_many_recipes(recwarn):
    rng = np.random.default_rng(0)
    runs = [
        fake_record(f"nqueens/minloss/tuning/long-name-{i}", 1, {}, history=fake_history(rng, "minloss", (0.9, 0.8)))
        for i in range(25)
    ]
    few, many = plot(runs[:2], "training"), plot(runs[:24], "training")
    assert many.size[1] > few.size[1] + 3
    assert len([word for word in words(many) if "long-name" in word]) == 24
    assert not recwarn.list, "matplotlib warns if the axes have no room"
    with pytest.raises(ValueError, match="at most 24 recipes, got 25"):
        plot(runs, "training")


def curve(field, places, **more):
    """A run that was evaluated at these places."""
    valid = np.arange(10) < 7
    extra = {"chosen": np.arange(10) < 8, "checked": np.arange(10) < 9}
    evaluations = {
        f"nqueens-test-{field}{x}": fake_evaluation(
            valid, TOTAL, **{"steps": 32, field: x} | (extra if field == "starts" and x > 1 else {}) | more
        )
        for x in places
    }
    return fake_record("nqueens/minloss/equivariant", 42, evaluations)


@pytest.mark.parametrize("field", ["steps", "starts"])
def test_accuracy_over_steps_and_starts(field):
    chart = plot([curve(field, (1, 2, 8))], field)
    assert {"1", "2", "8", "MinLoss"} <= set(words(chart))
    assert ("chosen with the checker" in words(chart)) == (field == "starts")
    with pytest.raises(ValueError, match=f"oneofmany evaluate RUN DATA --{field} N"):
        plot([curve(field, (8,))], field)
    said = []
    plot([curve(field, (1, 2)), small_run("naive", 3, [1], 0.5)], field, said.append)
    assert len(said) == 1
    assert said[0].startswith("left out: nqueens/naive/3 was not evaluated with several numbers")


def test_accuracy_by_number_of_solutions():
    total = np.repeat([1, 2, 3], 40)
    runs = [
        fake_record(f"nqueens/{o}", 42, {"nqueens-test": fake_evaluation(total > k, total, checksum=data)})
        for k, (o, data) in enumerate((("minloss", "a"), ("naive", "a"), ("selectr", "b")))
    ]
    said = []
    chart = plot(runs, "solutions", said.append)
    assert {"1", "2", "3", "MinLoss", "Naive"} <= set(words(chart))
    assert said == ["left out: nqueens/selectr/42 was tested on other queries than nqueens/minloss/42"]
    with pytest.raises(ValueError, match="numbers of solutions"):
        plot([fake_record("nqueens/minloss", 1, {"t": fake_evaluation([True], [1])})], "solutions")


def test_the_command(tmp_path, capsys):
    for record in (*MINLOSS, *SELECTR):
        save_record(record, tmp_path / f"{record.name.replace('/', '-')}.json")
    for name in ("answer.svg", "answer.png"):
        assert run(["plot", str(tmp_path), "--out", str(tmp_path / name)]) == 0
        assert capsys.readouterr().out == f"{tmp_path / name}\n"
    assert (tmp_path / "answer.svg").read_text().startswith("<svg")
    assert run(["plot", str(tmp_path), "--kind", "steps", "--out", str(tmp_path / "steps.svg")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--steps N" in said
    assert not (tmp_path / "steps.svg").exists()
    assert run(["plot", str(tmp_path), "--out", str(tmp_path / "answer.gif")]) == 2
    history = fake_history(np.random.default_rng(0), "naive", (0.9, 0.8))
    save_record(fake_record("nqueens/naive", 1, {}, history=history), tmp_path / "curve.json")
    curve_of = ["plot", str(tmp_path / "curve.json"), "--out", str(tmp_path / "curve.svg"), "--kind"]
    assert run([*curve_of, "training"]) == 0, "training curves need no evaluation"
    assert run([*curve_of, "answer", "--force"]) == 2
    with pytest.raises(ValueError, match="kind: expected one of"):
        plot(MINLOSS, "pie")
