"""Sequences in the trainer: all objectives, resuming, evaluation by the command, records."""

import json
from itertools import count

import pytest

import oneofmany.training.trainer as trainer_module
from oneofmany.data import import_sequences
from oneofmany.evaluation import evaluate_run, read_record
from oneofmany.evaluation.sequences import edit_distance
from oneofmany.files import FileError
from oneofmany.networks.building import NetworkSettings, SelectorSettings
from oneofmany.training import Interrupted, resume, train
from oneofmany.training.settings import OBJECTIVES, PhaseSettings, SelectorTraining, Settings
from small_runs import assert_same_run

# Spell a number in either direction: two right answers, one for palindromes.
RECORDS = [
    {"input": text, "outputs": sorted({text.translate({48: "o", 49: "i"}), text[::-1].translate({48: "o", 49: "i"})})}
    for text in (f"{n:0{size}b}" for size in (2, 3, 4) for n in range(2**size))
]


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    from oneofmany.data import Fields

    folder = tmp_path_factory.mktemp("mine")
    data, _ = import_sequences(RECORDS, fields=Fields(outputs="outputs"))
    data.save(folder / "train.safetensors")
    return folder / "train.safetensors"


def settings_of(objective="minloss", kind="ctc", updates=6, **changes):
    phase = PhaseSettings(updates=updates, batch=8, lr=1e-2)
    two = objective in ("iexplr", "selectr")
    values = {
        "recipe": f"sequences/{objective}/own",
        "task": "sequences",
        "objective": objective,
        "network": NetworkSettings(kind, width=16, depth=1, heads=2, dropout=0.1, frames=2),
        "selector": SelectorSettings("tokens", width=8),
        "first": phase,
        "second": phase if two else PhaseSettings(updates=0),
        "selector_training": SelectorTraining(updates=3, lr=1e-2, copy_interval=2),
        "evaluate_every": 3,
        "log_every": 2,
        "device": "cpu",
        "threads": 1,
        "checkpoint_minutes": 0.0,
    }
    return Settings(**values | changes)


@pytest.mark.parametrize("kind", ["ctc", "seq2seq"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_trains(mine, tmp_path, objective, kind):
    result = train(settings_of(objective, kind), mine, mine, tmp_path / "run")
    assert result["finished"]
    assert result["dev"]["judged_by"] == "listed"


@pytest.mark.parametrize("kind", ["ctc", "seq2seq"])
def test_random_trains_on_the_first_listed_answer(mine, tmp_path, kind):
    """The usual practice, in every update and run: the other answers make no difference, as they do for Naive."""
    losses, network = {}, NetworkSettings(kind, width=16, depth=1, heads=2, frames=2)  # the draws of dropout differ
    for name, objective, listed in (("all", "random", None), ("first", "random", 1), ("naive", "naive", None)):
        train(settings_of(objective, kind, listed=listed, network=network), mine, mine, tmp_path / name)
        lines = map(json.loads, (tmp_path / name / "metrics.jsonl").read_text().splitlines())
        losses[name] = [line["loss"] for line in lines if "loss" in line]
    assert losses["all"] == pytest.approx(losses["first"], rel=1e-4)
    assert losses["all"] != pytest.approx(losses["naive"], rel=1e-2)


@pytest.mark.parametrize("kind", ["ctc", "seq2seq"])
def test_a_resumed_run_is_the_same_run(mine, tmp_path, monkeypatch, kind):
    settings = settings_of("selectr", kind, ema=0.6)
    train(settings, mine, mine, tmp_path / "whole")
    numbers, usual = count(), trainer_module.Trainer._look_around

    def stopping(self, updater, at_a_line):
        if next(numbers) % 5 == 4:
            self._signal = 15
        usual(self, updater, at_a_line)

    monkeypatch.setattr(trainer_module.Trainer, "_look_around", stopping)
    stops = 0
    try:
        train(settings, mine, mine, tmp_path / "parts")
    except Interrupted:
        stops += 1
    for _ in range(20):
        try:
            resume(tmp_path / "parts")
            break
        except Interrupted:
            stops += 1
    assert stops > 1
    assert_same_run(tmp_path / "whole", tmp_path / "parts")


def test_it_learns_and_is_evaluated_by_the_command(mine, tmp_path, capsys):
    from oneofmany.cli import run

    settings = settings_of("minloss", "seq2seq", 250, evaluate_every=250, log_every=250)
    train(settings, mine, mine, tmp_path / "run")
    evaluated = evaluate_run(tmp_path / "run", mine)
    summary, outcomes = evaluated.summary, evaluated.outcomes
    assert summary["overall"]["accuracy"] > 0.5
    assert summary["overall"]["total"] == 28
    assert (outcomes.edits == 0).tolist() == outcomes.valid.tolist()
    assert summary["error_rate"] == pytest.approx(outcomes.edits.sum() / outcomes.lengths.sum())
    assert run(["evaluate", str(tmp_path / "run"), str(mine)]) == 0
    out = capsys.readouterr().out
    assert "correct: among the listed answers" in out
    assert "OS includes" not in out  # here it means one listed answer
    assert "error rate to the nearest listed answer" in out
    record = read_record(tmp_path / "run")
    assert record.evaluations["train"].error_rate == summary["error_rate"]
    assert run(["compare", str(tmp_path / "run"), str(tmp_path / "run"), str(mine)]) == 0


def test_what_cannot_be(mine, tmp_path):
    from oneofmany.data.nqueens import build_nqueens

    build_nqueens(4, 2).save(tmp_path / "boards.safetensors")
    with pytest.raises(FileError, match="the data is of task nqueens, the recipe is for sequences"):
        train(settings_of(), tmp_path / "boards.safetensors", mine, tmp_path / "run")
    other, _ = import_sequences([{"input": "2", "output": "i"}])
    other.save(tmp_path / "other.safetensors")
    with pytest.raises(FileError, match=r"dev: inputs: the vocabulary of the training data has no '2'"):
        train(settings_of(), mine, tmp_path / "other.safetensors", tmp_path / "run")
    with pytest.raises(ValueError, match="reveal and augment: expected neither for sequences"):
        settings_of(reveal=0.5)
    train(settings_of(updates=1, evaluate_every=1), mine, mine, tmp_path / "run")
    with pytest.raises(ValueError, match="sequences need a network for sequences"):
        evaluate_run(tmp_path / "run", tmp_path / "boards.safetensors")


def test_answers_that_are_too_long_for_ctc_are_named(tmp_path):
    data, _ = import_sequences([{"input": "a", "output": "xyz"}, {"input": "ab", "output": "x"}])
    data.save(tmp_path / "mine.safetensors")
    lines = []
    mine = tmp_path / "mine.safetensors"
    train(settings_of(), mine, mine, tmp_path / "run", watch=lines.append)
    warned = [line["text"] for line in lines if line.get("kind") == "warning"]
    assert warned == [
        "1 of 2 listed answers have more tokens than frames and are not trained on: --network.frames 3 has more"
    ]
    losses = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert all(line["loss"] >= 0 for line in losses)


def test_edit_distance():
    assert edit_distance([1, 2, 3], [1, 2, 3]) == 0
    assert edit_distance([], [1, 2]) == 2
    assert edit_distance([1, 2, 3, 4], [2, 3, 5]) == 2
    assert edit_distance([1, 2], [2, 1]) == 2
