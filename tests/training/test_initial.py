"""Runs that begin with the weights of another network."""

import json
from dataclasses import replace

import pytest
import torch

import oneofmany
from oneofmany.cli import run
from oneofmany.data import Fields, import_sequences
from oneofmany.data.sudoku import build_sudoku
from oneofmany.evaluation import read_record
from oneofmany.files import FileError
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.saved import load_network, save_network
from oneofmany.problems import SequenceProblem, nqueens, sudoku
from oneofmany.training import resume, train
from oneofmany.training.checks import check_initial
from oneofmany.training.learners import Learners, weights_of
from oneofmany.training.updating import Updater
from small_runs import NETWORKS, assert_same_run, assert_same_tensors, fields, files, small


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """A finished run on Sudoku 4x4."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    train(small(), *files(data, small()), folder)
    return folder


@pytest.mark.parametrize("objective", ["minloss", "selectr"])
def test_every_fresh_phase_begins_with_them_on_boards_of_any_size(finished, objective):
    saved = load_network(finished / "weights.safetensors").network
    settings = small(objective, initial=str(finished), ema=0.9, network=replace(NETWORKS["equivariant"], steps=5))
    check_initial(settings, sudoku(9))
    learners = Learners(settings, sudoku(9), torch.device("cpu"))
    other = Learners(replace(settings, initial=None), sudoku(9), torch.device("cpu"))
    for _ in range(2):  # the second time after some training
        learners.begin(None, with_selector=False)
        assert_same_tensors(weights_of(learners.network), weights_of(saved))
        assert_same_tensors(weights_of(learners.evaluated), weights_of(saved))
        with torch.no_grad():
            next(learners.network.parameters()).add_(1)
    assert not all(torch.equal(a, b) for a, b in zip(other.network.parameters(), saved.parameters(), strict=True))
    if learners.selector is not None and other.selector is not None:
        assert_same_tensors(weights_of(learners.selector), weights_of(other.selector))


def test_by_the_command_resumed_and_recorded(finished, data, tmp_path, monkeypatch):
    settings = small(initial=str(finished))
    train_file, dev_file = map(str, files(data, settings))
    arguments = [*fields(settings), "--train", train_file, "--dev", dev_file]
    assert run(["train", "sudoku/minloss/tiny", *arguments, "--out", str(tmp_path / "whole")]) == 0
    record = read_record(tmp_path / "whole")
    assert record.settings["initial"] == "first"  # without the place on this machine
    random = small()
    train(random, train_file, dev_file, tmp_path / "random")
    lines = [(tmp_path / name / "metrics.jsonl").read_text().splitlines()[0] for name in ("whole", "random")]
    assert json.loads(lines[0])["loss"] < json.loads(lines[1])["loss"]

    whole = Updater.run

    def stopping(self, update, lr):
        if update == 3:
            raise KeyError("stopped")
        whole(self, update, lr)

    with monkeypatch.context() as patched:
        patched.setattr(Updater, "run", stopping)
        with pytest.raises(KeyError):
            train(settings, train_file, dev_file, tmp_path / "parts")
    resume(tmp_path / "parts")
    assert_same_run(tmp_path / "parts", tmp_path / "whole")


def test_a_bundled_network_by_its_name():
    network = NetworkSettings("equivariant", width=64, steps=2)
    check_initial(small(initial="sudoku-hard", network=network), sudoku(16))
    with pytest.raises(FileError, match="neither a file, a run folder nor a bundled network"):
        check_initial(small(initial="sudoku-harder", network=network), sudoku(9))


def test_weights_that_do_not_fit_are_refused_before_anything_is_written(finished, data, tmp_path, capsys):
    wider = replace(NETWORKS["equivariant"], width=16)
    for settings, problem, message in (
        (small(initial=str(finished), network=wider), sudoku(4), r"do not fit this network \(.* there, .* here\)"),
        (small(initial=str(finished), kind="transformer"), sudoku(4), "set network.kind, network.width"),
        (small(initial="nqueens"), sudoku(4), "nqueens is a network for nqueens, this run is for sudoku"),
        (replace(small(initial=str(finished)), task="nqueens"), nqueens(4), "is a network for sudoku, this run is for"),
    ):
        with pytest.raises(ValueError, match=message):
            check_initial(settings, problem)
    settings = small(initial=str(finished), network=wider)
    with pytest.raises(ValueError, match="initial: "):
        train(settings, *files(data, settings), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_sequences_need_the_same_words(tmp_path):
    settings = NetworkSettings("ctc", width=8, depth=1)
    data, _ = import_sequences([{"input": "ab", "outputs": ["x"]}], fields=Fields(outputs="outputs"))
    save_network(tmp_path / "a.safetensors", build_network(settings, data.problem), settings, data.problem)
    own = small(initial=str(tmp_path / "a.safetensors"), task="sequences", network=settings)
    check_initial(own, data.problem)
    other = SequenceProblem(("a", "c"), data.problem.outputs, data.problem.longest)
    with pytest.raises(ValueError, match="has another vocabulary than the training data"):
        check_initial(own, other)


def test_from_9x9_to_16x16(tmp_path):
    """A network for 9x9 goes on with 16x16, as the recipe does."""
    build_sudoku(6, "train", seed=1, size=16, givens=(200, 220)).save(tmp_path / "train.safetensors")
    build_sudoku(2, "dev", seed=2, size=16, givens=(200, 220)).save(tmp_path / "dev.safetensors")
    small_network = NetworkSettings("equivariant", width=64, steps=2, test_steps=2)
    settings = small(initial="sudoku-hard", network=small_network)
    phase = replace(settings.first, updates=1, batch=2, lr=1e-6)
    train(
        replace(settings, first=phase), tmp_path / "train.safetensors", tmp_path / "dev.safetensors", tmp_path / "run"
    )
    theirs = weights_of(load_network(tmp_path / "run" / "weights.safetensors").network)
    for name, tensor in weights_of(oneofmany.load("sudoku-hard").network).items():
        assert torch.allclose(tensor, theirs[name], atol=1e-4), name
