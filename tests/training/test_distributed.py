"""Two processes do what one does: the same batches, the same denominators, the same noise and dropout."""

import json
import os
import signal
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from started_together import arguments, assert_close, torchrun

from oneofmany.data import Dataset, DeviceData
from oneofmany.networks.saved import load_network
from oneofmany.training import PhaseSettings, SelectorTraining, resume, starting, train
from oneofmany.training.distributed import Group, LostProcess, processes
from small_runs import files, small, untimed

PHASE = PhaseSettings(updates=6, batch=8, lr=2e-3)
COMMON = {"first": PHASE, "log_every": 1}
LAGGED = SelectorTraining(updates=4, lr=2e-3, copy_interval=3)
# Enough queries for different rewards in every batch. With equal rewards the selector's gradient is only rounding,
# which Adam turns into steps that depend on the order of a sum.
SELECTING = {"first": replace(PHASE, batch=16), "second": replace(PHASE, batch=16), "log_every": 1}
RUNS = {
    "noise": small("minloss", reveal=0.5, ema=0.5, burn_in=(0, 1), **COMMON),
    "windows": small("minloss", windows=2, burn_in=(0, 1), **COMMON),
    "unique": small("unique", "nlm", clip=0.1, **COMMON),
    "naive": small("naive", "nlm", **COMMON),
    "joint": small("selectr", reveal=0.3, selector_training=LAGGED, **SELECTING),
    "sampled": small("selectr", selector_training=replace(LAGGED, sample=True), **SELECTING),
    "dropout": small("minloss", "rrn", **COMMON),
}


@pytest.fixture(scope="module")
def gaps(data, tmp_path_factory):
    """The data with empty lists for a third of the queries, so that slices of a batch train on different numbers."""
    folder = tmp_path_factory.mktemp("gaps")
    for task in ("sudoku", "nqueens"):
        whole = Dataset.load(data / f"{task}.safetensors")
        listed = np.where(np.arange(len(whole)) % 3 == 0, 0, whole.listed)
        keep = np.repeat(listed > 0, whole.listed)
        offsets = np.concatenate([[0], np.cumsum(listed)])
        parts = (offsets, whole.total, whole.relations, whole.group)
        Dataset(whole.problem, whole.query, whole.solutions[keep], *parts).save(folder / f"{task}.safetensors")
        (folder / f"{task}-dev.safetensors").write_bytes((data / f"{task}-dev.safetensors").read_bytes())
    return folder


def test_two_processes_equal_one(gaps, tmp_path):
    plan = [arguments(settings, gaps, tmp_path / name) for name, settings in RUNS.items()]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    process = torchrun(Path(__file__).with_name("two_processes.py"), tmp_path / "plan.json")
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    # Each run prints its result once.
    assert [line.split(": dev ")[0] for line in stdout.splitlines()] == [str(tmp_path / name) for name in RUNS]
    for name, settings in RUNS.items():
        one, two = tmp_path / f"{name}-alone", tmp_path / name
        train(settings, *files(gaps, settings), one)
        assert json.loads((two / "config.json").read_text())["processes"] == 2
        for mine, theirs in zip(untimed(one), untimed(two), strict=True):
            assert_close(mine, theirs, f"{name}: {mine}")
            assert mine.get("selector_gradient_norm", 1) > 1e-5, (name, mine)
        batch = next(DeviceData(Dataset.load(files(gaps, settings)[1])).in_order(20))
        logits = [load_network(run / "weights.safetensors").network(batch) for run in (one, two)]
        torch.testing.assert_close(*(each.log_softmax(-1) for each in logits), rtol=1e-3, atol=2e-3, msg=name)


def child(parent, rank):
    """The process of a rank, by what Linux says about its parent and its environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            of = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if of == parent and f"\0RANK={rank}\0".encode() in (folder / "environ").read_bytes():
                return int(folder.name)
        except OSError:
            continue
    raise AssertionError(f"no process of rank {rank}")


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc to find the worker")
def test_a_lost_worker_ends_the_run_which_can_go_on(gaps, tmp_path):
    settings = replace(RUNS["joint"], first=replace(RUNS["joint"].first, updates=30))
    out = tmp_path / "run"
    process = torchrun("-m", "oneofmany", "train", *arguments(settings, gaps, out))
    metrics = out / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and '"phase":"pretrain-unique"' in metrics.read_text()):
        time.sleep(0.01)
    os.kill(child(process.pid, 1), signal.SIGKILL)
    stdout, stderr = process.communicate()
    assert process.returncode != 0, stderr
    assert stdout == ""
    assert not (out / "result.json").exists()
    # It resumes, here on one process, without a gap or a repetition.
    assert resume(out)["updates"] == 30 + 30 + 4 + 6
    lines = [(line["phase"], line["update"]) for line in untimed(out)[:-1] if line["kind"] == "train"]
    lengths = {"pretrain-minloss": 30, "pretrain-unique": 30, "selector": 4, "joint": 6}
    assert lines == [(phase, update) for phase, updates in lengths.items() for update in range(1, updates + 1)]


def test_a_process_that_does_not_answer(monkeypatch):
    def gone(*_, **__):
        raise RuntimeError("Connection closed by peer\nmore than anybody wants to know")

    monkeypatch.setattr(torch.distributed, "all_reduce", gone)
    monkeypatch.setattr(torch.distributed, "broadcast", gone)
    monkeypatch.setattr(torch.distributed, "barrier", gone)
    group, parameter = Group(0, 2), torch.nn.Parameter(torch.zeros(2))
    for talk in (
        lambda: group.sum(torch.zeros(1)),
        lambda: group.sum_gradients([parameter]),
        lambda: group.from_first(1.0, torch.device("cpu")),
        lambda: group.wait(torch.device("cpu")),
    ):
        with pytest.raises(LostProcess, match=r"^another process of this run was lost \(Connection closed by peer\)$"):
            talk()


def test_processes_leave_together_unless_one_has_failed(monkeypatch):
    done = []
    for name in ("init_process_group", "barrier", "destroy_process_group"):
        monkeypatch.setattr(torch.distributed, name, lambda *_, name=name, **__: done.append(name))
    for name, value in (("is_initialized", False), ("get_rank", 1), ("get_world_size", 2)):
        monkeypatch.setattr(torch.distributed, name, lambda value=value: value)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with processes(torch.device("cpu")) as (group, _):
        assert (group, done) == (Group(1, 2), ["init_process_group"])
    assert done == ["init_process_group", "barrier", "destroy_process_group"]
    with pytest.raises(KeyError), processes(torch.device("cpu")):
        raise KeyError
    assert done[3:] == ["init_process_group", "destroy_process_group"]


def test_batches_that_cannot_be_split_are_refused_at_once(data, tmp_path, monkeypatch):
    @contextmanager
    def three(device):
        yield Group(0, 3), device

    monkeypatch.setattr(starting, "processes", three)
    settings = small("selectr", first=replace(PHASE, batch=6), second=replace(PHASE, batch=8))
    with pytest.raises(ValueError, match="batch: expected a multiple of the 3 processes, got 8"):
        train(settings, *files(data, settings), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_slices_cover_the_batch_once():
    for size in (1, 2, 3, 6):
        rows = [r for rank in range(size) for r in range(12)[Group(rank, size).rows(12)]]
        assert rows == list(range(12))
    with pytest.raises(ValueError, match="batch: expected a multiple of the 5 processes, got 12"):
        Group(0, 5).rows(12)


def test_one_process_sends_nothing():
    group, value = Group(), torch.tensor([1.0])
    parameter = torch.nn.Parameter(torch.zeros(2))
    assert group.sum(value) is value
    group.sum_gradients([parameter])
    assert parameter.grad is None
    assert group.from_first(0.25, torch.device("cpu")) == 0.25
    group.wait(torch.device("cpu"))
