"""Training in shards: every process reads its part of the file, and the update is that of one process."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from started_together import arguments, assert_close, torchrun

from oneofmany import tensor_files
from oneofmany.data import Dataset, DeviceData, import_sequences
from oneofmany.data.batches import place
from oneofmany.data.shares import read_share
from oneofmany.files import FileError
from oneofmany.networks.saved import load_network
from oneofmany.problems import OwnRules
from oneofmany.training import PhaseSettings, SelectorTraining, resume, train
from oneofmany.training.distributed import Group
from oneofmany.training.learners import Learners
from oneofmany.training.phases import phases_of
from oneofmany.training.updating import Updater
from small_runs import assert_same_run, files, small, untimed

PHASE = PhaseSettings(updates=6, batch=8, lr=2e-3)
# Enough queries for different rewards in every batch.
TWO = {"first": replace(PHASE, batch=16), "second": replace(PHASE, batch=16)}
LAGGED = SelectorTraining(updates=4, lr=2e-3, copy_interval=3)
SHARDED = {
    "noise": small("minloss", shards=2, reveal=0.5, ema=0.5, burn_in=(0, 1), first=PHASE, log_every=1),
    "drawn": small("minloss", shards=4, epsilon=0.5, first=PHASE, second=replace(PHASE, sampling=0.5), log_every=1),
    "joint": small("selectr", shards=2, reveal=0.3, selector_training=LAGGED, log_every=1, **TWO),
}


@pytest.fixture(scope="module")
def uneven(data, tmp_path_factory):
    """61 Sudokus: the first lists more solutions than the others, which list at most two, and some none."""
    folder = tmp_path_factory.mktemp("uneven")
    whole = Dataset.load(data / "sudoku.safetensors")
    chosen = whole.take(np.concatenate([[whole.listed.argmax()], np.arange(60)]))
    listed = np.minimum(chosen.listed, 2)
    listed[0], listed[5::9] = chosen.listed[0], 0
    keep = np.concatenate([np.arange(of) < kept for of, kept in zip(chosen.listed, listed, strict=True)])
    offsets = np.concatenate([[0], np.cumsum(listed)])
    replace(chosen, solutions=chosen.solutions[keep], offsets=offsets).save(folder / "sudoku.safetensors")
    (folder / "sudoku-dev.safetensors").write_bytes((data / "sudoku-dev.safetensors").read_bytes())
    return folder


def test_two_processes_with_half_of_the_queries_equal_one_with_all(uneven, tmp_path):
    plan = [arguments(settings, uneven, tmp_path / name) for name, settings in SHARDED.items()]
    # The last run again, stopped in its third phase.
    again = arguments(SHARDED["joint"], uneven, tmp_path / "again")
    plan += [["stop-at", "20", *again], ["--resume", str(tmp_path / "again")]]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    process = torchrun(Path(__file__).with_name("two_processes.py"), tmp_path / "plan.json")
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    whole = Dataset.load(uneven / "sudoku.safetensors")
    for rank, half in enumerate((slice(0, 30), slice(30, 61))):
        held = [len(whole.query[half]), int(whole.listed[half].sum())]
        assert json.loads((tmp_path / f"held-{rank}.json").read_text()) == [held] * 5
    assert_same_run(tmp_path / "joint", tmp_path / "again")
    for name, settings in SHARDED.items():
        one, two = tmp_path / f"{name}-alone", tmp_path / name
        train(settings, *files(uneven, settings), one)
        mine, theirs = (json.loads((run / "config.json").read_text())["data"] for run in (one, two))
        assert mine == theirs
        for a, b in zip(untimed(one), untimed(two), strict=True):
            assert_close(a, b, f"{name}: {a}")
        batch = next(DeviceData(Dataset.load(files(uneven, settings)[1])).in_order(20))
        logits = [load_network(run / "weights.safetensors").network(batch) for run in (one, two)]
        torch.testing.assert_close(*(each.log_softmax(-1) for each in logits), rtol=1e-3, atol=2e-3, msg=name)


def updater(settings, share, rank=0, size=1):
    """An updater of the last phase that never sends anything."""
    learners = Learners(settings, share.problem, torch.device("cpu"))
    phase = phases_of(settings)[-1]
    learners.begin(None, with_selector=False, decay=0.0)
    return Updater(settings, phase, learners, place(share, "cpu", settings.listed), Group(rank, size))


def test_every_process_draws_its_part_of_the_batch_from_its_shards(uneven):
    settings, path = SHARDED["drawn"], uneven / "sudoku.safetensors"
    alone = updater(settings, read_share(path, 4, range(4)))
    bounds = [0, 15, 30, 45, 61]
    seen = set()
    for update in range(200):
        whole = alone.draw(update)
        seen.update(whole["rows"].tolist())
        for shard, rows in enumerate(whole["rows"].split(2)):
            assert all(bounds[shard] <= row < bounds[shard + 1] for row in rows)
    assert seen == set(range(61))
    for rank, held in enumerate((range(2), range(2, 4))):
        share = read_share(path, 4, held)
        assert share.data.listed.max() == (3, 2)[rank]
        drawn, part = updater(settings, share, rank, 2).draw(199), slice(4 * rank, 4 * rank + 4)
        assert torch.equal(drawn.pop("rows") + share.first, whole["rows"][part])
        assert set(drawn) == {"noise", "weights"}
        for name, tensor in drawn.items():
            assert torch.equal(tensor, whole[name][part]), name


def test_shards_of_equal_size_draw_differently(uneven):
    alone = updater(replace(SHARDED["drawn"], second=PHASE), read_share(uneven / "sudoku.safetensors", 4, range(4)))
    first, second = (torch.cat([alone.draw(n)["rows"].split(2)[shard] for n in range(10)]) for shard in (0, 1))
    assert not torch.equal(first, second - 15)


def test_a_share_is_a_part_of_the_file(uneven):
    path = uneven / "sudoku.safetensors"
    whole = Dataset.load(path)
    for held, rows in ((range(1), range(20)), (range(1, 3), range(20, 61)), (range(3), range(61))):
        share, expected = read_share(path, 3, held), whole.take(np.array(rows))
        for name in ("query", "solutions", "offsets", "total", "relations", "group"):
            np.testing.assert_array_equal(getattr(share.data, name), getattr(expected, name))
        assert share.header()["checksum"] == whole.header()["checksum"]
        assert (share.first, share.most_listed) == (rows.start, whole.listed.max())
        assert share.counts[:, 1].tolist() == [whole.multiple[a:b].sum() for a, b in ((0, 20), (20, 40), (40, 61))]


def test_the_whole_file_is_checked_piece_by_piece(uneven, tmp_path, monkeypatch):
    monkeypatch.setattr(tensor_files, "PIECE", 1000)
    path = uneven / "sudoku.safetensors"
    read_share(path, 2, range(1))
    damaged = tmp_path / "damaged.safetensors"
    content = bytearray(path.read_bytes())
    place = content.rindex(Dataset.load(path).query[60].tobytes())
    content[place] = 3 - content[place] if content[place] in (1, 2) else 1
    damaged.write_bytes(content)
    with pytest.raises(FileError, match=r"was altered or damaged: its content does not match its checksum$"):
        read_share(damaged, 2, range(1))
    # The other processes of a machine leave that to its first one.
    assert len(read_share(damaged, 2, range(1), check=False).data) == 30


def test_what_cannot_be_read_in_shards_is_refused(uneven, tmp_path, monkeypatch):
    settings, out = SHARDED["noise"], tmp_path / "run"
    for changes, sentence in (
        ({"shards": 3}, "first.batch: expected a multiple of the 3 shards, got 8"),
        ({"first": replace(PHASE, sampling="pairs")}, "shards: expected 1 with first.sampling pairs, got 2"),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}$"):
            replace(settings, **changes)
    many = replace(settings, shards=64, first=replace(PHASE, batch=64))
    with pytest.raises(FileError, match=r"has 61 queries, fewer than the 64 shards: use fewer$"):
        train(many, *files(uneven, settings), out)
    whole = Dataset.load(uneven / "sudoku.safetensors")
    whole.take(np.argsort(whole.multiple, kind="stable")).save(tmp_path / "sorted.safetensors")
    unique = small("unique", shards=2, first=PHASE)
    with pytest.raises(FileError, match=r"samples OS queries, of which one shard has 0 and all 2 have \d+: put the "):
        train(unique, tmp_path / "sorted.safetensors", files(uneven, unique)[1], out)
    wrong = whole.solutions.copy()
    blank = np.flatnonzero(whole.query[60] == 0)[0]
    wrong[-1, blank] = wrong[-1, blank] % 4 + 1
    replace(whole, solutions=wrong).save(tmp_path / "wrong.safetensors")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(FileError, match=r"^train: query 60, counted from 0, lists a solution that breaks a rule"):
        train(settings, tmp_path / "wrong.safetensors", files(uneven, settings)[1], out)
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(ValueError, match=r"^shards: expected a multiple of the 3 processes, got 2$"):
        train(settings, *files(uneven, settings), out)
    assert not out.exists()


def test_sequences_and_rules_of_queries_are_not_read_in_shards(uneven, tmp_path):
    import_sequences([{"input": "a", "output": "b"}] * 2)[0].save(tmp_path / "words.safetensors")
    whole = Dataset.load(uneven / "sudoku.safetensors")
    replace(whole, own=OwnRules.of([()] * len(whole))).save(tmp_path / "own.safetensors")
    for name, what in (("words", "sequences"), ("own", "queries with rules of their own")):
        with pytest.raises(FileError, match=f"holds {what}, which cannot be read in shards: train with --shards 1"):
            read_share(tmp_path / f"{name}.safetensors", 2, range(1))


def test_other_data_is_refused_on_resume(uneven, tmp_path):
    settings = SHARDED["drawn"]
    train_file = tmp_path / "train.safetensors"
    train_file.write_bytes((uneven / "sudoku.safetensors").read_bytes())
    train(settings, train_file, files(uneven, settings)[1], tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    Dataset.load(train_file).take(np.arange(60)).save(train_file, force=True)
    with pytest.raises(FileError, match="was started with other train data"):
        resume(tmp_path / "run")
