"""Tensor files: the bytes are those of safetensors with the literal header, and errors are one sentence."""

import hashlib
import json

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from oneofmany.data.futoshiki import build_futoshiki
from oneofmany.files import FileError
from oneofmany.networks.building import NetworkSettings, build_network
from oneofmany.networks.saved import save_network
from oneofmany.tensor_files import HEADER, explained, from_bytes, read_sealed, read_tensors, sealed, to_bytes

ARRAYS = {"b": np.arange(6, dtype=np.int16).reshape(2, 3), "a": np.ones(2, bool)}


def literal(tensors, header):
    save = safetensors.torch.save if isinstance(next(iter(tensors.values())), torch.Tensor) else safetensors.numpy.save
    return save(tensors, {"oneofmany": json.dumps(header, sort_keys=True, separators=(",", ":"))})


def test_a_dataset_has_the_bytes_it_always_had(tmp_path):
    data = build_futoshiki(4, 9, 2, 30, seed=3)
    data.save(tmp_path / "a")
    names = ("query", "solutions", "offsets", "total", "relations", "group")
    tensors = {name: getattr(data, name) for name in names}
    about = {key: value for key, value in data.header().items() if key != "checksum"}
    digest = hashlib.sha256(json.dumps(about, sort_keys=True, separators=(",", ":")).encode())
    for name in sorted(tensors):
        digest.update(f"{name}{list(tensors[name].shape)}".encode() + tensors[name].tobytes())
    content = literal(tensors, about | {"checksum": f"sha256:{digest.hexdigest()}"})
    assert (tmp_path / "a").read_bytes() == content


def test_a_network_has_the_bytes_it_always_had(tmp_path):
    problem, settings = build_futoshiki(4, 9, 2, 30, seed=3).problem, NetworkSettings("equivariant", width=8, steps=2)
    network = build_network(settings, problem)
    save_network(tmp_path / "w", network, settings, problem, {"by": "Zoë"})
    with safetensors.safe_open(tmp_path / "w", framework="pt") as file:
        header = json.loads(file.metadata()["oneofmany"])
    assert header["card"] == {"by": "Zoë"}
    assert header.keys() == {"format", "version", "task", "size", "options", "network", "card", "checksum"}
    weights = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    about = {key: value for key, value in header.items() if key != "checksum"}
    arrays = {name: tensor.numpy() for name, tensor in weights.items()}
    assert sealed(about, weights) == sealed(about, arrays) == header
    assert (tmp_path / "w").read_bytes() == literal(weights, header)


def test_a_state_comes_back(tmp_path):
    tensors = {"x": torch.arange(3.0)[:2], "half": torch.ones(2, 1, dtype=torch.bfloat16)}
    header, found = from_bytes(to_bytes(tensors, '{"at": NaN}'))
    assert header["at"] != header["at"]
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({}, r"a is damaged or not a thing \(KeyError: 'format'\)"),
        ([1], r"a is damaged or not a thing \(TypeError: "),
        ({"format": "1"}, "a is damaged or not a thing: its format version is '1'"),
        ({"format": 3}, "a has format version 3, newer than 2: upgrade oneofmany"),
        ({"format": 2}, r"a is damaged or not a thing \(KeyError: 'checksum'\)"),
        ({"format": 2, "checksum": "sha256:0"}, "a was altered or damaged: its content does not match its checksum"),
    ],
)
def test_bad_headers(tmp_path, header, message):
    (tmp_path / "a").write_bytes(literal(ARRAYS, header))
    with pytest.raises(FileError, match=message):
        read_sealed(tmp_path / "a", otherwise="not a thing", newest=2, dtypes={"a": np.bool_, "b": np.int16})


@pytest.mark.parametrize(
    ("dtypes", "optional", "message"),
    [
        ({"a": np.bool_, "b": np.int16}, (), None),
        ({"a": np.bool_, "b": np.int16, "c": np.int8}, ("c",), None),
        ({"a": np.bool_, "b": np.int16, "c": np.int8}, (), "not a thing: its tensors are not a, b, c"),
        ({"a": np.bool_}, (), "not a thing: its tensors are not a$"),
        ({"a": np.bool_, "b": np.int32}, (), "not a thing: its tensors have other types"),
    ],
)
def test_what_tensors_are_expected(tmp_path, dtypes, optional, message):
    (tmp_path / "a").write_bytes(literal(ARRAYS, sealed({"format": 1}, ARRAYS)))

    def read():
        return read_sealed(tmp_path / "a", otherwise="not a thing", newest=1, dtypes=dtypes, optional=optional)

    if message is None:
        header, tensors = read()
        assert header["format"] == 1
        assert all((tensors[name] == ARRAYS[name]).all() for name in ARRAYS)
    else:
        with pytest.raises(FileError, match=message):
            read()


def test_no_file_and_no_header(tmp_path):
    with pytest.raises(FileError, match="is not a file"):
        read_tensors(tmp_path, otherwise="not a thing", newest=1, framework="numpy")
    (tmp_path / "a").write_bytes(safetensors.numpy.save(ARRAYS))
    with pytest.raises(FileError, match=rf"a is damaged or not a thing \(KeyError: '{HEADER}'\)"):
        read_tensors(tmp_path / "a", otherwise="not a thing", newest=1, framework="numpy")


def test_errors_keep_one_line():
    with pytest.raises(FileError, match=r"^x is damaged or gone \(RuntimeError: first\)$"), explained("x", "gone"):
        raise RuntimeError("first\nsecond")
    with pytest.raises(FileError, match=r"^x cannot be read: no such luck$"), explained("x", "gone"):
        raise OSError(5, "no such luck")
