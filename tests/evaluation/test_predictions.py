"""The predictions file: reading returns what was written, and errors are reported."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from oneofmany.data.nqueens import build_nqueens
from oneofmany.evaluation import Outcomes, load_predictions, save_predictions
from oneofmany.evaluation.outcomes import DTYPES, OPTIONAL
from oneofmany.files import FileError, canonical_json
from oneofmany.tensor_files import HEADER, sealed

ABOUT = {
    "data": {"checksum": "sha256:0", "task": "nqueens", "size": 8, "queries": 30, "name": "nqueens-test"},
    "readout": "argmax",
    "steps": None,
    "starts": 4,
    "choose": "residual",
    "seed": 0,
    "seconds": 1.25,
}


def some_outcomes(starts):
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(0, 2, (30, 8) if name in ("answers", "tokens") else 30) for name in DTYPES}
    return Outcomes(**{name: array for name, array in arrays.items() if starts > 1 or name not in OPTIONAL})


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("predictions") / "a.safetensors"
    save_predictions(path, some_outcomes(4), ABOUT)
    return path.read_bytes()


@pytest.mark.parametrize("starts", [1, 4])
def test_round_trip(tmp_path, starts):
    path, outcomes = tmp_path / "a.safetensors", some_outcomes(starts)
    save_predictions(path, outcomes, ABOUT)
    again, about = load_predictions(path)
    assert about == ABOUT
    for name, dtype in DTYPES.items():
        before, after = getattr(outcomes, name), getattr(again, name)
        if starts == 1 and name in OPTIONAL:
            assert after is None
        else:
            assert (before == after).all()
            assert after.dtype == dtype
    assert again.summary() == outcomes.summary()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.safetensors"]


def test_the_same_predictions_are_the_same_bytes(content, tmp_path):
    path = tmp_path / "b.safetensors"
    save_predictions(path, some_outcomes(4), dict(reversed(ABOUT.items())))
    assert path.read_bytes() == content
    (length,) = struct.unpack("<Q", content[:8])
    metadata = json.loads(content[8 : 8 + length])["__metadata__"]
    assert list(metadata) == [HEADER]


def test_existing_files_are_kept(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_text("mine")
    with pytest.raises(FileError, match="exists"):
        save_predictions(path, some_outcomes(4), ABOUT)
    assert path.read_text() == "mine"
    save_predictions(path, some_outcomes(4), ABOUT, force=True)
    assert len(load_predictions(path)[0]) == 30


@given(data=st.data())
def test_any_altered_byte_is_noticed(content, tmp_path_factory, data):
    place = data.draw(st.integers(0, len(content) - 1))
    value = data.draw(st.integers(0, 255).filter(lambda v: v != content[place]))
    path = tmp_path_factory.mktemp("altered") / "a.safetensors"
    path.write_bytes(content[:place] + bytes([value]) + content[place + 1 :])
    with pytest.raises(FileError) as error:
        load_predictions(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@given(share=st.floats(0, 1, exclude_max=True))
def test_any_missing_end_is_noticed(content, tmp_path_factory, share):
    path = tmp_path_factory.mktemp("short") / "a.safetensors"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FileError, match="is damaged or holds no predictions"):
        load_predictions(path)


def test_no_file(tmp_path):
    with pytest.raises(FileError, match="is not a file"):
        load_predictions(tmp_path)


def test_a_dataset_is_no_prediction(tmp_path):
    path = tmp_path / "data.safetensors"
    build_nqueens(5, 2, 10).save(path)
    with pytest.raises(FileError, match="holds no predictions"):
        load_predictions(path)


def forged(path, header=None, tensors=None):
    """A predictions file with another header or other tensors and a matching checksum."""
    own = {"format": 1, "version": "0", "about": ABOUT} | (header or {})
    arrays = {name: getattr(some_outcomes(4), name) for name in DTYPES} | (tensors or {})
    arrays = {name: array for name, array in arrays.items() if array is not None}
    text = canonical_json(sealed(own, arrays))
    path.write_bytes(save(arrays, {HEADER: text}))
    assert load(path.read_bytes()).keys() == arrays.keys()


@pytest.mark.parametrize(
    ("header", "tensors", "message"),
    [
        ({"format": 2}, {}, "has format version 2, newer than 1.*: upgrade oneofmany"),
        ({"about": None}, {}, "holds no predictions"),
        ({"about": {}}, {}, "about: data, readout, steps, starts, choose, seed missing"),
        ({"about": ABOUT | {"data": {}}}, {}, "about: data.checksum, .* missing"),
        (
            {"about": ABOUT | {"data": ABOUT["data"] | {"queries": 31}}},
            {},
            "names 31 queries, but there are 30 answers",
        ),
        ({}, {"valid": None}, "its tensors are not answers, valid"),
        ({}, {"more": np.ones(3)}, "its tensors are not answers, valid"),
        ({}, {"checked": None}, "chosen and checked: expected both"),
        ({}, {"valid": np.ones(30, np.uint8)}, "its tensors have other types"),
        ({}, {"valid": np.ones(29, bool)}, r"valid: expected \[30\], got \[29\]"),
    ],
)
def test_a_file_of_somebody_else(tmp_path, header, tensors, message):
    path = tmp_path / "a.safetensors"
    forged(path)
    load_predictions(path)
    forged(path, header, tensors)
    with pytest.raises(FileError, match=message):
        load_predictions(path)


def test_incomplete_descriptions_are_refused(tmp_path):
    for name in ABOUT.keys() - {"seconds"}:
        about = {key: value for key, value in ABOUT.items() if key != name}
        with pytest.raises(ValueError, match=f"about: {name} missing"):
            save_predictions(tmp_path / "a", some_outcomes(1), about)
    assert not list(tmp_path.iterdir())
