"""Two runs on the same queries, against counting by hand."""

import shutil
from math import comb

import pytest

from evaluated_runs import made
from oneofmany.data.dataset import Dataset
from oneofmany.evaluation import compare_runs, evaluate_run, load_predictions, read_record, save_record
from oneofmany.files import FileError


@pytest.fixture
def runs(tmp_path):
    """Two runs that were evaluated on ``test``, and the data."""
    folder = shutil.copytree(made(), tmp_path / "here")
    for name in ("minloss", "selectr"):
        evaluate_run(folder / name, folder / "test.safetensors")
    return folder


def test_counts_and_tests_exactly(runs):
    pair, data = [runs / "minloss", runs / "selectr"], runs / "test.safetensors"
    compared, total = compare_runs(*pair, data), Dataset.load(data).total
    first, second = (load_predictions(run / "predictions" / "test.safetensors")[0].valid for run in pair)
    for subset, rows in (("os", total == 1), ("ms", total > 1), ("overall", total > 0)):
        pairs = list(zip(first[rows], second[rows], strict=True))
        counts = [sum(both == (a, b) for both in pairs) for a, b in ((1, 0), (0, 1), (1, 1), (0, 0))]
        one = getattr(compared, subset)
        assert [one.mcnemar.only_first, one.mcnemar.only_second, one.both, one.neither] == counts
        apart, most = sum(counts[:2]), max(counts[:2])
        # Two-sided: both tails of the fair coin, which meet where the counts are equal.
        p = min(1, 2 * sum(comb(apart, k) for k in range(most, apart + 1)) / 2**apart)
        assert one.mcnemar.p == pytest.approx(p)
        assert (one.first.correct, one.first.total) == (first[rows].sum(), rows.sum())
        assert (one.second.correct, one.second.total) == (second[rows].sum(), rows.sum())
    assert compared.overall.mcnemar.only_first + compared.overall.mcnemar.only_second > 0
    checksum = Dataset.load(data).header()["checksum"]
    about = {"name": "test", "checksum": checksum, "queries": len(total), "judged_by": "rules"}
    assert compared.data == about
    swapped = compare_runs(*reversed(pair), data)
    assert swapped.ms.mcnemar.only_first == compared.ms.mcnemar.only_second
    assert swapped.ms.mcnemar.p == compared.ms.mcnemar.p
    assert (swapped.ms.first, swapped.ms.second) == (compared.ms.second, compared.ms.first)


def test_records_will_do_and_names_choose(runs):
    data = runs / "test.safetensors"
    for name in ("minloss", "selectr"):
        evaluate_run(runs / name, data, steps=1, name="one-step")
        save_record(read_record(runs / name), runs / f"{name}.json")
    records = [runs / "minloss.json", runs / "selectr.json"]
    for name in (None, "one-step"):
        assert compare_runs(*records, data, name=name) == compare_runs(
            runs / "minloss", runs / "selectr", data, name=name
        )
    assert compare_runs(*records, data) != compare_runs(*records, data, name="one-step")


def test_without_predictions_on_the_same_data(runs):
    pair = [runs / "minloss", runs / "selectr"]
    with pytest.raises(FileError, match=r"has no predictions on dev \(but on test\): make them with `oneofmany eval"):
        compare_runs(*pair, runs / "dev.safetensors")
    shutil.copy(runs / "other.safetensors", runs / "test.safetensors")
    with pytest.raises(FileError, match="was evaluated on other data"):
        compare_runs(*pair, runs / "test.safetensors")
