"""Readers refuse damaged inputs in one sentence. ``python -m tests.faults.fuzz`` tries as many as asked for."""

import pytest

from .fuzz import fuzz
from .readers import all_readers


@pytest.mark.parametrize("count", [400, pytest.param(50_000, marks=pytest.mark.slow)])
def test_damaged_inputs(tmp_path, capfd, count):
    _, tally = fuzz(count, 0, tmp_path)
    accepted, refused, failed = tally.counts.sum(0)
    assert not failed, capfd.readouterr().err
    assert accepted + refused == count
    assert min(accepted, refused) > count / 5


def test_examples_are_valid(tmp_path):
    for reader in all_readers(tmp_path):
        assert any(_reads(reader, example) for example in reader.examples), reader.name


def _reads(reader, example):
    reader.file.write_bytes(example)
    try:
        reader.read()
    except ValueError:
        return False
    return True
